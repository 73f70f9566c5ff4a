package ingress

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
)

// canary adds a canary Ingress to the routes that it belongs to: those with the same host and path. A header comes before
// a cookie, and a cookie before the weight.
func (t *translation) canary(r *reading) {
	s := r.settings()
	header, _ := r.value("canary-by-header")
	value, exact := r.value("canary-by-header-value")
	pattern, regex := r.value("canary-by-header-pattern")
	cookie, _ := r.value("canary-by-cookie")
	weight, weighted := r.number("canary-weight", 0)
	total, _ := r.number("canary-weight-total", 100)
	r.rest()
	for _, rule := range rulesOf(&r.Ingress) {
		for _, p := range rule.HTTP.Paths {
			h := t.hosts[hostKey{r.Namespace, strings.ToLower(cmp.Or(rule.Host, "*"))}]
			w := h.wayOf(cmp.Or(p.Path, "/"))
			if w == nil || len(w.route.Services) == 0 {
				r.note("", "canary: no other Ingress has a Service for the path %s of host %s", p.Path, rule.Host)
				continue
			}
			backend, ok := t.backend(r, s, &p.Backend)
			if !ok || s.closed {
				continue
			}
			extra := func(m gatewayv1.HeaderMatch, services []gatewayv1.Backend) {
				route := *w.route
				route.Services = services
				route.Conditions = []gatewayv1.Condition{{Headers: []gatewayv1.HeaderMatch{m}}}
				h.ways = append(h.ways, &way{host: h, of: r, path: w.path, route: &route})
			}
			own := []gatewayv1.Backend{w.route.Services[0]}
			text := func(v string) *string { return &v }
			switch {
			case header == "":
			case regex:
				extra(gatewayv1.HeaderMatch{Name: header, Regex: text(".*(" + pattern + ").*")}, []gatewayv1.Backend{backend})
			case exact:
				extra(gatewayv1.HeaderMatch{Name: header, Exact: &value}, []gatewayv1.Backend{backend})
			default:
				extra(gatewayv1.HeaderMatch{Name: header, Exact: text("always")}, []gatewayv1.Backend{backend})
				extra(gatewayv1.HeaderMatch{Name: header, Exact: text("never")}, own)
			}
			if cookie != "" {
				extra(gatewayv1.HeaderMatch{Name: "cookie", Regex: text("(.*;)? *" + regexp.QuoteMeta(cookie) + "=always *(;.*)?")}, []gatewayv1.Backend{backend})
				extra(gatewayv1.HeaderMatch{Name: "cookie", Regex: text("(.*;)? *" + regexp.QuoteMeta(cookie) + "=never *(;.*)?")}, own)
			}
			if weighted && weight > 0 {
				rest := max(0, total-weight)
				first := w.route.Services[0]
				first.Weight, backend.Weight = &rest, &weight
				w.route.Services = []gatewayv1.Backend{first, backend}
			}
		}
	}
}

// number reads an annotation that is a number.
func (r *reading) number(name string, absent int32) (n int32, ok bool) {
	v, ok := r.value(name)
	if !ok {
		return absent, false
	}
	parsed, err := strconv.ParseInt(v, 10, 32)
	if err != nil || parsed < 0 {
		r.note(prefix+name, "%q is no number", v)
		return absent, false
	}
	return int32(parsed), true // #nosec G115 -- it has 32 bits
}

// wayOf returns the first route of a path.
func (h *host) wayOf(path string) *way {
	if h == nil {
		return nil
	}
	for _, w := range h.ways {
		if w.path.Path == path {
			return w
		}
	}
	return nil
}
