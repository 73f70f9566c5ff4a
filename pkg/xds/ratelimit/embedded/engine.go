package embedded

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/limiter"
	"google.golang.org/grpc"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

const (
	// DefaultMaxCounters is how many values are counted at the same time.
	DefaultMaxCounters = 1 << 20
	// nearRatio is the stock service's default for NEAR_LIMIT_RATIO.
	nearRatio = 0.8
)

// Options of an Engine. The zero value is valid.
type Options struct {
	// MaxCounters bounds how many values are counted at the same time; 0 means
	// DefaultMaxCounters. Each takes about 100 bytes.
	MaxCounters int
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Log receives errors that should never happen; nil means none.
	Log *slog.Logger
}

// Engine answers rate-limit requests. It is safe for concurrent use.
type Engine struct {
	options  Options
	counters *counters
	top      top
	limiter  *limiter.BaseRateLimiter

	loading sync.Mutex
	// state contains the current domains by their wire names; nil before the
	// first Load. It is immutable.
	state atomic.Pointer[map[string]*domain]

	rlsv3.UnimplementedRateLimitServiceServer
}

// New returns an engine without configuration. It refuses every request.
func New(o Options) *Engine {
	if o.MaxCounters <= 0 {
		o.MaxCounters = DefaultMaxCounters
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Engine{
		options: o, counters: newCounters(o.MaxCounters, o.Now),
		limiter: limiter.NewBaseRateLimit(clock(o.Now), nil, 0, nil, nearRatio, "", nil),
	}
}

// clock implements the upstream's time source.
type clock func() time.Time

// UnixNow implements utils.TimeSource.
func (c clock) UnixNow() int64 { return c().Unix() }

// Register registers e as the rate-limit service of server.
func (e *Engine) Register(server *grpc.Server) { rlsv3.RegisterRateLimitServiceServer(server, e) }

// Load replaces the configuration as a whole, or, on an error, changes nothing.
// A request sees the old one or the new one. Counters and statistics continue,
// even if the number of a limit has changed; a new unit begins a new window.
// The error has the text with which the stock service would refuse the
// configuration. Load keeps the messages, so callers must not change them. An
// unchanged domain costs almost nothing.
func (e *Engine) Load(configs []*rlsconf.RateLimitConfig) error {
	e.loading.Lock()
	defer e.loading.Unlock()
	var old map[string]*domain
	if s := e.state.Load(); s != nil {
		old = *s
	}
	state := make(map[string]*domain, len(configs))
	for _, c := range configs {
		if _, twice := state[c.GetDomain()]; twice {
			return fmt.Errorf("loading rate limits: %s: duplicate domain '%s' in config file", c.GetName(), c.GetDomain())
		}
		d := old[c.GetDomain()]
		if d == nil || !sameDescriptors(d.source.GetDescriptors(), c.GetDescriptors()) {
			var err error
			if d, err = buildDomain(c, d); err != nil {
				return fmt.Errorf("loading rate limits: %w", err)
			}
		}
		state[c.GetDomain()] = d
	}
	e.state.Store(&state)
	return nil
}

func buildDomain(c *rlsconf.RateLimitConfig, old *domain) (*domain, error) {
	if old == nil {
		old = &domain{other: &tally{key: otherKey}}
	}
	paths := ratelimit.Paths(c)
	d := &domain{source: c, wire: c.GetDomain(), tallies: map[string]*tally{}, other: old.other}
	d.create = func(key string) *tally {
		if t, ok := old.tallies[key]; ok {
			return t
		}
		return &tally{key: paths[key]}
	}
	var err error
	d.RateLimitConfig, err = ratelimit.Load(c, d)
	d.create = nil
	return d, err
}

// sameDescriptors is proto.Equal for these messages, but thirty times as fast.
func sameDescriptors(a, b []*rlsconf.RateLimitDescriptor) bool {
	return slices.EqualFunc(a, b, func(a, b *rlsconf.RateLimitDescriptor) bool {
		return a.GetKey() == b.GetKey() && a.GetValue() == b.GetValue() && a.GetShadowMode() == b.GetShadowMode() &&
			a.GetDetailedMetric() == b.GetDetailedMetric() && samePolicy(a.GetRateLimit(), b.GetRateLimit()) &&
			sameDescriptors(a.GetDescriptors(), b.GetDescriptors())
	})
}

func samePolicy(a, b *rlsconf.RateLimitPolicy) bool {
	return (a == nil) == (b == nil) && a.GetUnit() == b.GetUnit() && a.GetRequestsPerUnit() == b.GetRequestsPerUnit() &&
		a.GetUnlimited() == b.GetUnlimited() && a.GetName() == b.GetName() &&
		slices.EqualFunc(a.GetReplaces(), b.GetReplaces(), func(a, b *rlsconf.RateLimitReplace) bool {
			return a.GetName() == b.GetName()
		})
}

// Usage is how full the memory of an engine is.
type Usage struct {
	// Counters is the number of occupied slots and Max their bound. Evicted is
	// how many counters were dropped before the end of their window since the
	// program started. Each of their values may have had its limit twice.
	Counters, Max int
	Evicted       uint64
}

// Usage returns how full the memory is.
func (e *Engine) Usage() Usage {
	return Usage{Counters: e.counters.size(), Max: e.options.MaxCounters, Evicted: e.counters.evicted.Load()}
}

// Top returns the n values with the most hits over their limits in the current
// minute and the four before it, the most first. It tracks 512 values in each
// minute. With N hits over limits in all that time, the list contains every
// value with more than N/512 of them if n allows, and no Count is wrong by more
// than N/512. With at most 512 limited values per minute, everything is exact.
func (e *Engine) Top(n int) []Limited { return e.top.list(e.options.Now().Unix(), n) }
