package metrics

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Metrics are the metrics of one control plane. Use New.
type Metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	waits    *prometheus.CounterVec
}

// New returns metrics for the contents of a registry. version is the program's.
func New(about *status.Registry, version string) (*Metrics, error) {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_api_requests_total", Help: "Answers of the REST API.",
		}, []string{"method", "path", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gatehouse_api_request_seconds", Help: "How long calls of the REST API took, with waits, without streams of events.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}, []string{"method"}),
		waits: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gatehouse_api_waits_total",
			Help: "Writes with ?wait=applied, by whether all Envoys had the change in time (applied) or not (lagging).",
		}, []string{"result"}),
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gatehouse_build_info", Help: "Always 1; the label is the version.",
		ConstLabels: prometheus.Labels{"version": version},
	})
	build.Set(1)
	for _, c := range []prometheus.Collector{
		m.requests, m.duration, m.waits, build, &gateway{about, newDescriptions()},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	} {
		if err := m.registry.Register(c); err != nil {
			return nil, fmt.Errorf("registering metrics: %w", err)
		}
	}
	return m, nil
}

// Handler answers in the format that the client prefers.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true, // the one with exemplars
	})
}

// Gatherer reads all metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// CountAnswer counts an answer of the API. path is from the API's table of calls; empty
// means that it matches no call. trace is the trace of the call, which becomes an exemplar; empty means none.
func (m *Metrics) CountAnswer(method, path string, status int, took time.Duration, trace string) {
	if path == "" {
		path = "none"
	}
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete,
		http.MethodOptions:
	default:
		method = "other" // a client may send any word
	}
	m.requests.WithLabelValues(method, path, strconv.Itoa(status)).Inc()
	if path == "/events" {
		return
	}
	if o, ok := m.duration.WithLabelValues(method).(prometheus.ExemplarObserver); ok && trace != "" {
		o.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": trace})
		return
	}
	m.duration.WithLabelValues(method).Observe(took.Seconds())
}

// CountWait counts a write that waited.
func (m *Metrics) CountWait(applied bool) {
	result := "applied"
	if !applied {
		result = "lagging"
	}
	m.waits.WithLabelValues(result).Inc()
}
