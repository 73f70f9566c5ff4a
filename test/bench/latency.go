package main

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

const (
	// warmUp is how many samples are thrown away.
	warmUp = 5
	// rest lets both ends finish with one change before the next: Envoy
	// frees what it had, and acknowledges.
	rest = 15 * time.Millisecond
	// share is the aim for the part of the control plane in the time that a
	// change takes, in milliseconds.
	share = 10
)

// latencies are the samples of one side, in milliseconds.
type latencies struct {
	// answered and sent count from the answer to the call that attaches the
	// upstream, and from the moment when it was sent.
	answered, sent []float64
	// first counts from the moment when the first call was sent.
	first []float64
	// handed counts, from when the call was sent, until the control plane had
	// put the last response for it on the connection; of Gatehouse only.
	handed []float64
}

// latency measures single changes, with some hosts there already.
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
		"The new path is asked for over one connection, which is open before, again and again with a pause of " + l.opts.poll.String() + ": without one, asking takes a CPU from those who work. Sides alternate; each has an Envoy of its own with the same hosts and clusters, which was checked.",
	}
	return list, nil
}

func (l *lab) latencyAt(ctx context.Context, n int) ([]section, error) {
	port := l.backend.port()
	sides, err := l.both(ctx, setting{routes: layout.Routes(n, 1, port), accessLog: true, concurrency: l.opts.concurrency})
	if err != nil {
		return nil, err
	}
	settled := make([]latencies, len(sides))
	inARow := make([]latencies, len(sides))
	before := make([]usage, len(sides))
	for i := range warmUp + l.opts.samples {
		if i == warmUp {
			clear(settled)
			clear(inARow)
			for k, s := range sides {
				if before[k], err = s.program.usage(); err != nil {
					return nil, err
				}
			}
		}
		r := layout.Added(i, n, 1, port)
		for turn := range sides {
			k := (turn + i) % len(sides)
			if err := sides[k].sample(ctx, r, true, l.opts.poll, &settled[k]); err != nil {
				return nil, fmt.Errorf("%s: %w", sides[k].name, err)
			}
		}
		for turn := range sides {
			k := (turn + i) % len(sides)
			if err := sides[k].sample(ctx, r, false, l.opts.poll, &inARow[k]); err != nil {
				return nil, fmt.Errorf("%s: %w", sides[k].name, err)
			}
		}
	}
	cpu := make([]float64, len(sides))
	for k, s := range sides {
		after, err := s.program.usage()
		if err != nil {
			return nil, err
		}
		cpu[k] = ms(after.cpu-before[k].cpu) / float64(2*l.opts.samples)
		if err := s.stop(l); err != nil {
			return nil, err
		}
	}
	limit := 1.0
	if n < 1000 {
		limit = 1.5
	}
	one := latencySection(fmt.Sprintf("One change with %d hosts", n), settled, limit, false)
	one.Rows = append(one.Rows,
		row{What: "of that until it is on its way to Envoy, p50", Unit: "ms", Gatehouse: quantile(settled[0].handed, 0.5)}.below(share),
		row{What: "of that until it is on its way to Envoy, p99", Unit: "ms", Gatehouse: quantile(settled[0].handed, 0.99)},
		beside("CPU of the control plane to add one route, attach and remove it", "ms", cpu[0], cpu[1]))
	return []section{one, latencySection(fmt.Sprintf("Calls in a row with %d hosts", n), inARow, limit, true)}, nil
}

func latencySection(title string, sides []latencies, limit float64, inARow bool) section {
	s := section{Title: title, Beside: "floor"}
	add := func(what string, pick func(latencies) []float64, share float64) row {
		return beside(fmt.Sprintf("%s, p%.0f", what, share*100), "ms", quantile(pick(sides[0]), share), quantile(pick(sides[1]), share))
	}
	answered := func(l latencies) []float64 { return l.answered }
	s.Rows = append(s.Rows,
		add("from the answer", answered, 0.5).atMost(limit),
		add("from the answer", answered, 0.99).atMost(2))
	pick, what := func(l latencies) []float64 { return l.sent }, "from when it was sent"
	if inARow {
		pick, what = func(l latencies) []float64 { return l.first }, "from when the first was sent"
	}
	s.Rows = append(s.Rows, add(what, pick, 0.5), add(what, pick, 0.99))
	return s
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
		// Envoy answers to a change later than it serves by it.
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
