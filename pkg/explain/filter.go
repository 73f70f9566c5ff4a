package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
)

const routerFilter = "envoy.filters.http.router"

// knownFilter is an HTTP filter that this package knows.
type knownFilter struct {
	name string
	// several says that there may be more of it, called name/ and a word.
	several bool
}

// knownFilters are the HTTP filters that this package knows: all that
// translate.HTTPFilters lists. Of another one the answer says that it is not
// known.
func knownFilters() []knownFilter {
	return []knownFilter{
		{name: hostFilter},                     // passHost
		{name: rateLimitFilter, several: true}, // tellRateLimits
		{name: headerFilter},                   // describeHeaders
		{name: routerFilter},                   // act
	}
}

func isKnown(name string) bool {
	return slices.ContainsFunc(knownFilters(), func(f knownFilter) bool {
		return name == f.name || f.several && strings.HasPrefix(name, f.name+"/")
	})
}

// describeUnknown notes the filters that the request passes and that are not known.
// Without a service or route, vh or r is nil.
func (a *Answer) describeUnknown(l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) {
	on := map[string]bool{} // and what was noted
	for _, f := range l.GetHttpFilters() {
		on[f.GetName()] = true
		if !isKnown(f.GetName()) && !isOff(f, vh, r) {
			a.UnknownFilters = append(a.UnknownFilters, f.GetName())
		}
	}
	for _, config := range []map[string]*anypb.Any{vh.GetTypedPerFilterConfig(), r.GetTypedPerFilterConfig()} {
		for _, name := range slices.Sorted(maps.Keys(config)) {
			if !on[name] && !isKnown(name) {
				on[name] = true
				a.UnknownFilters = append(a.UnknownFilters, name)
			}
		}
	}
	if len(a.UnknownFilters) > 0 {
		a.step("filter", fmt.Sprintf("explain does not know %s, so what follows may be different", listOf(a.UnknownFilters)))
	}
}

// isOff reports whether a filter does nothing for a route: what the route says
// goes before what the service says, and that before the listener. A message for
// the filter turns it on.
func isOff(f *hcmv3.HttpFilter, vh *routev3.VirtualHost, r *routev3.Route) bool {
	for _, config := range []map[string]*anypb.Any{r.GetTypedPerFilterConfig(), vh.GetTypedPerFilterConfig()} {
		packed := config[f.GetName()]
		if packed == nil {
			continue
		}
		var out routev3.FilterConfig
		return packed.UnmarshalTo(&out) == nil && out.GetDisabled()
	}
	return f.GetDisabled()
}

// listOf names filters in a sentence.
func listOf(names []string) string {
	if len(names) == 1 {
		return "the filter " + names[0]
	}
	return "the filters " + strings.Join(names, ", ")
}
