package explain

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// accessRefused is the policy in refusals of access rules.
const accessRefused = "access_refused"

// passAccess reports whether the rules allow the request. If not, it ends with the answer.
func (a *Answer) passAccess(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	on := findFilter(l, accessFilter)
	if on == nil || isOff(on, vh, r) {
		return true, nil
	}
	message, err := messageFor(accessFilter, vh, r, &rbacv3.RBACPerRoute{})
	if err != nil {
		return false, err
	}
	who := callerOf(s, l, vh, r)
	refused := no
	for _, p := range message.GetRbac().GetRules().GetPolicies()[accessRefused].GetPrincipals() {
		v, err := who.is(p)
		if err != nil {
			return false, err
		}
		refused = max(refused, v)
	}
	switch refused {
	case yes:
		return false, a.endRefused(l, accessRefused, AccessRefused, fmt.Sprintf("a vh_filter_rbac does not allow %s %s", s.headers.get(":method"), s.path))
	case unknown:
		a.step("access", "whether a vh_filter_rbac allows the request depends on the claims of the session; the next steps assume that it does")
	default:
		a.step("access", "a vh_filter_rbac allows the request")
	}
	return true, nil
}

// clientOf returns the client of the request's API key, whether the route requires a key or accepts one; empty without a
// key.
func (s subject) clientOf(have State, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (string, error) {
	for _, name := range []string{keyFilter, anyKeyFilter} {
		if f := findFilter(l, name); f == nil || isOff(f, vh, r) {
			continue
		}
		client, why, err := s.clientOfKey(have, name, vh, r)
		if err != nil {
			return "", err
		}
		if why == "" {
			return client, nil
		}
	}
	return "", nil
}

// callerOf returns the request with the claims of its valid token. The claims of a session are
// unknown. Without a token or a session, there are no claims.
func callerOf(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) caller {
	on := findFilter(l, jwtFilter)
	if on == nil || isOff(on, vh, r) {
		return caller{s, nil, true}
	}
	place := tokenPlaceOf(vh, r)
	if place == nil {
		return caller{s, nil, false}
	}
	claims, _ := claimsOf(place.find(s))
	return caller{s, claims, true}
}

func matchesPath(m *matcherv3.StringMatcher, path string) bool {
	exact, prefix := m.GetExact(), m.GetPrefix()
	if m.GetIgnoreCase() {
		exact, prefix, path = lowerASCII(exact), lowerASCII(prefix), lowerASCII(path)
	}
	if exact != "" {
		return path == exact
	}
	return prefix != "" && strings.HasPrefix(path, prefix)
}
