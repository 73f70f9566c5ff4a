package model

import (
	"fmt"
	"slices"
	"strings"
)

// TracingConfig sends spans of requests to a collector (OpenTelemetry, OTLP). If several global configs of the type
// apply to a proxy, the first one by name does.
// +page=tracing.md
// +example={upstream: collector, sampling: 10, tags: [{name: team, value: shop}, {name: tenant, header: x-tenant}]}
type TracingConfig struct {
	// Name of the upstream that is the collector. Spans are sent over gRPC if its protocol is h2c or h2, and over HTTP
	// otherwise.
	// +required
	Upstream string `json:"upstream"`
	// Path of the collector for spans over HTTP. Default: /v1/traces.
	Path string `json:"path,omitempty"`
	// How many of 100 requests are traced if nothing else decides. Default: 100.
	// +minimum=0
	// +maximum=100
	Sampling *float64 `json:"sampling,omitempty"`
	// Whether the `traceparent` of a client decides if its request is traced, and its spans join the client's trace, or
	// the header is removed. Default: respect.
	// +enum=[ParentRespect, ParentIgnore]
	Parent string `json:"parent,omitempty"`
	// A request with this header is always traced. Default: none.
	ForceHeader string `json:"force_header,omitempty"`
	// The name of the gateway in traces (service.name). Default: the name of the proxy.
	ServiceName string `json:"service_name,omitempty"`
	// Add a span for each try at an upstream. It costs each request almost as much again, traced or not. Default: false.
	UpstreamSpans bool `json:"upstream_spans,omitempty"`
	// Tags of each span of a request.
	// +maxItems=maxTags
	Tags []TraceTag `json:"tags,omitempty"`
}

// TraceTag is a tag of spans. Exactly one of value, header and response_header says what it has.
type TraceTag struct {
	// +required
	// +minLength=1
	Name string `json:"name"`
	// The same text in all spans.
	Value string `json:"value,omitempty"`
	// The first 256 bytes of a header of the request. A request without it has no tag.
	Header string `json:"header,omitempty"`
	// The first 256 bytes of a header of the response.
	ResponseHeader string `json:"response_header,omitempty"`
}

// What happens to the traceparent of a client.
const (
	ParentRespect = "respect"
	ParentIgnore  = "ignore"
)

const maxTags, maxTagText = 32, 256

func readTracing(v *validator, at, _ string, config JSON) Spec {
	c := TracingConfig{Path: "/v1/traces", Parent: ParentRespect}
	if !v.decode(at, config, &c) {
		return &c
	}
	v.name(at+".upstream", c.Upstream, true)
	v.urlPath(at+".path", c.Path)
	v.sampling(at+".sampling", c.Sampling)
	v.oneOf(at+".parent", c.Parent, []string{ParentRespect, ParentIgnore})
	if c.ForceHeader != "" {
		v.tracedHeader(at+".force_header", c.ForceHeader)
	}
	if len(c.ServiceName) > maxTagText {
		v.add(at+".service_name", "has more than %d characters", maxTagText)
	}
	v.traceTags(at+".tags", c.Tags)
	return &c
}

func (v *validator) sampling(field string, share *float64) {
	if share != nil && !(*share >= 0 && *share <= 100) {
		v.add(field, "%v is not between 0 and 100", *share)
	}
}

func (v *validator) traceTags(field string, tags []TraceTag) {
	if len(tags) > maxTags {
		v.add(field, "has %d tags; at most %d are allowed", len(tags), maxTags)
		return
	}
	seen := map[string]bool{}
	for i, t := range tags {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case t.Name == "":
			v.add(at+".name", "is required")
		case seen[t.Name]:
			v.add(at+".name", "%q is a tag twice", t.Name)
		case len(t.Name) > maxTagText || strings.ContainsFunc(t.Name, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
			v.add(at+".name", "%q is not the name of a tag: up to %d visible ASCII characters", t.Name, maxTagText)
		}
		seen[t.Name] = true
		if len(t.Value) > maxTagText {
			v.add(at+".value", "has more than %d characters", maxTagText)
		}
		set := 0
		for name, header := range map[string]string{"header": t.Header, "response_header": t.ResponseHeader} {
			if header != "" {
				set++
				v.tracedHeader(at+"."+name, header)
			}
		}
		if t.Value != "" {
			set++
		}
		if set != 1 {
			v.add(at, "needs exactly one of value, header and response_header")
		}
	}
}

// tracedHeader accepts a header that may be read for spans: no credential gets into a trace.
func (v *validator) tracedHeader(field, name string) {
	secrets := []string{"authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"}
	switch {
	case slices.Contains(secrets, strings.ToLower(name)):
		v.add(field, "%q has credentials, which do not belong into traces", name)
	case len(name) > maxHeaderName:
		v.add(field, "has more than %d characters", maxHeaderName)
	case strings.ContainsAny(name, "%?"):
		v.add(field, "%q is not an HTTP token", name)
	default:
		v.token(field, name)
	}
}

func (c *TracingConfig) uses() []Key { return askedUpstream(c.Upstream) }
