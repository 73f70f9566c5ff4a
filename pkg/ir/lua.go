package ir

// Lua is a script for requests and responses.
type Lua struct {
	Script string `json:"script"`
	// Calls are the clusters that the script may call, by the name of their upstream. They are Asked clusters.
	Calls map[string]string `json:"calls,omitempty"`
}
