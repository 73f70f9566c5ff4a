package main

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"sync/atomic"
	"text/template"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

//go:embed static.yaml.tmpl
var staticTemplate string

// rps measures the data path: the same route, configured by Gatehouse and by
// hand.
func (l *lab) rps(ctx context.Context) ([]section, error) {
	target, err := newBackend(ctx, true)
	if err != nil {
		return nil, err
	}
	defer target.close()
	s := section{Title: "Requests per second through Envoy", Beside: "by hand", Notes: []string{
		fmt.Sprintf("%d connections, %d rounds of %s for each side, in turns; the medians, and the median of the ratios of neighbouring rounds. One worker thread for each Envoy. Access logs go to /dev/null.",
			l.opts.rpsConns, l.opts.rpsRounds, l.opts.rpsRound),
		"The configuration by hand (test/bench/static.yaml.tmpl) has the same settings for the edge of a network and the same access log.",
	}}
	for _, accessLog := range []bool{false, true} {
		rows, err := l.rpsWith(ctx, target, accessLog)
		if err != nil {
			return nil, err
		}
		s.Rows = append(s.Rows, rows...)
	}
	return []section{s}, nil
}

// target is an Envoy under load.
type target struct {
	addr    string
	envoy   *process
	program *process

	rate, cpu []float64
}

func (l *lab) rpsWith(ctx context.Context, b *backend, accessLog bool) ([]row, error) {
	route := layout.Routes(1, b.port())[0]
	prepared, err := l.prepareGatehouse(ctx, setting{routes: []layout.Route{route}, accessLog: accessLog, concurrency: 1})
	if err != nil {
		return nil, err
	}
	side, err := prepared.start()
	if err != nil {
		return nil, err
	}
	byHand, err := l.startByHand(route, accessLog)
	if err != nil {
		return nil, err
	}
	targets := []*target{{addr: local(side.ports.http), envoy: side.envoy, program: side.program}, byHand}
	for _, t := range targets {
		w := wire{addr: t.addr}
		_, err := w.until(ctx, requestFor(route), http.StatusOK, time.Millisecond)
		w.close()
		if err != nil {
			return nil, err
		}
		if _, _, err := t.load(ctx, route, l.opts.rpsConns, l.opts.rpsRound); err != nil { // to warm up
			return nil, err
		}
	}
	var ratios, costs []float64
	for i := range l.opts.rpsRounds {
		for turn := range targets {
			t := targets[(turn+i)%len(targets)]
			rate, cpu, err := t.load(ctx, route, l.opts.rpsConns, l.opts.rpsRound)
			if err != nil {
				return nil, err
			}
			t.rate, t.cpu = append(t.rate, rate), append(t.cpu, cpu)
		}
		ratios = append(ratios, targets[0].rate[i]/targets[1].rate[i])
		costs = append(costs, targets[0].cpu[i]/targets[1].cpu[i])
	}
	for _, t := range targets {
		if err := l.stop(t.program, t.envoy); err != nil {
			return nil, err
		}
	}
	what := map[bool]string{false: "access log off", true: "access log json"}[accessLog]
	median := func(unit string, pick func(*target) []float64, ratios []float64) row {
		r := beside(what, unit, quantile(pick(targets[0]), 0.5), quantile(pick(targets[1]), 0.5))
		r.Ratio = new(round(quantile(ratios, 0.5)))
		return r
	}
	rate := median("req/s", func(t *target) []float64 { return t.rate }, ratios).atLeast(0.97)
	cpu := median("us", func(t *target) []float64 { return t.cpu }, costs)
	cpu.What += ", Envoy's CPU for a request"
	return []row{rate, cpu}, nil
}

// startByHand starts an Envoy that needs no control plane.
func (l *lab) startByHand(r layout.Route, accessLog bool) (*target, error) {
	list, err := ports(2)
	if err != nil {
		return nil, err
	}
	t, err := template.New("static").Parse(staticTemplate)
	if err != nil {
		return nil, err
	}
	var config bytes.Buffer
	err = t.Execute(&config, struct {
		Route                     layout.Route
		Address                   string
		ListenerPort, BackendPort int
		AdminPort                 int
		AccessLog                 bool
	}{r, layout.Address, list[0], r.Port, list[1], accessLog})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration by hand: %w", err)
	}
	envoy, err := l.runEnvoy("by-hand-envoy", config.Bytes(), 1)
	return &target{addr: local(list[0]), envoy: envoy}, err
}

// load asks over some connections for a while. It returns requests per second
// and the Envoy's CPU time for each, in microseconds.
func (t *target) load(ctx context.Context, r layout.Route, conns int, long time.Duration) (rate, cpu float64, err error) {
	before, err := t.envoy.usage()
	if err != nil {
		return 0, 0, err
	}
	request := requestFor(r)
	var total atomic.Int64
	began := time.Now()
	end := began.Add(long)
	group, ctx := errgroup.WithContext(ctx)
	for range conns {
		group.Go(func() error {
			w := wire{addr: t.addr}
			defer w.close()
			n := int64(0)
			defer func() { total.Add(n) }()
			for time.Now().Before(end) {
				status, err := w.ask(ctx, request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					return fmt.Errorf("under load: %w", err)
				}
				n++
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return 0, 0, err
	}
	took := time.Since(began)
	after, err := t.envoy.usage()
	if err != nil {
		return 0, 0, err
	}
	n := float64(total.Load())
	return n / took.Seconds(), (after.cpu - before.cpu).Seconds() * 1e6 / n, nil
}
