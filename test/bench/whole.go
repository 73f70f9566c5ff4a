package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// The costs of a document with all routes.
const (
	wholeServed      = "until the last route answers"
	wholeAnswered    = "until the call is answered"
	wholeCPU         = "CPU of the program"
	wholeEnvoyCPU    = "CPU of Envoy"
	wholePeak        = "memory of the program, at most"
	unchangedTook    = "again, unchanged: until the call is answered"
	unchangedCPU     = "again, unchanged: CPU of the program"
	changedServed    = "every tenth changed: until the last changed route answers"
	changedCPU       = "every tenth changed: CPU of the program"
	changedEnvoyCPU  = "every tenth changed: CPU of Envoy"
	unchangedSeconds = 0.1
)

// whole loads a configuration in one call: into an empty store, again, and with
// changes.
func (l *lab) whole(ctx context.Context) ([]section, error) {
	arms := []string{"gatehouse", "floor", "gatehouse, YAML"}
	results := []*series{newSeries(), newSeries(), newSeries()}
	for range l.opts.documentRounds {
		for i := range arms {
			s := setting{accessLog: true, concurrency: l.opts.concurrency}
			p, err := l.prepareFloor(s)
			if i != 1 {
				p, err = l.prepareGatehouse(ctx, s)
			}
			if err != nil {
				return nil, err
			}
			if json, ok := p.calls.(gatehouseCalls); ok && i == 2 {
				p.calls = yamlCalls{json}
			}
			if err := l.wholeOnce(ctx, p, results[i]); err != nil {
				return nil, fmt.Errorf("loading %s: %w", arms[i], err)
			}
		}
	}
	first, second := medians(results[0], results[1]), medians(results[2], results[1])
	first.aim(wholeServed, row.atMost, 1.5)
	first.aim(unchangedTook, row.below, unchangedSeconds)
	title := fmt.Sprintf("PUT /config of %d routes", l.opts.document)
	return []section{
		{Title: title, Beside: "floor", Rows: first},
		{Title: title + ", as YAML", Beside: "floor", Rows: second, Notes: []string{
			fmt.Sprintf("A document in JSON, and in YAML, onto an empty store; the floor takes a list in JSON and makes one snapshot of it. Medians of %d loads, in turns; every route was asked for at the end and answered 200.", l.opts.documentRounds),
			"The floor answers when the routes are in its memory, and makes its messages before that; it compares nothing. CPU of the program counts until it has nothing left to do.",
			"Every tenth changed: those routes have another path.",
		}},
	}, nil
}

// tenthChanged gives every tenth route another path, the last one too.
func tenthChanged(routes []layout.Route) []layout.Route {
	const every = 10
	list := slices.Clone(routes)
	for i := len(list) - 1; i >= 0; i -= every {
		list[i].Prefix = "/changed" + list[i].Prefix
	}
	return list
}

func (l *lab) wholeOnce(ctx context.Context, p *prepared, to *series) error {
	routes := layout.Routes(l.opts.document, layout.PerService, l.backend.port())
	changed := tenthChanged(routes)
	all, err := p.calls.document(routes)
	if err != nil {
		return err
	}
	different, err := p.calls.document(changed)
	if err != nil {
		return err
	}
	s, err := p.startServing(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.idle(ctx); err != nil {
		return err
	}
	first, err := s.put(ctx, all, routes)
	if err != nil {
		return err
	}
	again, err := s.put(ctx, all, routes)
	if err != nil {
		return err
	}
	change, err := s.put(ctx, different, changed)
	if err != nil {
		return err
	}
	if err := s.all(ctx, changed); err != nil {
		return err
	}
	to.add(wholeServed, "s", first.served.Seconds())
	to.add(wholeAnswered, "s", first.answered.Seconds())
	to.add(wholeCPU, "s", first.cpu[0].Seconds())
	to.add(wholeEnvoyCPU, "s", first.cpu[1].Seconds())
	to.add(wholePeak, "MB", first.peak/mb)
	to.add(unchangedTook, "s", again.answered.Seconds())
	to.add(unchangedCPU, "s", again.cpu[0].Seconds())
	to.add(changedServed, "s", change.served.Seconds())
	to.add(changedCPU, "s", change.cpu[0].Seconds())
	to.add(changedEnvoyCPU, "s", change.cpu[1].Seconds())
	return s.stop(l)
}

// idle waits until the program and its Envoy have stopped working.
func (s *side) idle(ctx context.Context) error {
	if err := s.program.idle(ctx); err != nil {
		return err
	}
	return s.envoy.idle(ctx)
}

// loaded is the cost of one document.
type loaded struct {
	answered, served time.Duration
	cpu              [2]time.Duration // of the program, of Envoy
	peak             float64          // memory of the program, in bytes
}

// put loads a document with these routes, and returns when the last of them
// answers and both processes are idle.
func (s *side) put(ctx context.Context, document []byte, routes []layout.Route) (loaded, error) {
	var result loaded
	before, err := s.usages()
	if err != nil {
		return result, err
	}
	began := time.Now()
	if err := s.load(ctx, document); err != nil {
		return result, err
	}
	result.answered = time.Since(began)
	live, err := s.wire.until(ctx, requestFor(routes[len(routes)-1]), http.StatusOK, time.Millisecond)
	if err != nil {
		return result, err
	}
	result.served = live.Sub(began)
	if err := s.idle(ctx); err != nil {
		return result, err
	}
	after, err := s.usages()
	for i := range after {
		result.cpu[i] = after[i].cpu - before[i].cpu
	}
	result.peak = after[0].peak
	return result, err
}
