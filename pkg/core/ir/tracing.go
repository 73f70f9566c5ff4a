package ir

// Tracing sets which requests have spans, what these say, and where they go.
type Tracing struct {
	Collector *Cluster `json:"collector"`
	// Path is the path of the collector for spans over HTTP; empty means gRPC.
	Path string `json:"path,omitempty"`
	// ServiceName is the name of the gateway in traces.
	ServiceName string `json:"serviceName"`
	// Sampling is how many of 100 requests are traced.
	Sampling float64 `json:"sampling"`
	// IgnoreParent removes the trace context of clients.
	IgnoreParent bool `json:"ignoreParent,omitempty"`
	// ForceHeader is a header whose requests are always traced; empty means none.
	ForceHeader string `json:"forceHeader,omitempty"`
	// UpstreamSpans adds a span for each try at an upstream.
	UpstreamSpans bool       `json:"upstreamSpans,omitempty"`
	Tags          []TraceTag `json:"tags,omitempty"`
}

// TraceTag is a tag of spans, with one of a text, a header of the request and a header of the response.
type TraceTag struct {
	Name           string `json:"name"`
	Value          string `json:"value,omitempty"`
	Header         string `json:"header,omitempty"`
	ResponseHeader string `json:"responseHeader,omitempty"`
}
