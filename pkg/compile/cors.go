package compile

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// addRouteCORS also adds filters of a service to each route: Envoy would merge a host's CORS into a route's,
// and could combine the credentials of one with the origins of the other.
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

// addCORSRoutes adds the routes that come before a route that pages of other origins may use. A preflight has
// another method than its request, and Envoy's CORS filter does nothing where a route answers itself.
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
		r.Before = append(r.Before, readable(r, allowed))
	}
	if !r.CORS.AnyOrigin {
		r.Before = slices.Insert(r.Before, 0, refusedPreflight(r, allowed))
	}
}

// readable returns a route that answers as r does, for the pages that may read it.
func readable(r *ir.Route, allowed ir.ValueMatch) *ir.Route {
	answer := *r
	answer.Before, answer.ReadBy = nil, r.CORS
	answer.Match.Headers = append(slices.Clone(r.Match.Headers), allowed)
	return &answer
}

// refusedPreflight returns the route that answers preflights of other origins, without a header that allows anything.
// Otherwise they would reach the upstream, which sees no preflight of the others. All filters of r apply.
func refusedPreflight(r *ir.Route, allowed ir.ValueMatch) *ir.Route {
	allowed.Invert = true
	refused := *r
	refused.Before, refused.Forward, refused.Redirect, refused.GRPCWeb, refused.GRPCJSON = nil, nil, nil, false, nil
	refused.Respond = &ir.Respond{Status: http.StatusNoContent}
	refused.Match.Methods = []string{http.MethodOptions}
	refused.Match.Headers = append(slices.Clone(r.Match.Headers), allowed, asksFor(r.Match.Methods))
	return &refused
}

// asksFor is the condition that a preflight is for one of the methods. An empty list means all.
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

// corsFilterOf returns the CORS filter among filters; nil means none.
func corsFilterOf(filters []*model.ParsedFilter) *model.CORSFilter {
	for _, f := range filters {
		if c, ok := f.Spec.(*model.CORSFilter); ok && f.Fault == nil {
			return c
		}
	}
	return nil
}
