package ir

import "time"

// Mirror copies requests to a cluster. The cluster is one of the route's Asked clusters.
type Mirror struct {
	Cluster string `json:"cluster"`
	// Millionths is the share of requests that are copied, in millionths.
	Millionths int `json:"millionths"`
	// KeepCredentials leaves the client's credentials in the copy.
	KeepCredentials bool `json:"keepCredentials,omitempty"`
}

// Affinity keeps a client at one endpoint. Without Cookie and Header, the client's address identifies
// it.
type Affinity struct {
	Cookie string `json:"cookie,omitempty"`
	// TTL is the lifetime of the cookie; 0 means until the browser closes.
	TTL    time.Duration `json:"ttl,omitempty"`
	Header string        `json:"header,omitempty"`
	// Exact means that the cookie names the endpoint.
	Exact bool `json:"exact,omitempty"`
}
