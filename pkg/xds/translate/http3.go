package translate

import (
	"fmt"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	quicv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/quic/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// closedChain is the name of no chain: Envoy closes a connection for it.
const closedChain = "closed"

// quicChains makes a listener one of HTTP/3, with a chain for each certificate. Adding,
// removing or moving a certificate changes the chains of that certificate only, and
// which names choose them; Envoy keeps the connections of the others.
func quicChains(out *listenerv3.Listener, l ir.Listener) error {
	out.Address.GetSocketAddress().Protocol = corev3.SocketAddress_UDP
	out.UdpListenerConfig = &listenerv3.UdpListenerConfig{QuicOptions: &listenerv3.QuicProtocolOptions{
		QuicProtocolOptions:    quicLimits(l.Clients),
		CryptoHandshakeTimeout: seconds(handshakeTimeout),
		// Envoy knows a client by the address of its handshake: one that moves should
		// open another connection.
		SendDisableActiveMigration: wrapperspb.Bool(true),
	}}
	m := matchers{}
	var names []namedChoice
	absent := m.chain(closedChain)
	for _, c := range l.TLS.Chains {
		for _, n := range c.ServerNames {
			if n == "" {
				absent = m.chain(c.Name)
				continue
			}
			names = append(names, namedChoice{name: n, oneLabel: true, then: m.chain(c.Name)})
		}
	}
	for _, n := range l.TLS.Closed {
		names = append(names, namedChoice{name: n, then: m.chain(closedChain)})
	}
	out.FilterChainMatcher = m.byValidName(names, nil, absent)
	if m.err != nil {
		return m.err
	}
	for _, c := range l.TLS.Chains {
		// Chains differ in their certificate only, so the names of one do not change it.
		l.TLS = &ir.TLS{MinVersion: l.TLS.MinVersion, Chains: []ir.TLSChain{{Name: c.Name}}}
		manager, err := httpConnectionManager(l)
		if err != nil {
			return err
		}
		manager.CodecType = hcmv3.HttpConnectionManager_HTTP3
		manager.Http3ProtocolOptions = &corev3.Http3ProtocolOptions{}
		filters, err := networkFilters(l, manager)
		if err != nil {
			return err
		}
		socket, err := quicSocket(c)
		if err != nil {
			return err
		}
		out.FilterChains = append(out.FilterChains, &listenerv3.FilterChain{Name: c.Name, Filters: filters, TransportSocket: socket})
	}
	return nil
}

// quicLimits are the limits of HTTP/2.
func quicLimits(c *ir.Clients) *corev3.QuicProtocolOptions {
	streams := maxConcurrentStreams
	if c != nil && c.MaxStreams > 0 {
		streams = c.MaxStreams
	}
	return &corev3.QuicProtocolOptions{
		MaxConcurrentStreams:        u32(streams),
		InitialStreamWindowSize:     u32(streamWindowBytes),
		InitialConnectionWindowSize: u32(connectionWindowBytes),
	}
}

// quicSocket serves one certificate. Sessions are not resumed, as over TCP, so there is
// no early data (0-RTT), which others could repeat.
func quicSocket(c ir.TLSChain) (*corev3.TransportSocket, error) {
	common := &tlsv3.CommonTlsContext{
		AlpnProtocols: []string{"h3"},
		TlsParams:     &tlsv3.TlsParameters{EcdhCurves: keyExchanges()},
	}
	for _, p := range c.Pairs {
		common.TlsCertificateSdsSecretConfigs = append(common.TlsCertificateSdsSecretConfigs, seam.SDSSecret(pairPrefix+p.Secret))
	}
	config, err := pack(&quicv3.QuicDownstreamTransport{
		DownstreamTlsContext: unresumed(common), EnableEarlyData: wrapperspb.Bool(false), EnableResumption: wrapperspb.Bool(false),
	})
	return &corev3.TransportSocket{
		Name: "envoy.transport_sockets.quic", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config},
	}, err
}

// AltSvcFilter is the name of the filter that tells clients about HTTP/3.
const AltSvcFilter = "envoy.filters.http.header_mutation/alt_svc"

// altSvcAge is how long clients try HTTP/3 first, and so how long they try it in vain
// after it was turned off.
const altSvcAge = time.Hour

// altSvcFilter is on connections whose client may as well use HTTP/3.
func altSvcFilter(l ir.Listener) []seam.Message {
	if l.AltSvc == 0 || chainCA(l) != "" {
		return nil
	}
	value := fmt.Sprintf(`h3=":%d"; ma=%d`, l.AltSvc, int(altSvcAge.Seconds()))
	return []seam.Message{{Name: AltSvcFilter, Config: &headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{
		ResponseMutations: []*mutationv3.HeaderMutation{{Action: &mutationv3.HeaderMutation_Append{
			Append: seam.SetHeader("alt-svc", value),
		}}},
	}}}}
}
