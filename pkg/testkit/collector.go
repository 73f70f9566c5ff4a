package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	alsv3 "github.com/envoyproxy/go-control-plane/envoy/service/accesslog/v3"
	logsv1 "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricscollectorv1 "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans and logs (OpenTelemetry, OTLP) over gRPC, and over HTTP, where it receives metrics too, at
// /v1/logs, /v1/metrics and, for spans, any other path. It is an access log service of Envoy (ALS), too.
type Collector struct {
	// GRPC and HTTP are ports on 127.0.0.1.
	GRPC, HTTP int

	grpc *grpc.Server
	http *http.Server

	mu    sync.Mutex
	spans []Span
	lines []LogLine
	// entries are those of Envoy's gRPC access log service, in JSON.
	entries []string
	// metrics has the newest value of each metric without labels, and the names of all others.
	metrics map[string]float64
	keys    map[string]bool
	// hang is closed when the collector answers again; nil means that it answers.
	hang chan struct{}
}

// Span is a span with the tags that are texts or numbers.
type Span struct {
	// Trace, ID and Parent are its bytes as hexadecimal digits; a root has no parent.
	Trace, ID, Parent string
	Name, Service     string
	Tags              map[string]string
	Start, End        time.Time
	// Failure is why it is an error; empty means that it is none.
	Failure string
}

// LogLine is a line of a log.
type LogLine struct {
	Service, Body string
	// Trace is the ID of the trace as hexadecimal digits; empty if there is none.
	Trace  string
	Fields map[string]string
}

// StartCollector runs a collector on free ports until Close.
func StartCollector() (*Collector, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	c := &Collector{GRPC: ports[0], HTTP: ports[1], metrics: map[string]float64{}, keys: map[string]bool{}}
	return c, c.Start()
}

// Start starts the collector again after Close, on the same ports.
func (c *Collector) Start() error {
	listeners := make([]net.Listener, 2)
	for i, port := range []int{c.GRPC, c.HTTP} {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port))) //nolint:noctx // is there at once
		if err != nil {
			return fmt.Errorf("starting the collector: %w", err)
		}
		listeners[i] = l
	}
	c.grpc = grpc.NewServer(grpc.UnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			c.noteKey(metadata.ValueFromIncomingContext(ctx, KeyHeader))
			return handle(ctx, req)
		}))
	collectorv1.RegisterTraceServiceServer(c.grpc, traceService{collector: c})
	logsv1.RegisterLogsServiceServer(c.grpc, logsService{collector: c})
	alsv3.RegisterAccessLogServiceServer(c.grpc, accessLogService{collector: c})
	c.http = &http.Server{Handler: http.HandlerFunc(c.serveHTTP)} //nolint:gosec // only Envoy connects
	go func(s *grpc.Server) { _ = s.Serve(listeners[0]) }(c.grpc)
	go func(s *http.Server) { _ = s.Serve(listeners[1]) }(c.http)
	return nil
}

// Close closes all connections and stops the collector.
func (c *Collector) Close() error {
	c.Answer()
	c.grpc.Stop()
	return c.http.Close()
}

// Hang makes the collector wait before it answers, until Answer.
func (c *Collector) Hang() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hang == nil {
		c.hang = make(chan struct{})
	}
}

// Answer ends Hang.
func (c *Collector) Answer() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hang != nil {
		close(c.hang)
		c.hang = nil
	}
}

// Spans returns the spans since the start.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// KeyHeader is the header that the collector remembers.
const KeyHeader = "x-collector-key"

// Keys returns the different values of KeyHeader, sorted, with an empty one for requests without it.
func (c *Collector) Keys() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Keys(c.keys))
}

func (c *Collector) noteKey(values []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keys[strings.Join(values, ", ")] = true
}

// Metrics returns the newest values of counters and gauges without labels by their names; those of others are 0.
func (c *Collector) Metrics() map[string]float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.metrics)
}

// Lines returns the lines of logs since the start.
func (c *Collector) Lines() []LogLine {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]LogLine(nil), c.lines...)
}

// wait returns an error after Hang.
func (c *Collector) wait(ctx context.Context) error {
	c.mu.Lock()
	hang := c.hang
	c.mu.Unlock()
	if hang == nil {
		return nil
	}
	select {
	case <-hang:
		return errors.New("the collector did not answer in time")
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *Collector) receive(ctx context.Context, m *collectorv1.ExportTraceServiceRequest) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range m.GetResourceSpans() {
		service := tags(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeSpans() {
			for _, s := range scope.GetSpans() {
				c.spans = append(c.spans, spanOf(s, service))
			}
		}
	}
	return nil
}

func (c *Collector) receiveLogs(ctx context.Context, m *logsv1.ExportLogsServiceRequest) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range m.GetResourceLogs() {
		service := tags(resource.GetResource().GetAttributes())["service.name"]
		for _, scope := range resource.GetScopeLogs() {
			for _, l := range scope.GetLogRecords() {
				c.lines = append(c.lines, LogLine{
					Service: service, Body: l.GetBody().GetStringValue(), Trace: fmt.Sprintf("%x", l.GetTraceId()),
					Fields: tags(l.GetAttributes()),
				})
			}
		}
	}
	return nil
}

func (c *Collector) receiveMetrics(ctx context.Context, m *metricscollectorv1.ExportMetricsServiceRequest) error {
	if err := c.wait(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, resource := range m.GetResourceMetrics() {
		for _, scope := range resource.GetScopeMetrics() {
			for _, one := range scope.GetMetrics() {
				c.metrics[one.GetName()] = 0
				for _, p := range append(one.GetGauge().GetDataPoints(), one.GetSum().GetDataPoints()...) {
					if len(p.GetAttributes()) == 0 {
						c.metrics[one.GetName()] = p.GetAsDouble()
					}
				}
			}
		}
	}
	return nil
}

func spanOf(s *tracev1.Span, service string) Span {
	hex := func(id []byte) string { return fmt.Sprintf("%x", id) }
	return Span{
		Trace: hex(s.GetTraceId()), ID: hex(s.GetSpanId()), Parent: hex(s.GetParentSpanId()),
		Name: s.GetName(), Service: service, Tags: tags(s.GetAttributes()),
		Start: nanos(s.GetStartTimeUnixNano()), End: nanos(s.GetEndTimeUnixNano()), Failure: s.GetStatus().GetMessage(),
	}
}

func nanos(since1970 uint64) time.Time { return time.Unix(0, int64(since1970)) } //nolint:gosec // until 2262

func tags(list []*commonv1.KeyValue) map[string]string {
	all := map[string]string{}
	for _, kv := range list {
		switch v := kv.GetValue().GetValue().(type) {
		case *commonv1.AnyValue_StringValue:
			all[kv.GetKey()] = v.StringValue
		case *commonv1.AnyValue_IntValue:
			all[kv.GetKey()] = strconv.FormatInt(v.IntValue, 10)
		}
	}
	return all
}

type traceService struct {
	collectorv1.UnimplementedTraceServiceServer
	collector *Collector
}

// Export implements collectorv1.TraceServiceServer.
func (s traceService) Export(
	ctx context.Context, m *collectorv1.ExportTraceServiceRequest,
) (*collectorv1.ExportTraceServiceResponse, error) {
	return &collectorv1.ExportTraceServiceResponse{}, s.collector.receive(ctx, m)
}

type logsService struct {
	logsv1.UnimplementedLogsServiceServer
	collector *Collector
}

// Export implements logsv1.LogsServiceServer.
func (s logsService) Export(
	ctx context.Context, m *logsv1.ExportLogsServiceRequest,
) (*logsv1.ExportLogsServiceResponse, error) {
	return &logsv1.ExportLogsServiceResponse{}, s.collector.receiveLogs(ctx, m)
}

func (c *Collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	c.noteKey(r.Header.Values(KeyHeader))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	var spans collectorv1.ExportTraceServiceRequest
	var lines logsv1.ExportLogsServiceRequest
	var metrics metricscollectorv1.ExportMetricsServiceRequest
	switch r.URL.Path {
	case "/v1/logs":
		if err = proto.Unmarshal(body, &lines); err == nil {
			err = c.receiveLogs(r.Context(), &lines)
		}
	case "/v1/metrics":
		if err = proto.Unmarshal(body, &metrics); err == nil {
			err = c.receiveMetrics(r.Context(), &metrics)
		}
	default:
		if err = proto.Unmarshal(body, &spans); err == nil {
			err = c.receive(r.Context(), &spans)
		}
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
