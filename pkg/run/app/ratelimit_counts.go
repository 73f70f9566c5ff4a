package app

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/run/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/scrape"
)

// topShown is how many of the most limited values the API shows.
const topShown = 20

// The API says this where it does not know everything.
const (
	noteNobody = "no request is limited: gatehouse serve needs --ratelimit-address"
	noteNoURL  = "another process counts: set --ratelimit-metrics to the URL of its metrics"
	noteSilent = "no engine reports its counts"
	noteTop    = "the engine's metrics do not show which values are limited; Envoy's access log has the " +
		"addresses, at response_code_details request_rate_limited"
	noteUntold = "; these limits are not in the engine's metrics, for their names: "
)

// limitCounts returns the reader of the counts of the rate-limit engine in use, or one
// that says why they are not known.
func limitCounts(cfg config.Config, l *limiter) inspect.RateLimits {
	switch {
	case l != nil:
		return l.counts
	case cfg.RateLimitAddress == "":
		return unknownCounts(noteNobody)
	case len(cfg.RateLimitMetrics) == 0:
		return unknownCounts(noteNoURL)
	}
	return scrapedCounts(scrape.New(cfg.RateLimitMetrics))
}

func unknownCounts(note string) inspect.RateLimits {
	return func(_ context.Context, domains []*limits.Domain) []inspect.RateLimitCounts {
		return slices.Repeat([]inspect.RateLimitCounts{{Note: note}}, len(domains))
	}
}

// counts returns what the engine in this process has counted.
func (l *limiter) counts(_ context.Context, domains []*limits.Domain) []inspect.RateLimitCounts {
	stats, most := l.engine.Stats(), l.engine.Top(math.MaxInt) // including those of other domains
	list := make([]inspect.RateLimitCounts, len(domains))
	for i, d := range domains {
		c := inspect.RateLimitCounts{Counted: true, Top: []inspect.RateLimited{}}
		for _, s := range stats {
			if s.Domain == d.Wire() {
				c.Limits = append(c.Limits,
					inspect.RateLimit{Limit: s.Key, Hits: s.Hits, Near: s.Near, Over: s.Over, Shadow: s.Shadow})
			}
		}
		for _, v := range most {
			if v.Domain == d.Wire() && len(c.Top) < topShown {
				c.Top = append(c.Top,
					inspect.RateLimited{Limit: v.Key, Value: v.Value, Shadow: v.Shadow, Over: v.Count, Error: v.Error})
			}
		}
		list[i] = c
	}
	return list
}

// scrapedCounts reads the counts of stock engines. They report no values: the metric
// that has them (detailed_metric) never forgets one.
func scrapedCounts(s *scrape.Scraper) inspect.RateLimits {
	return func(ctx context.Context, domains []*limits.Domain) []inspect.RateLimitCounts {
		counts, asked := s.Counts(ctx, domains)
		var engines []inspect.RateLimitEngine
		counted := false
		for _, e := range asked {
			v := inspect.RateLimitEngine{URL: e.URL, Address: e.Address}
			if e.Err != nil {
				v.Error = e.Err.Error()
			}
			counted = counted || e.Err == nil
			engines = append(engines, v)
		}
		list := make([]inspect.RateLimitCounts, len(domains))
		for i, of := range counts {
			c := inspect.RateLimitCounts{Counted: counted, Engines: engines, Note: noteSilent}
			if counted {
				c.Note = noteTop
				if len(of.Untold) > 0 {
					c.Note += noteUntold + strings.Join(of.Untold, ", ")
				}
				for _, l := range of.Limits {
					c.Limits = append(c.Limits, inspect.RateLimit{
						Limit: l.Paths[0], With: l.Paths[1:], Hits: l.Hits, Near: l.Near, Over: l.Over, Shadow: l.Shadow,
					})
				}
			}
			list[i] = c
		}
		return list
	}
}
