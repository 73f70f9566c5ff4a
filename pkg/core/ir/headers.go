package ir

// HeaderChange is a change of one header.
type HeaderChange struct {
	Action HeaderAction `json:"action"`
	// Name is in lower case.
	Name string `json:"name"`
	// Value is literal text, or a template of Envoy's substitution formatter; empty for HeaderRemove.
	Value    string `json:"value,omitempty"`
	Template bool   `json:"template,omitempty"`
}

// HeaderAction says how a header changes.
type HeaderAction string

// The ways to change a header.
const (
	HeaderRemove HeaderAction = "remove"
	// HeaderSet replaces all values.
	HeaderSet HeaderAction = "set"
	// HeaderAdd adds a value.
	HeaderAdd HeaderAction = "add"
)
