package explain

import (
	"fmt"
	"net/http"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
)

// corsFilter answers preflights and states which web pages may read responses.
const corsFilter = "envoy.filters.http.cors"

// passPreflight answers a preflight (CorsFilter::decodeHeaders), or reports that the request continues.
func (a *Answer) passPreflight(s subject, l *hcmv3.HttpConnectionManager, vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	f := findFilter(l, corsFilter)
	if f == nil || isOff(f, vh, r) || r.GetRoute() == nil || s.headers.get(":method") != http.MethodOptions || s.headers.get("access-control-request-method") == "" {
		return true, nil
	}
	allowed, err := s.isReader(vh, r)
	if allowed {
		a.endWith(Preflight, http.StatusOK, "answer", fmt.Sprintf("a vh_filter_cors answers the preflight: it allows requests from pages of %s", s.headers.get("origin")))
	}
	return !allowed, err
}

// isReader reports whether pages of the request's origin may read responses.
func (s subject) isReader(vh *routev3.VirtualHost, r *routev3.Route) (bool, error) {
	policy, err := messageFor(corsFilter, vh, r, &corsv3.CorsPolicy{})
	origin := s.headers.get("origin")
	if err != nil || origin == "" {
		return false, err
	}
	for _, m := range policy.GetAllowOriginStringMatch() {
		if matches, _, err := anyMatches(m, []string{"*", origin}); matches || err != nil {
			return matches, err
		}
	}
	return false, nil
}

func (f *Filter) describeCORS(p passed) error {
	origin := p.request.headers.get("origin")
	allowed, err := p.request.isReader(p.vh, p.route)
	switch {
	case origin == "":
		f.Message = "does nothing: the request has no Origin, so no page of another origin sends it"
	case p.route.GetRoute() == nil:
		f.Message = "does nothing where a route answers by itself: the headers of the answer say which pages may read it"
	case allowed:
		f.Message = fmt.Sprintf("allows pages of %s to read the answer", origin)
	default:
		f.Message = fmt.Sprintf("does not allow pages of %s to read the answer", origin)
	}
	return err
}
