package compile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Settings are the settings of the process that affect every proxy.
type Settings struct {
	AccessLog bool
	// RateLimitSocket is the Unix socket of the rate-limit engine. RateLimitAddress is its HOST:PORT and
	// takes precedence. If both are empty, there is no engine and no request is limited.
	RateLimitSocket, RateLimitAddress string
	// Open opens the keys of certificates; nil means no HTTPS.
	Open Opener
	// Upstreams sets which addresses upstreams may have.
	Upstreams egress.Lists
	// Foreign has the rules for addresses that tenants write; nil means that there are none.
	Foreign *egress.Foreign
	// Authorities are the certificate authorities of the system in PEM, for upstreams that name none; empty
	// means that there are none.
	Authorities string
	// Lua allows filters that run scripts.
	Lua bool
}

// RateLimits reports whether there is a rate-limit engine.
func (s Settings) RateLimits() bool { return s.RateLimitSocket != "" || s.RateLimitAddress != "" }

// Listener compiles the proxy's plain HTTP listener, with what the services need.
func Listener(t *model.ProxyTree, s Settings, needs ir.Needs) ir.Listener {
	l := ir.Listener{
		Address: t.Proxy.ListenIP, Port: t.Proxy.HTTPPort, TrustedHops: t.Proxy.TrustedHops, AccessLog: s.AccessLog,
		Named: needs.Ports || len(t.Proxy.Ports) > 0,
	}
	if t.Proxy.EscapedSlashes != model.SlashesRedirect {
		l.EscapedSlashes = t.Proxy.EscapedSlashes
	}
	if t.Proxy.UnderscoreHeaders != model.UnderscoresReject {
		l.UnderscoreHeaders = t.Proxy.UnderscoreHeaders
	}
	for _, gt := range globalConfigTypes() {
		if gt.listener != nil {
			gt.listener(&l, t, s, needs)
		}
	}
	return l
}

// MoreListeners are the listeners at more ports of the proxy: as its other one for HTTP or HTTPS. https is nil while no
// service has a certificate.
func MoreListeners(p *model.Proxy, http, https *ir.Listener) (list []ir.Listener) {
	for _, port := range p.MorePorts() {
		like := http
		if port.HTTPS {
			like = https
		}
		if like != nil {
			l := *like
			l.Port, l.More = port.Port, true
			list = append(list, l)
		}
	}
	return list
}

// addGlobals makes a listener lean if one of the proxy's global configs says so.
func addGlobals(l *ir.Listener, t *model.ProxyTree, _ Settings, _ ir.Needs) {
	for _, g := range t.GlobalConfigs {
		if c, ok := g.Spec.(*model.GlobalsConfig); ok && g.Fault == nil && c.Lean {
			l.Lean = true
		}
	}
}

// Host compiles a service. pairs are its certificates (see Pairs). route returns the compiled routes, so
// that a caller can keep those that did not change. The condition is the reason why the host must not be
// served; nil means that it may be.
func Host(t *model.ServiceTree, pairs []*ir.Pair, s Settings, route func(*model.RouteTree) *ir.Route) (*ir.Host, *model.Condition) {
	trees := slices.Clone(t.Routes)
	slices.SortFunc(trees, compareRoutes)
	host := &ir.Host{Name: t.Service.Name, Domain: Domain(t.Service)}
	filters := [][]*model.ParsedFilter{t.Filters}
	for _, r := range trees {
		host.Routes = append(host.Routes, route(r))
		filters = append(filters, r.Filters)
	}
	host.Identity = model.IdentityHeaders(filters...)
	addTLS(host, t.Service, pairs)
	return host, addHostFilters(host, t, s)
}

// Domain is the host of a service in lower case, as proxies compare it (RFC 9110 section 4.2.3).
func Domain(s *model.Service) string { return strings.ToLower(s.FQDN) }

// compareRoutes orders routes as they are tried: those with the highest priority come first, then exact paths, then templates with as many segments as the
// path, then regular expressions, then prefixes and other templates. Within each group, the longest comes
// first, then the narrower template, then the one with the most conditions, then by name. So the order
// depends on the configuration document alone (ADR 0010, ADR 0082).
func compareRoutes(a, b *model.RouteTree) int {
	return cmp.Or(
		cmp.Compare(b.Route.Config.Priority, a.Route.Config.Priority),
		cmp.Compare(pathRank(a.Route), pathRank(b.Route)),
		cmp.Compare(fixedLength(b.Route), fixedLength(a.Route)),
		compareTemplates(a.Route, b.Route),
		cmp.Compare(conditions(b.Route), conditions(a.Route)),
		cmp.Compare(a.Route.Name, b.Route.Name),
	)
}

func pathRank(r *model.Route) int {
	switch r.Config.Match {
	case "exact":
		return 0
	case model.MatchTemplate:
		if !strings.Contains(r.Prefix, "**") {
			return 1
		}
	case "regex":
		return 2
	}
	return 3
}

// fixedLength is the length of the fixed start of a path. For a template, this is the text before its first
// variable.
func fixedLength(r *model.Route) int {
	if r.Config.Match == model.MatchTemplate {
		return strings.IndexAny(r.Prefix+"*", "{*")
	}
	return len(r.Prefix)
}

// compareTemplates compares templates at the first segment that differs in breadth; the narrower one comes
// first. Templates come before other paths.
func compareTemplates(a, b *model.Route) int {
	switch isA, isB := a.Config.Match == model.MatchTemplate, b.Config.Match == model.MatchTemplate; {
	case isA && !isB:
		return -1
	case isB && !isA:
		return 1
	case !isA:
		return 0
	}
	as, bs := strings.Split(a.Prefix, "/"), strings.Split(b.Prefix, "/")
	for i := range min(len(as), len(bs)) {
		if c := cmp.Compare(breadth(as[i]), breadth(bs[i])); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(bs), len(as))
}

// breadth orders the segments of templates: fixed text, one segment, any number of segments.
func breadth(segment string) int {
	switch {
	case strings.Contains(segment, "**"):
		return 2
	case strings.ContainsAny(segment, "{*"):
		return 1
	}
	return 0
}

func conditions(r *model.Route) int {
	return min(len(r.Config.Methods), 1) + len(r.Config.Headers) + len(r.Config.Query) + min(len(r.Config.Ports), 1)
}
