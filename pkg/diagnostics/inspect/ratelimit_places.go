package inspect

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// mostRoutes is how many routes of a limit are shown.
const mostRoutes = 5

// limitPlace is what a limit applies to.
type limitPlace struct {
	// at is service/route, service/* for a whole service, */* for all services, or "connections".
	at string
	// key is that of the filter or global config that limits it.
	key    model.Key
	filter *model.RateLimitFilter
}

// limitPlaces returns the places of a proxy.
func limitPlaces(r store.Reader, proxy string) ([]limitPlace, error) {
	services, err := r.List(store.Query{Kind: model.KindProxyService, To: []model.Key{model.ProxyKey(proxy)}})
	if err != nil || len(services) == 0 {
		return nil, err
	}
	var keys []model.Key
	for _, l := range services {
		keys = append(keys, usedByLink(l))
	}
	var places []limitPlace
	for _, kind := range []model.Kind{model.KindProxyFilter, model.KindServiceFilter, model.KindRouteFilter} {
		to := keys
		if kind == model.KindProxyFilter {
			to = []model.Key{model.ProxyKey(proxy)}
		}
		links, err := r.List(store.Query{Kind: kind, To: to})
		if err != nil {
			return nil, err
		}
		for _, l := range links {
			f, err := store.Get[*model.Filter](r, usedByLink(l))
			if err != nil {
				return nil, err
			}
			parsed := f.Parse()
			spec, ok := parsed.Spec.(*model.RateLimitFilter)
			if !ok || parsed.Fault != nil { // then it limits nothing
				continue
			}
			at := l.Key().Owner().Text()
			switch kind {
			case model.KindProxyFilter:
				at = "*/*"
			case model.KindServiceFilter:
				at += "/*"
			}
			places = append(places, limitPlace{at, f.Key(), spec})
		}
	}
	return places, nil
}

// connectionPlaces returns the limit of new connections of a proxy, if it has one. The first global config that bounds
// connections applies.
func connectionPlaces(configs []*model.GlobalConfig) []limitPlace {
	for _, g := range configs {
		if g.TypeName() != model.GlobalConfigConnections {
			continue
		}
		if c, ok := g.Parse().Spec.(*model.ConnectionsConfig); ok && c.Limit != nil {
			return []limitPlace{{"connections", g.Key(), c.Limit}}
		}
		break
	}
	return nil
}

// statedRules returns the rules of the filters and global configs at places.
func statedRules(places []limitPlace) map[model.Key]model.RateLimitRule {
	rules := map[model.Key]model.RateLimitRule{}
	for _, p := range places {
		if p.filter.Stated != nil {
			rules[p.key] = *p.filter.Stated
		}
	}
	return rules
}

// describeLimits adds to limits of a domain their rate, the remaining time of their
// window, and the places that they apply to. Filters that name no domain use the first
// one.
func (in *Inspector) describeLimits(list []RateLimit, d *limits.Domain, places []limitPlace, first bool) {
	routes := map[string][]string{}
	for _, p := range places {
		if p.filter.Domain == d.Domain || p.filter.Domain == "" && first {
			for _, path := range limits.Met(p.filter, d.Descriptors) {
				routes[path] = append(routes[path], p.at)
			}
		}
	}
	byPath := limits.ByPath(d.Descriptors)
	now := in.Now().Unix()
	for i := range list {
		l := &list[i]
		at := routes[l.Limit]
		slices.Sort(at)
		at = slices.Compact(at)
		l.Routes = at[:min(len(at), mostRoutes)]
		l.MoreRoutes = len(at) - len(l.Routes)
		rate := byPath[l.Limit]
		if rate == nil || rate.Unlimited {
			continue
		}
		l.Unit, l.RequestsPerUnit = rate.Unit, &rate.RequestsPerUnit
		if window := windowSeconds(rate.Unit); window > 0 {
			l.ResetsIn = window - now%window
		}
	}
}

// windowSeconds returns the length of a unit's window; 0 for an unknown unit.
func windowSeconds(unit string) int64 {
	const day = 24 * 60 * 60
	return map[string]int64{
		"second": 1, "minute": 60, "hour": 60 * 60, "day": day, "week": 7 * day, "month": 30 * day, "year": 365 * day,
	}[unit]
}
