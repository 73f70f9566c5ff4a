package compile

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// idBase writes the id of a global config without the characters that join the
// keys of the engine's counters.
const idBase = 36

// RateLimits is what a globalconfig_ratelimit says, and the id under which the
// engine knows it; false for another type, and for one that cannot be read.
func RateLimits(g *model.GlobalConfig) (id string, c model.RateLimitConfig, ok bool) {
	if g.Type != model.GlobalConfigRateLimit || json.Unmarshal([]byte(g.Config), &c) != nil {
		return "", c, false
	}
	if c.Shadow {
		c.Descriptors = shadowed(c.Descriptors)
	}
	return strconv.FormatInt(g.ID, idBase), c, true
}

func shadowed(rules []model.RateLimitRule) []model.RateLimitRule {
	list := make([]model.RateLimitRule, len(rules))
	for i, r := range rules {
		r.ShadowMode, r.Descriptors = true, shadowed(r.Descriptors)
		list[i] = r
	}
	return list
}

// Rates are what one globalconfig_ratelimit says.
type Rates struct {
	// ID is that of the domain, in the engine and beside its name there.
	ID string
	// Shape is all of them that decides which descriptors meet one: equal for
	// rates that are different in their numbers only.
	Shape string
	model.RateLimitConfig
}

// ReadRates is RateLimits; nil where that is false.
func ReadRates(g *model.GlobalConfig) *Rates {
	id, c, ok := RateLimits(g)
	if !ok {
		return nil
	}
	return &Rates{ID: id, Shape: strconv.Quote(c.Domain) + shape(c.Descriptors), RateLimitConfig: c}
}

func shape(rules []model.RateLimitRule) string {
	var b strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&b, "[%q%q%t%s]", r.Key, r.Value, r.RateLimit != nil, shape(r.Descriptors))
	}
	return b.String()
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
	return &Rates{ID: statedID, RateLimitConfig: model.RateLimitConfig{
		Domain: model.StatedDomain, Descriptors: model.StatedRules(rules),
	}}
}

// RatesOf chooses the rates of a proxy: of those that hold for it, the first by
// name, and the first by name for each of some domains. Those that filters state
// themselves hold on every proxy. read is ReadRates, or one that remembers.
func RatesOf(t *model.ProxyTree, domains []string, read func(*model.GlobalConfig) *Rates) ProxyRates {
	p := ProxyRates{Named: map[string]*Rates{}}
	if slices.Contains(domains, model.StatedDomain) {
		p.Named[model.StatedDomain] = StatedRates(nil)
	}
	for _, g := range t.GlobalConfigs {
		if p.Default != nil && len(p.Named) == len(domains) {
			break
		}
		r := read(g)
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

// applyRateLimits says how the listener asks the engine.
func applyRateLimits(l *ir.Listener, rates ProxyRates) {
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

// Limited reports whether a route of a host counts without naming a domain.
func Limited(h *ir.Host) bool {
	return slices.ContainsFunc(h.Routes, func(r *ir.Route) bool { return len(r.RateLimits) > 0 })
}

// Domains are the rate-limit domains that the routes of a host name, sorted.
func Domains(h *ir.Host) []string {
	var list []string
	for _, r := range h.Routes {
		for d := range r.DomainLimits {
			list = append(list, d)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// addRateLimits adds the descriptors of the filters, in their order. A filter
// that cannot be read must not open the route.
func addRateLimits(r *ir.Route, filters []*model.Filter) error {
	for _, f := range filters {
		if f.Type != model.FilterRateLimit {
			continue
		}
		config, err := model.ParseRateLimitFilter(f)
		if err != nil {
			return fmt.Errorf("filter %s: %w", f.Name, err)
		}
		var limits []ir.RateLimit
		for _, d := range config.Descriptors {
			var limit ir.RateLimit
			for _, e := range d {
				limit = append(limit, rateLimitEntry(e))
			}
			limits = append(limits, limit)
		}
		if config.Domain == "" {
			r.RateLimits = append(r.RateLimits, limits...)
			continue
		}
		if r.DomainLimits == nil {
			r.DomainLimits = map[string][]ir.RateLimit{}
		}
		r.DomainLimits[config.Domain] = append(r.DomainLimits[config.Domain], limits...)
	}
	return nil
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
