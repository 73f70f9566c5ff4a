package ir

import "time"

// Fault delays or fails some requests.
type Fault struct {
	// Delay is for how long; 0 means not at all.
	Delay time.Duration `json:"delay,omitempty"`
	// Abort is the status in place of the upstream's; 0 means that there is none.
	Abort int `json:"abort,omitempty"`
	// Millionths is the share of requests, of a million.
	Millionths int `json:"millionths"`
	// Header has to be on a request; empty means that none has to.
	Header string `json:"header,omitempty"`
}
