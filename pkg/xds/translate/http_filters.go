package translate

import (
	"fmt"
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// httpFilter is one HTTP filter, with all the places in Envoy's configuration where it occurs. A nil hook means that
// the filter does not occur there.
type httpFilter struct {
	// name is the filter's name on the listener. If the row has several filters, it is the part of their names before
	// the slash.
	name string
	// listener returns the row's filters on the listener. It is mostly one, but a filter that supports one domain has
	// one instance for each domain.
	listener func(ir.Listener) []filterConfig
	// disabled means that the filter works only for hosts and routes that have a message for it. It is on every
	// listener, so that no listener changes with them. If Envoy cannot read a message, it uses the listener's
	// configuration, which must deny if the filter protects something.
	disabled bool
	// host and route return the messages of a host and of a route. A host's message applies to routes without their
	// own.
	host  func(*ir.Host) ([]filterConfig, error)
	route func(*ir.Route) ([]filterConfig, error)
	// replies change the filter's own responses; nil leaves them unchanged.
	replies func(ir.Listener) ([]*hcmv3.ResponseMapper, error)
	// resources are what the filter needs in addition to the listener.
	resources func(ir.Listener) (Resources, error)
}

// filterConfig is a message for the filter called name. Filters of one type have different names, such as rbac/host.
type filterConfig struct {
	name   string
	config message
	// discovered means that the listener's filter is delivered on its own, under its name (ECDS), as a message of
	// this type. config is then the default if it does not arrive; nil means that the listener cannot work without
	// it.
	discovered message
}

// Resources are what filters refer to by name outside listeners and routes.
type Resources struct {
	Clusters []*clusterv3.Cluster
	Secrets  []*tlsv3.Secret
	// Extensions are filters that a listener refers to by name.
	Extensions []*corev3.TypedExtensionConfig
}

// httpFilters is the only place that sets the order of the HTTP filters. Requests pass the filters from first to
// last, responses from last to first.
func httpFilters() []httpFilter {
	return []httpFilter{
		// HostFilter is first: no other filter sees a request without one clear host.
		{name: HostFilter, listener: hostFilter, replies: hostReplies},
		// These two enforce client certificates before later filters look at the request.
		{name: AnybodyFilter, listener: anybodyFilter, disabled: true, host: anybodyOfHost, route: anybodyOfRoute, replies: certificateReplies},
		{name: VerifiedFilter, listener: verifiedFilter, host: verifiedOfHost},
		// CORSFilter answers preflights before any credential is required. Since it is early, refusals of later
		// filters have its headers too.
		{name: CORSFilter, listener: corsFilter, disabled: true, route: corsOfRoute},
		// A response passes CompressFilter after all filters that may change its body.
		{name: CompressFilter, listener: compressFilters, disabled: true, host: compressOfHost, route: compressOfRoute},
		// The cheapest refusal of all. The filter has its own name, since a route's message replaces the host's.
		{name: IPFilter, listener: ipFilter, disabled: true, host: ipOfHost, route: ipOfRoute, replies: ipReplies},
		// MaintenanceFilter comes after the address check and before logins: a closed host needs no login.
		{name: MaintenanceFilter, listener: maintenanceFilter, disabled: true, host: maintenanceOfHost, replies: maintenanceReplies},
		// RateLimitFilter comes before everything that costs more than a lookup, so that a flood does not reach it.
		{name: RateLimitFilter, listener: rateLimitFilters, disabled: true, route: rateLimitsOfRoute, replies: rateLimitedReplies, resources: rateLimitResources},
		// CSRFFilter does not need to know who the client is.
		{name: CSRFFilter, listener: csrfFilter, disabled: true, host: csrfOfHost, route: csrfOfRoute, replies: csrfReplies},
		// The order of these matters. SpoofFilter and AuthzSpoofFilter first remove headers that only later filters
		// may set. OAuth2Filter finds the token, JWTFilter verifies it and extracts the claims. CleanFilter and
		// PasswordFilter at the end remove what backends must not see. The replies for keys and passwords come before
		// those for logins, which match every other 401.
		{name: SpoofFilter, listener: spoofFilter, disabled: true, host: spoofOfHost, route: spoofOfRoute, replies: credentialReplies},
		{name: AuthzSpoofFilter, listener: authzSpoofFilter, disabled: true, host: authzHeadersOfHost, route: authzHeadersOfRoute},
		{name: OAuth2Filter, listener: oauth2Filter, disabled: true, host: loginOfHost, route: exemptRoute(OAuth2Filter), replies: loginReplies},
		{name: JWTFilter, listener: jwtFilter, disabled: true, host: tokenCheckOfHost, route: tokenCheckOfRoute},
		// KeyClientsFilter checks the client that KeyFilter found.
		{name: KeyFilter, listener: keyFilter, disabled: true, host: keysOfHost, route: keysOfRoute, resources: keyResources},
		{name: KeyClientsFilter, listener: keyClientsFilter, disabled: true, host: keyClientsOfHost, route: keyClientsOfRoute},
		{name: BasicAuthFilter, listener: basicAuthFilter, disabled: true, host: basicAuthOfHost, route: basicAuthOfRoute},
		// These are for one of several credentials. The first two allow requests without a credential. AnyFilter
		// refuses requests for which no filter found one.
		{name: AnyKeyFilter, listener: anyKeyFilter, disabled: true, host: anyKeyOfHost, route: anyKeyOfRoute, resources: anyKeyResources},
		{name: AnyBasicAuthFilter, listener: anyBasicAuthFilter, disabled: true, host: anyBasicAuthOfHost, route: anyBasicAuthOfRoute},
		{name: AnyFilter, listener: anyFilter, disabled: true, host: anyOfHost, route: anyOfRoute},
		{name: ClaimsFilter, listener: claimsFilter, disabled: true, host: claimsOfHost, route: claimsOfRoute},
		{name: AccessFilter, listener: accessFilter, disabled: true, host: accessOfHost, route: accessOfRoute, replies: accessReplies},
		{name: CleanFilter, listener: cleanFilter, disabled: true, host: cleanOfHost, route: cleanOfRoute},
		{name: PasswordFilter, listener: passwordFilter, disabled: true, host: passwordOfHost, route: passwordOfRoute},
		// ClaimLimitFilter comes after all filters that identify the client.
		{name: ClaimLimitFilter, listener: claimLimitFilters, disabled: true, route: claimLimitsOfRoute},
		// BufferFilter counts what DecompressFilter decompressed. Both come before the filters that hold a body for a
		// server: after those, the body arrives in one piece, which Envoy does not count.
		{name: DecompressFilter, listener: decompressFilter, disabled: true, route: decompressOfRoute},
		{name: BufferFilter, listener: bufferFilter, disabled: true, route: bufferOfRoute, replies: bufferReplies},
		// The most expensive filters: they call other servers, which may need everything found before.
		{name: ExtAuthzFilter, listener: extAuthzFilters, disabled: true, host: extAuthzOfHost, route: extAuthzOfRoute, replies: extAuthzReplies},
		{name: ExtProcFilter, listener: extProcFilter, disabled: true, host: extProcOfHost, route: extProcOfRoute, replies: extProcReplies},
		// FaultFilter comes after all access checks: strangers do not see experiments.
		{name: FaultFilter, listener: faultFilter, disabled: true, host: faultOfHost, route: faultOfRoute, replies: faultReplies},
		// LuaFilter runs the operator's own code on requests that are allowed.
		{name: LuaFilter, listener: luaFilter, disabled: true, host: luaOfHost, route: luaOfRoute},
		// HeaderFilter comes after all filters that may answer, so they check what the client sent. Responses pass it
		// before those filters.
		{name: HeaderFilter, listener: headerFilter, disabled: true, host: headersOfHost, route: headersOfRoute},
		// Responses pass HSTSFilter before HeaderFilter, so the user's own changes win.
		{name: HSTSFilter, listener: hstsFilter, disabled: true, host: hstsOfHost},
		// These filters change where and in which form a request is forwarded.
		{name: AffinityFilter, listener: affinityFilter, disabled: true, route: affinityOfRoute},
		// GRPCWebFilter comes before GRPCJSONFilter, so that what is already gRPC is not taken for JSON.
		{name: GRPCWebFilter, listener: grpcWebFilter, disabled: true, route: grpcWebOfRoute},
		{name: GRPCJSONFilter, listener: grpcJSONFilter, disabled: true, route: grpcJSONOfRoute},
		// The router is always last.
		{name: routerFilter, listener: router, replies: routerReplies},
	}
}

func router(ir.Listener) []filterConfig {
	return []filterConfig{{name: routerFilter, config: &routerv3.Router{}}}
}

const routerFilter = "envoy.filters.http.router"

// HTTPFilters returns the names of the HTTP filters in their order. If a row has several filters, it is the part of
// their names before the slash.
func HTTPFilters() []string {
	var names []string
	for _, f := range httpFilters() {
		names = append(names, f.name)
	}
	return names
}

// pack packs a message for one of the row's filters.
func (f httpFilter) pack(c filterConfig) (*anypb.Any, error) {
	if c.name != f.name && !strings.HasPrefix(c.name, f.name+"/") {
		return nil, fmt.Errorf("filter %s is not called as its row %s", c.name, f.name)
	}
	packed, err := pack(c.config)
	if err != nil {
		return nil, fmt.Errorf("configuring filter %s: %w", c.name, err)
	}
	return packed, nil
}

// listenerFilters returns the listener's filters in their order.
func listenerFilters(l ir.Listener) ([]*hcmv3.HttpFilter, error) {
	var list []*hcmv3.HttpFilter
	for _, f := range httpFilters() {
		for _, c := range f.listener(l) {
			filter := &hcmv3.HttpFilter{Name: c.name, Disabled: f.disabled}
			var config *anypb.Any
			if c.config != nil {
				var err error
				if config, err = f.pack(c); err != nil {
					return nil, err
				}
			}
			if c.discovered != nil {
				filter.ConfigType = discovery(c.discovered, config)
			} else {
				filter.ConfigType = &hcmv3.HttpFilter_TypedConfig{TypedConfig: config}
			}
			list = append(list, filter)
		}
	}
	return list, nil
}

// discovery replaces a message of the type of m. The listener waits for the message, and uses otherwise if it does
// not arrive.
func discovery(m message, otherwise *anypb.Any) *hcmv3.HttpFilter_ConfigDiscovery {
	return &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
		ConfigSource: adsSource(), DefaultConfig: otherwise, TypeUrls: []string{"type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())},
	}}
}

// localReplies returns the changes of the filters' own responses.
func localReplies(l ir.Listener) (*hcmv3.LocalReplyConfig, error) {
	out := &hcmv3.LocalReplyConfig{}
	for _, f := range httpFilters() {
		if f.replies == nil {
			continue
		}
		mappers, err := f.replies(l)
		if err != nil {
			return nil, fmt.Errorf("configuring the answers of filter %s: %w", f.name, err)
		}
		out.Mappers = append(out.Mappers, mappers...)
	}
	return out, nil
}

// ListenerResources returns what the filters of a listener need in addition to it.
func ListenerResources(l ir.Listener) (Resources, error) {
	all := Resources{Secrets: chainSecrets(l)}
	for _, f := range httpFilters() {
		if f.resources == nil {
			continue
		}
		r, err := f.resources(l)
		if err != nil {
			return Resources{}, err
		}
		all.Clusters = append(all.Clusters, r.Clusters...)
		all.Secrets = append(all.Secrets, r.Secrets...)
		all.Extensions = append(all.Extensions, r.Extensions...)
	}
	return all, nil
}

// CheckOverride refuses overrides of a host or route that Envoy would treat as "no filter": a name that no row has,
// and an empty message. An empty FilterConfig is allowed: it turns a filter on with the listener's configuration.
func CheckOverride(name string, m proto.Message) error {
	isRow := func(f httpFilter) bool { return name == f.name || strings.HasPrefix(name, f.name+"/") }
	if !slices.ContainsFunc(httpFilters(), isRow) {
		return fmt.Errorf("configuring filter %s: no listener has a filter of that name", name)
	}
	if _, turnsOn := m.(*routev3.FilterConfig); !turnsOn && proto.Size(m) == 0 {
		return fmt.Errorf("configuring filter %s: an empty message would turn it off", name)
	}
	return nil
}

func hostFilters(h *ir.Host) (map[string]*anypb.Any, error) {
	return perFilter(h, func(f httpFilter) func(*ir.Host) ([]filterConfig, error) { return f.host })
}

func routeFilters(r *ir.Route) (map[string]*anypb.Any, error) {
	return perFilter(r, func(f httpFilter) func(*ir.Route) ([]filterConfig, error) { return f.route })
}

// perFilter returns the messages of a host or route by the name of their filter. Envoy ignores messages for a filter
// that the listener does not have.
func perFilter[T any](of T, hook func(httpFilter) func(T) ([]filterConfig, error)) (map[string]*anypb.Any, error) {
	var all map[string]*anypb.Any
	for _, f := range httpFilters() {
		configs := hook(f)
		if configs == nil {
			continue
		}
		list, err := configs(of)
		if err != nil {
			return nil, err
		}
		for _, c := range list {
			if err := CheckOverride(c.name, c.config); err != nil {
				return nil, err
			}
			config, err := f.pack(c)
			if err != nil {
				return nil, err
			}
			if all == nil {
				all = map[string]*anypb.Any{}
			}
			all[c.name] = config
		}
	}
	return all, nil
}
