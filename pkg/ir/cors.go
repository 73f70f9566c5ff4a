package ir

// CORS sets which web pages of other origins may use responses.
type CORS struct {
	// Origins and OriginRegexes match the origins of the pages. A regular expression matches whole origins. AnyOrigin
	// means all.
	Origins       []string `json:"origins,omitempty"`
	OriginRegexes []string `json:"originRegexes,omitempty"`
	AnyOrigin     bool     `json:"anyOrigin,omitempty"`
	Methods       []string `json:"methods,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	Expose        []string `json:"expose,omitempty"`
	// MaxAgeSeconds is how long browsers may cache the answer to a preflight; nil leaves it to them.
	MaxAgeSeconds *int `json:"maxAgeSeconds,omitempty"`
	Credentials   bool `json:"credentials,omitempty"`
}
