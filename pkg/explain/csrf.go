package explain

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	csrfv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/csrf/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// csrfFilter refuses changing requests from pages of other sites.
const csrfFilter = "envoy.filters.http.csrf"

// passCSRF reports whether the request is allowed. If not, it ends with the answer.
func (a *Answer) passCSRF(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, csrfFilter)
	if f == nil || isOff(f, vh, r) {
		return true, nil
	}
	ok, why, err := s.isOwnPage(vh, r)
	if err != nil || ok {
		return ok, err
	}
	return false, a.endReplied(l, "csrf_origin_mismatch", reply{http.StatusForbidden, "Invalid origin"}, CrossSiteRefused, "an http_filter_csrf refuses it: "+why)
}

func (f *Filter) describeCSRF(p passed) error {
	_, why, err := p.request.isOwnPage(p.vh, p.route)
	f.Message = "allows it: " + why
	return err
}

// isOwnPage reports whether the request changes nothing or comes from an allowed page, and why
// (CsrfFilter::decodeHeaders).
func (s subject) isOwnPage(vh *routev3.VirtualHost, r *routev3.Route) (ok bool, why string, err error) {
	if method := s.headers.get(":method"); !slices.Contains([]string{"POST", "PUT", "DELETE", "PATCH"}, method) {
		return true, method + " changes nothing", nil
	}
	policy, err := messageFor(csrfFilter, vh, r, &csrfv3.CsrfPolicy{})
	if err != nil {
		return false, "", err
	}
	header := "Origin"
	value := s.headers.get("origin")
	if value == "" {
		header, value = "Referer", s.headers.get("referer")
	}
	from := hostAndPort(value)
	switch from {
	case "", "null":
		return false, "neither Origin nor Referer names a host", nil
	case s.headers.get(authority):
		return true, fmt.Sprintf("its %s is of the host %s itself", header, from), nil
	}
	for _, m := range policy.GetAdditionalOrigins() {
		if matches, _, err := anyMatches(m, []string{from}); matches || err != nil {
			return matches, fmt.Sprintf("its %s is of %s, which is listed", header, from), err
		}
	}
	return false, fmt.Sprintf("its %s is of %s, which is neither the host %s nor listed", header, from, s.headers.get(authority)), nil
}

// hostAndPort returns the part of a URL that Envoy compares. Envoy compares text that it cannot parse
// unchanged.
func hostAndPort(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return text
	}
	return u.Host
}
