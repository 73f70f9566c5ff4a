package ir

// ExtProc gives requests and answers to an external processor.
type ExtProc struct {
	// Cluster is the name of one of those that are Asked.
	Cluster         string `json:"cluster"`
	RequestHeaders  bool   `json:"requestHeaders,omitempty"`
	ResponseHeaders bool   `json:"responseHeaders,omitempty"`
	// RequestBody and ResponseBody are buffered or streamed; empty means that it does not get them.
	RequestBody  string `json:"requestBody,omitempty"`
	ResponseBody string `json:"responseBody,omitempty"`
	// Allow lets pass what it cannot be given.
	Allow bool `json:"allow,omitempty"`
}
