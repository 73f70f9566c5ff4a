package explain

import (
	"fmt"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// cookieOf returns the value of a cookie (Http::Utility::parseCookies). If there are
// several, it is the first.
func (s subject) cookieOf(name string) (value string, there bool) {
	for _, header := range s.headers["cookie"] {
		for part := range strings.SplitSeq(header, ";") {
			n, v, found := strings.Cut(strings.Trim(part, " \t"), "=")
			if !found || n != name {
				continue
			}
			if len(v) > 1 && v[0] == '"' && v[len(v)-1] == '"' {
				v = v[1 : len(v)-1]
			}
			return v, true
		}
	}
	return "", false
}

// checkCookie compares a cookie.
func (s subject) checkCookie(m *routev3.CookieMatcher) (Check, error) {
	value, there := s.cookieOf(m.GetName())
	c := Check{Code: "cookie"}
	shown := "is missing"
	if there {
		shown = fmt.Sprintf("is %q", value)
	}
	p, ok := m.GetStringMatch().GetMatchPattern().(*matcherv3.StringMatcher_Exact)
	if !ok || m.GetInvertMatch() {
		return c, fmt.Errorf("condition on cookie %q is not known", m.GetName())
	}
	c.Holds = there && value == p.Exact
	c.Message = fmt.Sprintf("cookie %s %s; it must be %q", m.GetName(), shown, p.Exact)
	return c, nil
}
