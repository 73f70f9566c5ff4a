package ir

// CSRF refuses requests for changes that pages of other hosts send.
type CSRF struct {
	// Hosts, with a port that is not the usual one, are those whose pages may ask too, sorted.
	Hosts []string `json:"hosts,omitempty"`
}
