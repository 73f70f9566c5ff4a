package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// started is what starts have cost, a value for each.
type started struct {
	served, programCPU, envoyCPU, programMB, envoyMB []float64
}

// start measures cold starts with stored routes.
func (l *lab) start(ctx context.Context) ([]section, error) {
	var list []section
	for _, n := range l.opts.starts {
		s, err := l.startWith(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("with %d routes: %w", n, err)
		}
		list = append(list, s)
	}
	last := &list[len(list)-1]
	last.Notes = []string{
		"From the moment when the program and its Envoy are started, at once, until the last stored route answers 200; the medians of " +
			strconv.Itoa(l.opts.startRounds) + " starts of each side, in turns. CPU and memory are those at that moment.",
		"Gatehouse reads its database (serve), the floor a JSON file. `gatehouse standalone` starts its Envoy itself.",
	}
	return list, nil
}

func (l *lab) startWith(ctx context.Context, n int) (section, error) {
	routes := layout.Routes(n, layout.PerService, l.backend.port())
	s := setting{routes: routes, accessLog: true, concurrency: l.opts.concurrency}
	gatehouse, err := l.prepareGatehouse(ctx, s)
	if err != nil {
		return section{}, err
	}
	floor, err := l.prepareFloor(s)
	if err != nil {
		return section{}, err
	}
	var results [2]started
	var alone []float64
	for range l.opts.startRounds {
		for i, p := range []*prepared{gatehouse, floor} {
			if err := l.startOnce(ctx, p, routes, &results[i]); err != nil {
				return section{}, fmt.Errorf("%s: %w", p.name, err)
			}
		}
		took, err := l.startStandalone(ctx, gatehouse, routes)
		if err != nil {
			return section{}, fmt.Errorf("standalone: %w", err)
		}
		alone = append(alone, took)
	}
	median := func(what, unit string, pick func(started) []float64) row {
		return beside(what, unit, quantile(pick(results[0]), 0.5), quantile(pick(results[1]), 0.5))
	}
	served := func(s started) []float64 { return s.served }
	return section{Title: fmt.Sprintf("Start with %d stored routes", n), Beside: "floor", Rows: []row{
		median("until the first 200", "s", served).atMost(2),
		beside("the same, gatehouse standalone", "s", quantile(alone, 0.5), quantile(served(results[1]), 0.5)).atMost(2),
		median("CPU of the program", "s", func(s started) []float64 { return s.programCPU }),
		median("CPU of Envoy", "s", func(s started) []float64 { return s.envoyCPU }),
		median("memory of the program", "MB", func(s started) []float64 { return s.programMB }),
		median("memory of Envoy", "MB", func(s started) []float64 { return s.envoyMB }),
	}}, nil
}

// firstAnswer waits for the last of the routes; the pause leaves the CPUs to
// those who start.
func firstAnswer(ctx context.Context, w *wire, routes []layout.Route) (time.Time, error) {
	return w.until(ctx, requestFor(routes[len(routes)-1]), http.StatusOK, time.Millisecond)
}

func (l *lab) startOnce(ctx context.Context, p *prepared, routes []layout.Route, to *started) error {
	began := time.Now()
	s, err := p.start()
	if err != nil {
		return err
	}
	live, err := firstAnswer(ctx, &s.wire, routes)
	if err != nil {
		return err
	}
	u, err := s.usages()
	if err != nil {
		return err
	}
	to.served = append(to.served, live.Sub(began).Seconds())
	to.programCPU = append(to.programCPU, u[0].cpu.Seconds())
	to.envoyCPU = append(to.envoyCPU, u[1].cpu.Seconds())
	to.programMB = append(to.programMB, u[0].rss/mb)
	to.envoyMB = append(to.envoyMB, u[1].rss/mb)
	return s.stop(l)
}

// startStandalone starts the whole gateway on the database of a prepared one.
func (l *lab) startStandalone(ctx context.Context, p *prepared, routes []layout.Route) (seconds float64, err error) {
	w := wire{addr: local(p.ports.http)}
	defer w.close()
	began := time.Now()
	alone, err := l.run("standalone", l.opts.gatehouse, "standalone", "--data-dir", dataDirOf(p.database), "--database-url", p.database, "--proxy", layout.Node,
		"--envoy", l.opts.envoy, "--api-addr", local(p.ports.api), "--xds-addr", local(p.ports.xds),
		"--admin-addr", local(p.ports.admin), "--http-port", strconv.Itoa(p.ports.http))
	if err != nil {
		return 0, err
	}
	live, err := firstAnswer(ctx, &w, routes)
	w.close() // so that the Envoy has nothing to drain
	return live.Sub(began).Seconds(), errors.Join(err, l.stop(alone))
}
