package ir

import "net/netip"

// Maintenance answers in place of all routes.
type Maintenance struct {
	Status      int    `json:"status"`
	Body        string `json:"body"`
	ContentType string `json:"contentType"`
	// RetryAfter is in seconds; 0 means that clients are not told.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Except are addresses of clients that the routes answer.
	Except []netip.Prefix `json:"except,omitempty"`
}
