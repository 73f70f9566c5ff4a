package pipeline

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
)

// rateLimits is what a build remembers about rate limits, so that it checks only
// what a change affects. Use newRateLimits.
type rateLimits struct {
	// refusals are the rate-limit engine's errors for global configs.
	refusals map[*model.ParsedGlobalConfig]error
	// stated are the rules of filters and global configs that state their own limit.
	stated map[model.Key]model.RateLimitRule
	// advised are the services with a filter that limits nothing. due are the
	// services whose filters must be checked in the current Apply.
	advised, due map[string]struct{}
}

func newRateLimits() rateLimits {
	return rateLimits{
		refusals: map[*model.ParsedGlobalConfig]error{}, stated: map[model.Key]model.RateLimitRule{},
		advised: map[string]struct{}{}, due: map[string]struct{}{},
	}
}

// apply updates the rules that filters state themselves. It reports whether the
// change may affect a domain.
func (l *rateLimits) apply(change model.Change, config *model.Config) (changed bool) {
	if change.Full {
		l.stated, changed = map[model.Key]model.RateLimitRule{}, true
	}
	for _, e := range change.Entries {
		changed = changed || e.Key.Kind == model.KindGlobalConfig
		if e.Key.Kind != model.KindFilter && e.Key.Kind != model.KindGlobalConfig {
			continue
		}
		before, had := l.stated[e.Key]
		delete(l.stated, e.Key)
		if limit := statedLimit(config, e.Key); limit != nil && limit.Stated != nil {
			l.stated[e.Key] = *limit.Stated
		}
		after, has := l.stated[e.Key]
		changed = changed || had != has || !reflect.DeepEqual(before, after)
	}
	return changed
}

// statedLimit returns the limit of a filter or global config, if it has one. One with a fault has none: a filter then
// closes its routes.
func statedLimit(config *model.Config, key model.Key) *model.RateLimitFilter {
	if f := config.Filter(key.Name()); key.Kind == model.KindFilter && f != nil && f.Fault == nil {
		limit, _ := f.Spec.(*model.RateLimitFilter)
		return limit
	}
	if g := config.GlobalConfig(key.Name()); key.Kind == model.KindGlobalConfig && g != nil && g.Fault == nil {
		if c, ok := g.Spec.(*model.ConnectionsConfig); ok {
			return c.Limit
		}
	}
	return nil
}

// servicesMoved records the services that were attached to a proxy or detached
// from it.
func (l *rateLimits) servicesMoved(before, after map[string]struct{}) {
	for s := range before {
		if _, still := after[s]; !still {
			l.due[s] = struct{}{}
		}
	}
	for s := range after {
		if _, was := before[s]; !was {
			l.due[s] = struct{}{}
		}
	}
}

// limitsChanged records the services of a proxy with changed global configs whose
// filters may limit nothing now, or something again.
func (b *Build) limitsChanged(p *proxy, services map[string]struct{}, before, after limits.Proxy) {
	first := !before.Default.SameShape(after.Default)
	begun := (before.Default == nil) != (after.Default == nil)
	for name := range services {
		needs := b.serviceOn(p, name).needs
		if first && needs.RateLimits ||
			begun && len(needs.RateLimitDomains) > 0 || slices.ContainsFunc(needs.RateLimitDomains, func(d string) bool {
			// If the domain does not exist, another one may now be the nearest.
			return after.Named[d] == nil || !before.Named[d].SameShape(after.Named[d])
		}) {
			b.limits.due[name] = struct{}{}
		}
	}
}

// collectDomains collects the domains again. It omits a domain that the engine
// would refuse, since the engine would refuse all others with it.
func (b *Build) collectDomains(result *Result) {
	result.RateLimits = []*limits.Domain{}
	var conditions []model.Condition
	refusals := map[*model.ParsedGlobalConfig]error{}
	for _, g := range b.config.GlobalConfigs() {
		domain := limits.DomainOf(g)
		if domain == nil {
			continue
		}
		refusal, known := b.limits.refusals[g]
		if !known {
			refusal = ratelimit.Check(domain)
		}
		refusals[g] = refusal
		switch {
		case refusal != nil:
			conditions = append(conditions, model.Condition{
				Key: g.Key(), Code: model.Quarantined, Message: "the rate-limit engine would refuse it: " + refusal.Error(),
			})
			continue
		case !b.settings.RateLimits():
			conditions = append(conditions, noEngine(g.Key()))
		}
		result.RateLimits = append(result.RateLimits, domain)
	}
	b.limits.refusals = refusals
	if len(b.limits.stated) > 0 {
		result.RateLimits = append(result.RateLimits, limits.StatedDomain(b.limits.stated))
	}
	if !b.settings.RateLimits() {
		for _, key := range slices.SortedFunc(maps.Keys(b.limits.stated), func(a, b model.Key) int { return strings.Compare(a.Path(), b.Path()) }) {
			conditions = append(conditions, noEngine(key))
		}
	}
	result.Conditions["rate limits"] = conditions
}

func noEngine(key model.Key) model.Condition {
	return model.Condition{
		Key: key, Code: model.NoRateLimitEngine,
		Message: "there is no rate-limit engine, so nothing is limited: start gatehouse with --ratelimit-address",
	}
}

// adviseServices reports which filters of the due services limit nothing.
func (b *Build) adviseServices(result *Result) {
	advisor := limits.NewAdvisor()
	for name := range b.limits.due {
		list := b.adviseService(name, advisor)
		_, before := b.limits.advised[name]
		if len(list) > 0 {
			b.limits.advised[name] = struct{}{}
		} else {
			delete(b.limits.advised, name)
		}
		if before || len(list) > 0 {
			result.Conditions["rate limits of service "+name] = list
		}
	}
	b.limits.due = map[string]struct{}{} // clear would keep the capacity of the largest change
}

func (b *Build) adviseService(name string, advisor limits.Advisor) (list []model.Condition) {
	tree, built := b.config.Service(name), b.services[name]
	if tree == nil || built == nil || built.closed || built.l4 != nil {
		return nil
	}
	var places []limits.Scope
	for _, p := range b.config.ProxiesOf(name) {
		if state := b.proxies[p]; state != nil {
			places = append(places, limits.Scope{Proxy: b.config.Proxy(p), Limits: state.limits})
		}
	}
	if len(places) == 0 {
		return nil // the service itself reports this
	}
	forwards := func(r *model.RouteTree) bool { return built.routes[r].ir.Forward != nil }
	for _, f := range tree.Filters {
		if len(tree.Routes) > 0 {
			link := model.ServiceFilterKey(name, f.Name)
			list = append(list, advisor.Advise(link, f, slices.ContainsFunc(tree.Routes, forwards), places)...)
		}
	}
	for _, r := range tree.Routes {
		for _, f := range r.Filters {
			list = append(list, advisor.Advise(model.RouteFilterKey(name, r.Route.Name, f.Name), f, forwards(r), places)...)
		}
	}
	return list
}
