package build

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// advice says which rate-limit filters limit nothing. It belongs to one Apply
// and says the same of the same filter on the same proxies only once.
type advice struct {
	build *Build
	// due are the services to look at.
	due map[string]struct{}
	// unmet is compile.UnmetDescriptors of a filter.
	unmet map[unmetKey][]string
}

type unmetKey struct {
	filter *model.RateLimitFilter
	rates  *model.RateLimitConfig
}

func newAdvice(b *Build) *advice {
	return &advice{build: b, due: map[string]struct{}{}, unmet: map[unmetKey][]string{}}
}

// apply tells the conditions of the services that are due.
func (a *advice) apply(result *Result) {
	for name := range a.due {
		list := a.service(name)
		if len(list) == 0 && !a.build.advised[name] {
			continue
		}
		delete(a.build.advised, name)
		if len(list) > 0 {
			a.build.advised[name] = true
		}
		result.Conditions["rate limits of service "+name] = list
	}
}

// servicesMoved notes the services that were attached to a proxy or detached.
func (a *advice) servicesMoved(before, after map[string]struct{}) {
	for s := range before {
		if _, still := after[s]; !still {
			a.due[s] = struct{}{}
		}
	}
	for s := range after {
		if _, was := before[s]; !was {
			a.due[s] = struct{}{}
		}
	}
}

// limitsChanged notes the services of a proxy with changed global configs for which
// that may be different.
func (a *advice) limitsChanged(services map[string]struct{}, before, after compile.ProxyRates) {
	first := !before.Default.SameShape(after.Default)
	begun := (before.Default == nil) != (after.Default == nil)
	for name := range services {
		needs := a.build.services[name].needs
		if first && needs.RateLimits || begun && len(needs.RateLimitDomains) > 0 || slices.ContainsFunc(needs.RateLimitDomains, func(d string) bool {
			// Of a domain that is not there, another one may now be the nearest.
			return after.Named[d] == nil || !before.Named[d].SameShape(after.Named[d])
		}) {
			a.due[name] = struct{}{}
		}
	}
}

func (a *advice) service(name string) (list []model.Condition) {
	tree, built := a.build.config.Service(name), a.build.services[name]
	if tree == nil || built == nil || built.closed {
		return nil
	}
	var places []compile.RateLimitPlace
	for _, p := range a.build.config.ProxiesOf(name) {
		if state := a.build.proxies[p]; state != nil && state.closed == nil {
			places = append(places, compile.RateLimitPlace{Proxy: a.build.config.Proxy(p), Rates: state.rates})
		}
	}
	if len(places) == 0 {
		return nil // which the service itself says
	}
	forwards := func(r *model.RouteTree) bool { return built.routes[r].ir.Forward != nil }
	for _, f := range tree.Filters {
		if len(tree.Routes) > 0 {
			key := model.ServiceFilterKey(name, f.Name)
			list = append(list, a.filter(key, f, slices.ContainsFunc(tree.Routes, forwards), places)...)
		}
	}
	for _, r := range tree.Routes {
		for _, f := range r.Filters {
			list = append(list, a.filter(model.RouteFilterKey(name, r.Route.Name, f.Name), f, forwards(r), places)...)
		}
	}
	return list
}

func (a *advice) filter(key model.Key, f *model.ParsedFilter, forwards bool, places []compile.RateLimitPlace) []model.Condition {
	return adviseFilter(f, key, forwards, places, func(spec *model.RateLimitFilter, r *compile.Rates) []string {
		k := unmetKey{spec, r.RateLimitConfig}
		messages, known := a.unmet[k]
		if !known {
			messages = compile.UnmetDescriptors(spec, r)
			a.unmet[k] = messages
		}
		return messages
	})
}

// adviseFilter says why a filter limits nothing at a place, which forwards or
// does not, on the proxies of places. unmet is compile.UnmetDescriptors, or one
// that remembers.
func adviseFilter(
	f *model.ParsedFilter, at model.Key, forwards bool, places []compile.RateLimitPlace,
	unmet func(*model.RateLimitFilter, *compile.Rates) []string,
) []model.Condition {
	spec, ok := f.Spec.(*model.RateLimitFilter)
	switch {
	case !ok:
		return nil
	case !forwards:
		return []model.Condition{compile.NotForwarded(at)}
	case f.Fault != nil:
		return nil // it closes what it is on
	}
	list := compile.AdviseRateLimit(spec, places, func(r *compile.Rates) []string { return unmet(spec, r) })
	for i := range list {
		list[i].Key = at
	}
	return list
}
