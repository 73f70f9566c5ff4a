package ir

// CSRF refuses changing requests that pages of other hosts send.
type CSRF struct {
	// Hosts are other hosts whose pages are allowed, sorted. Each has its port unless that is
	// the default.
	Hosts []string `json:"hosts,omitempty"`
}
