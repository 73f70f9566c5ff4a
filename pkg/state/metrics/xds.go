package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// xds calls counts at each collection.
type xds struct {
	counts   func() map[string]int64
	refusals *prometheus.Desc
}

// AddXDS adds the number of refused clients of the xDS port. counts returns it by reason.
func (m *Metrics) AddXDS(counts func() map[string]int64) error {
	refusals := prometheus.NewDesc("gatehouse_xds_refusals_total",
		"Streams, calls and handshakes of clients of the xDS port that were refused, by reason.", []string{"reason"}, nil)
	if err := m.registry.Register(xds{counts, refusals}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (x xds) Describe(to chan<- *prometheus.Desc) { to <- x.refusals }

// Collect implements prometheus.Collector.
func (x xds) Collect(to chan<- prometheus.Metric) {
	for reason, n := range x.counts() {
		to <- prometheus.MustNewConstMetric(x.refusals, prometheus.CounterValue, float64(n), reason)
	}
}
