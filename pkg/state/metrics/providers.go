package metrics

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// Provider is what is known of the identity provider of a login.
type Provider struct {
	// Object is the path of the filter or global config.
	Object string
	// Answered says that the provider has answered; Age is how many seconds ago.
	Answered bool
	Age      float64
	// Failures is the number of failed requests to it.
	Failures int
}

// providers calls list at each collection.
type providers struct {
	list          func() []Provider
	age, failures *prometheus.Desc
}

// AddProviders adds the age of the answers of identity providers.
func (m *Metrics) AddProviders(list func() []Provider) error {
	p := providers{
		list: list,
		age: prometheus.NewDesc("gatehouse_provider_answer_age_seconds",
			"Seconds since the last usable answer of the identity provider of a login, by the path of its object "+
				"(/filter/NAME, /globalconfig/NAME); absent before the first one. Alert on more than an hour and a half (5400).",
			[]string{"object"}, nil),
		failures: prometheus.NewDesc("gatehouse_provider_failures_total",
			"Failed queries of the identity provider of a login.", []string{"object"}, nil),
	}
	if err := m.registry.Register(p); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}

// Describe implements prometheus.Collector.
func (p providers) Describe(to chan<- *prometheus.Desc) {
	to <- p.age
	to <- p.failures
}

// Collect implements prometheus.Collector.
func (p providers) Collect(to chan<- prometheus.Metric) {
	for _, one := range p.list() {
		if one.Answered {
			to <- prometheus.MustNewConstMetric(p.age, prometheus.GaugeValue, one.Age, one.Object)
		}
		to <- prometheus.MustNewConstMetric(p.failures, prometheus.CounterValue, float64(one.Failures), one.Object)
	}
}
