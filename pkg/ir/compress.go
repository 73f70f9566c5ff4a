package ir

// Compress says how answers may be compressed.
type Compress struct {
	// Algorithms are content codings that a client may choose from.
	Algorithms []string `json:"algorithms"`
}
