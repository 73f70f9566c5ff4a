package app

import (
	"math"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
)

// topShown is how many of the most limited values the API shows.
const topShown = 20

// limitCounts tells what the engine in this process has counted; nil where there is
// none.
func limitCounts(l *limiter) rest.RateLimits {
	if l == nil {
		return nil
	}
	return func(g *model.GlobalConfig) (limits []rest.RateLimit, top []rest.RateLimited) {
		id, c, ok := compile.RateLimits(g)
		if !ok {
			return nil, nil
		}
		domain := ratelimit.Domain{ID: id, Domain: c.Domain}.Wire()
		for _, s := range l.engine.Stats() {
			if s.Domain == domain {
				limits = append(limits, rest.RateLimit{Limit: s.Key, Hits: s.Hits, Near: s.Near, Over: s.Over, Shadow: s.Shadow})
			}
		}
		for _, v := range l.engine.Top(math.MaxInt) { // those of other domains among them
			if v.Domain == domain && len(top) < topShown {
				top = append(top, rest.RateLimited{Limit: v.Key, Value: v.Value, Shadow: v.Shadow, Over: v.Count, Error: v.Error})
			}
		}
		return limits, top
	}
}
