package ir

import "time"

// Fault delays or fails some requests.
type Fault struct {
	// Delay is how long a request is delayed; 0 means no delay.
	Delay time.Duration `json:"delay,omitempty"`
	// Abort is the status that replaces the upstream's answer; 0 means none.
	Abort int `json:"abort,omitempty"`
	// Millionths is the share of requests, in millionths.
	Millionths int `json:"millionths"`
	// Header must be on a request for a fault; empty means that any request may
	// have one.
	Header string `json:"header,omitempty"`
}
