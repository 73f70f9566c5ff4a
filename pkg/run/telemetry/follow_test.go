package telemetry

import (
	"context"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

func TestTelemetry(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "telemetry")
}

// ended are the spans that ended, as "name proxy: failure".
func ended(r *tracetest.SpanRecorder) (list []string) {
	for _, s := range r.Ended() {
		text := s.Name()
		for _, a := range s.Attributes() {
			if a.Key == attribute.Key("gatehouse.proxy") {
				text += " " + a.Value.AsString()
			}
		}
		if s.Status().Code == codes.Error {
			text += ": " + s.Status().Description
		}
		list = append(list, text)
	}
	return list
}

var _ = Describe("A write that is followed", func() {
	var recorder *tracetest.SpanRecorder
	var t *Tracer
	var registry *status.Registry
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		recorder, registry = tracetest.NewSpanRecorder(), status.NewRegistry()
		provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
		t = &Tracer{
			feed: registry.Feed(), envoys: registry.Envoys, provider: provider, tracer: provider.Tracer("test"),
			stopped: make(chan struct{}), room: make(chan struct{}, 1),
		}
		DeferCleanup(t.Close)
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "a"})
		registry.Connect(status.Envoy{ID: 2, Proxy: "gw", Address: "b"})
		registry.Connect(status.Envoy{ID: 3, Proxy: "other", Address: "c"})
	})
	// publish follows revision 7, which is published together with 8.
	publish := func() {
		GinkgoHelper()
		from := t.feed.Now()
		registry.RecordPublish(6, 1, []string{"other"}, 0)
		registry.RecordPublish(8, 2, []string{"gw"}, 0)
		registry.RecordPublish(9, 1, []string{"other"}, 0)
		t.follow(trace.SpanFromContext(context.Background()), from, 7)
	}

	It("has a span for each Envoy of the proxies that it changes, until the Envoy has it", func() {
		publish()
		registry.SetProgress(3, status.Progress{Applied: 9})
		registry.SetProgress(1, status.Progress{Applied: 6})
		registry.SetProgress(1, status.Progress{Applied: 8})
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish", "apply gw"))
		registry.SetProgress(2, status.Progress{Applied: 9})
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish", "apply gw", "apply gw"))
		Eventually(t.room).Should(BeEmpty())
	})

	It("tells which Envoy refused it or disconnected, and not what it refused later", func() {
		publish()
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish"))
		registry.RecordNack(1, "type.googleapis.com/envoy.config.cluster.v3.Cluster", status.Answer{Revision: 10, Text: "later"})
		registry.RecordNack(1, "type.googleapis.com/envoy.config.cluster.v3.Cluster", status.Answer{Revision: 8, Text: "no such"})
		registry.Disconnect(2)
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish", "apply gw: Envoy refused it: no such",
			"apply gw: the Envoy disconnected"))
	})

	It("ends with the program, and when events were lost", func() {
		publish()
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish"))
		t.Close()
		t.stopped = make(chan struct{}) // closed again after the spec
		Eventually(ended).WithArguments(recorder).Should(ConsistOf("publish", "apply gw: the control plane stopped",
			"apply gw: the control plane stopped"))
	})

	It("is one of a bounded number", func() {
		t.follow(trace.SpanFromContext(context.Background()), t.feed.Now(), 1)
		before := len(recorder.Ended())
		t.follow(trace.SpanFromContext(context.Background()), t.feed.Now(), 2)
		registry.RecordPublish(2, 1, nil, 0)
		Eventually(t.room).Should(BeEmpty())
		Expect(recorder.Ended()).To(HaveLen(before+1), "that of revision 1")
	})
})
