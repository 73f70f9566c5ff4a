package model

import (
	"fmt"
	"slices"
	"strings"
)

// CanaryFilter divides the requests of a route among upstreams, instead of the upstreams attached to the route. The
// last upstream of the list is the canary.
// +page=canary.md
// +example={upstreams: [{name: blue, weight: 95}, {name: green, weight: 5}], sticky: cookie, header: {name: x-canary, value: "1"}}
type CanaryFilter struct {
	// +required
	// +minItems=1
	// +maxItems=16
	Upstreams []CanaryUpstream `json:"upstreams"`
	// With cookie, a returning client with cookies gets the same upstream, as long as the upstream's weight is not 0.
	// +enum=[cookie, none]
	Sticky string `json:"sticky"`
	// A request with this header goes to the last upstream of the list, whatever its weight.
	Header *CanaryHeader `json:"header"`

	// name is that of the filter.
	name string
}

// CanaryUpstream is an upstream with its share.
type CanaryUpstream struct {
	// +required
	Name string `json:"name"`
	// The share, relative to the other weights; 0 means none. At least one weight is not 0.
	// +minimum=0
	// +maximum=1000000
	Weight int `json:"weight"`
	// Changes of the headers of requests to this upstream, and of its answers, after those of route_filter_headers.
	Request  HeaderChanges `json:"request"`
	Response HeaderChanges `json:"response"`
}

// CanaryHeader is a header with exactly this value.
type CanaryHeader struct {
	// +required
	// +maxLength=maxHeaderName
	Name string `json:"name"`
	// +required
	// +maxLength=maxHeaderText
	Value string `json:"value"`
}

// The values of CanaryFilter.Sticky.
const (
	StickyCookie = "cookie"
	StickyNone   = "none"
)

func readCanary(v *validator, at, name string, config JSON) Spec {
	f := CanaryFilter{name: name}
	if !v.decode(at, config, &f) {
		return &f
	}
	const most = 16
	if n := len(f.Upstreams); n < 1 || n > most {
		v.add(at+".upstreams", `has %d upstreams; give 1 to %d, `+
			`such as [{"name":"blue","weight":95},{"name":"green","weight":5}]`, n, most)
	}
	total := 0
	for i, u := range f.Upstreams {
		field := fmt.Sprintf("%s.upstreams[%d]", at, i)
		v.name(field+".name", u.Name, true)
		v.checkRange(field+".weight", u.Weight, 0, 1_000_000)
		if slices.ContainsFunc(f.Upstreams[:i], func(o CanaryUpstream) bool { return o.Name == u.Name }) {
			v.add(field+".name", "%q is in the list twice", u.Name)
		}
		v.headerChanges(field, false, u.Request, u.Response)
		total += u.Weight
	}
	if len(f.Upstreams) > 0 && total == 0 {
		v.add(at+".upstreams", "has only weights of 0, so no upstream would answer")
	}
	if f.Sticky == "" {
		f.Sticky = StickyNone
	}
	v.oneOf(at+".sticky", f.Sticky, []string{StickyCookie, StickyNone})
	if f.Header != nil {
		v.matchedHeader(at+".header.name", f.Header.Name)
		v.headerText(at+".header.value", f.Header.Value)
	}
	return &f
}

// checkWritten refuses a header whose name is too long.
func (f *CanaryFilter) checkWritten(v *validator, at string) {
	if f.Header != nil {
		v.shortName(at+".header.name", f.Header.Name)
	}
}

// shortName refuses the name of a header that is too long.
func (v *validator) shortName(field, name string) {
	if len(name) > maxHeaderName {
		v.add(field, "has more than %d characters", maxHeaderName)
	}
}

// matchedHeader accepts a header that a client can send for a route.
func (v *validator) matchedHeader(field, name string) {
	if lower := strings.ToLower(name); strings.HasPrefix(name, ":") || slices.Contains(connectionHeaders(), lower) ||
		strings.HasPrefix(lower, "x-envoy-") {
		v.add(field, "%q is not a header that can select an upstream", name)
		return
	}
	v.token(field, name)
}

// canaryNames are the paths of what uses lists.
func canaryNames() map[string]Kind { return map[string]Kind{"upstreams.name": KindUpstream} }

func (f *CanaryFilter) uses() []Key {
	var keys []Key
	for _, u := range f.Upstreams {
		if key := UpstreamKey(u.Name); u.Name != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Cookie is the name of the cookie that names the upstream of a client.
func (f *CanaryFilter) Cookie() string { return "gh-canary-" + f.name }
