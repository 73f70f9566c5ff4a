package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// otlp calls failures at each collection.
type otlp struct {
	failures map[string]func() int64
	failed   *prometheus.Desc
}

// AddOTLP adds how often spans and metrics could not be sent to a collector. failures has a function for each signal that
// is sent.
func (m *Metrics) AddOTLP(failures map[string]func() int64) error {
	failed := prometheus.NewDesc("gatehouse_otlp_failures_total",
		"Attempts to send traces or metrics of the control plane to a collector that failed; what they had is lost.", []string{"signal"}, nil)
	if err := m.registry.Register(otlp{failures, failed}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (o otlp) Describe(to chan<- *prometheus.Desc) { to <- o.failed }

// Collect implements prometheus.Collector.
func (o otlp) Collect(to chan<- prometheus.Metric) {
	for signal, failures := range o.failures {
		to <- prometheus.MustNewConstMetric(o.failed, prometheus.CounterValue, float64(failures()), signal)
	}
}
