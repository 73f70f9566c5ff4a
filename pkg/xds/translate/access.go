package translate

import (
	"net/http"

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
	var passes []*rbacconfigv3.Permission
	byMethod := false
	for _, a := range lists {
		var allow, deny []*rbacconfigv3.Permission
		for _, r := range a.Allow {
			allow = append(allow, permission(r, false))
			byMethod = byMethod || len(r.Methods) > 0
		}
		for _, r := range a.Deny {
			deny = append(deny, permission(r, true))
			byMethod = byMethod || len(r.Methods) > 0
		}
		passes = append(passes, anyOfPermissions(allow))
		if len(deny) > 0 {
			passes = append(passes, notPermission(anyOfPermissions(deny)))
		}
	}
	if byMethod {
		passes = append(passes, notPermission(anyOfPermissions(methodOverrides())))
	}
	return []filterConfig{{name: AccessFilter, config: &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{
		Action: rbacconfigv3.RBAC_DENY,
		Policies: map[string]*rbacconfigv3.Policy{accessRefused: {
			Permissions: []*rbacconfigv3.Permission{notPermission(allPermissions(passes))},
			Principals:  []*rbacconfigv3.Principal{{Identifier: &rbacconfigv3.Principal_Any{Any: true}}},
		}},
	}}}}}
}

// methodOverrides match requests with a header that makes some backends read another method
// than the one compared here.
func methodOverrides() []*rbacconfigv3.Permission {
	var list []*rbacconfigv3.Permission
	for _, name := range []string{"x-http-method-override", "x-http-method", "x-method-override"} {
		list = append(list, headerPermission(ir.ValueMatch{Name: name}))
	}
	return list
}

// permission matches the requests that a rule matches. A Deny rule also matches the forms of a
// path that a backend may treat as equal: in another case, and with parameters.
func permission(r ir.AccessRule, denied bool) *rbacconfigv3.Permission {
	var all, methods, paths []*rbacconfigv3.Permission
	for _, m := range r.Methods {
		methods = append(methods, headerPermission(ir.ValueMatch{Name: ":method", Exact: m}))
	}
	for _, p := range r.Paths {
		for _, m := range pathMatchers(p, denied) {
			m.IgnoreCase = denied
			paths = append(paths, &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_UrlPath{UrlPath: &matcherv3.PathMatcher{
				Rule: &matcherv3.PathMatcher_Path{Path: m},
			}}})
		}
	}
	for _, list := range [][]*rbacconfigv3.Permission{methods, paths} {
		if len(list) > 0 {
			all = append(all, anyOfPermissions(list))
		}
	}
	for _, c := range r.Claims {
		all = append(all, &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_SourcedMetadata{SourcedMetadata: hasClaim(c).GetSourcedMetadata()}})
	}
	return allPermissions(all)
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

func headerPermission(m ir.ValueMatch) *rbacconfigv3.Permission {
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_Header{Header: headerMatcher(m)}}
}

func notPermission(p *rbacconfigv3.Permission) *rbacconfigv3.Permission {
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_NotRule{NotRule: p}}
}

func anyOfPermissions(list []*rbacconfigv3.Permission) *rbacconfigv3.Permission {
	if len(list) == 1 {
		return list[0]
	}
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_OrRules{OrRules: &rbacconfigv3.Permission_Set{Rules: list}}}
}

// allPermissions matches a request that all of list match. An empty list matches every
// request.
func allPermissions(list []*rbacconfigv3.Permission) *rbacconfigv3.Permission {
	switch len(list) {
	case 0:
		return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_Any{Any: true}}
	case 1:
		return list[0]
	}
	return &rbacconfigv3.Permission{Rule: &rbacconfigv3.Permission_AndRules{AndRules: &rbacconfigv3.Permission_Set{Rules: list}}}
}

func accessReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	m, err := refusalReply(accessRefused, http.StatusForbidden, "this is not allowed here\n")
	return []*hcmv3.ResponseMapper{m}, err
}
