package limits

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// Scope is a proxy on which a filter counts.
type Scope struct {
	Proxy *model.ProxyTree
	// Limits contain the filter's domain in Named if the proxy has it.
	Limits Proxy
}

// ScopesOf returns the scopes of a filter on proxies.
func ScopesOf(f *model.ParsedFilter, proxies []*model.ProxyTree) []Scope {
	var names []string
	if spec, ok := f.Spec.(*model.RateLimitFilter); ok && spec.Domain != "" {
		names = []string{spec.Domain}
	}
	scopes := make([]Scope, len(proxies))
	for i, p := range proxies {
		scopes[i] = Scope{p, OfProxy(p, names)}
	}
	return scopes
}

// Advisor finds filters that limit nothing. It compares a filter with a domain
// only once, so use one for each pass over one configuration. Use NewAdvisor.
type Advisor struct {
	unmet map[unmetKey][]string
}

type unmetKey struct {
	filter *model.RateLimitFilter
	config *model.RateLimitConfig
}

// NewAdvisor returns an Advisor without comparisons.
func NewAdvisor() Advisor { return Advisor{map[unmetKey][]string{}} }

// Advise returns why a filter, or a part of it, limits nothing where link
// attaches it, on the proxies of scopes. forwards means that a route there has an
// upstream: Envoy counts only forwarded requests.
func (a Advisor) Advise(link model.Key, f *model.ParsedFilter, forwards bool, scopes []Scope) []model.Condition {
	spec, ok := f.Spec.(*model.RateLimitFilter)
	switch {
	case !ok:
		return nil
	case !forwards:
		return []model.Condition{{
			Key: link, Code: model.NotForwarded,
			Message: "limits nothing here: only requests that go to an upstream are counted, " +
				"and these are answered by the gateway",
		}}
	case f.Fault != nil:
		return nil // it closes the object that it is on
	case spec.Stated != nil:
		return nil // it meets its own limit on every proxy
	}
	var list []model.Condition
	proxies := map[string][]string{} // by message
	for _, p := range scopes {
		code, messages := a.adviseAt(p, spec)
		for _, message := range messages {
			if len(proxies[message]) == 0 {
				list = append(list, model.Condition{Key: link, Code: code, Message: message})
			}
			proxies[message] = append(proxies[message], p.Proxy.Proxy.Name)
		}
	}
	for i, c := range list {
		list[i].Proxies = slices.Sorted(slices.Values(proxies[c.Message]))
		list[i].Message += " (" + formatProxies(list[i].Proxies) + ")"
	}
	return list
}

func (a Advisor) adviseAt(p Scope, f *model.RateLimitFilter) (code string, messages []string) {
	domain := p.Limits.domain(f)
	switch {
	case p.Limits.Default == nil:
		return model.NoRates, []string{"limits nothing: no globalconfig_ratelimit applies"}
	case domain == nil:
		return model.UnknownDomain, []string{fmt.Sprintf("limits nothing: no globalconfig_ratelimit of domain %q applies%s",
			f.Domain, p.nearestDomain(f.Domain))}
	}
	k := unmetKey{f, domain.RateLimitConfig}
	messages, known := a.unmet[k]
	if !known {
		messages = Unmet(f, domain)
		a.unmet[k] = messages
	}
	return model.NoMatchingRate, messages
}

// nearestDomain returns the domain of the proxy that is most similar to a name.
func (p Scope) nearestDomain(name string) string {
	var known []string
	for _, g := range p.Proxy.GlobalConfigs {
		if d := DomainOf(g); d != nil {
			known = append(known, d.Domain)
		}
	}
	if best, near := suggest.Nearest(name, known); near {
		return fmt.Sprintf("; the nearest is %q", best)
	}
	return ""
}

func formatProxies(names []string) string {
	const most = 3
	text := "proxy " + strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
