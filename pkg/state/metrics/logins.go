package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// logins calls counts at each collection.
type logins struct {
	counts   func() map[string]int
	failures *prometheus.Desc
}

// AddLogins adds the number of failed logins. counts returns it by the code of the
// reason; there are few codes.
func (m *Metrics) AddLogins(counts func() map[string]int) error {
	failures := prometheus.NewDesc("gatehouse_login_failures_total",
		"Failed logins at the Envoy of standalone, by the code of the reason. See docs/login-failures.md.", []string{"reason"}, nil)
	if err := m.registry.Register(logins{counts, failures}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (l logins) Describe(to chan<- *prometheus.Desc) { to <- l.failures }

// Collect implements prometheus.Collector.
func (l logins) Collect(to chan<- prometheus.Metric) {
	for reason, count := range l.counts() {
		to <- prometheus.MustNewConstMetric(l.failures, prometheus.CounterValue, float64(count), reason)
	}
}
