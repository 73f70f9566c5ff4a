package ir

// GRPCJSON translates JSON requests into calls of gRPC services.
type GRPCJSON struct {
	// DescriptorSet is a serialized FileDescriptorSet. Each file comes after those that it imports.
	DescriptorSet []byte   `json:"descriptorSet"`
	Services      []string `json:"services"`
	AutoMapping   bool     `json:"autoMapping,omitempty"`
	// PassUnknownPaths forwards requests unchanged if no rule matches them.
	PassUnknownPaths bool `json:"passUnknownPaths,omitempty"`
	// IgnoreUnknownParameters ignores query parameters that are not fields. IgnoredParameters are always ignored.
	IgnoreUnknownParameters bool     `json:"ignoreUnknownParameters,omitempty"`
	IgnoredParameters       []string `json:"ignoredParameters,omitempty"`
	// ConvertStatus gives errors a body.
	ConvertStatus bool `json:"convertStatus,omitempty"`
	// The other fields set how messages are written, and how large they may be.
	Whitespace       bool `json:"whitespace,omitempty"`
	Zeros            bool `json:"zeros,omitempty"`
	EnumNumbers      bool `json:"enumNumbers,omitempty"`
	ProtoNames       bool `json:"protoNames,omitempty"`
	Lines            bool `json:"lines,omitempty"`
	MaxRequestBytes  int  `json:"maxRequestBytes"`
	MaxResponseBytes int  `json:"maxResponseBytes"`
}
