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

// httpFilter is one HTTP filter, in all the places where Envoy hears of it. A
// nil hook means that it is not there.
type httpFilter struct {
	// name is the filter's name on the listener; if there are several, the part
	// before the slash.
	name string
	// listener is the filter on the listener: mostly one, but one for each
	// domain of a filter that knows only one.
	listener func(ir.Listener) []filterConfig
	// disabled says that it does nothing but for the hosts and routes that have
	// a message for it. It is on every listener, so that no listener changes with
	// them, and a wrong message falls back to its configuration there: that of a
	// filter that protects something has to deny.
	disabled bool
	// host and route are the messages of a host and of a route. A host's message
	// stays in force under a route that has none.
	host  func(*ir.Host) ([]filterConfig, error)
	route func(*ir.Route) ([]filterConfig, error)
	// replies are what becomes of the filter's own answers; nil leaves them as they
	// are.
	replies func(ir.Listener) ([]*hcmv3.ResponseMapper, error)
	// resources are what it needs beside the listener.
	resources func(ir.Listener) (Resources, error)
}

// filterConfig is a message for the filter called name. Two filters of one type
// have different names, such as rbac/host.
type filterConfig struct {
	name   string
	config message
	// discovered says that the filter on the listener is delivered by itself, under its
	// name (ECDS), as a message of this type. config is then what stands for it if it does not
	// come; nil means that the listener is of no use without it.
	discovered message
}

// Resources are what filters name and neither listeners nor routes hold.
type Resources struct {
	Clusters []*clusterv3.Cluster
	Secrets  []*tlsv3.Secret
	// Extensions are the filters that a listener names and does not hold.
	Extensions []*corev3.TypedExtensionConfig
}

// httpFilters is the one place that decides the order of the HTTP filters.
func httpFilters() []httpFilter {
	return []httpFilter{
		// Refuses what is not one host, before anything is asked about it.
		{name: HostFilter, listener: hostFilter, replies: hostReplies},
		// Both before anything is asked about the request.
		{name: AnybodyFilter, listener: anybodyFilter, disabled: true, host: anybodyOfHost, route: anybodyOfRoute, replies: certificateReplies},
		{name: VerifiedFilter, listener: verifiedFilter, host: verifiedOfHost},
		// Answers a preflight before anybody asks who sends it, and what others refuse has its headers too.
		{name: CORSFilter, listener: corsFilter, disabled: true, route: corsOfRoute},
		// What comes back passes it after all that may change a body.
		{name: CompressFilter, listener: compressFilters, disabled: true, host: compressOfHost, route: compressOfRoute},
		// The cheapest refusal of all. By its own name, since the message of a route takes the
		// place of the host's.
		{name: IPFilter, listener: ipFilter, disabled: true, host: ipOfHost, route: ipOfRoute, replies: ipReplies},
		// Of those that may ask: before a login, which who cannot get in does not need.
		{name: MaintenanceFilter, listener: maintenanceFilter, disabled: true, host: maintenanceOfHost, replies: maintenanceReplies},
		// Before all that costs more than a lookup, so that a flood does not
		// reach it.
		{name: RateLimitFilter, listener: rateLimitFilters, route: rateLimitsOfRoute, replies: rateLimitedReplies, resources: rateLimitEngine},
		// Needs nobody's name.
		{name: CSRFFilter, listener: csrfFilter, disabled: true, host: csrfOfHost, route: csrfOfRoute, replies: csrfReplies},
		// In this order: the login finds the token that is verified, and it has the claims.
		// Before them, what only they may set is removed, and behind them what nobody else
		// needs to see. The answers about keys and passwords come before those of logins, which take every other 401.
		{name: SpoofFilter, listener: spoofFilter, disabled: true, host: spoofOfHost, route: spoofOfRoute, replies: credentialReplies},
		{name: AuthzSpoofFilter, listener: authzSpoofFilter, disabled: true, host: authzHeadersOfHost, route: authzHeadersOfRoute},
		{name: OAuth2Filter, listener: oauth2Filter, disabled: true, host: loginOfHost, route: exemptRoute(OAuth2Filter), replies: loginReplies},
		{name: JWTFilter, listener: jwtFilter, disabled: true, host: tokenCheckOfHost, route: tokenCheckOfRoute},
		// The second knows the client that the first has found.
		{name: KeyFilter, listener: keyFilter, disabled: true, host: keysOfHost, route: keysOfRoute, resources: keyResources},
		{name: KeyClientsFilter, listener: keyClientsFilter, disabled: true, host: keyClientsOfHost, route: keyClientsOfRoute},
		{name: BasicAuthFilter, listener: basicAuthFilter, disabled: true, host: basicAuthOfHost, route: basicAuthOfRoute},
		// Beside them those that let requests pass which bring nothing, and the one that looks whether all did.
		{name: AnyKeyFilter, listener: anyKeyFilter, disabled: true, host: anyKeyOfHost, route: anyKeyOfRoute, resources: anyKeyResources},
		{name: AnyBasicAuthFilter, listener: anyBasicAuthFilter, disabled: true, host: anyBasicAuthOfHost, route: anyBasicAuthOfRoute},
		{name: AnyFilter, listener: anyFilter, disabled: true, host: anyOfHost, route: anyOfRoute},
		{name: ClaimsFilter, listener: claimsFilter, disabled: true, host: claimsOfHost, route: claimsOfRoute},
		{name: AccessFilter, listener: accessFilter, disabled: true, host: accessOfHost, route: accessOfRoute, replies: accessReplies},
		{name: CleanFilter, listener: cleanFilter, disabled: true, host: cleanOfHost, route: cleanOfRoute},
		{name: PasswordFilter, listener: passwordFilter, disabled: true, host: passwordOfHost, route: passwordOfRoute},
		// Behind all that knows who it is; disabled, so that no other request meets it.
		{name: ClaimLimitFilter, listener: claimLimitFilters, disabled: true, route: claimLimitsOfRoute},
		// In this order: what is counted is what comes out. Before those that hold a body for a
		// server: of them it comes on in one piece, which Envoy does not count.
		{name: DecompressFilter, listener: decompressFilter, disabled: true, route: decompressOfRoute},
		{name: BufferFilter, listener: bufferFilter, disabled: true, route: bufferOfRoute, replies: bufferReplies},
		// The dearest: others ask, and may need all that was found before.
		{name: ExtAuthzFilter, listener: extAuthzFilters, disabled: true, host: extAuthzOfHost, route: extAuthzOfRoute, replies: extAuthzReplies},
		{name: ExtProcFilter, listener: extProcFilter, disabled: true, host: extProcOfHost, route: extProcOfRoute, replies: extProcReplies},
		// Strangers do not see experiments.
		{name: FaultFilter, listener: faultFilter, disabled: true, host: faultOfHost, route: faultOfRoute, replies: faultReplies},
		// The operator's own code sees requests that are allowed.
		{name: LuaFilter, listener: luaFilter, disabled: true, host: luaOfHost, route: luaOfRoute},
		// After all that may answer, so that what those check is what the client
		// has sent; what comes back passes it first.
		{name: HeaderFilter, listener: headerFilter, disabled: true, host: headersOfHost, route: headersOfRoute},
		// Before the user's own changes of what comes back, which have the last word.
		{name: HSTSFilter, listener: hstsFilter, disabled: true, host: hstsOfHost},
		// Change where a request goes, and what of it.
		{name: AffinityFilter, listener: affinityFilter, disabled: true, route: affinityOfRoute},
		// In this order: what is gRPC already is not taken for JSON.
		{name: GRPCWebFilter, listener: grpcWebFilter, disabled: true, route: grpcWebOfRoute},
		{name: GRPCJSONFilter, listener: grpcJSONFilter, disabled: true, route: grpcJSONOfRoute},
		// Is always the last.
		{name: routerFilter, listener: router, replies: pathReplies}, // of the first filter: the order of answers says nothing
	}
}

func router(ir.Listener) []filterConfig {
	return []filterConfig{{name: routerFilter, config: &routerv3.Router{}}}
}

const routerFilter = "envoy.filters.http.router"

// HTTPFilters returns the names of the HTTP filters, in their order. Of
// several filters of one row it is the part of their names before the slash.
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

// listenerFilters are the filters as the listener has them, in their order.
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

// discovery is in place of a message of the type of m: the listener waits for it, and takes
// otherwise if it does not come.
func discovery(m message, otherwise *anypb.Any) *hcmv3.HttpFilter_ConfigDiscovery {
	return &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
		ConfigSource: adsSource(), DefaultConfig: otherwise, TypeUrls: []string{"type.googleapis.com/" + string(m.ProtoReflect().Descriptor().FullName())},
	}}
}

// localReplies says what becomes of the answers of filters.
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

// ListenerResources are what the filters of a listener need beside it.
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

// CheckOverride refuses what Envoy would take from a host or route for "no filter": a name that
// no row has, and an empty message. An empty FilterConfig turns a filter on as the listener has it.
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

// perFilter are the messages of a host or route by the name of the filter that
// they are for. Envoy ignores those for one that the listener does not have.
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
