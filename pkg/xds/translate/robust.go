package translate

import (
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// circuitBreakers leave room for retries. With Envoy's default of 3, one killed
// endpoint of two failed 22% of requests.
func circuitBreakers(l ir.Limits) *clusterv3.CircuitBreakers {
	thresholds := &clusterv3.CircuitBreakers_Thresholds{
		MaxConnections:     u32(l.Connections),
		MaxPendingRequests: u32(l.Pending),
		MaxRequests:        u32(l.Requests),
		MaxRetries:         u32(l.Retries),
	}
	if b := l.RetryBudget; b.Percent > 0 {
		thresholds.RetryBudget = &clusterv3.CircuitBreakers_Thresholds_RetryBudget{
			BudgetPercent: &typev3.Percent{Value: float64(b.Percent)}, MinRetryConcurrency: u32(b.Min),
		}
	}
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{thresholds}}
}

// outlierDetection counts what Envoy observes itself: refused and broken
// connections and timeouts, never a response. It ejects at most half of the
// endpoints, so a single one always stays.
func outlierDetection(o *ir.Outlier) *clusterv3.OutlierDetection {
	if o == nil {
		return nil
	}
	const half, longest = 50, 10
	return &clusterv3.OutlierDetection{
		SplitExternalLocalOriginErrors:         true,
		ConsecutiveLocalOriginFailure:          u32(o.Failures),
		EnforcingConsecutiveLocalOriginFailure: u32(100),
		EnforcingLocalOriginSuccessRate:        u32(0),
		EnforcingConsecutive_5Xx:               u32(0),
		EnforcingSuccessRate:                   u32(0),
		Interval:                               seconds(time.Second),
		BaseEjectionTime:                       seconds(o.Ejection),
		MaxEjectionTime:                        seconds(longest * o.Ejection),
		MaxEjectionPercent:                     u32(half),
	}
}

// tcpKeepalive detects a lost peer of an idle connection, for example under a
// websocket, after four times the interval.
func tcpKeepalive(every time.Duration) *clusterv3.UpstreamConnectionOptions {
	if every == 0 {
		return nil
	}
	const probes = 3
	return &clusterv3.UpstreamConnectionOptions{TcpKeepalive: &corev3.TcpKeepalive{
		KeepaliveTime:     u32(int(every / time.Second)),
		KeepaliveInterval: u32(int(every / time.Second)),
		KeepaliveProbes:   u32(probes),
	}}
}

// unansweredFor closes a connection whose peer does not confirm what it is sent. Under a request without an end, nothing
// else notices that the peer is lost: for a quarter of an hour, as long as the kernel repeats what it sent.
func unansweredFor(c *ir.Cluster) *corev3.BindConfig {
	local := func(e ir.Endpoint) bool { return e.Socket != "" }
	if !c.Streams || slices.ContainsFunc(c.Endpoints, local) {
		return nil
	}
	const levelTCP, userTimeout, milliseconds = 6, 18, 20_000 // tcp(7)
	return &corev3.BindConfig{SocketOptions: []*corev3.SocketOption{{
		Description: "TCP_USER_TIMEOUT", Level: levelTCP, Name: userTimeout, State: corev3.SocketOption_STATE_PREBIND,
		Value: &corev3.SocketOption_IntValue{IntValue: milliseconds},
	}}}
}

// http2Keepalive sends a PING before a request on a connection that was idle.
// All requests share the connection, so all would wait if the peer is lost. It
// sends no other PINGs: gRPC servers disconnect clients that send them too
// often.
func http2Keepalive(c ir.Connections) *corev3.KeepaliveSettings {
	if c.Keepalive == 0 {
		return nil
	}
	return &corev3.KeepaliveSettings{
		ConnectionIdleInterval: seconds(time.Second),
		Timeout:                seconds(c.ConnectTimeout),
	}
}
