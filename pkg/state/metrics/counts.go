package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// counts calls read at each collection.
type counts struct {
	read func() map[string]int
	desc *prometheus.Desc
}

// AddLogins adds the number of failed logins. read returns it by the code of the
// reason; there are few codes.
func (m *Metrics) AddLogins(read func() map[string]int) error {
	return m.addCounts(read, prometheus.NewDesc("gatehouse_login_failures_total",
		"Failed logins at the Envoy of standalone, by the code of the reason. See docs/login-failures.md.", []string{"reason"}, nil))
}

// AddOrders adds the number of attempts to get an automatic certificate. read returns it by the result.
func (m *Metrics) AddOrders(read func() map[string]int) error {
	return m.addCounts(read, prometheus.NewDesc("gatehouse_certificate_attempts_total",
		"Attempts of this process to get an automatic certificate that ended, by result: issued, failed; tests: test_passed, test_failed; "+
			"calls of the hook for DNS: hook_done, hook_failed. See docs/certificates.md.",
		[]string{"result"}, nil))
}

func (m *Metrics) addCounts(read func() map[string]int, desc *prometheus.Desc) error {
	if err := m.registry.Register(counts{read, desc}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c counts) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c counts) Collect(to chan<- prometheus.Metric) {
	for label, n := range c.read() {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.CounterValue, float64(n), label)
	}
}
