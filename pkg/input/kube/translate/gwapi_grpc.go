package translate

import (
	"cmp"
	"regexp"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// grpcRoute makes the routes of a GRPCRoute: a call is a request for /SERVICE/METHOD, so it is an HTTPRoute whose matches
// have another order.
func (s *scope) grpcRoute(o *gwapi.GRPCRoute) {
	s.httpRoute(asHTTP(o), func(rule, match int, _ *model.RouteConfig, _ string) int {
		if m := o.Spec.Rules[rule].Matches; match < len(m) {
			return grpcPrecedence(&m[match])
		}
		return 0
	})
}

// asHTTP returns an HTTPRoute for the same calls. Filters and types of matches have the same words in both.
func asHTTP(o *gwapi.GRPCRoute) *gwapi.HTTPRoute {
	h := &gwapi.HTTPRoute{ObjectMeta: o.ObjectMeta}
	h.Spec.CommonRouteSpec, h.Spec.Hostnames = o.Spec.CommonRouteSpec, o.Spec.Hostnames
	for i := range o.Spec.Rules {
		r := &o.Spec.Rules[i]
		rule := gwapi.HTTPRouteRule{Name: r.Name, SessionPersistence: r.SessionPersistence, Filters: httpFilters(r.Filters)}
		for j := range r.Matches {
			m := gwapi.HTTPRouteMatch{Path: pathOf(r.Matches[j].Method)}
			for _, h := range r.Matches[j].Headers {
				kind := gwapi.HeaderMatchType(text(h.Type, string(gwapi.HeaderMatchExact)))
				m.Headers = append(m.Headers, gwapi.HTTPHeaderMatch{Type: &kind, Name: gwapi.HTTPHeaderName(h.Name), Value: h.Value})
			}
			rule.Matches = append(rule.Matches, m)
		}
		for _, b := range r.BackendRefs {
			rule.BackendRefs = append(rule.BackendRefs, gwapi.HTTPBackendRef{BackendRef: b.BackendRef, Filters: httpFilters(b.Filters)})
		}
		h.Spec.Rules = append(h.Spec.Rules, rule)
	}
	return h
}

func httpFilters(list []gwapi.GRPCRouteFilter) (filters []gwapi.HTTPRouteFilter) {
	for _, f := range list {
		filters = append(filters, gwapi.HTTPRouteFilter{
			Type: gwapi.HTTPRouteFilterType(f.Type), RequestHeaderModifier: f.RequestHeaderModifier,
			ResponseHeaderModifier: f.ResponseHeaderModifier, RequestMirror: f.RequestMirror, ExtensionRef: f.ExtensionRef,
		})
	}
	return filters
}

// pathOf returns the match of the path of a call. Without a service or method, any one matches.
func pathOf(m *gwapi.GRPCMethodMatch) *gwapi.HTTPPathMatch {
	if m == nil {
		return nil
	}
	kind, service, method := gwapi.PathMatchExact, text(m.Service, ""), text(m.Method, "")
	path := "/" + service + "/" + method
	switch {
	case service == "" && method == "":
		return nil
	case text(m.Type, string(gwapi.GRPCMethodMatchExact)) == string(gwapi.GRPCMethodMatchRegularExpression):
		kind = gwapi.PathMatchRegularExpression
		path = "/" + anyIfEmpty(service) + "/" + anyIfEmpty(method)
	case method == "":
		kind, path = gwapi.PathMatchPathPrefix, "/"+service
	case service == "":
		kind, path = gwapi.PathMatchRegularExpression, "/[^/]+/"+regexp.QuoteMeta(method)
	}
	return &gwapi.HTTPPathMatch{Type: &kind, Value: &path}
}

func anyIfEmpty(pattern string) string {
	if pattern == "" {
		return "[^/]+"
	}
	return "(" + pattern + ")"
}

// grpcPrecedence orders matches as the Gateway API does: the longest service, the longest method, the most headers.
func grpcPrecedence(m *gwapi.GRPCRouteMatch) int {
	method := cmp.Or(m.Method, &gwapi.GRPCMethodMatch{})
	return packed(
		part{len(text(method.Service, "")), 11}, part{len(text(method.Method, "")), 7}, part{len(m.Headers), 6},
	)
}
