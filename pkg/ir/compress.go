package ir

// Compress sets how responses may be compressed.
type Compress struct {
	// Algorithms are the content codings that a client may choose from.
	Algorithms []string `json:"algorithms"`
}
