package telemetry

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/metrics"
)

// closeWithin bounds how long the end of the program waits for the collector.
const closeWithin = 2 * time.Second

// Program is what spans and metrics say of their sender.
type Program struct {
	// Version is that of the program, Instance the name of this process.
	Version, Instance string
}

func (p Program) resource() *resource.Resource {
	return resource.NewSchemaless(
		attribute.String("service.name", "gatehouse"),
		attribute.String("service.version", p.Version),
		attribute.String("service.instance.id", p.Instance),
	)
}

// Link is the way to a collector. It logs when it begins to fail and when it works again, and counts failures.
type Link struct {
	what     string
	log      *slog.Logger
	failing  atomic.Bool
	failures atomic.Int64
}

// NewLink returns a link for what is sent, such as "spans".
func NewLink(what string, log *slog.Logger) *Link { return &Link{what: what, log: log} }

// Failures is how often something could not be sent since the start.
func (l *Link) Failures() int64 { return l.failures.Load() }

// note returns nil: the SDK would report an error through a variable of its own package.
func (l *Link) note(err error) error {
	if err != nil {
		l.failures.Add(1)
		if !l.failing.Swap(true) {
			l.log.Warn("a collector does not take what is sent, which is lost until it does", "what", l.what, "err", err)
		}
	} else if l.failing.Swap(false) {
		l.log.Info("the collector takes what is sent again", "what", l.what)
	}
	return nil
}

type spanExporter struct {
	sdktrace.SpanExporter
	link *Link
}

// ExportSpans implements sdktrace.SpanExporter.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	return e.link.note(e.SpanExporter.ExportSpans(ctx, spans))
}

type metricExporter struct {
	metric.Exporter
	link *Link
}

// Export implements metric.Exporter.
func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	return e.link.note(e.Exporter.Export(ctx, m))
}

// Metrics sends metrics to a collector once a minute, or as often as OTEL_METRIC_EXPORT_INTERVAL says.
type Metrics struct{ provider *metric.MeterProvider }

// PushMetrics sends metrics to a URL, until Close.
func PushMetrics(ctx context.Context, url string, p Program, m *metrics.Metrics, link *Link) (*Metrics, error) {
	exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithEndpointURL(url))
	if err != nil {
		return nil, err
	}
	reader := metric.NewPeriodicReader(metricExporter{exporter, link},
		metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(m.Gatherer()))))
	return &Metrics{metric.NewMeterProvider(metric.WithReader(reader), metric.WithResource(p.resource()))}, nil
}

// Close sends the metrics a last time.
func (m *Metrics) Close() {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = m.provider.Shutdown(ctx) // link has counted it
}
