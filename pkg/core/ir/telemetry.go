package ir

import "time"

// Collector receives spans or logs (OpenTelemetry, OTLP, or for logs Envoy's access log service).
type Collector struct {
	Cluster *Cluster `json:"cluster"`
	// Host is the Host header, with the port.
	Host string `json:"host"`
	// Path is its path over HTTP; empty means gRPC.
	Path string `json:"path,omitempty"`
}

// Tracing sets which requests have spans, what these say, and where they go.
type Tracing struct {
	Collector *Collector `json:"collector"`
	// ServiceName is the name of the gateway in traces.
	ServiceName string `json:"serviceName"`
	// Sampling is how many of 100 requests are traced.
	Sampling float64 `json:"sampling"`
	// IgnoreParent removes the trace context of clients.
	IgnoreParent bool `json:"ignoreParent,omitempty"`
	// B3 reads the trace context of clients in the form of Zipkin, too.
	B3 bool `json:"b3,omitempty"`
	// ForceHeader is a header whose requests are always traced; empty means none.
	ForceHeader string `json:"forceHeader,omitempty"`
	// UpstreamSpans adds a span for each try at an upstream.
	UpstreamSpans bool       `json:"upstreamSpans,omitempty"`
	Tags          []TraceTag `json:"tags,omitempty"`
}

// TraceTag is a tag of spans, with one of a text, a header of the request, a header of the response and what is known of
// the consumer.
type TraceTag struct {
	Name           string `json:"name"`
	Value          string `json:"value,omitempty"`
	Header         string `json:"header,omitempty"`
	ResponseHeader string `json:"responseHeader,omitempty"`
	Consumer       string `json:"consumer,omitempty"`
}

// AccessLog is a log of requests.
type AccessLog struct {
	// Name is the name that filters have for it.
	Name string `json:"name,omitempty"`
	// Collector receives the log; nil means File, or Envoy's standard output.
	Collector *Collector `json:"collector,omitempty"`
	// ALS means that the collector is an access log service of Envoy.
	ALS bool `json:"als,omitempty"`
	// File means a file, in Dir, with the name of the log. Dir is a directory of the Envoy that gets the listener: what is
	// compiled has none. Without it, lines go to standard output.
	File bool   `json:"file,omitempty"`
	Dir  string `json:"dir,omitempty"`
	// ServiceName is the name of the gateway for the collector.
	ServiceName string `json:"serviceName"`
	// Omit and Rename change the fields that every log has; Fields are added.
	Omit   []string          `json:"omit,omitempty"`
	Rename map[string]string `json:"rename,omitempty"`
	Fields []LogField        `json:"fields,omitempty"`
	// Only selects requests; nil means all.
	Only *LogOnly `json:"only,omitempty"`
	// Line has the parts of a line of text; empty means JSON.
	Line []LogPart `json:"line,omitempty"`
	// AttachedOnly takes requests whose service or route names the log, Always all. Without both, requests whose service
	// names no logs are taken too.
	AttachedOnly bool `json:"attachedOnly,omitempty"`
	Always       bool `json:"always,omitempty"`
}

// LogPart is a part of a line: the name of a field, or else a text.
type LogPart struct {
	Text  string `json:"text,omitempty"`
	Field string `json:"field,omitempty"`
}

// LogField is a field of a log, with one of the others.
type LogField struct {
	Name           string `json:"name"`
	Value          string `json:"value,omitempty"`
	Header         string `json:"header,omitempty"`
	ResponseHeader string `json:"responseHeader,omitempty"`
	Claim          string `json:"claim,omitempty"`
	// TLV is a name of ProxyProtocol.TLVs.
	TLV string `json:"tlv,omitempty"`
	// Consumer is what is known of the consumer: model.RecordedName or model.RecordedGroups.
	Consumer string `json:"consumer,omitempty"`
}

// LogOnly selects the requests that meet any of these. Zero values select none.
type LogOnly struct {
	// StatusFrom selects responses with this status or a higher one, and requests without a response.
	StatusFrom int           `json:"statusFrom,omitempty"`
	SlowerThan time.Duration `json:"slowerThan,omitempty"`
	// Millionths is a share of all requests, in millionths.
	Millionths uint32 `json:"millionths,omitempty"`
}

// Metrics sets what an Envoy counts of requests by service, beside durations and refusals.
type Metrics struct {
	// Routes counts durations by route too.
	Routes  bool `json:"routes,omitempty"`
	Bytes   bool `json:"bytes,omitempty"`
	Retries bool `json:"retries,omitempty"`
	// MaxSeries bounds the series of each metric.
	MaxSeries int `json:"maxSeries"`
}
