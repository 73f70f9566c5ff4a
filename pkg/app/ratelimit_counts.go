package app

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/config"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/scrape"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
)

// topShown is how many of the most limited values the API shows.
const topShown = 20

// What the API says where it does not know everything.
const (
	noteNobody = "no request is limited: gatehouse serve needs --ratelimit-address"
	noteNoURL  = "another process counts: --ratelimit-metrics names the URL of its metrics"
	noteSilent = "no engine says what it has counted"
	noteTop    = "which values are limited is not known: the engine's metrics do not tell; Envoy's access log has the " +
		"addresses, at response_code_details request_rate_limited"
	noteUntold = "; these limits are not in the engine's metrics, for their names: "
)

// limitCounts tells what was counted by whoever counts.
func limitCounts(cfg config.Config, l *limiter) rest.RateLimits {
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

func unknownCounts(note string) rest.RateLimits {
	return func(_ context.Context, configs []*model.GlobalConfig) []rest.RateLimitCounts {
		return slices.Repeat([]rest.RateLimitCounts{{Note: note}}, len(configs))
	}
}

// counts is what the engine in this process has counted.
func (l *limiter) counts(_ context.Context, configs []*model.GlobalConfig) []rest.RateLimitCounts {
	stats, most := l.engine.Stats(), l.engine.Top(math.MaxInt) // those of other domains among them
	list := make([]rest.RateLimitCounts, len(configs))
	for i, d := range domainsOf(configs) {
		c := rest.RateLimitCounts{Counted: true, Top: []rest.RateLimited{}}
		for _, s := range stats {
			if s.Domain == d.Wire() {
				c.Limits = append(c.Limits, rest.RateLimit{Limit: s.Key, Hits: s.Hits, Near: s.Near, Over: s.Over, Shadow: s.Shadow})
			}
		}
		for _, v := range most {
			if v.Domain == d.Wire() && len(c.Top) < topShown {
				c.Top = append(c.Top, rest.RateLimited{Limit: v.Key, Value: v.Value, Shadow: v.Shadow, Over: v.Count, Error: v.Error})
			}
		}
		list[i] = c
	}
	return list
}

// scrapedCounts asks stock engines. They know no values: the metric that has
// them (detailed_metric) never forgets one.
func scrapedCounts(s *scrape.Scraper) rest.RateLimits {
	return func(ctx context.Context, configs []*model.GlobalConfig) []rest.RateLimitCounts {
		counts, asked := s.Counts(ctx, domainsOf(configs))
		var engines []rest.RateLimitEngine
		counted := false
		for _, e := range asked {
			v := rest.RateLimitEngine{URL: e.URL, Address: e.Address}
			if e.Err != nil {
				v.Error = e.Err.Error()
			}
			counted = counted || e.Err == nil
			engines = append(engines, v)
		}
		list := make([]rest.RateLimitCounts, len(configs))
		for i, of := range counts {
			c := rest.RateLimitCounts{Counted: counted, Engines: engines, Note: noteSilent}
			if counted {
				c.Note = noteTop
				if len(of.Untold) > 0 {
					c.Note += noteUntold + strings.Join(of.Untold, ", ")
				}
				for _, l := range of.Limits {
					c.Limits = append(c.Limits, rest.RateLimit{
						Limit: l.Paths[0], With: l.Paths[1:], Hits: l.Hits, Near: l.Near, Over: l.Over, Shadow: l.Shadow,
					})
				}
			}
			list[i] = c
		}
		return list
	}
}

// domainsOf are the domains of global configs as the engines know them.
func domainsOf(configs []*model.GlobalConfig) []ratelimit.Domain {
	domains := make([]ratelimit.Domain, len(configs))
	for i, g := range configs {
		if id, c, ok := compile.RateLimits(g); ok {
			domains[i] = ratelimit.Domain{ID: id, Domain: c.Domain, Rules: c.Descriptors}
		}
	}
	return domains
}
