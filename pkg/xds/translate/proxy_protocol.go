package translate

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	proxyprotocolv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/proxy_protocol/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/rbac/v3"
	upstreamproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// ProxyProtocol is the name of the listener filter that reads the PROXY protocol.
const ProxyProtocol = "envoy.filters.listener.proxy_protocol"

// tlvFormat is the format of the access log for a text of the load balancer.
func tlvFormat(name string) string {
	return "%FILTER_STATE(envoy.network.proxy_protocol.tlv:FIELD:" + name + "):256%"
}

// readProxyProtocol is the listener filter that reads the PROXY protocol. It closes connections without it.
func readProxyProtocol(p *ir.ProxyProtocol) ([]*listenerv3.ListenerFilter, error) {
	if p == nil {
		return nil, nil
	}
	filter := &proxyprotocolv3.ProxyProtocol{}
	for _, t := range p.TLVs {
		// Requests have the state of their connection, and not its metadata.
		filter.TlvLocation = proxyprotocolv3.ProxyProtocol_FILTER_STATE
		filter.Rules = append(filter.Rules, &proxyprotocolv3.ProxyProtocol_Rule{
			TlvType: uint32(t.Type), OnTlvPresent: &proxyprotocolv3.ProxyProtocol_KeyValuePair{Key: t.Name}, //nolint:gosec // 1 to 255
		})
	}
	config, err := pack(filter)
	return []*listenerv3.ListenerFilter{{
		Name: ProxyProtocol, ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: config},
	}}, err
}

// onlyBalancers closes the connections of all but the addresses that may send the PROXY protocol. The listener filter
// reads it whoever sends it, so this compares the address of the connection itself.
func onlyBalancers(p *ir.ProxyProtocol) ([]*listenerv3.Filter, error) {
	if p == nil {
		return nil, nil
	}
	rules := &rbacconfigv3.RBAC{Action: rbacconfigv3.RBAC_ALLOW}
	if len(p.From) > 0 {
		policy := &rbacconfigv3.Policy{Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}}}
		for _, one := range p.From {
			for _, form := range seam.FormsOf(one) {
				policy.Principals = append(policy.Principals, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_DirectRemoteIp{
					DirectRemoteIp: &corev3.CidrRange{AddressPrefix: form.Addr().String(), PrefixLen: u32(form.Bits())},
				}})
			}
		}
		rules.Policies = map[string]*rbacconfigv3.Policy{"balancers": policy}
	}
	config, err := pack(&rbacv3.RBAC{StatPrefix: "proxy_protocol.", Rules: rules})
	return []*listenerv3.Filter{{
		Name: "envoy.filters.network.rbac", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
	}}, err
}

// sendProxyProtocol begins each connection of a cluster with the PROXY protocol, before TLS.
func sendProxyProtocol(out *clusterv3.Cluster, version string) (err error) {
	if version == "" {
		return nil
	}
	if out.TransportSocket == nil {
		plain, err := pack(&rawbufferv3.RawBuffer{})
		if err != nil {
			return err
		}
		out.TransportSocket = &corev3.TransportSocket{
			Name: "envoy.transport_sockets.raw_buffer", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: plain},
		}
	}
	if out.TransportSocket, err = beginningWith(version, out.TransportSocket); err != nil {
		return err
	}
	for _, m := range out.GetTransportSocketMatches() {
		if m.TransportSocket, err = beginningWith(version, m.GetTransportSocket()); err != nil {
			return err
		}
	}
	return nil
}

func beginningWith(version string, inner *corev3.TransportSocket) (*corev3.TransportSocket, error) {
	config := &corev3.ProxyProtocolConfig{Version: corev3.ProxyProtocolConfig_V1}
	if version == "v2" {
		config.Version = corev3.ProxyProtocolConfig_V2
	}
	packed, err := pack(&upstreamproxyv3.ProxyProtocolUpstreamTransport{Config: config, TransportSocket: inner})
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.upstream_proxy_protocol",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed},
	}, err
}
