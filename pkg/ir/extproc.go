package ir

// ExtProc sends requests and responses to an external processor.
type ExtProc struct {
	// Cluster is the name of one of the Asked clusters.
	Cluster         string `json:"cluster"`
	RequestHeaders  bool   `json:"requestHeaders,omitempty"`
	ResponseHeaders bool   `json:"responseHeaders,omitempty"`
	// RequestBody and ResponseBody are "buffered" or "streamed"; empty means that the processor
	// does not receive the body.
	RequestBody  string `json:"requestBody,omitempty"`
	ResponseBody string `json:"responseBody,omitempty"`
	// Allow lets messages pass that cannot be sent to the processor.
	Allow bool `json:"allow,omitempty"`
}
