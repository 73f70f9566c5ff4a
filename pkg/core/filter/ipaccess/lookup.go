package ipaccess

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	setstatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/common/set_filter_state/v3"
	geoipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/geoip/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	statefilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/set_filter_state/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/common/v3"
	maxmindv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/geoip_providers/maxmind/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// These are the filters of an Envoy with a database, in their order. Envoy's own one writes what it finds into headers of
// the request, and leaves the client's there if it finds nothing. What the lists compare is in the state of the request,
// which no client can set: without these filters, it has nothing.
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
		Host: seam.OfHost(key, lookedUp), Route: seam.OfRoute(key, lookedUp), Describe: describeLookup,
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

// found is a kind of database with what becomes of its values.
type found struct{ path, header, key string }

func foundOn(l ir.Listener) (list []found) {
	for _, f := range []found{
		{l.Databases.Country, countryHeader, CountryKey}, {l.Databases.ASN, asnHeader, ASNKey},
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
	var removed []*mutationv3.HeaderMutation
	states := &statefilterv3.Config{}
	for _, f := range list {
		removed = append(removed, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: f.header}})
		states.OnRequestHeaders = append(states.OnRequestHeaders, &setstatev3.FilterStateValue{
			Key: &setstatev3.FilterStateValue_ObjectKey{ObjectKey: f.key}, FactoryKey: "envoy.string",
			Value: &setstatev3.FilterStateValue_FormatString{FormatString: &corev3.SubstitutionFormatString{
				Format: &corev3.SubstitutionFormatString_TextFormatSource{TextFormatSource: seam.Inline("%REQ(" + f.header + ")%")},
			}},
		})
	}
	remove := &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{RequestMutations: removed}}
	return []seam.Message{
		{Name: forged, Config: remove},
		{Name: lookup, Config: geoip(l.Databases)},
		{Name: state, Config: states},
		{Name: cleanup, Config: remove},
	}
}

// geoip looks up the address that Envoy takes for the client's, as address lists, limits and logs do: it reads no
// X-Forwarded-For itself.
func geoip(d ir.Databases) *geoipv3.Geoip {
	names := &commonv3.CommonGeoipProviderConfig_GeolocationFieldKeys{}
	if d.Country != "" {
		names.Country = countryHeader
	}
	if d.ASN != "" {
		names.Asn = asnHeader
	}
	provider, err := seam.Pack(&maxmindv3.MaxMindConfig{
		CountryDbPath: d.Country, AsnDbPath: d.ASN,
		CommonProviderConfig: &commonv3.CommonGeoipProviderConfig{GeoFieldKeys: names},
	})
	if err != nil {
		return &geoipv3.Geoip{} // whose validation fails
	}
	return &geoipv3.Geoip{Provider: &corev3.TypedExtensionConfig{
		Name: "envoy.geoip_providers.maxmind", TypedConfig: provider,
	}}
}

// lookedUp turns the filters on where lists name countries or networks. Envoys without a database ignore it.
func lookedUp(a *Access) ([]seam.Message, error) {
	if len(a.Located) == 0 {
		return nil, nil
	}
	on := &routev3.FilterConfig{Config: &anypb.Any{}}
	return []seam.Message{
		{Name: forged, Config: on}, {Name: lookup, Config: on}, {Name: state, Config: on}, {Name: cleanup, Config: on},
	}, nil
}
