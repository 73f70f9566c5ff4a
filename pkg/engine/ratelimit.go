package engine

import (
	"maps"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit"
)

// rates are a global config as it was read. It never changes.
type rates struct {
	// read is nil for one of another type.
	read *compile.Rates
	// refusal is what the rate-limit engine says to it.
	refusal error
}

// readRates is compile.ReadRates, once for each global config.
func (b *Build) readRates(g *model.GlobalConfig) *compile.Rates { return b.ratesOf(g).read }

func (b *Build) ratesOf(g *model.GlobalConfig) *rates {
	r := b.rates[g]
	if r == nil {
		r = &rates{read: compile.ReadRates(g)}
		if r.read != nil {
			r.refusal = ratelimit.Check(rateLimitDomain(r.read))
		}
		b.rates[g] = r
	}
	return r
}

// applyRateLimits collects the domains anew. What the engine would refuse is
// left out: it would refuse everything with it.
func (b *Build) applyRateLimits(result *Result) {
	result.RateLimits = []ratelimit.Domain{}
	var conditions []model.Condition
	kept := map[*model.GlobalConfig]*rates{}
	for _, g := range b.config.GlobalConfigs() {
		r := b.ratesOf(g)
		kept[g] = r
		if r.read == nil {
			continue
		}
		switch {
		case r.refusal != nil:
			conditions = append(conditions, model.Condition{
				Key: g.Key(), Code: model.Quarantined, Message: "the rate-limit engine would refuse it: " + r.refusal.Error(),
			})
			continue
		case !b.settings.RateLimits():
			conditions = append(conditions, noEngine(g.Key()))
		}
		result.RateLimits = append(result.RateLimits, rateLimitDomain(r.read))
	}
	b.rates = kept
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
		before, had := b.stated[e.Key.Name]
		delete(b.stated, e.Key.Name)
		// A filter that cannot be read closes its routes.
		if f, ok := e.Object.(*model.Filter); ok && f.Type == model.FilterRateLimit {
			if config, err := model.ParseRateLimitFilter(f); err == nil && config.Stated != nil {
				b.stated[f.Name] = *config.Stated
			}
		}
		after, has := b.stated[e.Key.Name]
		changed = changed || had != has || !reflect.DeepEqual(before, after)
	}
	return changed
}

func rateLimitDomain(r *compile.Rates) ratelimit.Domain {
	return ratelimit.Domain{ID: r.ID, Domain: r.Domain, Rules: r.Descriptors}
}

// domainsOf are the rate-limit domains that services name, sorted.
func (b *Build) domainsOf(services ...string) []string {
	var list []string
	for _, name := range services {
		if s := b.services[name]; s != nil {
			list = append(list, s.domains...)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}
