package compile

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// idBase writes the id of a global config without the characters that join the
// keys of the engine's counters.
const idBase = 36

// Rates are those of one domain.
type Rates struct {
	// ID is that of the domain, in the engine and beside its name there.
	ID string
	*model.RateLimitConfig
}

// RatesIn are what a globalconfig_ratelimit says; nil for one of another type.
func RatesIn(g *model.ParsedGlobalConfig) *Rates {
	c, ok := g.Spec.(*model.RateLimitConfig)
	if !ok {
		return nil
	}
	return &Rates{strconv.FormatInt(g.ID, idBase), c}
}

// SameShape reports whether the same descriptors meet a rate of r and of o,
// which may be nil: the rates are different in their numbers only.
func (r *Rates) SameShape(o *Rates) bool {
	if r == nil || o == nil {
		return r == o
	}
	return r.RateLimitConfig == o.RateLimitConfig || r.Domain == o.Domain && sameShape(r.Descriptors, o.Descriptors)
}

func sameShape(a, b []model.RateLimitRule) bool {
	return slices.EqualFunc(a, b, func(a, b model.RateLimitRule) bool {
		return a.Key == b.Key && a.Value == b.Value && (a.RateLimit == nil) == (b.RateLimit == nil) && sameShape(a.Descriptors, b.Descriptors)
	})
}

// ProxyRates are the rates that count on one proxy. The zero value has none.
type ProxyRates struct {
	// Default are for filters that name no domain.
	Default *Rates
	// Named has those of each domain that filters name and the proxy has.
	Named map[string]*Rates
}

// statedID is that of the domain of filters that state their own limit. No
// global config has it: theirs begin at 1.
const statedID = "0"

// StatedRates are the rates that filters state themselves. rules holds them by
// the names of the filters.
func StatedRates(rules map[string]model.RateLimitRule) *Rates {
	return &Rates{statedID, &model.RateLimitConfig{Domain: model.StatedDomain, Descriptors: model.StatedRules(rules)}}
}

// RatesOf chooses the rates of a proxy: of those that hold for it, the first by
// name, and the first by name for each of some domains. Those that filters state
// themselves hold on every proxy.
func RatesOf(t *model.ProxyTree, domains []string) ProxyRates {
	p := ProxyRates{Named: map[string]*Rates{}}
	if slices.Contains(domains, model.StatedDomain) {
		p.Named[model.StatedDomain] = StatedRates(nil)
	}
	for _, g := range t.GlobalConfigs {
		if p.Default != nil && len(p.Named) == len(domains) {
			break
		}
		r := RatesIn(g)
		if r == nil {
			continue
		}
		if p.Default == nil {
			p.Default = r
		}
		if _, have := p.Named[r.Domain]; !have && slices.Contains(domains, r.Domain) {
			p.Named[r.Domain] = r
		}
	}
	return p
}

// addRateLimitServices says where the engine is, if there is one, and how the
// listener asks it.
func addRateLimitServices(l *ir.Listener, t *model.ProxyTree, s Settings, needs ir.Needs) {
	if !s.RateLimits() {
		return
	}
	l.RateLimitEngine = &ir.RateLimitEngine{Address: s.RateLimitAddress}
	if s.RateLimitAddress == "" {
		l.RateLimitEngine.Socket = s.RateLimitSocket
	}
	rates := RatesOf(t, needs.RateLimitDomains)
	if rates.Default != nil {
		l.RateLimit = rateLimitService(rates.Default)
	}
	for domain, r := range rates.Named {
		if l.DomainLimits == nil {
			l.DomainLimits = map[string]*ir.RateLimitService{}
		}
		l.DomainLimits[domain] = rateLimitService(r)
	}
}

func rateLimitService(r *Rates) *ir.RateLimitService {
	return &ir.RateLimitService{
		Domain: model.WireDomain(r.ID, r.Domain),
		Deny:   r.OnError == "deny", Headers: r.Headers == nil || *r.Headers,
		Status: cmp.Or(r.Status, http.StatusTooManyRequests),
	}
}

// rateLimitNeeds are the domains in which a route counts.
func rateLimitNeeds(r *ir.Route) ir.Needs {
	return ir.Needs{RateLimits: len(r.RateLimits) > 0, RateLimitDomains: slices.Sorted(maps.Keys(r.DomainLimits))}
}

// addRateLimits adds the descriptors of a filter. Envoy counts only what it
// forwards.
func addRateLimits(r *ir.Route, f *model.RateLimitFilter) {
	if r.Forward == nil {
		return
	}
	var limits []ir.RateLimit
	for _, d := range f.Descriptors {
		var limit ir.RateLimit
		for _, e := range d {
			limit = append(limit, rateLimitEntry(e))
		}
		limits = append(limits, limit)
	}
	if f.Domain == "" {
		r.RateLimits = append(r.RateLimits, limits...)
		return
	}
	if r.DomainLimits == nil {
		r.DomainLimits = map[string][]ir.RateLimit{}
	}
	r.DomainLimits[f.Domain] = append(r.DomainLimits[f.Domain], limits...)
}

func rateLimitEntry(e model.RateLimitEntry) ir.RateLimitEntry {
	out := ir.RateLimitEntry{
		Kind: ir.RateLimitKind(e.Kind), Key: e.Key, Value: e.Value, SkipIfAbsent: e.SkipIfAbsent,
		Name: cmp.Or(e.HeaderName, e.ParameterName), Headers: valueMatches(e.Headers), NoMatch: e.NoMatch,
	}
	switch e.Kind {
	case "path":
		out.Key = cmp.Or(e.Key, e.Kind)
	case "method":
		out.Kind, out.Name, out.Key = ir.RateLimitHeader, ":method", cmp.Or(e.Key, e.Kind)
	case "masked_remote_address":
		out.V4Mask, out.V6Mask = cmp.Or(e.V4Mask, 32), cmp.Or(e.V6Mask, 64)
	}
	return out
}
