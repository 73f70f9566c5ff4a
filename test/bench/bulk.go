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

// loaded is what a bulk load has cost.
type loaded struct {
	answered, served     time.Duration
	programCPU, envoyCPU time.Duration
	program, envoy       usage
}

// bulk loads many routes in one go.
func (l *lab) bulk(ctx context.Context) ([]section, error) {
	s := setting{accessLog: true, concurrency: l.opts.concurrency}
	gatehouse, err := l.prepareGatehouse(ctx, s)
	if err != nil {
		return nil, err
	}
	floor, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	s.coalesce = true
	quick, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	quick.name = "floor, coalescing"
	var results []loaded
	for _, p := range []*prepared{gatehouse, floor, quick} {
		r, err := l.load(ctx, p)
		if err != nil {
			return nil, fmt.Errorf("loading %s: %w", p.name, err)
		}
		results = append(results, r)
	}
	first := bulkSection(fmt.Sprintf("Bulk load of %d routes", l.opts.bulk), "floor", results[0], results[1], true)
	second := bulkSection(first.Title+", beside a floor that coalesces", "floor", results[0], results[2], false)
	second.Notes = []string{
		"Services exist before. Gatehouse gets three calls for a route (upstream, route, link) and stores each, the floor one, which it keeps in memory.",
		fmt.Sprintf("%d connections. The times end when the last route of each connection answers 200; afterwards every route was asked for and answered 200. Memory is what is resident at the end.", l.opts.bulkConns),
		"The floor calls SetSnapshot for every change. The one that coalesces calls it once for all changes that came while the last call ran; it is shown, not aimed at.",
	}
	return []section{first, second}, nil
}

func bulkSection(title, other string, a, b loaded, aims bool) section {
	rows := []row{
		beside("until the last route answers", "s", a.served.Seconds(), b.served.Seconds()),
		beside("until the last call is answered", "s", a.answered.Seconds(), b.answered.Seconds()),
		beside("CPU of the program", "s", a.programCPU.Seconds(), b.programCPU.Seconds()),
		beside("CPU of Envoy", "s", a.envoyCPU.Seconds(), b.envoyCPU.Seconds()),
		beside("memory of the program", "MB", a.program.rss/mb, b.program.rss/mb),
		beside("memory of Envoy", "MB", a.envoy.rss/mb, b.envoy.rss/mb),
	}
	if aims {
		for _, i := range []int{0, 2, 3, 4, 5} {
			rows[i] = rows[i].atMost(2)
		}
	}
	return section{Title: title, Beside: other, Rows: rows}
}

func (l *lab) load(ctx context.Context, p *prepared) (loaded, error) {
	var result loaded
	routes := layout.Routes(l.opts.bulk, layout.PerService, l.backend.port())
	s, err := p.start()
	if err != nil {
		return result, err
	}
	if err := s.served(ctx, nil); err != nil {
		return result, err
	}
	if err := s.services(ctx, layout.Services(len(routes), layout.PerService)); err != nil {
		return result, err
	}
	if err := sleep(ctx, time.Second); err != nil {
		return result, err
	}
	before, err := s.usages()
	if err != nil {
		return result, err
	}
	began := time.Now()
	last, err := s.addAll(ctx, routes, l.opts.bulkConns)
	if err != nil {
		return result, err
	}
	result.answered = time.Since(began)
	for _, r := range last {
		// The pause keeps the asking out of Envoy's CPU time.
		if _, err := s.wire.until(ctx, requestFor(r), http.StatusOK, 5*time.Millisecond); err != nil {
			return result, err
		}
	}
	result.served = time.Since(began)
	after, err := s.usages()
	if err != nil {
		return result, err
	}
	result.program, result.envoy = after[0], after[1]
	result.programCPU, result.envoyCPU = after[0].cpu-before[0].cpu, after[1].cpu-before[1].cpu
	for _, r := range routes {
		if status, err := s.wire.ask(ctx, requestFor(r)); err != nil || status != http.StatusOK {
			return result, fmt.Errorf("route %s answers %d (%w) after the load", r.Name, status, err)
		}
	}
	return result, s.stop(l)
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

// usages are those of the program and of its Envoy.
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
