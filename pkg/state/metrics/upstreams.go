package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
)

// Upstream is what the Envoys of a proxy have reported of an upstream.
type Upstream struct {
	Proxy, Name string
	// Counts are its requests since the start of the process.
	health.Counts
	// Active are those without an answer yet.
	Active uint64
}

// upstreams calls list at each collection.
type upstreams struct {
	list             func() []Upstream
	requests, active *prometheus.Desc
}

// AddUpstreams adds the requests to upstreams. list returns each pair of a proxy and a
// name once; there are few.
func (m *Metrics) AddUpstreams(list func() []Upstream) error {
	u := upstreams{
		list: list,
		requests: prometheus.NewDesc("gatehouse_upstream_requests_total",
			"Requests to an upstream, retries included, that Envoys of this process reported, by result: succeeded (an answer "+
				"other than 5xx), failed (5xx or no answer), unconnected (not sent, because no connection was made), not_known "+
				"(the client did not wait for the answer, or the proxy is lean and they failed).",
			[]string{"proxy", "upstream", "result"}, nil),
		active: prometheus.NewDesc("gatehouse_upstream_active_requests",
			"Requests to an upstream without an answer at the last report of each Envoy that is connected to this process.",
			[]string{"proxy", "upstream"}, nil),
	}
	if err := m.registry.Register(u); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (u upstreams) Describe(to chan<- *prometheus.Desc) {
	to <- u.requests
	to <- u.active
}

// Collect implements prometheus.Collector.
func (u upstreams) Collect(to chan<- prometheus.Metric) {
	for _, one := range u.list() {
		for result, n := range map[string]uint64{
			"succeeded": one.Succeeded, "failed": one.Failed, "unconnected": one.Unconnected, "not_known": one.Untold,
		} {
			to <- prometheus.MustNewConstMetric(u.requests, prometheus.CounterValue, float64(n), one.Proxy, one.Name, result)
		}
		to <- prometheus.MustNewConstMetric(u.active, prometheus.GaugeValue, float64(one.Active), one.Proxy, one.Name)
	}
}
