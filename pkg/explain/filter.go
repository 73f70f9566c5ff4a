package explain

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

const routerFilter = "envoy.filters.http.router"

// These are filters whose files do not contain their names.
const (
	accessFilter   = "envoy.filters.http.rbac/access"
	extAuthzFilter = "envoy.filters.http.ext_authz"
	extProcFilter  = "envoy.filters.http.ext_proc"
	affinityFilter = "envoy.filters.http.stateful_session"
	luaFilter      = "envoy.filters.http.lua"
)

// knownFilter is an HTTP filter that this package knows.
type knownFilter struct {
	name string
	// several means that there may be more of the filter, called name/ and a word.
	several bool
	// describe describes what the filter does with a request for which it is on; nil means that the
	// steps of the answer describe it.
	describe func(*Filter, passed) error
	// foreign means that the filter's effect cannot be predicted.
	foreign bool
}

// passed is the context in which a request passes a filter.
type passed struct {
	have    State
	request subject
	l       *hcmv3.HttpConnectionManager
	on      *hcmv3.HttpFilter
	vh      *routev3.VirtualHost
	route   *routev3.Route
}

// knownFilters are the HTTP filters that this package knows: all that translate.HTTPFilters returns.
// The answer reports any other filter as unknown.
func knownFilters() []knownFilter {
	return []knownFilter{
		{name: hostFilter},    // passHost
		{name: anybodyFilter}, // endClosed
		{name: verifiedFilter, several: true},
		{name: corsFilter, describe: (*Filter).describeCORS}, // passPreflight
		{name: compressFilter, several: true, describe: (*Filter).describeCompress},
		{name: ipFilter, describe: (*Filter).describeIPAccess},             // passIPAccess
		{name: maintenanceFilter, describe: (*Filter).describeMaintenance}, // passMaintenance
		{name: rateLimitFilter, several: true, describe: (*Filter).describeRateLimits},
		{name: csrfFilter, describe: (*Filter).describeCSRF}, // passCSRF
		{name: spoofFilter, describe: (*Filter).describeSpoofed},
		{name: authzSpoofFilter, describe: (*Filter).describeAuthzSpoofed},
		{name: oauth2Filter, describe: (*Filter).describeLogin}, // askForLogin
		{name: jwtFilter, describe: (*Filter).describeTokenCheck},
		{name: keyFilter, describe: (*Filter).describeKey}, // passKey
		{name: keyClientsFilter, describe: (*Filter).describeKeyClients},
		{name: basicAuthFilter, describe: (*Filter).describeBasicAuth}, // passBasicAuth
		{name: anyKeyFilter, describe: (*Filter).describeAnyKey},       // passAnyOf
		{name: anyBasicAuthFilter, describe: (*Filter).describeAnyBasicAuth},
		{name: anyFilter, describe: (*Filter).describeAnyOf},
		{name: claimsFilter, describe: (*Filter).describeClaims},
		{name: accessFilter},
		{name: cleanFilter, describe: (*Filter).describeCleaned},
		{name: passwordFilter, describe: (*Filter).describePasswordRemoved},
		{name: claimLimitFilter, several: true, describe: (*Filter).describeRateLimits},
		{name: decompressFilter, describe: (*Filter).describeDecompress},
		{name: bufferFilter, describe: (*Filter).describeBodyLimit}, // passBodyLimit
		{name: extAuthzFilter, several: true, describe: (*Filter).describeExtAuthz},
		{name: extProcFilter, describe: (*Filter).describeExtProc},
		{name: faultFilter, describe: (*Filter).describeFault}, // passFault
		{name: luaFilter, foreign: true},
		{name: headerFilter, describe: (*Filter).describeHeaders},
		{name: hstsFilter, describe: (*Filter).describeHSTS},
		{name: affinityFilter, describe: (*Filter).describeAffinity},
		{name: grpcWebFilter, describe: (*Filter).describeGRPCWeb},
		{name: grpcJSONFilter, describe: (*Filter).describeGRPCJSON}, // passTranscoder
		{name: routerFilter, describe: (*Filter).describeRouter},
	}
}

// findKnown returns the known filter with a name.
func findKnown(name string) (knownFilter, bool) {
	known := knownFilters()
	at := slices.IndexFunc(known, func(f knownFilter) bool {
		return name == f.name || f.several && strings.HasPrefix(name, f.name+"/")
	})
	if at < 0 {
		return knownFilter{}, false
	}
	return known[at], true
}

// isKnown reports whether this package has a row for a filter. isPredictable reports whether the
// effect of the filter can be predicted.
func isKnown(name string) bool {
	_, known := findKnown(name)
	return known
}

func isPredictable(name string) bool {
	known, ok := findKnown(name)
	return ok && !known.foreign
}

func (f *Filter) describeRouter(passed) error {
	f.Message = "forwards the request, or answers as the route says"
	return nil
}

// describeUnknown describes who turned an unknown filter on.
func (f *Filter) describeUnknown(p passed, off bool) {
	switch {
	case off:
		f.Message = "is off"
		return
	case p.route.GetTypedPerFilterConfig()[f.Name] != nil:
		f.Message = "is set by the route"
	case p.vh.GetTypedPerFilterConfig()[f.Name] != nil:
		f.Message = "is set by the service"
	default:
		f.Message = "is set by the listener"
	}
	f.Message += ", and explain does not know what it does"
}

// noteUnknown records the unknown filters that the request passes. Without a service or route, vh or r
// is nil.
func (a *Answer) noteUnknown(l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) {
	on := map[string]bool{} // filters of the listener, and recorded ones
	for _, f := range l.GetHttpFilters() {
		on[f.GetName()] = true
		if !isPredictable(f.GetName()) && !isOff(f, vh, r) {
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

// isOff reports whether a filter does nothing for a route. The route's setting overrides the
// service's, and that overrides the listener's. A message for the filter turns it on. Without a route,
// Envoy does not use the service's setting either.
func isOff(f *hcmv3.HttpFilter, vh *routev3.VirtualHost, r *routev3.Route) bool {
	if r == nil {
		return f.GetDisabled()
	}
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

// discovered reads the Envoy's configuration of a filter that is delivered on its own. It reports whether the Envoy
// has one.
func (s State) discovered(filter string, into proto.Message) (bool, error) {
	r := findResource(s.Extensions, filter)
	if r == nil {
		return false, nil
	}
	var packed corev3.TypedExtensionConfig
	if err := r.Body.UnmarshalTo(&packed); err != nil {
		return false, fmt.Errorf("decoding filter %q: %w", filter, err)
	}
	if err := packed.GetTypedConfig().UnmarshalTo(into); err != nil {
		return false, fmt.Errorf("decoding filter %q: %w", filter, err)
	}
	return true, nil
}

// listOf joins the names of filters for a sentence.
func listOf(names []string) string {
	if len(names) == 1 {
		return "the filter " + names[0]
	}
	return "the filters " + strings.Join(names, ", ")
}
