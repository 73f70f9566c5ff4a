package translate

import (
	"errors"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	descriptorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	connectionlimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/connection_limit/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// boundSockets sets what concerns the bytes of connections.
func boundSockets(c *ir.Clients, out *listenerv3.Listener) {
	if c == nil {
		return
	}
	if c.Keepalive > 0 {
		const probes = 3
		every := u32(int(c.Keepalive / time.Second))
		out.TcpKeepalive = &corev3.TcpKeepalive{KeepaliveTime: every, KeepaliveInterval: every, KeepaliveProbes: u32(probes)}
	}
	out.PerConnectionBufferHighWatermarkTimeout = unlessZero(c.SlowReaderTimeout)
}

// boundConnections closes connections beyond a number, which counts those of its filter chain, and those of addresses
// that make too many.
func boundConnections(c *ir.Clients) (filters []*listenerv3.Filter, err error) {
	if c == nil {
		return nil, nil
	}
	add := func(name string, message seam.Proto) {
		config, failed := pack(message)
		err = errors.Join(err, failed)
		filters = append(filters, &listenerv3.Filter{
			Name: name, ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: config},
		})
	}
	if c.MaxConnections > 0 {
		add("envoy.filters.network.connection_limit", &connectionlimitv3.ConnectionLimit{
			StatPrefix: "clients", MaxConnections: wrapperspb.UInt64(uint64(c.MaxConnections)),
		})
	}
	if l := c.NewPerClient; l != nil {
		add("envoy.filters.network.ratelimit", &ratelimitv3.RateLimit{
			StatPrefix: "clients", Domain: l.Domain, Timeout: seconds(rateLimitTimeout), RateLimitService: rateLimitService(),
			Descriptors: []*descriptorv3.RateLimitDescriptor{{Entries: []*descriptorv3.RateLimitDescriptor_Entry{
				{Key: l.Entry.Key, Value: l.Entry.Value},
				{Key: "remote_address", Value: "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%"},
			}}},
		})
	}
	return filters, err
}

// boundRequests replaces the limits of the edge that a proxy states itself.
func boundRequests(l ir.Listener, m *hcmv3.HttpConnectionManager) {
	c := l.Clients
	if c == nil {
		return
	}
	for _, d := range []struct {
		stated time.Duration
		field  **durationpb.Duration
	}{
		{c.IdleTimeout, &m.CommonHttpProtocolOptions.IdleTimeout},
		{c.MaxAge, &m.CommonHttpProtocolOptions.MaxConnectionDuration},
		{c.DrainTimeout, &m.DrainTimeout},
		{c.HeadersTimeout, &m.RequestHeadersTimeout},
		{c.RequestTimeout, &m.RequestTimeout},
		{c.StreamIdleTimeout, &m.StreamIdleTimeout},
	} {
		if d.stated > 0 {
			*d.field = seconds(d.stated)
		}
	}
	for _, n := range []struct {
		stated int
		field  **wrapperspb.UInt32Value
	}{
		{c.MaxRequests, &m.CommonHttpProtocolOptions.MaxRequestsPerConnection},
		{c.Headers, &m.CommonHttpProtocolOptions.MaxHeadersCount},
		{c.HeadersKiB, &m.MaxRequestHeadersKb},
		{c.MaxStreams, &m.Http2ProtocolOptions.MaxConcurrentStreams},
	} {
		if n.stated > 0 {
			*n.field = u32(n.stated)
		}
	}
}

func unlessZero(d time.Duration) *durationpb.Duration {
	if d == 0 {
		return nil
	}
	return seconds(d)
}
