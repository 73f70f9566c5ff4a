package ir

// Lua is a script for requests and responses.
type Lua struct {
	Script string `json:"script"`
}
