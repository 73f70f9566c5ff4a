package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// certificates calls ends at each collection.
type certificates struct {
	// ends returns the seconds until the certificate of each secret expires.
	ends   func() map[string]float64
	expiry *prometheus.Desc
}

// AddCertificates adds the expiry of certificates. ends returns the remaining seconds
// by the names of secrets.
func (m *Metrics) AddCertificates(ends func() map[string]float64) error {
	expiry := prometheus.NewDesc("gatehouse_certificate_expiry_seconds",
		"Seconds until the certificate of a secret ends; negative after that.", []string{"secret"}, nil)
	if err := m.registry.Register(certificates{ends, expiry}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c certificates) Describe(to chan<- *prometheus.Desc) { to <- c.expiry }

// Collect implements prometheus.Collector.
func (c certificates) Collect(to chan<- prometheus.Metric) {
	for secret, left := range c.ends() {
		to <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, left, secret)
	}
}
