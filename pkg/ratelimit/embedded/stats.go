package embedded

import (
	"cmp"
	"slices"
	"strconv"
	"sync/atomic"

	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	"github.com/envoyproxy/ratelimit/src/config"
	"github.com/envoyproxy/ratelimit/src/stats"
)

// otherKey is the Key of what belongs to no limit of the configuration.
const otherKey = "(other)"

// Stat is what one limit has seen since the program started. A limit that a
// new configuration leaves out is forgotten.
type Stat struct {
	// Domain is the one on the wire, and Key the limit's path in it, such as
	// "generic_key=shop > remote_address". Key "(other)" sums up requests that
	// bring limits of their own, and limits whose key (not value) ends in "*".
	Domain, Key string
	// Hits is how much was counted, Over what was over the limit, Near what was
	// within it but above 80 % of it, and Shadow the part of Over that was let
	// through because the limit only counts. Unlimited ones count nothing.
	Hits, Over, Near, Shadow uint64
}

// domain is the configuration of one domain with its statistics. It is
// read-only once loaded, but for the tallies.
type domain struct {
	stats.Manager // only NewStats is called: the domain is always there
	config.RateLimitConfig

	source  *rlsconf.RateLimitConfig
	wire    string
	tallies map[string]*tally // by the upstream's name of the limit
	other   *tally
	// create makes a tally for a limit that the loader has found; nil once
	// everything is loaded.
	create func(key string) *tally
}

// NewStats implements stats.Manager. Lookups ask for names that may hold what
// clients sent: those get no tally of their own.
func (d *domain) NewStats(key string) stats.RateLimitStats {
	t, ok := d.tallies[key]
	switch {
	case ok:
	case d.create != nil:
		t = d.create(key)
		d.tallies[key] = t
	default:
		t = d.other
	}
	return stats.RateLimitStats{
		Key: key, TotalHits: &t.hits, OverLimit: &t.over, NearLimit: &t.near, ShadowMode: &t.shadow, WithinLimit: &t.within,
	}
}

// tallyOf answers the tally of a limit that a lookup gave.
func (d *domain) tallyOf(l *config.RateLimit) *tally {
	if t, ok := d.tallies[l.FullKey]; ok {
		return t
	}
	return d.other
}

// tally implements the counters that the upstream's limiter adds to.
type tally struct {
	key                              string // for people
	hits, over, near, shadow, within counter
}

func (t *tally) stat(domain string) Stat {
	return Stat{
		Domain: domain, Key: t.key,
		Hits: t.hits.Value(), Over: t.over.Value(), Near: t.near.Value(), Shadow: t.shadow.Value(),
	}
}

// counter implements the upstream's interface of a counter.
type counter struct{ n atomic.Uint64 }

func (c *counter) Add(n uint64)   { c.n.Add(n) }
func (c *counter) Inc()           { c.n.Add(1) }
func (c *counter) Set(n uint64)   { c.n.Store(n) }
func (c *counter) Value() uint64  { return c.n.Load() }
func (c *counter) String() string { return strconv.FormatUint(c.Value(), 10) }

// Stats lists every limit in force, by domain and key.
func (e *Engine) Stats() []Stat {
	var list []Stat
	if s := e.state.Load(); s != nil {
		for _, d := range *s {
			for _, t := range d.tallies {
				list = append(list, t.stat(d.wire))
			}
			if d.other.hits.Value() > 0 {
				list = append(list, d.other.stat(d.wire))
			}
		}
	}
	slices.SortFunc(list, func(a, b Stat) int {
		return cmp.Or(cmp.Compare(a.Domain, b.Domain), cmp.Compare(a.Key, b.Key))
	})
	return list
}
