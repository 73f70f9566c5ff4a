package main

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// The costs of many streams.
const (
	streamsReady     = "until the last stream has everything"
	streamsReadyCPU  = "CPU of the program until then"
	streamsFirstPeak = "memory until then, at most"
	streamsRest      = "memory at rest"
	streamsPeak      = "memory while a change is sent, at most"
	streamsLast      = "one change, from when it was sent until the last stream has it"
	streamsChangeCPU = "CPU of the program for one change"
)

// streams measures one replica with many Envoys, which only subscribe, acknowledge and
// forget (test/bench/envoys).
func (l *lab) streams(ctx context.Context) ([]section, error) {
	n := l.opts.streamRoutes
	s := setting{routes: layout.Routes(n, 1, l.backend.port()), accessLog: true, concurrency: l.opts.concurrency}
	gatehouse, err := l.prepareGatehouse(ctx, s)
	if err != nil {
		return nil, err
	}
	floor, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	s.sameMessages = true
	twin, err := l.prepareFloor(s)
	if err != nil {
		return nil, err
	}
	var fleets []*fleet
	results := []*series{newSeries(), newSeries(), newSeries()}
	for i, p := range []*prepared{gatehouse, floor, twin} {
		f, err := l.startFleet(ctx, p, s.routes, results[i])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		fleets = append(fleets, f)
	}
	for i := range 1 + l.opts.streamChanges {
		for turn := range fleets {
			k := (turn + i) % len(fleets)
			to := results[k]
			if i == 0 {
				to = newSeries() // the first change is discarded
			}
			if err := fleets[k].change(ctx, layout.Added(i, n, 1, l.backend.port()), to); err != nil {
				return nil, fmt.Errorf("changing %s: %w", fleets[k].name, err)
			}
		}
	}
	for _, f := range fleets {
		if err := l.stop(f.program, f.process); err != nil {
			return nil, err
		}
	}
	table := medians(results[0], results[1])
	table.aim(streamsRest, row.atMost, 0.5)
	table.aim(streamsPeak, row.atMost, 0.5)
	table.aim(streamsLast, row.atMost, 1)
	table = append(table, summarize("beside a floor with the same messages: ", medians(results[0], results[2]), streamsRest, streamsPeak, streamsLast)...)
	l.summary = append(l.summary, summarize(fmt.Sprintf("%d streams, %d hosts: ", l.opts.streams, n), table,
		streamsReadyCPU, streamsRest, streamsPeak, streamsChangeCPU)...)
	return []section{{
		Title: fmt.Sprintf("%d Envoys on one replica, with %d hosts", l.opts.streams, n), Beside: "floor", Rows: table, Notes: []string{
			"The Envoys are streams of the delta protocol (test/bench/envoys), each on a connection of its own and all in one process, which acknowledge everything and keep nothing. They take CPU on the same machine, for both sides alike.",
			fmt.Sprintf("A change attaches an upstream to a route that was there. Medians of %d changes, in turns; between them both programs had nothing left to do. Memory is what is resident.", l.opts.streamChanges),
		},
	}}, nil
}

// fleetPatience bounds the wait for all streams of a control plane.
const fleetPatience = 10 * time.Minute

// fleet is a control plane with many streams.
type fleet struct {
	*side
	process *process
	caller  caller // of the streams
}

// startFleet returns when the last stream has everything and nothing is left to do.
func (l *lab) startFleet(ctx context.Context, p *prepared, routes []layout.Route, to *series) (*fleet, error) {
	s, err := p.startProgram()
	if err != nil {
		return nil, err
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	list, err := ports(1)
	if err != nil {
		return nil, err
	}
	before, err := s.program.usage()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	f := &fleet{side: s, caller: newCaller(list[0])}
	f.caller.client.Timeout = fleetPatience
	f.process, err = l.run(p.name+"-envoys", l.opts.envoys, "-api-addr", local(list[0]), "-xds-addr", local(p.ports.xds), "-node", layout.Node,
		"-routes", translate.RouteConfigName, "-streams", strconv.Itoa(l.opts.streams), "-text", routes[len(routes)-1].Upstream)
	if err != nil {
		return nil, err
	}
	if err := f.caller.ready(ctx); err != nil {
		return nil, err
	}
	if err := f.expected(ctx); err != nil {
		return nil, err
	}
	to.add(streamsReady, "s", time.Since(began).Seconds())
	if err := f.program.idle(ctx); err != nil {
		return nil, err
	}
	after, err := f.program.usage()
	to.add(streamsReadyCPU, "s", (after.cpu - before.cpu).Seconds())
	to.add(streamsFirstPeak, "MB", after.peak/mb)
	return f, err
}

// expect announces a text.
func (f *fleet) expect(ctx context.Context, text string) error {
	return f.caller.send(ctx, http.MethodPost, "/expect?text="+url.QueryEscape(text), "", nil)
}

// expected returns when the text was sent to every stream.
func (f *fleet) expected(ctx context.Context) error {
	return f.caller.send(ctx, http.MethodGet, "/expected", "", nil)
}

// change adds a route, measures how its upstream reaches all streams, and
// removes it again.
func (f *fleet) change(ctx context.Context, r layout.Route, to *series) error {
	if err := f.expect(ctx, r.Name); err != nil {
		return err
	}
	if err := f.create(ctx, r); err != nil {
		return err
	}
	if err := f.expected(ctx); err != nil {
		return err
	}
	if err := f.program.idle(ctx); err != nil {
		return err
	}
	if err := f.expect(ctx, r.Upstream); err != nil {
		return err
	}
	if err := f.program.forgetPeak(); err != nil {
		return err
	}
	before, err := f.program.usage()
	if err != nil {
		return err
	}
	cpuBefore, err := f.program.threads()
	if err != nil {
		return err
	}
	sent := time.Now()
	if err := f.attach(ctx, r); err != nil {
		return err
	}
	if err := f.expected(ctx); err != nil {
		return err
	}
	to.add(streamsLast, "ms", ms(time.Since(sent)))
	if err := f.program.idle(ctx); err != nil {
		return err
	}
	after, err := f.program.usage()
	if err != nil {
		return err
	}
	cpuAfter, err := f.program.threads()
	if err != nil {
		return err
	}
	to.add(streamsRest, "MB", before.rss/mb)
	to.add(streamsPeak, "MB", after.peak/mb)
	to.add(streamsChangeCPU, "ms", ms(cpuAfter-cpuBefore))
	if err := f.remove(ctx, r); err != nil {
		return err
	}
	return f.program.idle(ctx)
}
