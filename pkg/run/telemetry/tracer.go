package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// maxFollowed bounds how many writes are followed to the Envoys at a time. Others have the span of their call.
	maxFollowed = 64
	// followFor is how long a write is followed.
	followFor = time.Minute
	// maxText bounds the texts in spans, in bytes.
	maxText = 1024
)

// Options of a Tracer. All are required.
type Options struct {
	// URL is where spans are sent.
	URL     string
	Program Program
	Feed    *status.Feed
	// Envoys returns the connected Envoys.
	Envoys func() []status.Envoy
	Link   *Link
}

// Tracer makes the spans of calls of the API, and of what becomes of their writes. A nil Tracer makes none.
type Tracer struct {
	feed     *status.Feed
	envoys   func() []status.Envoy
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer

	stopped chan struct{}
	room    chan struct{}
	running sync.WaitGroup
}

// NewTracer returns a tracer that sends spans until Close. Which calls are sampled is decided by their traceparent and,
// without one, by OTEL_TRACES_SAMPLER (all of them if that is not set).
func NewTracer(ctx context.Context, o Options) (*Tracer, error) {
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(o.URL))
	if err != nil {
		return nil, err
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxText
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(spanExporter{exporter, o.Link}), sdktrace.WithResource(o.Program.resource()),
		sdktrace.WithRawSpanLimits(limits),
	)
	return &Tracer{
		feed: o.Feed, envoys: o.Envoys, provider: provider, tracer: provider.Tracer("gatehouse"),
		stopped: make(chan struct{}), room: make(chan struct{}, maxFollowed),
	}, nil
}

// Close sends the spans that are left.
func (t *Tracer) Close() {
	if t == nil {
		return
	}
	close(t.stopped)
	t.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	_ = t.provider.Shutdown(ctx) // link has counted it
}

// Handler gives each call a span, in the trace of its traceparent.
func (t *Tracer) Handler(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/health", "/ready", "/metrics", "/events": // they are called all the time, or do not end
			next.ServeHTTP(w, r)
			return
		}
		ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
		ctx, span := t.tracer.Start(ctx, "HTTP", trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
			attribute.String("url.path", r.URL.EscapedPath())))
		defer span.End()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Answered completes the span of a call. route is empty if there is no such call.
func Answered(ctx context.Context, method, route string, code int) {
	span := trace.SpanFromContext(ctx)
	if route != "" {
		span.SetName(method + " " + route)
		span.SetAttributes(attribute.String("http.request.method", method), attribute.String("http.route", route))
	}
	span.SetAttributes(attribute.Int("http.response.status_code", code))
	if code >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, "")
	}
}

// TraceID returns the trace of a call that is sampled; otherwise it is empty.
func TraceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.IsSampled() {
		return c.TraceID().String()
	}
	return ""
}

// Start begins a part of a call.
func (t *Tracer) Start(ctx context.Context, name string) (_ context.Context, end func()) {
	if t == nil {
		return ctx, func() {}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return ctx, func() { span.End() }
}

// Store follows the writes of calls that are sampled until the Envoys have them.
func (t *Tracer) Store(s store.Store) store.Store {
	if t == nil {
		return s
	}
	return followed{s, t}
}

type followed struct {
	store.Store
	tracer *Tracer
}

// Write implements store.Store.
func (s followed) Write(
	ctx context.Context, origin store.Origin, fn func(store.Writer) error,
) (revision int64, err error) {
	call := trace.SpanFromContext(ctx)
	if !call.SpanContext().IsSampled() {
		return s.Store.Write(ctx, origin, fn)
	}
	from, changes := s.tracer.feed.Now(), 0
	inner, span := s.tracer.tracer.Start(ctx, "write")
	defer span.End()
	revision, err = s.Store.Write(inner, origin, func(w store.Writer) error {
		err := fn(w)
		changes = w.Count().Total()
		return err
	})
	if err == nil && changes > 0 {
		about := attribute.Int64("gatehouse.revision", revision)
		span.SetAttributes(about, attribute.Int("gatehouse.changes", changes))
		call.SetAttributes(about, attribute.String("gatehouse.actor", origin.Actor))
		s.tracer.follow(call, from, revision)
	}
	return revision, err
}
