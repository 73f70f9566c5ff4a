package translate

import (
	"cmp"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// This file is for connections and datagrams that are not HTTP.

const (
	// sessionIdleTimeout is Envoy's default.
	sessionIdleTimeout = time.Minute
	// maxDatagram is a jumbo frame. Envoy's default of 1,500 bytes cuts answers of DNS servers.
	maxDatagram = 9000
	// maxConnectAttempts is how many endpoints a connection tries.
	maxConnectAttempts = 3
)

// L4Name is the name of a listener. Like ListenerName, it contains the address. Services with names and without share
// the name of a port, so that one replaces the other in place.
func L4Name(l *ir.L4Listener) string {
	kind := "tcp-"
	if l.UDP {
		kind = "udp-"
	}
	return kind + net.JoinHostPort(l.Address, strconv.Itoa(l.Port))
}

// L4Clusters returns the names of the clusters that a service names, sorted.
func L4Clusters(services []*ir.L4Service) []string {
	var names []string
	for _, s := range services {
		for _, c := range s.Clusters {
			names = append(names, c.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// L4Secrets returns the secrets that the services of a listener name, sorted by name.
func L4Secrets(l *ir.L4Listener) []*tlsv3.Secret {
	byName := map[string]*tlsv3.Secret{}
	for _, s := range l.Services {
		if s.TLS == nil {
			continue
		}
		for _, p := range s.TLS.Pairs {
			byName[pairPrefix+p.Secret] = PairSecret(pairPrefix+p.Secret, p)
		}
		if s.TLS.ClientCA != nil {
			authorities := AuthoritiesSecret(s.TLS.ClientCA)
			byName[authorities.GetName()] = authorities
		}
	}
	var list []*tlsv3.Secret
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		list = append(list, byName[name])
	}
	return list
}

// L4Listener translates a listener.
func L4Listener(l *ir.L4Listener) (*listenerv3.Listener, error) {
	if l.UDP {
		return udpListener(l)
	}
	out := &listenerv3.Listener{
		Name: L4Name(l), Address: socketAddress(l.Address, l.Port), PerConnectionBufferLimitBytes: u32(connectionBufferBytes),
	}
	boundSockets(l.Clients, out)
	var err error
	if out.ListenerFilters, err = readProxyProtocol(l.ProxyProtocol); err != nil {
		return nil, err
	}
	var m matchers
	if slices.ContainsFunc(l.Services, func(s *ir.L4Service) bool { return len(s.ServerNames) > 0 }) {
		inspector, err := tlsInspector()
		if err != nil {
			return nil, err
		}
		out.ListenerFilters = append(out.ListenerFilters, inspector)
		out.FilterChainMatcher = m.passthroughOnly(l)
	} else if s := l.Services[0]; isBounded(l, s) {
		out.FilterChainMatcher = first(nil, when(m.allowed(l, s), m.chain(l4ChainName(s))))
	}
	if m.err != nil {
		return nil, m.err
	}
	for _, s := range l.Services {
		chain, err := l4Chain(l, s)
		if err != nil {
			return nil, err
		}
		out.FilterChains = append(out.FilterChains, chain)
	}
	return out, nil
}

func tlsInspector() (*listenerv3.ListenerFilter, error) {
	inspector, err := pack(&inspectorv3.TlsInspector{})
	return &listenerv3.ListenerFilter{
		Name: "envoy.filters.listener.tls_inspector", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: inspector},
	}, err
}

// l4ChainName is the name of the chain of a service. No chain for HTTPS has a slash in its name.
func l4ChainName(s *ir.L4Service) string { return "service/" + s.Name }

// l4Chain is what happens to the connections of a service.
func l4Chain(l *ir.L4Listener, s *ir.L4Service) (*listenerv3.FilterChain, error) {
	out := &listenerv3.FilterChain{Name: l4ChainName(s)}
	add := func(name string, config seam.Proto) error {
		packed, err := pack(config)
		out.Filters = append(out.Filters, &listenerv3.Filter{
			Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed},
		})
		return err
	}
	if s.TLS != nil {
		out.TransportSocketConnectTimeout = seconds(handshakeTimeout)
		var err error
		if out.TransportSocket, err = downstreamSocket(s.TLS.MinVersion, ir.TLSChain{Pairs: s.TLS.Pairs, ClientCA: s.TLS.ClientCA}, nil); err != nil {
			return nil, err
		}
	}
	if len(s.Clusters) == 0 { // it closes the connection
		return out, add("envoy.filters.network.direct_response", &directv3.Config{})
	}
	var err error
	if out.Filters, err = boundConnections(l.Clients); err != nil {
		return nil, err
	}
	proxy, err := tcpProxy(l, s)
	if err != nil {
		return nil, err
	}
	return out, add("envoy.filters.network.tcp_proxy", proxy)
}

func tcpProxy(l *ir.L4Listener, s *ir.L4Service) (*tcpv3.TcpProxy, error) {
	out := &tcpv3.TcpProxy{
		StatPrefix:         s.Name,
		IdleTimeout:        seconds(cmp.Or(s.IdleTimeout, connectionIdleTimeout)),
		MaxConnectAttempts: u32(maxConnectAttempts),
		// Only ring_hash and maglev use it.
		HashPolicy: []*typev3.HashPolicy{{PolicySpecifier: &typev3.HashPolicy_SourceIp_{SourceIp: &typev3.HashPolicy_SourceIp{}}}},
	}
	if s.TLS != nil && s.TLS.ClientCA != nil {
		// The backend hears nothing of clients without a certificate.
		out.UpstreamConnectMode, out.MaxEarlyDataBytes = tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_TLS_HANDSHAKE, u32(0)
	}
	if s.MaxDuration > 0 {
		out.MaxDownstreamConnectionDuration = seconds(s.MaxDuration)
	}
	if len(s.Clusters) == 1 {
		out.ClusterSpecifier = &tcpv3.TcpProxy_Cluster{Cluster: s.Clusters[0].Name}
	} else {
		weighted := &tcpv3.TcpProxy_WeightedCluster{}
		for _, c := range s.Clusters {
			weighted.Clusters = append(weighted.Clusters, &tcpv3.TcpProxy_WeightedCluster_ClusterWeight{
				Name: c.Name, Weight: uint32(c.Share), //nolint:gosec // a sum of weights of at most a million
			})
		}
		out.ClusterSpecifier = &tcpv3.TcpProxy_WeightedClusters{WeightedClusters: weighted}
	}
	var err error
	out.AccessLog, err = l4Logs(l, s)
	return out, err
}

// isBounded reports whether some addresses cannot connect to a service.
func isBounded(l *ir.L4Listener, s *ir.L4Service) bool {
	return l.ProxyProtocol != nil || len(s.Deny) > 0 || len(s.Allow) > 0
}

// allowed matches connections from the addresses that a service allows and, with the PROXY protocol, from those that may
// send it. It chooses the chain, since a filter of the chain would be too late: backends that speak first would have told
// the client something. Without a chain, Envoy closes the connection.
func (m *matchers) allowed(l *ir.L4Listener, s *ir.L4Service) *xdsmatcherv3.Matcher_MatcherList_Predicate {
	client := m.extension("envoy.matching.inputs.source_ip", &networkv3.SourceIPInput{})
	in := func(input *xdscorev3.TypedExtensionConfig, list []netip.Prefix) *xdsmatcherv3.Matcher_MatcherList_Predicate {
		return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_{
			SinglePredicate: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate{
				Input: input, Matcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_CustomMatch{
					CustomMatch: m.extension("envoy.matching.matchers.ip", &ipv3.Ip{CidrRanges: cidrRanges(list), StatPrefix: "address"}),
				},
			},
		}}
	}
	not := func(p *xdsmatcherv3.Matcher_MatcherList_Predicate) *xdsmatcherv3.Matcher_MatcherList_Predicate {
		return &xdsmatcherv3.Matcher_MatcherList_Predicate{
			MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher{NotMatcher: p},
		}
	}
	var all []*xdsmatcherv3.Matcher_MatcherList_Predicate
	if p := l.ProxyProtocol; p != nil {
		direct := m.extension("envoy.matching.inputs.direct_source_ip", &networkv3.DirectSourceIPInput{})
		from := in(direct, p.From)
		if len(p.From) == 0 { // Envoy requires a range
			everyone := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
			from = not(in(direct, everyone))
		}
		all = append(all, from)
	}
	for _, list := range s.Allow {
		all = append(all, in(client, list))
	}
	if len(s.Deny) > 0 {
		all = append(all, not(in(client, s.Deny)))
	}
	if len(all) == 1 {
		return all[0]
	}
	return &xdsmatcherv3.Matcher_MatcherList_Predicate{MatchType: &xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher{
		AndMatcher: &xdsmatcherv3.Matcher_MatcherList_Predicate_PredicateList{Predicate: all},
	}}
}

// passthrough returns the chains of services, by name, and those that only some addresses get.
func (m *matchers) passthrough(l *ir.L4Listener) (chains []ir.TLSChain, bounded map[string]*xdsmatcherv3.Matcher_OnMatch) {
	bounded = map[string]*xdsmatcherv3.Matcher_OnMatch{}
	for _, s := range l.Services {
		name := l4ChainName(s)
		chains = append(chains, ir.TLSChain{Name: name, ServerNames: s.ServerNames})
		if isBounded(l, s) {
			bounded[name] = further(first(nil, when(m.allowed(l, s), m.chain(name))))
		}
	}
	return chains, bounded
}

// passthroughOnly chooses among services by name, and closes all other connections.
func (m *matchers) passthroughOnly(l *ir.L4Listener) *xdsmatcherv3.Matcher {
	chains, bounded := m.passthrough(l)
	return m.ifTLS(m.byValidName(m.names(chains, bounded), nil, nil))
}

func udpListener(l *ir.L4Listener) (*listenerv3.Listener, error) {
	s := l.Services[0]
	size := &corev3.UdpSocketConfig{MaxRxDatagramSize: wrapperspb.UInt64(maxDatagram)}
	proxy := &udpv3.UdpProxyConfig{
		StatPrefix: s.Name, IdleTimeout: seconds(cmp.Or(s.IdleTimeout, sessionIdleTimeout)), UpstreamSocketConfig: size,
		HashPolicies: []*udpv3.UdpProxyConfig_HashPolicy{{PolicySpecifier: &udpv3.UdpProxyConfig_HashPolicy_SourceIp{SourceIp: true}}},
	}
	var m matchers
	route := &xdsmatcherv3.Matcher_OnMatch{OnMatch: &xdsmatcherv3.Matcher_OnMatch_Action{
		Action: m.extension("route", &udpv3.Route{Cluster: s.Clusters[0].Name}),
	}}
	matcher := &xdsmatcherv3.Matcher{OnNoMatch: route}
	if len(s.Deny) > 0 || len(s.Allow) > 0 {
		matcher = first(nil, when(m.allowed(&ir.L4Listener{}, s), route))
	}
	proxy.RouteSpecifier = &udpv3.UdpProxyConfig_Matcher{Matcher: matcher}
	var err error
	if proxy.AccessLog, err = l4Logs(l, s); err != nil {
		return nil, err
	}
	config, err := pack(proxy)
	address := socketAddress(l.Address, l.Port)
	address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	return &listenerv3.Listener{
		Name: L4Name(l), Address: address,
		UdpListenerConfig: &listenerv3.UdpListenerConfig{DownstreamSocketConfig: size},
		ListenerFilters: []*listenerv3.ListenerFilter{{
			Name: "envoy.filters.udp_listener.udp_proxy", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: config},
		}},
	}, cmp.Or(m.err, err)
}

// l4Logs write a line for each connection, or session of UDP, when it ends.
func l4Logs(l *ir.L4Listener, s *ir.L4Service) ([]*accesslogv3.AccessLog, error) {
	logs := l.AccessLogs
	if l.AccessLog {
		logs = append(slices.Clone(logs), ir.AccessLog{})
	}
	var list []*accesslogv3.AccessLog
	for _, log := range logs {
		if log.AttachedOnly {
			continue // no service of this mode names a log
		}
		log.Always = true
		log.Fields = slices.DeleteFunc(slices.Clone(log.Fields), func(f ir.LogField) bool { return f.Value == "" })
		one, err := logger(log, connectionFormats(l, s, len(log.Line) > 0), selectedConnections(log.Only))
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

// selectedConnections is selected for connections: one that failed has a flag, and no status.
func selectedConnections(o *ir.LogOnly) []*accesslogv3.AccessLogFilter {
	if o == nil {
		return nil
	}
	rest := *o
	rest.StatusFrom = 0
	which := selected(&rest)
	if o.StatusFrom == 0 {
		return which
	}
	failed := &accesslogv3.AccessLogFilter{FilterSpecifier: &accesslogv3.AccessLogFilter_ResponseFlagFilter{
		ResponseFlagFilter: &accesslogv3.ResponseFlagFilter{},
	}}
	if o.SlowerThan == 0 && o.Millionths == 0 {
		return []*accesslogv3.AccessLogFilter{failed}
	}
	return []*accesslogv3.AccessLogFilter{seam.AnyOf(append(which, failed)...)}
}

// connectionFormats are the fields of a line for a connection. They have nothing that a client chooses but its address
// and a name that is the service's.
func connectionFormats(l *ir.L4Listener, s *ir.L4Service, text bool) map[string]string {
	formats := map[string]string{
		"start_time":                       "%START_TIME%",
		"duration_ms":                      "%DURATION%",
		"protocol":                         "tcp",
		"bytes_received":                   "%BYTES_RECEIVED%",
		"bytes_sent":                       "%BYTES_SENT%",
		"response_flags":                   "%RESPONSE_FLAGS%",
		"service":                          s.Name,
		"upstream_cluster":                 "%UPSTREAM_CLUSTER_RAW%",
		"upstream_host":                    "%UPSTREAM_HOST%",
		"upstream_transport_failure":       "%UPSTREAM_TRANSPORT_FAILURE_REASON%",
		"downstream_remote_address":        "%DOWNSTREAM_REMOTE_ADDRESS%",
		"downstream_direct_remote_address": "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS_WITHOUT_PORT%",
	}
	switch {
	case s.UDP:
		formats["protocol"] = "udp"
		for _, name := range []string{"bytes_received", "bytes_sent"} {
			formats[name] = "%DYNAMIC_METADATA(udp.proxy.session:" + name + ")%"
		}
	case len(s.ServerNames) > 0:
		formats["protocol"], formats["sni"] = "tls", "%REQUESTED_SERVER_NAME%"
	}
	if s.TLS != nil {
		formats["tls_version"] = "%DOWNSTREAM_TLS_VERSION%"
	}
	if l.Lean && !text {
		lean := append(leanFields(), "service", "sni", "bytes_received", "bytes_sent")
		maps.DeleteFunc(formats, func(name, _ string) bool { return !slices.Contains(lean, name) })
	}
	return formats
}

func cidrRanges(list []netip.Prefix) []*corev3.CidrRange {
	var ranges []*corev3.CidrRange
	for _, p := range list {
		for _, form := range seam.FormsOf(p) {
			ranges = append(ranges, &corev3.CidrRange{AddressPrefix: form.Addr().String(), PrefixLen: u32(form.Bits())})
		}
	}
	return ranges
}
