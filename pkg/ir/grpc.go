package ir

// GRPCJSON makes calls of gRPC services of requests with JSON.
type GRPCJSON struct {
	// DescriptorSet is a serialized FileDescriptorSet, whose files come after those that they import.
	DescriptorSet []byte   `json:"descriptorSet"`
	Services      []string `json:"services"`
	AutoMapping   bool     `json:"autoMapping,omitempty"`
	// PassUnknownPaths lets requests pass as they are that no rule is for.
	PassUnknownPaths bool `json:"passUnknownPaths,omitempty"`
	// IgnoreUnknownParameters leaves out query parameters that are no fields; IgnoredParameters are left out anyway.
	IgnoreUnknownParameters bool     `json:"ignoreUnknownParameters,omitempty"`
	IgnoredParameters       []string `json:"ignoredParameters,omitempty"`
	// ConvertStatus says that errors have a body.
	ConvertStatus bool `json:"convertStatus,omitempty"`
	// The others say how messages are written, and how large they may be.
	Whitespace       bool `json:"whitespace,omitempty"`
	Zeros            bool `json:"zeros,omitempty"`
	EnumNumbers      bool `json:"enumNumbers,omitempty"`
	ProtoNames       bool `json:"protoNames,omitempty"`
	Lines            bool `json:"lines,omitempty"`
	MaxRequestBytes  int  `json:"maxRequestBytes"`
	MaxResponseBytes int  `json:"maxResponseBytes"`
}
