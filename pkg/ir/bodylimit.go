package ir

// BodyLimit refuses requests with a larger body.
type BodyLimit struct {
	Bytes int `json:"bytes"`
	// Decompress says that bodies are unpacked, and counted then.
	Decompress bool `json:"decompress,omitempty"`
}
