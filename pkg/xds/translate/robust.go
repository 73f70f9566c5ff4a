package translate

import (
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
