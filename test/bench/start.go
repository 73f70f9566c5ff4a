package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// The costs of starts.
const (
	firstServed   = "until the first 200"
	aloneServed   = "the same, gatehouse standalone"
	programReady  = "of that the program itself: until it is ready for an Envoy"
	envoyServed   = "of that Envoy itself: its start when the program was ready before"
	startCPU      = "CPU of the program"
	startEnvoyCPU = "CPU of Envoy"
	startMemory   = "memory of the program"
	startPeak     = "memory of the program, at most"
	startEnvoyMB  = "memory of Envoy"
)

const (
	// manyRoutes is the number of stored routes from which a start has an aim in
	// seconds, startLimit, and is measured at most startFew times.
	manyRoutes, startLimit, startFew = 50_000, 1, 3
)

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
		fmt.Sprintf("From the moment when the program and its Envoy are started, at once, until the last stored route answers 200; the medians of %d starts of each side, of %d at most with %d routes, in turns. CPU and memory are those at that moment.",
			l.opts.startRounds, startFew, manyRoutes),
		"Gatehouse reads its database (serve), the floor a JSON file, from which it makes one snapshot. `gatehouse standalone` starts its Envoy itself.",
		"The program itself and Envoy itself: the program is started alone until GET /ready answers 200, and then Envoy, so that the program only has to send what it has. With the floor that is one snapshot, sent at once. Started at once, they work at the same time only until Envoy needs the first message.",
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
	rounds := l.opts.startRounds
	if n >= manyRoutes {
		rounds = min(rounds, startFew)
	}
	results := []*series{newSeries(), newSeries()}
	for range rounds {
		for i, p := range []*prepared{gatehouse, floor} {
			if err := l.startOnce(ctx, p, routes, results[i]); err != nil {
				return section{}, fmt.Errorf("%s: %w", p.name, err)
			}
			if err := l.startLate(ctx, p, routes, results[i]); err != nil {
				return section{}, fmt.Errorf("%s: %w", p.name, err)
			}
		}
		took, err := l.startStandalone(ctx, gatehouse, routes)
		if err != nil {
			return section{}, fmt.Errorf("standalone: %w", err)
		}
		results[0].add(aloneServed, "s", took)
	}
	results[1].values[aloneServed] = results[1].values[firstServed]
	table := medians(results[0], results[1])
	table.aim(firstServed, row.atMost, 2)
	table.aim(aloneServed, row.atMost, 2)
	if n >= manyRoutes {
		table.aim(programReady, row.below, startLimit)
		r := row{What: firstServed + ", in seconds", Unit: "s", Gatehouse: results[0].median(firstServed)}
		table = append(table, r.below(startLimit))
	}
	if n == slices.Max(l.opts.starts) {
		l.summary = append(l.summary, summarize(fmt.Sprintf("%d stored routes: ", n), table, startCPU, startMemory, startPeak)...)
	}
	return section{Title: fmt.Sprintf("Start with %d stored routes", n), Beside: "floor", Rows: table}, nil
}

// firstAnswer waits for the last of the routes; the pause leaves the CPUs to the
// starting programs.
func firstAnswer(ctx context.Context, w *wire, routes []layout.Route) (time.Time, error) {
	return w.until(ctx, requestFor(routes[len(routes)-1]), http.StatusOK, time.Millisecond)
}

func (l *lab) startOnce(ctx context.Context, p *prepared, routes []layout.Route, to *series) error {
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
	to.add(firstServed, "s", live.Sub(began).Seconds())
	to.add(startCPU, "s", u[0].cpu.Seconds())
	to.add(startEnvoyCPU, "s", u[1].cpu.Seconds())
	to.add(startMemory, "MB", u[0].rss/mb)
	to.add(startPeak, "MB", u[0].peak/mb)
	to.add(startEnvoyMB, "MB", u[1].rss/mb)
	return s.stop(l)
}

// startLate starts the Envoy when the program is ready.
func (l *lab) startLate(ctx context.Context, p *prepared, routes []layout.Route, to *series) error {
	began := time.Now()
	s, err := p.startProgram()
	if err != nil {
		return err
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	to.add(programReady, "s", time.Since(began).Seconds())
	began = time.Now()
	if err := p.startEnvoy(s); err != nil {
		return err
	}
	live, err := firstAnswer(ctx, &s.wire, routes)
	if err != nil {
		return err
	}
	to.add(envoyServed, "s", live.Sub(began).Seconds())
	return s.stop(l)
}

// startStandalone starts the complete gateway on the database of a prepared one.
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
