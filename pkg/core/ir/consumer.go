package ir

// Consumer is a person or program, with the credentials by which Envoy knows it.
type Consumer struct {
	Name string `json:"name"`
	// Groups are sorted.
	Groups []string `json:"groups,omitempty"`
	// Credentials are the identities of the credentials, sorted: see model.ConsumerCredentials.
	Credentials []string `json:"credentials"`
}
