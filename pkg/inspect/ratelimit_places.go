package inspect

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// mostRoutes is how many routes of a limit are shown.
const mostRoutes = 5

// limitPlace is a route, or all of a service, with a filter that limits it.
type limitPlace struct {
	// at is service/route, or service/* for all of a service.
	at     string
	name   string
	filter *model.RateLimitFilter
}

// limitPlaces are those on a proxy.
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
	for _, kind := range []model.Kind{model.KindServiceFilter, model.KindRouteFilter} {
		links, err := r.List(store.Query{Kind: kind, To: keys})
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
			if kind == model.KindServiceFilter {
				at += "/*"
			}
			places = append(places, limitPlace{at, f.Name, spec})
		}
	}
	return places, nil
}

// statedLimits are those that the filters at places state themselves, as one
// global config that is not stored; nil where there are none.
func statedLimits(places []limitPlace) *model.ParsedGlobalConfig {
	rules := map[string]model.RateLimitRule{}
	for _, p := range places {
		if p.filter.Stated != nil {
			rules[p.name] = *p.filter.Stated
		}
	}
	if len(rules) == 0 {
		return nil
	}
	return &model.ParsedGlobalConfig{
		GlobalConfig: &model.GlobalConfig{Type: model.GlobalConfigRateLimit},
		Spec:         &model.RateLimitConfig{Domain: model.StatedDomain, Descriptors: model.StatedRules(rules)},
	}
}

// describeLimits says of limits under a global config which rate they are, how
// long their window still takes, and which places they are for. Filters that name
// no domain are for the first global config.
func (in *Inspector) describeLimits(limits []RateLimit, g *model.ParsedGlobalConfig, places []limitPlace, first bool) {
	config, ok := g.Spec.(*model.RateLimitConfig)
	if !ok {
		return
	}
	rates, routes := map[string]*model.RateLimit{}, map[string][]string{}
	addRates(rates, "", config.Descriptors)
	for _, p := range places {
		if in.MetRates == nil || p.filter.Domain != config.Domain && (p.filter.Domain != "" || !first) {
			continue
		}
		for _, path := range in.MetRates(p.filter, config.Descriptors) {
			routes[path] = append(routes[path], p.at)
		}
	}
	now := in.Now().Unix()
	for i := range limits {
		l := &limits[i]
		at := routes[l.Limit]
		slices.Sort(at)
		at = slices.Compact(at)
		l.Routes = at[:min(len(at), mostRoutes)]
		l.MoreRoutes = len(at) - len(l.Routes)
		rate := rates[l.Limit]
		if rate == nil || rate.Unlimited {
			continue
		}
		l.Unit, l.RequestsPerUnit = rate.Unit, &rate.RequestsPerUnit
		if window := windowSeconds(rate.Unit); window > 0 {
			l.ResetsIn = window - now%window
		}
	}
}

// addRates notes the rates of rules by their paths, which are written like those
// of the counts.
func addRates(to map[string]*model.RateLimit, within string, rules []model.RateLimitRule) {
	for _, r := range rules {
		path := within + r.Key
		if r.Value != "" {
			path += "=" + r.Value
		}
		if r.RateLimit != nil {
			to[path] = r.RateLimit
		}
		addRates(to, path+" > ", r.Descriptors)
	}
}

// windowSeconds is the length of the window of a unit; 0 for an unknown one.
func windowSeconds(unit string) int64 {
	const day = 24 * 60 * 60
	return map[string]int64{
		"second": 1, "minute": 60, "hour": 60 * 60, "day": day, "week": 7 * day, "month": 30 * day, "year": 365 * day,
	}[unit]
}
