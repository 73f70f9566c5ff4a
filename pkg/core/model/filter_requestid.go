package model

// RequestIDFilter chooses the X-Request-Id of requests. Without it, each request has a new one, whatever its client
// sends. A route's filter replaces its service's.
// +page=requestid.md
// +example={take_over: true, echo: true}
type RequestIDFilter struct {
	// Keep the X-Request-Id that a client sends, up to 128 bytes. A request without one gets a new one.
	TakeOver bool `json:"take_over"`
	// Add the X-Request-Id to responses.
	Echo bool `json:"echo"`
}

func readRequestID(v *validator, at, _ string, config JSON) Spec {
	var f RequestIDFilter
	v.decode(at, config, &f)
	return &f
}

func (f *RequestIDFilter) uses() []Key { return nil }
