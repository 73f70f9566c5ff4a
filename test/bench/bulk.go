package main

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// The costs of a bulk load.
const (
	bulkServed     = "until the last route answers"
	bulkAnswered   = "until the last call is answered"
	bulkCPU        = "CPU of the program"
	bulkEnvoyCPU   = "CPU of Envoy"
	bulkMainThread = "Envoy's main thread, of a core, until the last route answers"
	bulkMemory     = "memory of the program"
	bulkEnvoyMB    = "memory of Envoy"
)

// bulk creates many routes with single calls.
func (l *lab) bulk(ctx context.Context) ([]section, error) {
	arms := []setting{{}, {}, {coalesce: true}} // Gatehouse, the floor, and the one that coalesces
	results := []*series{newSeries(), newSeries(), newSeries()}
	for range l.opts.bulkRounds {
		for i, s := range arms {
			s.accessLog, s.concurrency = true, l.opts.concurrency
			p, err := l.prepareFloor(s)
			if i == 0 {
				p, err = l.prepareGatehouse(ctx, s)
			}
			if err != nil {
				return nil, err
			}
			if err := l.bulkOnce(ctx, p, results[i]); err != nil {
				return nil, fmt.Errorf("loading %s: %w", p.name, err)
			}
		}
	}
	title := fmt.Sprintf("%d routes, created one by one", l.opts.bulk)
	first, second := medians(results[0], results[1]), medians(results[0], results[2])
	first.aim(bulkServed, row.atMost, 2)
	first.aim(bulkCPU, row.atMost, 2)
	first.aim(bulkEnvoyCPU, row.atMost, 1)
	first.aim(bulkMainThread, row.below, 50)
	first.aim(bulkMemory, row.atMost, 2)
	first.aim(bulkEnvoyMB, row.atMost, 2)
	return []section{
		{Title: title, Beside: "floor", Rows: first},
		{Title: title + ", beside a floor that coalesces", Beside: "floor", Rows: second, Notes: []string{
			"Services exist before. Gatehouse gets three calls for a route (upstream, route, link) and stores each, the floor one, which it keeps in memory.",
			fmt.Sprintf("%d connections. The times end when the last route of each connection answers 200; afterwards every route was asked for and answered 200. Memory is what is resident at the end. Medians of %d loads, in turns.",
				l.opts.bulkConns, l.opts.bulkRounds),
			"The floor calls SetSnapshot for every change. The one that coalesces calls it once for all changes that came while the last call ran; it is shown, not aimed at, because its load is over sooner.",
		}},
	}, nil
}

func (l *lab) bulkOnce(ctx context.Context, p *prepared, to *series) error {
	routes := layout.Routes(l.opts.bulk, layout.PerService, l.backend.port())
	s, err := p.startServing(ctx, nil)
	if err != nil {
		return err
	}
	if err := s.services(ctx, layout.Services(len(routes), layout.PerService)); err != nil {
		return err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return err
	}
	before, err := s.usages()
	if err != nil {
		return err
	}
	mainBefore, err := s.envoy.mainThread()
	if err != nil {
		return err
	}
	began := time.Now()
	last, err := s.addAll(ctx, routes, l.opts.bulkConns)
	if err != nil {
		return err
	}
	answered := time.Since(began)
	for _, r := range last {
		// The pause keeps the requests out of Envoy's CPU time.
		if _, err := s.wire.until(ctx, requestFor(r), http.StatusOK, 5*time.Millisecond); err != nil {
			return err
		}
	}
	served := time.Since(began)
	after, err := s.usages()
	if err != nil {
		return err
	}
	mainAfter, err := s.envoy.mainThread()
	if err != nil {
		return err
	}
	to.add(bulkServed, "s", served.Seconds())
	to.add(bulkAnswered, "s", answered.Seconds())
	to.add(bulkCPU, "s", (after[0].cpu - before[0].cpu).Seconds())
	to.add(bulkEnvoyCPU, "s", (after[1].cpu - before[1].cpu).Seconds())
	to.add(bulkMainThread, "%", float64(mainAfter-mainBefore)/float64(served)*100)
	to.add(bulkMemory, "MB", after[0].rss/mb)
	to.add(bulkEnvoyMB, "MB", after[1].rss/mb)
	if err := s.all(ctx, routes); err != nil {
		return fmt.Errorf("after the load: %w", err)
	}
	return s.stop(l)
}

// all checks that every route answers 200.
func (s *side) all(ctx context.Context, routes []layout.Route) error {
	for _, r := range routes {
		if status, err := s.wire.ask(ctx, requestFor(r)); err != nil || status != http.StatusOK {
			return fmt.Errorf("route %s answers %d (%w)", r.Name, status, err)
		}
	}
	return nil
}

// addAll adds routes over some connections and returns the last of each.
func (s *side) addAll(ctx context.Context, routes []layout.Route, conns int) ([]layout.Route, error) {
	var next atomic.Int64
	last := make([]layout.Route, conns)
	group, ctx := errgroup.WithContext(ctx)
	for c := range conns {
		group.Go(func() error {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(routes) {
					return nil
				}
				if err := s.add(ctx, routes[i]); err != nil {
					return err
				}
				last[c] = routes[i]
			}
		})
	}
	err := group.Wait()
	var list []layout.Route
	for _, r := range last {
		if r.Name != "" {
			list = append(list, r)
		}
	}
	return list, err
}

// usages returns the usage of the program and of its Envoy.
func (s *side) usages() ([2]usage, error) {
	var list [2]usage
	for i, p := range []*process{s.program, s.envoy} {
		u, err := p.usage()
		if err != nil {
			return list, err
		}
		list[i] = u
	}
	return list, nil
}
