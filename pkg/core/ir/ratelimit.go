package ir

// RateLimitEngine is where the rate-limit engine listens: a Unix socket or HOST:PORT.
type RateLimitEngine struct {
	Socket  string `json:"socket,omitempty"`
	Address string `json:"address,omitempty"`
}

// RateLimitService sets how a listener asks the rate-limit engine.
type RateLimitService struct {
	// Domain is the name of the domain in the engine.
	Domain string `json:"domain"`
	// Deny answers 503 when the engine does not answer. Otherwise the request is
	// allowed.
	Deny bool `json:"deny,omitempty"`
	// Headers adds x-ratelimit headers to responses.
	Headers bool `json:"headers,omitempty"`
	// Status is the response status for a request over its limit.
	Status int `json:"status"`
}

// RateLimit is one descriptor. The request is counted under all its entries together.
type RateLimit []RateLimitEntry

// RateLimitEntry is one part of a descriptor.
type RateLimitEntry struct {
	// Kind is the part of the request.
	Kind RateLimitKind `json:"kind"`
	// Key is the descriptor's key. Value is its value, if that is fixed.
	Key   string `json:"key,omitempty"`
	Value string `json:"value,omitempty"`
	// Name is the name of a header or query parameter, or the path to a claim with dots
	// between its steps.
	Name         string `json:"name,omitempty"`
	SkipIfAbsent bool   `json:"skipIfAbsent,omitempty"`
	// V4Mask and V6Mask are prefix lengths.
	V4Mask int `json:"v4Mask,omitempty"`
	V6Mask int `json:"v6Mask,omitempty"`
	// Headers must match for the value to be sent. With NoMatch, they must not match.
	Headers []ValueMatch `json:"headers,omitempty"`
	NoMatch bool         `json:"noMatch,omitempty"`
}

// RateLimitKind is a part of a request that can be counted.
type RateLimitKind string

// The parts of a request that can be counted.
const (
	RateLimitAddress       RateLimitKind = "remote_address"
	RateLimitMaskedAddress RateLimitKind = "masked_remote_address"
	RateLimitGeneric       RateLimitKind = "generic_key"
	RateLimitHeader        RateLimitKind = "request_headers"
	RateLimitQuery         RateLimitKind = "query_parameters"
	RateLimitHeaderMatch   RateLimitKind = "header_value_match"
	// RateLimitClaim is a claim of a verified token, or of the id_token of a login.
	RateLimitClaim RateLimitKind = "claim"
	// RateLimitAPIClient is the client of the API key.
	RateLimitAPIClient RateLimitKind = "api_client"
	// RateLimitConsumer is the consumer.
	RateLimitConsumer RateLimitKind = "consumer"
	// RateLimitPath is the path without its query.
	RateLimitPath RateLimitKind = "path"
)
