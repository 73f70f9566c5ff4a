package compile

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// addRateLimitServices sets where the engine is, if there is one, and how the
// listener asks it.
func addRateLimitServices(l *ir.Listener, t *model.ProxyTree, s Settings, needs ir.Needs) {
	if !s.RateLimits() {
		return
	}
	l.RateLimitEngine = &ir.RateLimitEngine{Address: s.RateLimitAddress}
	if s.RateLimitAddress == "" {
		l.RateLimitEngine.Socket = s.RateLimitSocket
	}
	domains := limits.OfProxy(t, needs.RateLimitDomains)
	if domains.Default != nil {
		l.RateLimit = rateLimitService(domains.Default)
	}
	l.DomainLimits = map[string]*ir.RateLimitService{}
	for name, d := range domains.Named {
		l.DomainLimits[name] = rateLimitService(d)
	}
}

func rateLimitService(d *limits.Domain) *ir.RateLimitService {
	return &ir.RateLimitService{
		Domain: d.Wire(), Deny: d.OnError == "deny", Headers: d.Headers == nil || *d.Headers,
		Status: cmp.Or(d.Status, http.StatusTooManyRequests),
	}
}

// rateLimits are the hooks for the filters.
func rateLimits() *seam.Config {
	c := seam.Hooks(nil, addRateLimits)
	c.Needs = rateLimitNeeds
	return c
}

// rateLimitNeeds returns the domains in which the routes of a host count. Every listener has that of filters that state
// their own limit.
func rateLimitNeeds(h *ir.Host) ir.Needs {
	var needs ir.Needs
	for _, r := range h.Routes {
		named := slices.Sorted(maps.Keys(r.DomainLimits))
		needs = needs.Merge(ir.Needs{
			RateLimits:       len(r.RateLimits) > 0,
			RateLimitDomains: slices.DeleteFunc(named, func(d string) bool { return d == model.StatedDomain }),
		})
	}
	return needs
}

// addRateLimits adds the descriptors of a filter. Envoy counts only forwarded requests.
func addRateLimits(r *ir.Route, f *model.RateLimitFilter, _ seam.Place) error {
	if r.Forward == nil {
		return nil
	}
	var sent []ir.RateLimit
	for _, d := range f.Descriptors {
		var limit ir.RateLimit
		for _, e := range d {
			limit = append(limit, rateLimitEntry(e))
		}
		sent = append(sent, limit)
	}
	if f.Domain == "" {
		r.RateLimits = append(r.RateLimits, sent...)
		return nil
	}
	if r.DomainLimits == nil {
		r.DomainLimits = map[string][]ir.RateLimit{}
	}
	r.DomainLimits[f.Domain] = append(r.DomainLimits[f.Domain], sent...)
	return nil
}

func rateLimitEntry(e model.RateLimitEntry) ir.RateLimitEntry {
	out := ir.RateLimitEntry{
		Kind: ir.RateLimitKind(e.Kind), Key: e.Key, Value: e.Value, SkipIfAbsent: e.SkipIfAbsent,
		Name: cmp.Or(e.HeaderName, e.ParameterName, e.Claim), Headers: valueMatches(e.Headers), NoMatch: e.NoMatch,
	}
	switch e.Kind {
	case "path", "claim", "api_client", "consumer":
		out.Key = e.SentKey()
	case "method":
		out.Kind, out.Name, out.Key = ir.RateLimitHeader, ":method", e.SentKey()
	case "masked_remote_address":
		out.V4Mask, out.V6Mask = cmp.Or(e.V4Mask, 32), cmp.Or(e.V6Mask, 64)
	}
	return out
}
