package ir

// Lua is a script for requests and answers.
type Lua struct {
	Script string `json:"script"`
}
