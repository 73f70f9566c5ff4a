package model

// TracingFilter sets which requests are traced, and what their spans say, on proxies with a globalconfig_tracing. A
// route's filter replaces its service's.
// +page=tracing.md
// +example={sampling: 50, tags: [{name: team, value: checkout}]}
type TracingFilter struct {
	// How many of 100 requests are traced if nothing else decides. It replaces that of the proxy. Default: 100.
	// +minimum=0
	// +maximum=100
	Sampling *float64 `json:"sampling,omitempty"`
	// Tags of each span of a request, besides those of the proxy. One with the same name replaces the proxy's.
	// +maxItems=maxTags
	Tags []TraceTag `json:"tags,omitempty"`
}

func readTracingFilter(v *validator, at, _ string, config JSON) Spec {
	var f TracingFilter
	if v.decode(at, config, &f) {
		v.sampling(at+".sampling", f.Sampling)
		v.traceTags(at+".tags", f.Tags)
	}
	return &f
}

func (f *TracingFilter) uses() []Key { return nil }
