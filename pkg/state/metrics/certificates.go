package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// certificates calls ends at each collection.
type certificates struct {
	// ends returns the seconds until each certificate expires.
	ends   func() map[string]float64
	expiry *prometheus.Desc
}

// AddCertificates adds the expiry of certificates. ends returns the remaining seconds
// by the names of secrets.
func (m *Metrics) AddCertificates(ends func() map[string]float64) error {
	return m.addExpiry(ends, prometheus.NewDesc("gatehouse_certificate_expiry_seconds",
		"Seconds until the certificate of a secret expires; negative after that. Alert on less than 14 days (1209600).",
		[]string{"secret"}, nil))
}

// AddXDSCertificates adds the expiry of the files of the xDS port. ends returns the remaining seconds by what they are.
func (m *Metrics) AddXDSCertificates(ends func() map[string]float64) error {
	return m.addExpiry(ends, prometheus.NewDesc("gatehouse_xds_certificate_expiry_seconds",
		"Seconds until the first certificate, client_ca or client_crl of the xDS port expires, or has to be replaced; "+
			"negative after that. Absent without TLS. See docs/xds-security.md.",
		[]string{"file"}, nil))
}

func (m *Metrics) addExpiry(ends func() map[string]float64, expiry *prometheus.Desc) error {
	if err := m.registry.Register(certificates{ends, expiry}); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (c certificates) Describe(to chan<- *prometheus.Desc) { to <- c.expiry }

// Collect implements prometheus.Collector.
func (c certificates) Collect(to chan<- prometheus.Metric) {
	for name, left := range c.ends() {
		to <- prometheus.MustNewConstMetric(c.expiry, prometheus.GaugeValue, left, name)
	}
}
