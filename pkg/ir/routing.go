package ir

import "time"

// Mirror gets a copy of requests. Its cluster is among those that the route asks.
type Mirror struct {
	Cluster string `json:"cluster"`
	// Millionths of the requests are copied.
	Millionths int `json:"millionths"`
	// KeepCredentials says that the copy has those of the client.
	KeepCredentials bool `json:"keepCredentials,omitempty"`
}

// Affinity keeps a client at one endpoint. Without Cookie and Header, its address tells it from others.
type Affinity struct {
	Cookie string `json:"cookie,omitempty"`
	// TTL is that of the cookie; 0 means as long as the browser runs.
	TTL    time.Duration `json:"ttl,omitempty"`
	Header string        `json:"header,omitempty"`
	// Exact says that the cookie names the endpoint.
	Exact bool `json:"exact,omitempty"`
}
