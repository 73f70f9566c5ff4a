package ir

// CORS says which web pages of other origins may use answers.
type CORS struct {
	// Origins and OriginRegexes are those of the pages; a regular expression matches whole ones. AnyOrigin means all.
	Origins       []string `json:"origins,omitempty"`
	OriginRegexes []string `json:"originRegexes,omitempty"`
	AnyOrigin     bool     `json:"anyOrigin,omitempty"`
	Methods       []string `json:"methods,omitempty"`
	Headers       []string `json:"headers,omitempty"`
	Expose        []string `json:"expose,omitempty"`
	// MaxAgeSeconds is for how long browsers remember the answer to a preflight; nil leaves it to them.
	MaxAgeSeconds *int `json:"maxAgeSeconds,omitempty"`
	Credentials   bool `json:"credentials,omitempty"`
}
