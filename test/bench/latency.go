package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

const (
	// warmUp is how many samples are discarded.
	warmUp = 5
	// rest lets both sides finish one change before the next: Envoy frees memory, and
	// acknowledges.
	rest = 15 * time.Millisecond
	// share is the aim for the control plane's share of the time that a change takes,
	// in milliseconds.
	share = 10
)

// latencies are the samples of one side, in milliseconds.
type latencies struct {
	// answered and sent are measured from the answer to the call that attaches the
	// upstream, and from the moment when it was sent.
	answered, sent []float64
	// first is measured from the moment when the first call was sent.
	first []float64
	// handed is measured from when the call was sent until the control plane had put
	// the last response for it on the connection; only for Gatehouse.
	handed []float64
}

// latency measures single changes with some existing hosts.
func (l *lab) latency(ctx context.Context) ([]section, error) {
	var list []section
	for _, n := range l.opts.sizes {
		sections, err := l.latencyAt(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("with %d hosts: %w", n, err)
		}
		list = append(list, sections...)
	}
	last := &list[len(list)-1]
	last.Notes = []string{
		"From the call that attaches an upstream to a new route until the first 200 through Envoy. Every sample is a route of its own with an upstream of its own, under one of the hosts that are there, and is removed afterwards.",
		"One change: the route was there, answering 503, and everything quiet. Calls in a row: route and upstream are created, and attached, without a pause, so that the change is the second one on its way to Envoy, for both sides.",
		"On its way to Envoy: from when the call was sent until the route configuration was handed to gRPC, as GET /status tells: the call, the store, the build and the plan. What follows is the connection and Envoy.",
		"The floor answers as soon as the change is in memory and calls SetSnapshot at once after it, without waiting until the answer is read. Gatehouse answers when the change is on the disk.",
		"The new path is asked for over one connection, which is open before, again and again with a pause of " + l.opts.poll.String() + ": without one, asking takes a CPU from those who work. Sides alternate; each has an Envoy of its own.",
		"The floor's messages are what a person would write: bare hosts, no retries, the settings of test/bench/static.yaml.tmpl. The floor with the same messages as Gatehouse, which was checked, tells what the control plane costs without what it has Envoy do.",
	}
	return list, nil
}

// latencySides returns Gatehouse, the floor, and the floor with the same messages as
// Gatehouse, which is checked.
func (l *lab) latencySides(ctx context.Context, n int) ([]*side, error) {
	s := setting{routes: layout.Routes(n, 1, l.backend.port()), accessLog: true, concurrency: l.opts.concurrency}
	sides, err := l.both(ctx, s)
	if err != nil {
		return nil, err
	}
	s.sameMessages = true
	p, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	twin, err := p.startServing(ctx, s.routes)
	if err != nil {
		return nil, err
	}
	return append(sides, twin), same(ctx, sides[0], twin)
}

// samplesAt returns fewer samples if each takes longer.
func (l *lab) samplesAt(n int) int {
	const full = 2000 // hosts
	return max(l.opts.samples*full/max(n, full), min(l.opts.samples, 30))
}

func (l *lab) latencyAt(ctx context.Context, n int) ([]section, error) {
	sides, err := l.latencySides(ctx, n)
	if err != nil {
		return nil, err
	}
	settled := make([]latencies, len(sides))
	inARow := make([]latencies, len(sides))
	before := make([]usage, len(sides))
	samples := l.samplesAt(n)
	for i := range warmUp + samples {
		if i == warmUp {
			clear(settled)
			clear(inARow)
			for k, s := range sides {
				if before[k], err = s.program.usage(); err != nil {
					return nil, err
				}
			}
		}
		r := layout.Added(i, n, 1, l.backend.port())
		for _, kind := range []struct {
			settle bool
			to     []latencies
		}{{true, settled}, {false, inARow}} {
			for turn := range sides {
				k := (turn + i) % len(sides)
				if err := sides[k].sample(ctx, r, kind.settle, l.opts.poll, &kind.to[k]); err != nil {
					return nil, fmt.Errorf("%s: %w", sides[k].name, err)
				}
			}
		}
	}
	cpu := make([]float64, len(sides))
	for k, s := range sides {
		after, err := s.program.usage()
		if err != nil {
			return nil, err
		}
		cpu[k] = ms(after.cpu-before[k].cpu) / float64(2*samples)
		if err := s.stop(l); err != nil {
			return nil, err
		}
	}
	one := latencySection(fmt.Sprintf("One change with %d hosts", n), settled, false)
	one.Rows = append(one.Rows,
		row{What: "of that until it is on its way to Envoy, p50", Unit: "ms", Gatehouse: quantile(settled[0].handed, 0.5)}.below(share),
		row{What: "of that until it is on its way to Envoy, p99", Unit: "ms", Gatehouse: quantile(settled[0].handed, 0.99)},
		beside("CPU of the control plane to add one route, attach and remove it", "ms", cpu[0], cpu[1]))
	return []section{one, latencySection(fmt.Sprintf("Calls in a row with %d hosts", n), inARow, true)}, nil
}

// latencySection compares Gatehouse with the floor, and with a floor that has the same
// messages.
func latencySection(title string, sides []latencies, inARow bool) section {
	answered := func(l latencies) []float64 { return l.answered }
	sent, what := func(l latencies) []float64 { return l.sent }, "from when it was sent"
	if inARow {
		sent, what = func(l latencies) []float64 { return l.first }, "from when the first was sent"
	}
	add := func(what string, pick func(latencies) []float64, share float64, other latencies) row {
		return beside(fmt.Sprintf("%s, p%.0f", what, share*100), "ms", quantile(pick(sides[0]), share), quantile(pick(other), share))
	}
	const twin = "beside a floor with the same messages: "
	median := add(what, sent, 0.5, sides[1])
	if !inARow { // where Gatehouse stores twice before
		median = median.atMost(1)
	}
	return section{Title: title, Beside: "floor", Rows: []row{
		add("from the answer", answered, 0.5, sides[1]).atMost(1),
		add("from the answer", answered, 0.99, sides[1]).atMost(2),
		median,
		add(what, sent, 0.99, sides[1]),
		add(twin+"from the answer", answered, 0.5, sides[2]),
		add(twin+what, sent, 0.5, sides[2]),
	}}
}

// sample adds a route, measures, and removes it again.
func (s *side) sample(ctx context.Context, r layout.Route, settle bool, poll time.Duration, to *latencies) error {
	request := requestFor(r)
	s.wire.close() // a new connection may go to another worker of Envoy
	if _, err := s.wire.until(ctx, request, http.StatusNotFound, poll); err != nil {
		return err
	}
	first := time.Now()
	if err := s.create(ctx, r); err != nil {
		return err
	}
	if settle {
		if _, err := s.wire.until(ctx, request, http.StatusServiceUnavailable, poll); err != nil {
			return err
		}
		// Envoy acknowledges a change later than it serves by it.
		if err := sleep(ctx, rest+time.Since(first)); err != nil {
			return err
		}
	}
	sent := time.Now()
	if err := s.attach(ctx, r); err != nil {
		return err
	}
	answered := time.Now()
	live, err := s.wire.until(ctx, request, http.StatusOK, poll)
	if err != nil {
		return err
	}
	if tells, ok := s.calls.(interface {
		handed(ctx context.Context) (time.Time, error)
	}); ok {
		at, err := tells.handed(ctx)
		if err != nil {
			return err
		}
		to.handed = append(to.handed, ms(at.Sub(sent)))
	}
	to.answered = append(to.answered, ms(live.Sub(answered)))
	to.sent = append(to.sent, ms(live.Sub(sent)))
	to.first = append(to.first, ms(live.Sub(first)))

	if err := s.remove(ctx, r); err != nil {
		return err
	}
	if _, err := s.wire.until(ctx, request, http.StatusNotFound, poll); err != nil {
		return err
	}
	return sleep(ctx, rest)
}
