package ir

// BodyLimit refuses requests with a larger body.
type BodyLimit struct {
	Bytes int `json:"bytes"`
	// Decompress decompresses bodies before they are counted.
	Decompress bool `json:"decompress,omitempty"`
}
