package compile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addRouteCORS is for the filters of a service too: Envoy would add what a host says to what a route does not
// say, such as credentials of the one to origins of the other.
func addRouteCORS(r *ir.Route, f *model.CORSFilter) { r.CORS = corsOf(f) }

func corsOf(f *model.CORSFilter) *ir.CORS {
	c := &ir.CORS{Methods: f.Methods, Headers: f.Headers, Expose: f.Expose, MaxAgeSeconds: f.MaxAge, Credentials: f.Credentials}
	for _, o := range f.Origins {
		switch {
		case o.Exact == model.AnyOrigin:
			c.AnyOrigin = true
		case o.Regex != "":
			c.OriginRegexes = append(c.OriginRegexes, o.Regex)
		default:
			c.Origins = append(c.Origins, o.Exact)
		}
	}
	return c
}

// addCORSRoutes adds what comes before a route that pages of other origins may use. A preflight has another
// method than the request that it is for, and Envoy does not look at CORS where a route answers by itself.
func addCORSRoutes(r *ir.Route, t *model.RouteTree) {
	f := cmp.Or(corsFilterOf(t.Filters), corsFilterOf(t.ServiceFilters))
	if f == nil {
		return
	}
	allowed := ir.ValueMatch{Name: "origin", Regex: f.Expression()}
	alone := r.Forward == nil
	if methods := r.Match.Methods; alone || len(methods) > 0 && !slices.Contains(methods, "OPTIONS") {
		preflight := &ir.Route{Name: r.Name, Match: r.Match, Preflight: true, CORS: r.CORS}
		preflight.Match.Methods = []string{"OPTIONS"}
		preflight.Match.Headers = append(slices.Clone(r.Match.Headers), allowed, asksFor(methods))
		r.Before = append(r.Before, preflight)
	}
	if alone {
		answer := *r
		answer.Before, answer.ReadBy = nil, r.CORS
		answer.Match.Headers = append(slices.Clone(r.Match.Headers), allowed)
		r.Before = append(r.Before, &answer)
	}
}

// asksFor is the condition that a preflight is for one of the methods; none means all.
func asksFor(methods []string) ir.ValueMatch {
	m := ir.ValueMatch{Name: "access-control-request-method"}
	if slices.Contains(methods, "OPTIONS") {
		return m
	}
	quoted := make([]string, len(methods))
	for i, method := range methods {
		quoted[i] = regexp.QuoteMeta(method)
	}
	m.Regex = strings.Join(quoted, "|")
	return m
}

// corsFilterOf is the one of the type; nil means that there is none.
func corsFilterOf(filters []*model.ParsedFilter) *model.CORSFilter {
	for _, f := range filters {
		if c, ok := f.Spec.(*model.CORSFilter); ok && f.Fault == nil {
			return c
		}
	}
	return nil
}
