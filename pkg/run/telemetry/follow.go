package telemetry

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// follow makes the spans of a revision below that of call. from is before the write.
func (t *Tracer) follow(call trace.Span, from status.Cursor, revision int64) {
	select {
	case t.room <- struct{}{}:
	default:
		call.AddEvent("the way to the Envoys is not followed: too many writes are")
		return
	}
	t.running.Go(func() {
		defer func() { <-t.room }()
		d := &delivery{tracer: t.tracer, call: call, revision: revision, envoys: t.envoys}
		d.end(t.feedTo(d, from))
	})
}

// feedTo gives a delivery the events after from until it is over. It returns why it is over before the Envoys have it.
func (t *Tracer) feedTo(d *delivery, from status.Cursor) (why string) {
	const page = 100
	enough := time.NewTimer(followFor)
	defer enough.Stop()
	now := make(chan struct{})
	close(now)
	for !d.over() {
		events, more := t.feed.After(from, page)
		if len(events) > 0 {
			more = now
		}
		select {
		case <-more:
		case <-t.stopped:
			return "the control plane stopped"
		case <-enough.C:
			return fmt.Sprintf("it was not applied within %s", followFor)
		}
		for _, e := range events {
			if e.Event == status.EventReset {
				return "there were too many events to follow it"
			}
			d.add(e)
			from = t.feed.Behind(e)
		}
	}
	return ""
}

// delivery is the way of one revision to the Envoys of this process.
type delivery struct {
	tracer   trace.Tracer
	call     trace.Span
	revision int64
	envoys   func() []status.Envoy
	// published is the newest revision of the publish that sent it; 0 before that.
	published int64
	// waiting has a span for each Envoy that does not have it yet, by proxy and address.
	waiting map[[2]string]trace.Span
}

// over reports whether nothing more is to come.
func (d *delivery) over() bool { return d.published > 0 && len(d.waiting) == 0 }

func (d *delivery) add(e status.Event) {
	if e.Replica != "" || e.Revision < d.revision && e.Event != status.EventDisconnect && e.Event != status.EventOverdue {
		return
	}
	if e.Event == status.EventPublish && d.published == 0 {
		d.publish(e)
		return
	}
	envoy := [2]string{e.Proxy, e.Envoy}
	span := d.waiting[envoy]
	if span == nil {
		return
	}
	at := e.At.Time
	switch e.Event {
	case status.EventAck, status.EventOverdue:
		span.AddEvent(e.Event, trace.WithTimestamp(at), trace.WithAttributes(
			attribute.String("gatehouse.type", e.Type), attribute.StringSlice("gatehouse.resources", e.Resources)))
		return
	case status.EventNack:
		if e.Revision > d.published {
			return // it may be about a later change
		}
		span.SetStatus(codes.Error, "Envoy refused it: "+e.Message)
	case status.EventDisconnect:
		span.SetStatus(codes.Error, "the Envoy disconnected")
	case status.EventApplied:
	default:
		return
	}
	span.End(trace.WithTimestamp(at))
	delete(d.waiting, envoy)
}

// publish begins the spans of the Envoys that the revision reaches.
func (d *delivery) publish(e status.Event) {
	at := e.At.Time
	took := time.Duration(e.TookMS * float64(time.Millisecond))
	ctx, span := d.tracer.Start(trace.ContextWithSpan(context.Background(), d.call), "publish", trace.WithTimestamp(at.Add(-took)), trace.WithAttributes(
		attribute.Int64("gatehouse.revision", e.Revision), attribute.StringSlice("gatehouse.proxies", e.Proxies)))
	span.End(trace.WithTimestamp(at))
	d.published, d.waiting = e.Revision, map[[2]string]trace.Span{}
	for _, envoy := range d.envoys() {
		if slices.Contains(e.Proxies, envoy.Proxy) {
			_, d.waiting[[2]string{envoy.Proxy, envoy.Address}] = d.tracer.Start(ctx, "apply", trace.WithTimestamp(at),
				trace.WithAttributes(
					attribute.String("gatehouse.proxy", envoy.Proxy), attribute.String("gatehouse.envoy", envoy.Address)))
		}
	}
}

// end ends the spans that are still open. why is empty if there are none.
func (d *delivery) end(why string) {
	for _, span := range d.waiting {
		span.SetStatus(codes.Error, why)
		span.End()
	}
}
