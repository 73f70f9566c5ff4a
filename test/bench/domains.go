package main

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
	"github.com/gatehouse-gateway/gatehouse/test/bench/layout"
)

// rulesEach is how many rules a rate-limit global config has.
const rulesEach = 20

// domains measures the cost of many rate-limit global configs compared with one: the
// engines, and a change of one rate until it is in effect.
func (l *lab) domains(ctx context.Context) ([]section, error) {
	many := l.opts.domains
	engine, err := l.embeddedEngine(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := l.changes(ctx, "standalone", func() (*limited, error) {
		a, err := l.startAlone(ctx)
		return &limited{alone: a}, err
	})
	if err != nil {
		return nil, err
	}
	stock, err := l.changes(ctx, "the stock engine", func() (*limited, error) {
		a, s, err := l.startStock(ctx)
		return &limited{a, s}, err
	})
	if err != nil {
		return nil, err
	}
	return []section{{
		Title:  fmt.Sprintf("%d rate-limit global configs with %d rules each", many, rulesEach),
		Beside: "1", Rows: append(append(engine, rows...), stock...),
		Notes: []string{
			fmt.Sprintf("A change is a PATCH of one rate with ?wait=applied: Envoy and the engine have it when it is answered. Medians of %d, in turns. Memory of a program is what is resident. The engine of standalone was also measured by itself: memory is its live heap.", l.opts.domainChanges),
			"The stock engine gets all limits in one message and reads all of them again at every change, which is most of its time here. It takes 64 MiB with the settings of ratelimit/ratelimit.env; gRPC's own bound is 4 MiB.",
		},
	}}, nil
}

// limited is a standalone, with the stock engine if there is one.
type limited struct {
	*alone
	stock *stockEngine
}

// memory returns the memory of the program and the stock engine, in MB.
func (g *limited) memory() (program, engine float64, err error) {
	u, err := g.program.usage()
	if err != nil || g.stock == nil {
		return u.rss / mb, 0, err
	}
	e, err := usageOf("the stock engine", g.stock.Pid())
	return u.rss / mb, e.rss / mb, err
}

// changes compares a gateway with many global configs with one that has one.
func (l *lab) changes(ctx context.Context, with string, start func() (*limited, error)) ([]row, error) {
	var sides [2]*limited
	var loaded, program, engine [2]float64
	var took [2][]float64
	for k, n := range []int{l.opts.domains, 1} {
		g, err := start()
		if err != nil {
			return nil, err
		}
		sides[k] = g
		began := time.Now()
		if err := g.put(ctx, domainsDocument(n, g.ports.http)); err != nil {
			return nil, err
		}
		loaded[k] = ms(time.Since(began))
	}
	for i := range warmUp + l.opts.domainChanges {
		for turn := range sides {
			k := (turn + i) % len(sides)
			at := []int{i * 7919 % l.opts.domains, 0}[k]
			body := fmt.Sprintf(`{"config":%s}`, domainJSON(at, i+2))
			began := time.Now()
			if err := sides[k].send(ctx, http.MethodPatch, "/globalconfig/"+domainName(at)+"?wait=applied", "application/json", []byte(body)); err != nil {
				return nil, err
			}
			if i >= warmUp {
				took[k] = append(took[k], ms(time.Since(began)))
			}
			if err := sleep(ctx, pause); err != nil {
				return nil, err
			}
		}
	}
	for k, g := range sides {
		var err error
		if program[k], engine[k], err = g.memory(); err != nil {
			return nil, err
		}
		if err := l.stop(g.program); err != nil {
			return nil, err
		}
	}
	applied := beside(with+": a change of one rate, applied", "ms", quantile(took[0], 0.5), quantile(took[1], 0.5))
	if engine[0] == 0 {
		const limit = 100 // milliseconds
		applied = applied.below(limit)
	}
	rows := []row{
		beside(with+": PUT /config?wait=applied", "ms", loaded[0], loaded[1]), applied,
		beside(with+": the same, p99", "ms", quantile(took[0], 0.99), quantile(took[1], 0.99)),
		beside(with+": memory of Gatehouse", "MB", program[0], program[1]),
	}
	if engine[0] > 0 {
		rows = append(rows, beside(with+": memory of the engine", "MB", engine[0], engine[1]))
	}
	return rows, nil
}

func domainName(i int) string { return fmt.Sprintf("rates%05d", i) }

// domainRules returns the rules of a global config; rate is the rate of each.
func domainRules(rate int) []model.RateLimitRule {
	rules := make([]model.RateLimitRule, rulesEach)
	for i := range rules {
		rules[i] = model.RateLimitRule{
			Key: "tenant", Value: "customer-" + strconv.Itoa(i), RateLimit: &model.RateLimit{Unit: "minute", RequestsPerUnit: int64(rate)},
		}
	}
	return rules
}

func domainJSON(i, rate int) string {
	var rules []string
	for _, r := range domainRules(rate) {
		rules = append(rules, fmt.Sprintf(`{"key":%q,"value":%q,"rate_limit":{"unit":%q,"requests_per_unit":%d}}`,
			r.Key, r.Value, r.RateLimit.Unit, r.RateLimit.RequestsPerUnit))
	}
	return fmt.Sprintf(`{"domain":"domain-%d","descriptors":[%s]}`, i, strings.Join(rules, ","))
}

// domainsDocument returns a proxy with n rate-limit global configs.
func domainsDocument(n, port int) []byte {
	var b strings.Builder
	b.WriteString("version: 1\nglobalconfigs:\n")
	for i := range n {
		fmt.Fprintf(&b, "- {globalconfig_name: %s, globalconfig_type: globalconfig_ratelimit, config: %s}\n", domainName(i), domainJSON(i, 1))
	}
	fmt.Fprintf(&b, "proxies:\n- {name: %s, http_port: %d, https_port: %d, listen_ip: %s}\n",
		layout.Node, port, httpsPort(port), layout.Address)
	return []byte(b.String())
}

func domainConfigs(n, rate int) []*rlsconf.RateLimitConfig {
	list := make([]*limits.Domain, n)
	for i := range list {
		list[i] = limits.NewDomain(int64(i+1), "domain-"+strconv.Itoa(i), domainRules(rate))
	}
	return ratelimit.Configs(list)
}

// embeddedEngine measures the engine of standalone in this process, and the size of the
// stock engine's messages.
func (l *lab) embeddedEngine(ctx context.Context) ([]row, error) {
	var all, one, heap, message [2]float64
	for k, n := range []int{l.opts.domains, 1} {
		configs := domainConfigs(n, 1)
		size, err := messageBytes(configs)
		if err != nil {
			return nil, err
		}
		message[k] = float64(size) / 1e3
		var loads, changes []float64
		for i := range l.opts.domainChanges {
			before := liveHeap()
			e := embedded.New(embedded.Options{})
			began := time.Now()
			if err := e.Load(configs); err != nil {
				return nil, err
			}
			loads = append(loads, ms(time.Since(began)))
			heap[k] = heldSince(before)
			changed := domainConfigs(n, 1)
			changed[n/2] = domainConfigs(n, i+2)[n/2]
			began = time.Now()
			if err := e.Load(changed); err != nil {
				return nil, err
			}
			changes = append(changes, ms(time.Since(began)))
		}
		all[k], one[k] = quantile(loads, 0.5), quantile(changes, 0.5)
	}
	addresses, err := l.addresses(ctx)
	return []row{
		beside("engine of standalone: loading all", "ms", all[0], all[1]),
		beside("engine of standalone: loading all again, one of them changed", "ms", one[0], one[1]),
		beside("engine of standalone: memory held", "MB", heap[0], heap[1]),
		beside("message to the stock engine", "kB", message[0], message[1]),
		addresses,
	}, err
}

// messageBytes is the size of a message with all limits.
func messageBytes(configs []*rlsconf.RateLimitConfig) (int, error) {
	r := &discoveryv3.DiscoveryResponse{}
	for _, c := range configs {
		a, err := anypb.New(c)
		if err != nil {
			return 0, err
		}
		r.Resources = append(r.Resources, a)
	}
	return proto.Size(r), nil
}

// addresses measures an hour in which very many addresses occurred.
func (l *lab) addresses(ctx context.Context) (row, error) {
	const bound = 128 // MB, pkg/xds/ratelimit/embedded
	before := liveHeap()
	e := embedded.New(embedded.Options{})
	err := e.Load([]*rlsconf.RateLimitConfig{{Name: "1", Domain: "1/bench", Descriptors: []*rlsconf.RateLimitDescriptor{{
		Key: "remote_address", RateLimit: &rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_HOUR, RequestsPerUnit: 1},
	}}}})
	if err != nil {
		return row{}, err
	}
	entry := &commonv3.RateLimitDescriptor_Entry{Key: "remote_address"}
	request := &ratelimitv3.RateLimitRequest{Domain: "1/bench", Descriptors: []*commonv3.RateLimitDescriptor{
		{Entries: []*commonv3.RateLimitDescriptor_Entry{entry}},
	}}
	for i := range l.opts.addresses {
		entry.Value = "2001:db8::" + strconv.FormatInt(int64(i), 16)
		if _, err := e.ShouldRateLimit(ctx, request); err != nil {
			return row{}, err
		}
	}
	held := row{
		What: fmt.Sprintf("engine of standalone: memory held by %d addresses in an hour", l.opts.addresses), Unit: "MB", Gatehouse: heldSince(before),
	}
	runtime.KeepAlive(e)
	return held.below(bound), nil
}

// heldSince returns by how many MB the live heap has grown.
func heldSince(before uint64) float64 { return (float64(liveHeap()) - float64(before)) / mb }
