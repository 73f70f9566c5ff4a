package model

// MetricsConfig counts the requests of each service in the Envoys of a proxy, with their durations, the class of their
// status, and what refused them. If several global configs of the type apply to a proxy, the first one by name does. A
// change of it changes the listeners.
// +page=metrics.md#services-and-routes
// +example={routes: true, max_series: 2000}
type MetricsConfig struct {
	// Durations by route too. Default: false.
	Routes bool `json:"routes,omitempty"`
	// The bytes of the bodies of requests and responses, by service. Default: false.
	Bytes bool `json:"bytes,omitempty"`
	// The requests that were sent to upstreams more than once, by service. Default: false.
	Retries bool `json:"retries,omitempty"`
	// The most series of each metric in an Envoy; requests that need another series are not counted. Default: 1000.
	// +minimum=0
	// +maximum=maxMetricSeries
	MaxSeries int `json:"max_series,omitempty"`
}

const (
	defaultMetricSeries = 1000
	// maxMetricSeries bounds what the metrics of services cost an Envoy: some 3 KB each.
	maxMetricSeries = 20000
)

func readMetrics(v *validator, at, _ string, config JSON) Spec {
	var c MetricsConfig
	if v.decode(at, config, &c) {
		v.checkRange(at+".max_series", c.MaxSeries, 0, maxMetricSeries)
	}
	return &c
}

// Series is MaxSeries, or else its default.
func (c *MetricsConfig) Series() int {
	if c.MaxSeries == 0 {
		return defaultMetricSeries
	}
	return c.MaxSeries
}

func (c *MetricsConfig) uses() []Key { return nil }
