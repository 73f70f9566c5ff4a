package ir

import "net/netip"

// Maintenance answers in place of all routes.
type Maintenance struct {
	Status      int    `json:"status"`
	Body        string `json:"body"`
	ContentType string `json:"contentType"`
	// RetryAfter is in seconds; 0 sends no Retry-After header.
	RetryAfter int `json:"retryAfter,omitempty"`
	// Except are client addresses that still reach the routes.
	Except []netip.Prefix `json:"except,omitempty"`
}
