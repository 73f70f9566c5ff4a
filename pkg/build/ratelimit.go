package build

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
)

// applyRateLimits collects the domains anew. What the engine would refuse is
// left out: it would refuse everything with it.
func (b *Build) applyRateLimits(result *Result) {
	result.RateLimits = []ratelimit.Domain{}
	var conditions []model.Condition
	refusals := map[*model.ParsedGlobalConfig]error{}
	for _, g := range b.config.GlobalConfigs() {
		rates := compile.RatesIn(g)
		if rates == nil {
			continue
		}
		domain := rateLimitDomain(rates)
		refusal, known := b.refusals[g]
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
	b.refusals = refusals
	if len(b.stated) > 0 {
		result.RateLimits = append(result.RateLimits, rateLimitDomain(compile.StatedRates(b.stated)))
	}
	if !b.settings.RateLimits() {
		for _, name := range slices.Sorted(maps.Keys(b.stated)) {
			conditions = append(conditions, noEngine(model.FilterKey(name)))
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

// applyStated keeps the rules that filters state themselves, and reports
// whether one may be different.
func (b *Build) applyStated(change model.Change) (changed bool) {
	if change.Full {
		b.stated, changed = map[string]model.RateLimitRule{}, true
	}
	for _, e := range change.Entries {
		if e.Key.Kind != model.KindFilter {
			continue
		}
		before, had := b.stated[e.Key.Name()]
		delete(b.stated, e.Key.Name())
		// A filter with a fault closes its routes.
		if f := b.config.Filter(e.Key.Name()); f != nil && f.Fault == nil {
			if spec, ok := f.Spec.(*model.RateLimitFilter); ok && spec.Stated != nil {
				b.stated[f.Name] = *spec.Stated
			}
		}
		after, has := b.stated[e.Key.Name()]
		changed = changed || had != has || !reflect.DeepEqual(before, after)
	}
	return changed
}

func rateLimitDomain(r *compile.Rates) ratelimit.Domain {
	return ratelimit.Domain{ID: r.ID, Domain: r.Domain, Rules: r.Descriptors}
}
