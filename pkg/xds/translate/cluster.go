package translate

import (
	"slices"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Cluster translates a cluster. Its endpoints are inline, so that it is ready as soon
// as Envoy has read it, unless it has a health check or a DNS name. The endpoints of a
// discovered cluster are in an Assignment.
func Cluster(c *ir.Cluster) (*clusterv3.Cluster, error) {
	protocol := httpProtocolOptions(c)
	var err error
	if protocol.HttpFilters, err = callFilters(c); err != nil {
		return nil, err
	}
	if protocol.RetryPolicy, err = clusterRetries(c); err != nil {
		return nil, err
	}
	options, err := httpOptions(protocol)
	if err != nil {
		return nil, err
	}
	out := &clusterv3.Cluster{
		Name:                          c.Name,
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:                seconds(c.Connections.ConnectTimeout),
		PerConnectionBufferLimitBytes: u32(connectionBufferBytes),
		LbPolicy:                      lbPolicy(c.Strategy),
		CommonLbConfig: &clusterv3.Cluster_CommonLbConfig{
			HealthyPanicThreshold: &typev3.Percent{Value: float64(c.PanicThreshold)},
		},
		CircuitBreakers:               circuitBreakers(c.Limits),
		OutlierDetection:              outlierDetection(c.Outlier),
		UpstreamConnectionOptions:     tcpKeepalive(c.Connections.Keepalive),
		TypedExtensionProtocolOptions: options,
		UpstreamBindConfig:            unansweredFor(c),
	}
	if out.GetLbPolicy() == clusterv3.Cluster_RING_HASH {
		out.LbConfig = &clusterv3.Cluster_RingHashLbConfig_{RingHashLbConfig: &clusterv3.Cluster_RingHashLbConfig{
			MaximumRingSize: &wrapperspb.UInt64Value{Value: maxRing},
		}}
	}
	if c.Discovered {
		discoverEndpoints(out)
	} else {
		out.LoadAssignment = loadAssignment(c)
	}
	if slices.ContainsFunc(c.Endpoints, func(e ir.Endpoint) bool { return e.DNS }) {
		resolve(out, c.DNS)
	}
	if err := balance(out, c); err != nil {
		return nil, err
	}
	if c.HealthCheck != nil {
		out.HealthChecks = []*corev3.HealthCheck{healthCheck(c)}
	}
	if err := secureUpstreams(out, c); err != nil {
		return nil, err
	}
	return out, sendProxyProtocol(out, c.ProxyProtocol)
}

// maxRing bounds the ring of a cluster with ring_hash. An endpoint with a smaller share of the weights
// may be left out. With Envoy's own bound of 8M, weights of 1 and 1,000,000 can cost 200 MB, and more than
// a second of its main thread at each change of an endpoint.
const maxRing = 1 << 16

func loadAssignment(c *ir.Cluster) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: c.Name}
	locality := &endpointv3.LocalityLbEndpoints{}
	for i, e := range c.Endpoints {
		if i == 0 || e.Zone != c.Endpoints[i-1].Zone || e.Priority != c.Endpoints[i-1].Priority {
			locality = newLocality(e.Priority, e.Zone)
			out.Endpoints = append(out.Endpoints, locality)
		}
		endpoint := &endpointv3.Endpoint{Address: socketAddress(e.Address, e.Port)}
		if e.Socket != "" {
			endpoint.Address = &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: e.Socket}}}
		}
		if e.DNS {
			endpoint.Hostname = serverName(e.Address)
		}
		locality.LbEndpoints = append(locality.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier:      &endpointv3.LbEndpoint_Endpoint{Endpoint: endpoint},
			LoadBalancingWeight: u32(e.Weight),
		})
	}
	return out
}

func lbPolicy(strategy string) clusterv3.Cluster_LbPolicy {
	switch strategy {
	case "least_request":
		return clusterv3.Cluster_LEAST_REQUEST
	case "random":
		return clusterv3.Cluster_RANDOM
	case "ring_hash":
		return clusterv3.Cluster_RING_HASH
	case "maglev":
		return clusterv3.Cluster_MAGLEV
	}
	return clusterv3.Cluster_ROUND_ROBIN
}

// hashes reports whether the strategy needs a hash policy on the route.
func hashes(strategy string) bool { return strategy == "ring_hash" || strategy == "maglev" }

func isHTTP2(protocol string) bool { return protocol == "h2c" || protocol == "h2" }

func httpProtocolOptions(c *ir.Cluster) *httpv3.HttpProtocolOptions {
	explicit := &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
			HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
		},
	}
	if isHTTP2(c.Protocol) {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				InitialStreamWindowSize:     u32(streamWindowBytes),
				InitialConnectionWindowSize: u32(connectionWindowBytes),
				ConnectionKeepalive:         http2Keepalive(c.Connections),
			},
		}
	}
	common := &corev3.HttpProtocolOptions{IdleTimeout: seconds(c.Connections.IdleTimeout)}
	if c.MaxDuration > 0 {
		common.MaxStreamDuration = seconds(c.MaxDuration)
	}
	return &httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: common,
		UpstreamProtocolOptions:   &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit},
	}
}

// httpOptions returns the HTTP options of a cluster by the name of their type.
func httpOptions(o *httpv3.HttpProtocolOptions) (map[string]*anypb.Any, error) {
	config, err := pack(o)
	return map[string]*anypb.Any{"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": config}, err
}

func tlsSocket(config *anypb.Any) *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: config},
	}
}

func healthCheck(c *ir.Cluster) *corev3.HealthCheck {
	h := c.HealthCheck
	out := &corev3.HealthCheck{
		Timeout:  seconds(h.Timeout),
		Interval: seconds(h.Interval),
		// By default Envoy checks a cluster without traffic only once a minute.
		NoTrafficInterval:  seconds(h.Interval),
		UnhealthyThreshold: u32(h.UnhealthyThreshold),
		HealthyThreshold:   u32(h.HealthyThreshold),
	}
	if h.TCP {
		out.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
		return out
	}
	http := &corev3.HealthCheck_HttpHealthCheck{Host: h.Host, Path: h.Path}
	// By default Envoy sends the cluster's name. That of a second form of a cluster has a slash, and servers refuse such a
	// Host.
	if name, _, second := strings.Cut(c.Name, "/"); second && h.Host == "" {
		http.Host = name
	}
	if isHTTP2(c.Protocol) {
		http.CodecClientType = typev3.CodecClientType_HTTP2
	}
	out.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: http}
	return out
}
