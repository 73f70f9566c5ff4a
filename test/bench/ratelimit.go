package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// manyRequests per hour is more than any run sends.
const manyRequests = 1_000_000_000

// arm is a gateway under load, with everything that it uses.
type arm struct {
	what string
	addr string
	pids []int
	// counted is how many requests the engine has counted; nil: nobody counts.
	counted func(context.Context) (int, error)
	asked   int
	// busy is over many connections, single over one.
	busy, single bursts
}

// bursts are the results of some rounds.
type bursts struct {
	rate      []float64 // requests per second, a value for each round
	latencies []float64 // in milliseconds, a value for each request
	cpu       time.Duration
}

// cost returns the CPU time per request, in microseconds.
func (b *bursts) cost() float64 {
	return float64(b.cpu) / float64(time.Microsecond) / float64(max(len(b.latencies), 1))
}

// ratelimit measures the cost of a limit: the same route without one, with one that
// standalone counts, with one that the stock engine counts in Redis, and with one that
// Envoy itself counts.
func (l *lab) ratelimit(ctx context.Context) ([]section, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", local(0))
	if err != nil {
		return nil, fmt.Errorf("starting an upstream: %w", err)
	}
	upstream := httptest.Server{Listener: listener, Config: &http.Server{Handler: http.HandlerFunc(echo)}} //nolint:gosec // its only client is Envoy
	upstream.Start()
	defer upstream.Close()
	route := layout.Routes(1, 1, listener.Addr().(*net.TCPAddr).Port)[0]
	arms, err := l.arms(ctx, route)
	if err != nil {
		return nil, err
	}
	for i := range l.opts.limitRounds {
		for turn := range arms {
			a := arms[(turn+i)%len(arms)]
			if err := a.load(ctx, requestFor(route), l.opts.limitConns, l.opts.limitRound, &a.busy); err != nil {
				return nil, fmt.Errorf("%s: %w", a.what, err)
			}
			if err := a.load(ctx, requestFor(route), 1, l.opts.limitRound/4, &a.single); err != nil {
				return nil, fmt.Errorf("%s: %w", a.what, err)
			}
		}
	}
	for _, a := range arms {
		if err := a.checkCounted(ctx); err != nil {
			return nil, err
		}
	}
	rows := costs(arms[1], arms[0], 0.5)
	rows = append(rows, costs(arms[2], arms[0], 0.34)...)
	rows = append(rows, costs(arms[3], arms[0], 0)...)
	return []section{{
		Title: "A rate limit", Beside: "no limit", Rows: rows,
		Notes: []string{
			fmt.Sprintf("%d connections, then one; %d rounds of %s for each, in turns, with one `gatehouse standalone` each; the medians, and the median of the ratios of neighboring rounds. p50 and p99 are over all requests. CPU is that of Envoy, Gatehouse, the engine and Redis together. Clients and the upstream, a Go program with net/http, are on the same CPUs.",
				l.opts.limitConns, l.opts.limitRounds, l.opts.limitRound),
			"The limit, so many for each address that none was limited, was counted for every request: that is checked.",
			"Envoy's own limit is in the configuration by hand (test/bench/static.yaml.tmpl). Why Gatehouse does not use it: docs/adr/0022.",
		},
	}}, nil
}

// echo is the cheapest possible upstream in Go.
func echo(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") }

// arms starts all of them; the first has no limit.
func (l *lab) arms(ctx context.Context, route layout.Route) ([]*arm, error) {
	none, err := l.startAlone(ctx)
	if err != nil {
		return nil, err
	}
	own, err := l.startAlone(ctx)
	if err != nil {
		return nil, err
	}
	withStock, stock, err := l.startStock(ctx)
	if err != nil {
		return nil, err
	}
	self, err := l.startByHand(route, byHand{limited: true, concurrency: l.opts.concurrency})
	if err != nil {
		return nil, err
	}
	ownCounts := sumAt(own.base+"/proxy/"+layout.Node+"/ratelimit", `"hits":(\d+)`)
	stockCounts := sumAt(stock.Metrics.URL+"/metrics", `(?m)^ratelimit_service_rate_limit_total_hits\{.*\} (\S+)$`)
	selfCounts := sumAt("http://"+local(self.admin)+"/stats?filter=limits", `limits\.http_local_rate_limit\.ok: (\d+)`)
	list := []*arm{
		{what: "none", addr: local(none.ports.http)},
		{what: "counted by standalone", addr: local(own.ports.http), counted: ownCounts},
		{what: "counted in Redis", addr: local(withStock.ports.http), pids: []int{stock.Pid(), stock.redis.Pid()}, counted: stockCounts},
		{what: "counted by Envoy", addr: self.addr, pids: []int{self.envoy.cmd.Process.Pid}, counted: selfCounts},
	}
	for i, gateway := range []*alone{none, own, withStock} {
		if err := gateway.put(ctx, limitedRoute(route, gateway.ports.http, gateway != none)); err != nil {
			return nil, err
		}
		pids, err := gateway.pids()
		if err != nil {
			return nil, err
		}
		list[i].pids = append(list[i].pids, pids...)
	}
	for _, a := range list {
		w := wire{addr: a.addr}
		_, err := w.until(ctx, requestFor(route), http.StatusOK, time.Millisecond)
		w.close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", a.what, err)
		}
		a.asked++
		var warmUp bursts
		if err := a.load(ctx, requestFor(route), l.opts.limitConns, l.opts.limitRound, &warmUp); err != nil {
			return nil, fmt.Errorf("%s: %w", a.what, err)
		}
	}
	return list, nil
}

// stockEngine is the stock engine with its Redis.
type stockEngine struct {
	*testkit.Ratelimit
	redis *testkit.Redis
}

// startStock starts a standalone for which the stock engine counts.
func (l *lab) startStock(ctx context.Context) (*alone, *stockEngine, error) {
	list, err := ports(1)
	if err != nil {
		return nil, nil, err
	}
	a, err := l.startAlone(ctx, "--ratelimit-address", local(list[0]))
	if err != nil {
		return nil, nil, err
	}
	s := &stockEngine{}
	if s.redis, err = testkit.StartRedis(ctx, l.dir); err != nil {
		return nil, nil, err
	}
	l.ends = append(l.ends, s.redis.Kill)
	s.Ratelimit, err = testkit.SpawnRatelimit(testkit.RatelimitOptions{
		XDSAddr: local(a.ports.xds), RedisAddr: s.redis.Addr, Env: []string{"GRPC_PORT=" + strconv.Itoa(list[0])},
	})
	if err != nil {
		return nil, nil, err
	}
	l.ends = append(l.ends, s.Kill)
	s.Addr = local(list[0])
	return a, s, s.WaitReady(ctx)
}

// limitedRoute returns a document with the route, for a gateway at the port.
func limitedRoute(r layout.Route, port int, limited bool) []byte {
	var b strings.Builder
	b.WriteString("version: 1\n")
	filters := ""
	if limited {
		filters = "limit"
		fmt.Fprintf(&b, `globalconfigs:
- globalconfig_name: rates
  globalconfig_type: globalconfig_ratelimit
  config: {domain: bench, descriptors: [{key: remote_address, rate_limit: {unit: hour, requests_per_unit: %d}}]}
filters:
- filter_name: limit
  filter_type: route_filter_ratelimit
  filter_config: {descriptors: [{remote_address: client}]}
`, manyRequests)
	}
	fmt.Fprintf(&b, `upstreams:
- {upstream_name: %s, upstream_ip: %s, upstream_port: %d}
services:
- service_name: %s
  fqdn: %s
  filters: [%s]
  routes:
  - {route_name: %s, route_prefix: %s, upstreams: [%s]}
proxies:
- {name: %s, http_port: %d, https_port: %d, listen_ip: %s, services: [%s]}
`, r.Upstream, layout.Address, r.Port, r.Service, r.FQDN(), filters, r.Name, r.Prefix, r.Upstream,
		layout.Node, port, httpsPort(port), layout.Address, r.Service)
	return []byte(b.String())
}

// sumAt adds the numbers on a page.
func sumAt(url, pattern string) func(context.Context) (int, error) {
	numbers := regexp.MustCompile(pattern)
	return func(ctx context.Context) (int, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return 0, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			return 0, err
		}
		sum := 0
		for _, m := range numbers.FindAllSubmatch(text, -1) {
			n, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return 0, fmt.Errorf("reading the counts at %s: %w", url, err)
			}
			sum += int(n)
		}
		return sum, nil
	}
}

// checkCounted waits until every request is counted, which the stock engine reports a
// second later.
func (a *arm) checkCounted(ctx context.Context) error {
	if a.counted == nil {
		return nil
	}
	return eventually(ctx, a.what, func() error {
		n, err := a.counted(ctx)
		if err == nil && n != a.asked {
			err = fmt.Errorf("%d requests were asked and %d are counted", a.asked, n)
		}
		return err
	})
}

// load sends requests over some connections for a while, which makes one round.
func (a *arm) load(ctx context.Context, request []byte, conns int, long time.Duration, to *bursts) error {
	before, err := a.cpu()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	total := 0
	began := time.Now()
	end := began.Add(long)
	group, ctx := errgroup.WithContext(ctx)
	for range conns {
		group.Go(func() error {
			w := wire{addr: a.addr}
			defer w.close()
			var took []float64
			for now := time.Now(); now.Before(end); {
				status, err := w.ask(ctx, request)
				if err == nil && status != http.StatusOK {
					err = fmt.Errorf("status %d", status)
				}
				if err != nil {
					return fmt.Errorf("under load: %w", err)
				}
				after := time.Now()
				took = append(took, ms(after.Sub(now)))
				now = after
			}
			mu.Lock()
			defer mu.Unlock()
			total += len(took)
			to.latencies = append(to.latencies, took...)
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	to.rate = append(to.rate, float64(total)/time.Since(began).Seconds())
	a.asked += total
	after, err := a.cpu()
	to.cpu += after - before
	return err
}

// cpu returns the CPU time of all processes of the arm.
func (a *arm) cpu() (sum time.Duration, err error) {
	for _, pid := range a.pids {
		u, err := usageOf(a.what, pid)
		if err != nil {
			return 0, err
		}
		sum += u.cpu
	}
	return sum, nil
}

// costs returns the rows of one arm; least is the aim of its throughput, 0 means none.
func costs(a, none *arm, least float64) []row {
	var ratios []float64
	for i, rate := range a.busy.rate {
		ratios = append(ratios, rate/none.busy.rate[i])
	}
	rate := beside(a.what, "req/s", quantile(a.busy.rate, 0.5), quantile(none.busy.rate, 0.5))
	rate.Ratio = new(round(quantile(ratios, 0.5)))
	if least > 0 {
		rate = rate.atLeast(least)
	}
	latency := func(what string, of func(*arm) []float64, share float64) row {
		return beside(a.what+", "+what, "ms", quantile(of(a), share), quantile(of(none), share))
	}
	busy := func(a *arm) []float64 { return a.busy.latencies }
	single := func(a *arm) []float64 { return a.single.latencies }
	return []row{
		rate,
		beside(a.what+", CPU for a request", "us", a.busy.cost(), none.busy.cost()),
		latency("p50", busy, 0.5), latency("p99", busy, 0.99),
		latency("one connection, p50", single, 0.5), latency("one connection, p99", single, 0.99),
	}
}
