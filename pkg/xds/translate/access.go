package translate

import (
	"net/http"
	"net/netip"
	"regexp"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// AccessFilter is the name of the filter that enforces the rules of ir.Access.
const AccessFilter = "envoy.filters.http.rbac/access"

// accessRefused is the name of the filter's policy in refusals.
const accessRefused = "access_refused"

// accessFilter refuses every request.
func accessFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AccessFilter, config: &rbacv3.RBAC{Rules: refuseAll(accessRefused)}}}
}

func accessOfHost(h *ir.Host) ([]filterConfig, error) { return access(h.Access), nil }

func accessOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.Unruled {
		return []filterConfig{{name: AccessFilter, config: &routev3.FilterConfig{Disabled: true}}}, nil
	}
	return access(r.Access), nil
}

// access refuses a request that one of the lists does not allow. The name of the policy is in
// the refusal.
func access(lists []*ir.Access) []filterConfig {
	if len(lists) == 0 {
		return nil
	}
	var passes []*rbacconfigv3.Principal
	byMethod := false
	for _, a := range lists {
		var allow, deny []*rbacconfigv3.Principal
		for _, r := range a.Allow {
			allow = append(allow, matching(r, false))
			byMethod = byMethod || len(r.Methods) > 0
		}
		for _, r := range a.Deny {
			deny = append(deny, matching(r, true))
			byMethod = byMethod || len(r.Methods) > 0
		}
		passes = append(passes, orIDs(allow))
		if len(deny) > 0 {
			passes = append(passes, notID(orIDs(deny)))
		}
	}
	if byMethod {
		passes = append(passes, notID(orIDs(methodOverrides())))
	}
	return []filterConfig{{name: AccessFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{accessRefused: {
			Permissions: []*rbacconfigv3.Permission{{Rule: &rbacconfigv3.Permission_Any{Any: true}}},
			Principals:  []*rbacconfigv3.Principal{notID(andIDs(passes))},
		}},
	}}}}}
}

// methodOverrides match requests with a header that makes some backends read another method
// than the one compared here.
func methodOverrides() []*rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, name := range []string{"x-http-method-override", "x-http-method", "x-method-override"} {
		list = append(list, hasHeader(ir.ValueMatch{Name: name}))
	}
	return list
}

// matching matches the requests that a rule matches. A Deny rule also matches the forms of a
// path that a backend may treat as equal: in another case, and with parameters.
func matching(r ir.AccessRule, denied bool) *rbacconfigv3.Principal {
	var all, methods, paths []*rbacconfigv3.Principal
	for _, m := range r.Methods {
		methods = append(methods, hasHeader(ir.ValueMatch{Name: ":method", Exact: m}))
	}
	for _, p := range r.Paths {
		for _, m := range pathMatchers(p, denied) {
			m.IgnoreCase = denied
			paths = append(paths, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_UrlPath{UrlPath: &matcherv3.PathMatcher{
				Rule: &matcherv3.PathMatcher_Path{Path: m},
			}}})
		}
	}
	for _, list := range [][]*rbacconfigv3.Principal{methods, paths} {
		if len(list) > 0 {
			all = append(all, orIDs(list))
		}
	}
	for _, c := range r.Claims {
		all = append(all, hasClaim(c))
	}
	if len(r.Clients) > 0 {
		all = append(all, hasKeyOf(r.Clients))
	}
	for _, h := range r.Headers {
		all = append(all, hasValue(h, denied))
	}
	if len(r.Addresses) > 0 {
		all = append(all, comesFrom(r.Addresses))
	}
	return andIDs(all)
}

// hasKeyOf matches a request with the API key of one of the clients, whether the route requires a key or accepts one.
func hasKeyOf(clients []string) *rbacconfigv3.Principal {
	is := &matcherv3.OrMatcher{}
	for _, c := range clients {
		m := &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: c}}
		if strings.HasSuffix(c, "/") { // all clients of a key set
			m = &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: c}}
		}
		is.ValueMatchers = append(is.ValueMatchers, &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_StringMatch{StringMatch: m}})
	}
	value := &matcherv3.ValueMatcher{MatchPattern: &matcherv3.ValueMatcher_OrMatch{OrMatch: or(is)}}
	return orIDs([]*rbacconfigv3.Principal{
		metadataPrincipal(KeyFilter, []string{clientName}, value), metadataPrincipal(AnyKeyFilter, []string{clientName}, value),
	})
}

// hasValue matches a header. A Deny rule also matches a value in another case, and one of several in a header: Envoy
// compares them joined.
func hasValue(h ir.HeaderValues, denied bool) *rbacconfigv3.Principal {
	if len(h.Values) == 0 {
		return hasHeader(ir.ValueMatch{Name: h.Name})
	}
	var list []*rbacconfigv3.Principal
	for _, v := range h.Values {
		m := ir.ValueMatch{Name: h.Name, Exact: v}
		if denied {
			m = ir.ValueMatch{Name: h.Name, Regex: `(?i)(?:.*,)?[ \t]*` + regexp.QuoteMeta(v) + `[ \t]*(?:,.*)?`}
		}
		list = append(list, hasHeader(m))
	}
	return orIDs(list)
}

// comesFrom matches the address of the client, which a trusted proxy in front may have named.
func comesFrom(ranges []netip.Prefix) *rbacconfigv3.Principal {
	var list []*rbacconfigv3.Principal
	for _, p := range ranges {
		for _, form := range formsOf(p) {
			list = append(list, &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_RemoteIp{RemoteIp: &corev3.CidrRange{
				AddressPrefix: form.Addr().String(), PrefixLen: u32(form.Bits()),
			}}})
		}
	}
	return orIDs(list)
}

func pathMatchers(p ir.AccessPath, denied bool) []*matcherv3.StringMatcher {
	exact := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
	}
	prefix := func(s string) *matcherv3.StringMatcher {
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: s}}
	}
	var list []*matcherv3.StringMatcher
	switch p.Kind {
	case ir.PathPrefix:
		return []*matcherv3.StringMatcher{prefix(p.Path)}
	case ir.PathSegment:
		if p.Path == "" {
			return []*matcherv3.StringMatcher{prefix("/")}
		}
		list = []*matcherv3.StringMatcher{exact(p.Path), prefix(p.Path + "/")}
	default:
		list = []*matcherv3.StringMatcher{exact(p.Path)}
		if denied {
			list = append(list, exact(p.Path+"/"))
		}
	}
	if denied {
		list = append(list, prefix(p.Path+";"))
	}
	return list
}

func hasHeader(m ir.ValueMatch) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Header{Header: headerMatcher(m)}}
}

func notID(p *rbacconfigv3.Principal) *rbacconfigv3.Principal {
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_NotId{NotId: p}}
}

func orIDs(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	if len(list) == 1 {
		return list[0]
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_OrIds{OrIds: &rbacconfigv3.Principal_Set{Ids: list}}}
}

// andIDs matches a request that all of list match. An empty list matches every
// request.
func andIDs(list []*rbacconfigv3.Principal) *rbacconfigv3.Principal {
	switch len(list) {
	case 0:
		return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_Any{Any: true}}
	case 1:
		return list[0]
	}
	return &rbacconfigv3.Principal{Identifier: &rbacconfigv3.Principal_AndIds{AndIds: &rbacconfigv3.Principal_Set{Ids: list}}}
}

func accessReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	m, err := refusalReply(accessRefused, http.StatusForbidden, "this is not allowed here\n")
	return []*hcmv3.ResponseMapper{m}, err
}
