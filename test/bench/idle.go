package main

import (
	"context"
	"fmt"
	"time"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// idle measures a program with a large configuration that does nothing, and then a
// change.
func (l *lab) idle(ctx context.Context) ([]section, error) {
	n, port := l.opts.idleRoutes, l.backend.port()
	sides, err := l.both(ctx, setting{routes: layout.Routes(n, layout.PerService, port), accessLog: true, concurrency: l.opts.concurrency})
	if err != nil {
		return nil, err
	}
	const settle = 3 * time.Second
	if err := sleep(ctx, settle); err != nil {
		return nil, err
	}
	var quiet, busy [2][2]usage
	var changes [2]latencies
	began := time.Now()
	for i, s := range sides {
		if quiet[i], err = s.usages(); err != nil {
			return nil, err
		}
	}
	if err := sleep(ctx, l.opts.idle); err != nil {
		return nil, err
	}
	took := time.Since(began)
	for i, s := range sides {
		if busy[i], err = s.usages(); err != nil {
			return nil, err
		}
	}
	var cpu [2]float64
	for i, s := range sides {
		for k := range l.opts.idleChanges {
			if err := s.sample(ctx, layout.Added(k, n, layout.PerService, port), true, l.opts.poll, &changes[i]); err != nil {
				return nil, fmt.Errorf("changing %s: %w", s.name, err)
			}
		}
		after, err := s.usages()
		if err != nil {
			return nil, err
		}
		cpu[i] = ms(after[0].cpu-busy[i][0].cpu) / float64(l.opts.idleChanges)
		if err := s.stop(l); err != nil {
			return nil, err
		}
	}
	load := func(i, process int) float64 {
		return float64(busy[i][process].cpu-quiet[i][process].cpu) / float64(took) * 100
	}
	return []section{{
		Title: fmt.Sprintf("Idle for %s with %d routes, and one change", l.opts.idle, n), Beside: "floor",
		Rows: []row{
			beside("CPU of the program, of a core", "%", load(0, 0), load(1, 0)).below(1),
			beside("CPU of its Envoy, of a core", "%", load(0, 1), load(1, 1)),
			beside("memory of the program", "MB", busy[0][0].rss/mb, busy[1][0].rss/mb),
			beside("memory of its Envoy", "MB", busy[0][1].rss/mb, busy[1][1].rss/mb),
			beside("one change, from when it was sent until the first 200", "ms", quantile(changes[0].sent, 0.5), quantile(changes[1].sent, 0.5)),
			beside("CPU of the program to add one route and remove it", "ms", cpu[0], cpu[1]),
		},
	}}, nil
}
