package ir

// Compress sets how responses may be compressed.
type Compress struct {
	// Algorithms are the content codings that a client may choose from.
	Algorithms []string `json:"algorithms"`
	// Level is from 1 (fastest) to 9 (smallest); 0 means the algorithm's default.
	Level int `json:"level,omitempty"`
}
