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

// otherKey is the Key for everything that belongs to no limit of the
// configuration.
const otherKey = "(other)"

// Stat contains the counts of one limit since the program started. A limit that
// a new configuration omits is forgotten.
type Stat struct {
	// Domain is the domain on the wire. Key is the limit's path in it, such as
	// "generic_key=shop > remote_address". Key "(other)" sums up requests with
	// limits of their own, and limits whose key (not value) ends in "*".
	Domain, Key string
	// Hits is how much was counted. Over is how much was over the limit, and
	// Near how much was within it but above 80% of it. Shadow is the part of
	// Over that was allowed because the limit only counts. Unlimited limits
	// count nothing.
	Hits, Over, Near, Shadow uint64
}

// domain is the configuration of one domain with its statistics. Only the
// tallies change after it is loaded.
type domain struct {
	stats.Manager // only NewStats is called, since the domain always exists
	config.RateLimitConfig

	source  *rlsconf.RateLimitConfig
	wire    string
	tallies map[string]*tally // by the upstream's name of the limit
	other   *tally
	// create makes a tally for a limit that the loader finds; nil after
	// everything is loaded.
	create func(key string) *tally
}

// NewStats implements stats.Manager. Lookups pass names that may contain
// clients' text. Those get no tally of their own.
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

// tallyOf returns the tally of a limit from a lookup.
func (d *domain) tallyOf(l *config.RateLimit) *tally {
	if t, ok := d.tallies[l.FullKey]; ok {
		return t
	}
	return d.other
}

// tally implements the counters to which the upstream's limiter adds.
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

// Stats returns the counts of every current limit, by domain and key.
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
