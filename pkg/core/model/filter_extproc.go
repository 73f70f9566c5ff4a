package model

// ExtProcFilter sends requests and answers to an external processor, which may change them or answer itself.
// A route's filter replaces its service's.
// +page=extproc.md
// +example={upstream: processor, response_headers: true, request_body: buffered}
type ExtProcFilter struct {
	// Name of the upstream that is the processor (envoy.service.ext_proc.v3.ExternalProcessor). Its protocol is h2c or h2.
	// +required
	Upstream string `json:"upstream"`
	// Whether the processor receives the headers of requests. Default: true.
	RequestHeaders *bool `json:"request_headers,omitempty"`
	// Whether the processor receives the headers of answers. Default: false.
	ResponseHeaders bool `json:"response_headers,omitempty"`
	// How the processor receives the bodies of requests: not at all, as a whole of at most 32 KiB, or in pieces. Default:
	// none.
	// +enum=[BodyNone, BodyBuffered, BodyStreamed]
	RequestBody string `json:"request_body,omitempty"`
	// The same for the bodies of answers.
	// +enum=[BodyNone, BodyBuffered, BodyStreamed]
	ResponseBody string `json:"response_body,omitempty"`
	// What happens to a request while the processor is unavailable, too slow, or ends the call with an error: deny answers
	// 503, allow forwards it unchanged. Default: deny.
	// +enum=[OnErrorDeny, OnErrorAllow]
	OnError string `json:"on_error,omitempty"`
	// Headers that the processor sets for the upstream, such as one that names the user. The gateway removes these headers
	// from clients' requests, on all routes of the service.
	// +maxItems=maxHeaders
	// +items={type: string, minLength: 1, maxLength: maxHeaderName}
	// +example=[x-user]
	UpstreamHeaders []string `json:"upstream_headers,omitempty"`
}

// How a processor gets a body.
const (
	BodyNone     = "none"
	BodyBuffered = "buffered"
	BodyStreamed = "streamed"
)

func readExtProc(v *validator, at, _ string, config JSON) Spec {
	f := ExtProcFilter{RequestBody: BodyNone, ResponseBody: BodyNone, OnError: OnErrorDeny}
	if !v.decode(at, config, &f) {
		return &f
	}
	v.name(at+".upstream", f.Upstream, true)
	v.oneOf(at+".request_body", f.RequestBody, []string{BodyNone, BodyBuffered, BodyStreamed})
	v.oneOf(at+".response_body", f.ResponseBody, []string{BodyNone, BodyBuffered, BodyStreamed})
	v.oneOf(at+".on_error", f.OnError, []string{OnErrorDeny, OnErrorAllow})
	v.upstreamHeaders(at, f.UpstreamHeaders, v.claimHeader)
	if !f.SendsRequestHeaders() && !f.ResponseHeaders && f.RequestBody == BodyNone && f.ResponseBody == BodyNone {
		v.add(at, "sends nothing to the processor; set at least one of request_headers, response_headers, "+
			"request_body and response_body")
	}
	return &f
}

// SendsRequestHeaders reports whether the processor gets the headers of requests.
func (f *ExtProcFilter) SendsRequestHeaders() bool {
	return f.RequestHeaders == nil || *f.RequestHeaders
}

func (f *ExtProcFilter) uses() []Key { return askedUpstream(f.Upstream) }

// Advice says what is open.
func (f *ExtProcFilter) Advice() []string {
	if f.OnError != OnErrorAllow {
		return nil
	}
	return []string{"has on_error allow: while upstream " + f.Upstream +
		" is unavailable, too slow, or ends its call with an error, every request and answer passes unchanged"}
}
