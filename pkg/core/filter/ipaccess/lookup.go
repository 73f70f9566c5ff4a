package ipaccess

import (
	"cmp"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	setstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	geoipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	statefilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/common/v3"
	maxmindv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// These are the filters of an Envoy with a database, in their order. Envoy's own one writes what it finds into headers
// of the request, and leaves the client's there if it finds nothing. What the lists compare is in the state of the
// request, which no client can set: without these filters, it has nothing.
const (
	lookup  = "envoy.filters.http.geoip"
	forged  = lookup + "/forged"
	state   = lookup + "/state"
	cleanup = lookup + "/cleanup"
)

// CountryKey and ASNKey are the names of what an Envoy found, in the state of a request.
const (
	CountryKey = "gatehouse.country"
	ASNKey     = "gatehouse.asn"
)

// These headers exist between the filters only.
const (
	countryHeader = "x-gatehouse-country"
	asnHeader     = "x-gatehouse-asn"
)

// Lookup returns the filters that look up where a client is. Only the listeners of Envoys with a database have them:
// an Envoy without the file ends when it gets the filter (ADR 0120).
func Lookup() seam.Filter {
	return seam.Filter{
		Name: lookup, Several: true, Listener: lookups, Disabled: true,
		Host: seam.OfHost(key, lookedUp), Route: seam.OfRoute(key, lookedUp), Manager: removeSent,
		Describe: describeLookup,
	}
}

func describeLookup(r seam.Request) (string, error) {
	return map[string]string{
		forged:  "removes the headers into which Envoy writes what it finds, if the client sent them",
		lookup:  "looks up where " + r.Client + " is, in a database on the machine of the Envoy",
		state:   "keeps what was found for the lists of countries and networks",
		cleanup: "removes the headers again",
	}[r.On.GetName()], nil
}

// removeSent removes the headers for backends from all requests, before Envoy chooses a route, and whether it has a
// database or not.
func removeSent(l ir.Listener, m *hcmv3.HttpConnectionManager) error {
	var removed []*mutationv3.HeaderMutation
	for _, header := range []string{l.LocationHeaders.Country, l.LocationHeaders.ASN} {
		if header == "" {
			continue
		}
		// A matcher costs less than a lookup by name.
		removed = append(removed, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_RemoveOnMatch_{
			RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{KeyMatcher: &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Exact{Exact: header},
			}},
		}})
	}
	if removed == nil {
		return nil
	}
	config, err := seam.Pack(&earlyv3.HeaderMutation{Mutations: removed})
	m.EarlyHeaderMutationExtensions = append(m.EarlyHeaderMutationExtensions, &corev3.TypedExtensionConfig{
		Name: "gatehouse.location_headers", TypedConfig: config,
	})
	return err
}

// found is a kind of database with what becomes of its values.
type found struct {
	path, header, key string
	// kept means that backends get the header.
	kept bool
}

func foundOn(l ir.Listener) (list []found) {
	for _, f := range []found{
		{l.Databases.Country, cmp.Or(l.LocationHeaders.Country, countryHeader), CountryKey, l.LocationHeaders.Country != ""},
		{l.Databases.ASN, cmp.Or(l.LocationHeaders.ASN, asnHeader), ASNKey, l.LocationHeaders.ASN != ""},
	} {
		if f.path != "" {
			list = append(list, f)
		}
	}
	return list
}

func lookups(l ir.Listener) []seam.Message {
	list := foundOn(l)
	if len(list) == 0 {
		return nil
	}
	all := slices.ContainsFunc(list, func(f found) bool { return f.kept })
	remove := &headermutationv3.Mutations{}
	states := &statefilterv3.Config{}
	for _, f := range list {
		if !f.kept {
			remove.RequestMutations = append(remove.RequestMutations,
				&mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: f.header}})
		}
		states.OnRequestHeaders = append(states.OnRequestHeaders, &setstatev3.FilterStateValue{
			Key: &setstatev3.FilterStateValue_ObjectKey{ObjectKey: f.key}, FactoryKey: "envoy.string",
			Value: &setstatev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
				Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: seam.Inline("%REQ(" + f.header + ")%")},
			}},
		})
	}
	out := []seam.Message{{Name: lookup, Config: geoip(list), On: all}, {Name: state, Config: states}}
	if len(remove.RequestMutations) == 0 {
		return out
	}
	both := &headermutationv3.HeaderMutation{Mutations: remove}
	return slices.Concat([]seam.Message{{Name: forged, Config: both, On: all}}, out,
		[]seam.Message{{Name: cleanup, Config: both, On: all}})
}

// geoip looks up the address that Envoy takes for the client's, as address lists, limits and logs do: it reads no
// X-Forwarded-For itself.
func geoip(list []found) *geoipv3.Geoip {
	names := &commonv3.CommonGeoipProviderConfig_GeolocationFieldKeys{}
	files := &maxmindv3.MaxMindConfig{CommonProviderConfig: &commonv3.CommonGeoipProviderConfig{GeoFieldKeys: names}}
	for _, f := range list {
		if f.key == CountryKey {
			names.Country, files.CountryDbPath = f.header, f.path
		} else {
			names.Asn, files.AsnDbPath = f.header, f.path
		}
	}
	provider, err := seam.Pack(files)
	if err != nil {
		return &geoipv3.Geoip{} // whose validation fails
	}
	return &geoipv3.Geoip{Provider: &corev3.TypedExtensionConfig{
		Name: "envoy.geoip_providers.maxmind", TypedConfig: provider,
	}}
}

// lookedUp turns the filters on where lists name countries or networks. Envoys without a database ignore it.
func lookedUp(a *Access) ([]seam.Message, error) {
	if !slices.ContainsFunc(a.Located, (*Located).looksUp) {
		return nil, nil
	}
	on := &routev3.FilterConfig{Config: &anypb.Any{}}
	return []seam.Message{
		{Name: forged, Config: on}, {Name: lookup, Config: on}, {Name: state, Config: on}, {Name: cleanup, Config: on},
	}, nil
}
