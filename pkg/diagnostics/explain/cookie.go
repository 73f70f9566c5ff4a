package explain

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// cookieOf returns the value of a cookie.
func (s subject) cookieOf(name string) (value string, there bool) {
	return seam.Request{Headers: s.headers}.Cookie(name)
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
