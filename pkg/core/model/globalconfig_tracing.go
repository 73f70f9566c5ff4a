package model

import (
	"fmt"
	"maps"
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
	// A header with a key that the collector wants; absent means none.
	Credential *Credential `json:"credential,omitempty"`
	// How many of 100 requests are traced if nothing else decides. Default: 100.
	// +minimum=0
	// +maximum=100
	Sampling *float64 `json:"sampling,omitempty"`
	// Whether the `traceparent` of a client decides if its request is traced, and its spans join the client's trace, or
	// the header is removed. Default: respect.
	// +enum=[ParentRespect, ParentIgnore]
	Parent string `json:"parent,omitempty"`
	// Where a client sends no traceparent, its b3 or X-B3 headers (Zipkin) count as one. Default: false.
	B3 bool `json:"b3,omitempty"`
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

// Credential is a header that a collector wants.
type Credential struct {
	// Name of the secret that has the header's value in Secret_value, such as "Bearer ...".
	// +required
	Secret string `json:"secret"`
	// Name of the header. Default: Authorization.
	Header string `json:"header,omitempty"`
}

// TraceTag is a tag of spans. Exactly one of value, header, response_header and consumer says what it has.
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
	// What an http_filter_consumer has found: the name of the consumer, or its groups with commas between them. A request
	// without it has no tag.
	// +enum=[RecordedName, RecordedGroups]
	Consumer string `json:"consumer,omitempty"`
}

// What a tag or a field says of the consumer of a request.
const (
	RecordedName   = "name"
	RecordedGroups = "groups"
)

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
	v.credential(at+".credential", c.Credential)
	v.sampling(at+".sampling", c.Sampling)
	v.oneOf(at+".parent", c.Parent, []string{ParentRespect, ParentIgnore})
	if c.B3 && c.Parent == ParentIgnore {
		v.add(at+".b3", "cannot be with parent %s, which reads no trace of a client", ParentIgnore)
	}
	if c.ForceHeader != "" {
		v.recordedHeader(at+".force_header", c.ForceHeader)
	}
	if len(c.ServiceName) > maxTagText {
		v.add(at+".service_name", "has more than %d characters", maxTagText)
	}
	v.traceTags(at+".tags", c.Tags)
	return &c
}

// credential accepts a header that neither the gateway nor HTTP itself sets.
func (v *validator) credential(at string, c *Credential) {
	if c == nil {
		return
	}
	v.secretName(at+".secret", c.Secret)
	if c.Header != "" {
		v.headerName(at+".header", c.Header, map[string]bool{})
	}
}

// sampling accepts a share that Envoy can take: it rounds to hundredths.
func (v *validator) sampling(field string, share *float64) {
	if share != nil && *share != 0 && (*share < 0.01 || *share > 100) {
		v.add(field, "%v is neither 0 nor between 0.01 and 100", *share)
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
		v.recordedName(at+".name", t.Name)
		if seen[t.Name] {
			v.add(at+".name", "%q is a tag twice", t.Name)
		}
		seen[t.Name] = true
		v.recorded(at, t.Value, map[string]string{"header": t.Header, "response_header": t.ResponseHeader}, v.recordedConsumer(at, t.Consumer))
	}
}

// recordedName accepts the name of a tag of spans or of a field of a log.
func (v *validator) recordedName(field, name string) {
	switch {
	case name == "":
		v.add(field, "is required")
	case len(name) > maxTagText || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		v.add(field, "%q is not a name of up to %d visible ASCII characters", name, maxTagText)
	}
}

// other is what a tag or a field may have besides a text and headers.
type other struct{ name, value string }

func (v *validator) recordedConsumer(at, which string) other {
	if which != "" {
		v.oneOf(at+".consumer", which, []string{RecordedName, RecordedGroups})
	}
	return other{"consumer", which}
}

// recorded accepts what a tag or a field has: one of a text, a header and others.
func (v *validator) recorded(at, value string, headers map[string]string, others ...other) {
	names, set := slices.Sorted(maps.Keys(headers)), 0
	for _, name := range names {
		if headers[name] != "" {
			set++
			v.recordedHeader(at+"."+name, headers[name])
		}
	}
	for _, o := range append(others, other{"", value}) {
		if o.value != "" {
			set++
		}
	}
	if len(value) > maxTagText {
		v.add(at+".value", "has more than %d characters", maxTagText)
	}
	if set != 1 {
		for _, o := range others {
			names = append(names, o.name)
		}
		v.add(at, "needs exactly one of value, %s", strings.Join(names, ", "))
	}
}

// recordedHeader accepts a header that may be read for spans and logs: no credential gets there.
func (v *validator) recordedHeader(field, name string) {
	secrets := []string{"authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key"}
	switch lower := strings.ToLower(name); {
	case lower == "referer" || lower == "location" || strings.HasPrefix(name, ":"):
		v.add(field, "%q has an address with its query, where tokens may be; path has what comes before", name)
	case slices.Contains(secrets, lower):
		v.add(field, "%q has credentials, which do not belong into traces and logs", name)
	case len(name) > maxHeaderName:
		v.add(field, "has more than %d characters", maxHeaderName)
	case strings.ContainsAny(name, "%?"):
		v.add(field, "%q is not an HTTP token", name)
	default:
		v.token(field, name)
	}
}

func (c *TracingConfig) uses() []Key { return collectorKeys(c.Upstream, c.Credential) }

// collectorNames are the paths of what collectorKeys lists.
func collectorNames() map[string]Kind {
	return map[string]Kind{"upstream": KindUpstream, "credential.secret": KindSecret}
}

func collectorKeys(upstream string, c *Credential) []Key {
	keys := askedUpstream(upstream)
	if c != nil && c.Secret != "" {
		keys = append(keys, SecretKey(c.Secret))
	}
	return keys
}
