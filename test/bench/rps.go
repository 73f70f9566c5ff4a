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
		fmt.Sprintf("%d connections, %d rounds of %s for each side, in turns, with %d Envoys one after the other, because two processes that are alike differ by some percent; the medians, and the median of the ratios of neighboring rounds. One worker thread for each Envoy. Access logs go to /dev/null.",
			l.opts.rpsConns, l.opts.rpsRounds, l.opts.rpsRound, l.opts.rpsStarts),
		"The configuration by hand (test/bench/static.yaml.tmpl) has the same settings for the edge of a network and the same access log. It has no retries, which Gatehouse has by default.",
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
	program *process // its control plane; nil: none
	request []byte
	// reconnect makes a connection for each request.
	reconnect bool
}

// loads are the results of one side.
type loads struct {
	rate []float64 // requests per second, a value for each round
	// requests and cpu, of Envoy, are the sums of all rounds.
	requests int64
	cpu      time.Duration
}

// cost returns the Envoy's CPU time per request, in microseconds.
func (s *loads) cost() float64 {
	return float64(s.cpu) / float64(time.Microsecond) / float64(max(s.requests, 1))
}

func (l *lab) rpsWith(ctx context.Context, b *backend, accessLog bool) ([]row, error) {
	route := layout.Routes(1, 1, b.port())[0]
	gatehouse, err := l.prepareGatehouse(ctx, setting{routes: []layout.Route{route}, accessLog: accessLog, concurrency: 1})
	if err != nil {
		return nil, err
	}
	results := make([]loads, 2)
	for range l.opts.rpsStarts {
		side, err := gatehouse.start()
		if err != nil {
			return nil, err
		}
		other, err := l.startByHand(route, byHand{log: map[bool]string{true: "json"}[accessLog], concurrency: 1})
		if err != nil {
			return nil, err
		}
		targets := []*target{{addr: local(side.ports.http), envoy: side.envoy, program: side.program, request: requestFor(route)}, &other.target}
		if err := l.rounds(ctx, l.opts.rpsRounds, targets, results); err != nil {
			return nil, err
		}
		for _, t := range targets {
			if err := l.stop(t.program, t.envoy); err != nil {
				return nil, err
			}
		}
	}
	table := besideLoads(map[bool]string{false: "access log off", true: "access log json"}[accessLog], results[0], results[1])
	table[0] = table[0].atLeast(0.97)
	return table, nil
}

// besideLoads returns the requests per second, and the cost of each. The ratio of the
// rates is the median of those of neighboring rounds.
func besideLoads(what string, a, b loads) []row {
	var ratios []float64
	for i, rate := range a.rate {
		ratios = append(ratios, rate/b.rate[i])
	}
	rate := beside(what, "req/s", quantile(a.rate, 0.5), quantile(b.rate, 0.5))
	rate.Ratio = new(round(quantile(ratios, 0.5)))
	return []row{rate, beside(what+", Envoy's CPU for a request", "us", a.cost(), b.cost())}
}

// rounds loads the targets in turn, n times each.
func (l *lab) rounds(ctx context.Context, n int, targets []*target, to []loads) error {
	for _, t := range targets {
		w := wire{addr: t.addr}
		_, err := w.until(ctx, t.request, http.StatusOK, time.Millisecond)
		w.close()
		if err != nil {
			return err
		}
		var warmUp loads
		if err := t.load(ctx, l.opts.rpsConns, l.opts.rpsRound, &warmUp); err != nil {
			return err
		}
	}
	for i := range n {
		for turn := range targets {
			k := (turn + i) % len(targets)
			if err := targets[k].load(ctx, l.opts.rpsConns, l.opts.rpsRound, &to[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// byHand says how to start an Envoy without a control plane.
type byHand struct {
	// log is the form of the access log: json, text, or envoy for Envoy's
	// own; empty: none.
	log string
	// logFile is where it goes; empty: to stdout.
	logFile     string
	limited     bool
	concurrency int
	args        []string // additional flags of Envoy
	filters     []string // HTTP filters ahead of the router, as JSON
}

// handMade is such an Envoy.
type handMade struct {
	target
	admin int // its port
}

func (l *lab) startByHand(r layout.Route, s byHand) (*handMade, error) {
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
		Log, LogFile              string
		Limited                   bool
		Filters                   []string
	}{r, layout.Address, list[0], r.Port, list[1], s.log, s.logFile, s.limited, s.filters})
	if err != nil {
		return nil, fmt.Errorf("writing the configuration by hand: %w", err)
	}
	envoy, err := l.runEnvoy("by-hand-envoy", config.Bytes(), s.concurrency, s.args...)
	return &handMade{target{addr: local(list[0]), envoy: envoy, request: requestFor(r)}, list[1]}, err
}

// load sends requests over some connections for a while, which makes one round.
func (t *target) load(ctx context.Context, conns int, long time.Duration, to *loads) error {
	before, err := t.envoy.threads()
	if err != nil {
		return err
	}
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
				status, err := w.ask(ctx, t.request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					return fmt.Errorf("under load: %w", err)
				}
				n++
				if t.reconnect {
					w.close()
				}
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	took := time.Since(began)
	after, err := t.envoy.threads()
	if err != nil {
		return err
	}
	to.rate = append(to.rate, float64(total.Load())/took.Seconds())
	to.requests += total.Load()
	to.cpu += after - before
	return nil
}
