package metrics

import (
	"regexp"

	"github.com/prometheus/client_golang/prometheus"
)

// Names returns the names of all metrics of m, with a value or not.
func Names(m *Metrics) (names []string) {
	found := make(chan *prometheus.Desc)
	go func() {
		defer close(found)
		m.registry.Describe(found)
	}()
	name := regexp.MustCompile(`fqName: "([^"]*)"`)
	for d := range found {
		names = append(names, name.FindStringSubmatch(d.String())[1])
	}
	return names
}
