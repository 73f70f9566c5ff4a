package testkit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"

	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Collector receives spans (OpenTelemetry, OTLP) over gRPC and, at any path, over HTTP.
type Collector struct {
	// GRPC and HTTP are ports on 127.0.0.1.
	GRPC, HTTP int

	grpc *grpc.Server
	http *http.Server

	mu    sync.Mutex
	spans []Span
	// hang is closed when the collector answers again; nil means that it answers.
	hang chan struct{}
}

// Span is a span with the tags that are texts or numbers.
type Span struct {
	// Trace, ID and Parent are its bytes as hexadecimal digits; a root has no parent.
	Trace, ID, Parent string
	Name, Service     string
	Tags              map[string]string
}

// StartCollector runs a collector on free ports until Close.
func StartCollector() (*Collector, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	c := &Collector{GRPC: ports[0], HTTP: ports[1]}
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
	c.grpc = grpc.NewServer()
	collectorv1.RegisterTraceServiceServer(c.grpc, traceService{collector: c})
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

func (c *Collector) receive(ctx context.Context, m *collectorv1.ExportTraceServiceRequest) error {
	c.mu.Lock()
	hang := c.hang
	c.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
			return errors.New("the collector did not answer in time")
		case <-ctx.Done():
			return ctx.Err()
		}
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

func spanOf(s *tracev1.Span, service string) Span {
	hex := func(id []byte) string { return fmt.Sprintf("%x", id) }
	return Span{
		Trace: hex(s.GetTraceId()), ID: hex(s.GetSpanId()), Parent: hex(s.GetParentSpanId()),
		Name: s.GetName(), Service: service, Tags: tags(s.GetAttributes()),
	}
}

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

func (c *Collector) serveHTTP(w http.ResponseWriter, r *http.Request) {
	var m collectorv1.ExportTraceServiceRequest
	body, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(body, &m)
	}
	if err == nil {
		err = c.receive(r.Context(), &m)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
