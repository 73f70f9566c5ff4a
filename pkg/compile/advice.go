package compile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/suggest"
)

// RateLimitPlace is a proxy on which a rate-limit filter counts.
type RateLimitPlace struct {
	Proxy *model.ProxyTree
	// Rates have the filter's domain in Named where the proxy has it.
	Rates ProxyRates
}

// AdviseRateLimit says why a filter, or a part of it, limits nothing at places;
// the conditions are without a key. unmet is UnmetDescriptors of the filter, or
// one that remembers.
func AdviseRateLimit(f *model.RateLimitFilter, places []RateLimitPlace, unmet func(*Rates) []string) []model.Condition {
	if f.Stated != nil {
		return nil // it meets its own rate, on every proxy
	}
	var list []model.Condition
	proxies := map[string][]string{} // by the message
	add := func(p RateLimitPlace, code, message string) {
		if len(proxies[message]) == 0 {
			list = append(list, model.Condition{Code: code, Message: message})
		}
		proxies[message] = append(proxies[message], p.Proxy.Proxy.Name)
	}
	for _, p := range places {
		rates := p.Rates.Default
		if f.Domain != "" {
			rates = p.Rates.Named[f.Domain]
		}
		switch {
		case p.Rates.Default == nil:
			add(p, model.NoRates, "limits nothing: no globalconfig_ratelimit holds")
			continue
		case rates == nil:
			add(p, model.UnknownDomain, fmt.Sprintf("limits nothing: no globalconfig_ratelimit of domain %q holds%s", f.Domain, p.nearestDomain(f.Domain)))
			continue
		}
		for _, message := range unmet(rates) {
			add(p, model.NoMatchingRate, message)
		}
	}
	for i, c := range list {
		list[i].Proxies = slices.Sorted(slices.Values(proxies[c.Message]))
		list[i].Message += " (" + proxyList(list[i].Proxies) + ")"
	}
	return list
}

// NotForwarded is the condition of a rate-limit filter on what has an answer of
// its own.
func NotForwarded(key model.Key) model.Condition {
	return model.Condition{
		Key: key, Code: model.NotForwarded,
		Message: "limits nothing here: only requests that go to an upstream are counted, and these are answered by the gateway",
	}
}

// nearestDomain returns the domain of the proxy that is most like a name.
func (p RateLimitPlace) nearestDomain(domain string) string {
	var known []string
	for _, g := range p.Proxy.GlobalConfigs {
		if r := RatesIn(g); r != nil {
			known = append(known, r.Domain)
		}
	}
	if best, near := suggest.Nearest(domain, known); near {
		return fmt.Sprintf("; the nearest is %q", best)
	}
	return ""
}

func proxyList(names []string) string {
	const most = 3
	text := "proxy " + strings.Join(names[:min(most, len(names))], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// partOf is what is known of an entry. kind is the one that the filter names.
func partOf(e ir.RateLimitEntry, kind string) part {
	p := part{key: e.Key, value: e.Value, optional: e.SkipIfAbsent}
	switch kind {
	case "remote_address":
		p.key, p.mayBe = kind, isAddress
	case "masked_remote_address":
		p.key, p.mayBe = kind, isNetwork
	case "generic_key":
		p.key = cmp.Or(p.key, kind)
	case "header_value_match":
		p.key = cmp.Or(p.key, "header_match")
	}
	return p
}
