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
		fmt.Sprintf("%d connections, %d rounds of %s for each side, in turns; the medians, and the median of the ratios of neighboring rounds. One worker thread for each Envoy. Access logs go to /dev/null.",
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

	rate []float64 // requests per second, a value for each round
	// requests and cpu are the sums of all rounds.
	requests int64
	cpu      time.Duration
}

// cost is the Envoy's CPU time for a request, in microseconds.
func (t *target) cost() float64 {
	return float64(t.cpu) / float64(time.Microsecond) / float64(max(t.requests, 1))
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
		warmUp := *t
		if err := warmUp.load(ctx, route, l.opts.rpsConns, l.opts.rpsRound); err != nil {
			return nil, err
		}
	}
	var ratios []float64
	for i := range l.opts.rpsRounds {
		for turn := range targets {
			t := targets[(turn+i)%len(targets)]
			if err := t.load(ctx, route, l.opts.rpsConns, l.opts.rpsRound); err != nil {
				return nil, err
			}
		}
		ratios = append(ratios, targets[0].rate[i]/targets[1].rate[i])
	}
	for _, t := range targets {
		if err := l.stop(t.program, t.envoy); err != nil {
			return nil, err
		}
	}
	what := map[bool]string{false: "access log off", true: "access log json"}[accessLog]
	rate := beside(what, "req/s", quantile(targets[0].rate, 0.5), quantile(targets[1].rate, 0.5))
	rate.Ratio = new(round(quantile(ratios, 0.5)))
	rate = rate.atLeast(0.97)
	cpu := beside(what+", Envoy's CPU for a request", "us", targets[0].cost(), targets[1].cost())
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

// load asks over some connections for a while, which makes one round.
func (t *target) load(ctx context.Context, r layout.Route, conns int, long time.Duration) error {
	before, err := t.envoy.usage()
	if err != nil {
		return err
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
		return err
	}
	took := time.Since(began)
	after, err := t.envoy.usage()
	if err != nil {
		return err
	}
	t.rate = append(t.rate, float64(total.Load())/took.Seconds())
	t.requests += total.Load()
	t.cpu += after.cpu - before.cpu
	return nil
}
