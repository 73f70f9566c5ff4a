package translate

import (
	"strconv"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	corsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/cors/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// CORSFilter is the name of the filter that answers preflights and states which web pages may read responses.
const CORSFilter = "envoy.filters.http.cors"

// corsFilter does nothing without a route's message.
func corsFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: CORSFilter, config: &corsv3.Cors{}}}
}

// corsOfRoute leaves ForwardNotMatchingPreflights at its default. If it were false, Envoy would answer the preflights
// of every origin, with all headers but one.
func corsOfRoute(r *ir.Route) ([]filterConfig, error) {
	c := r.CORS
	if c == nil {
		return nil, nil
	}
	out := &corsv3.CorsPolicy{
		AllowMethods: strings.Join(c.Methods, ", "), AllowHeaders: strings.Join(c.Headers, ", "), ExposeHeaders: strings.Join(c.Expose, ", "),
	}
	if c.AnyOrigin {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, stringMatcher(ir.ValueMatch{Exact: "*"}))
	}
	for _, o := range c.Origins {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, stringMatcher(ir.ValueMatch{Exact: o}))
	}
	for _, expr := range c.OriginRegexes {
		out.AllowOriginStringMatch = append(out.AllowOriginStringMatch, stringMatcher(ir.ValueMatch{Regex: expr}))
	}
	if c.MaxAgeSeconds != nil {
		out.MaxAge = strconv.Itoa(*c.MaxAgeSeconds)
	}
	if c.Credentials {
		out.AllowCredentials = wrapperspb.Bool(true)
	}
	return []filterConfig{{name: CORSFilter, config: out}}, nil
}

// applyCORS sets headers that the filter does not set.
func applyCORS(out *routev3.Route, r *ir.Route) {
	if r.CORS != nil {
		out.ResponseHeadersToRemove, out.ResponseHeadersToAdd = corsHeaders(), append(out.ResponseHeadersToAdd, variesByOrigin()...)
	}
	if r.ReadBy == nil {
		return
	}
	set := func(name, value string) {
		out.ResponseHeadersToAdd = append(out.ResponseHeadersToAdd, setHeader(name, value))
	}
	set("access-control-allow-origin", "%REQ(origin)%")
	if r.ReadBy.Credentials {
		set("access-control-allow-credentials", "true")
	}
	if len(r.ReadBy.Expose) > 0 {
		set("access-control-expose-headers", strings.ReplaceAll(strings.Join(r.ReadBy.Expose, ", "), "%", "%%"))
	}
}

// corsHeaders are headers that only the gateway may set where it has CORS. An upstream could otherwise allow more than
// the filter does. They are removed before the filter sets its own.
func corsHeaders() []string {
	const prefix = "access-control-"
	return []string{
		prefix + "allow-origin", prefix + "allow-credentials", prefix + "allow-methods", prefix + "allow-headers",
		prefix + "allow-private-network", prefix + "expose-headers", prefix + "max-age",
	}
}

// variesByOrigin tells caches that a response is for one origin (Fetch, section 3.3.5). The filter does not.
func variesByOrigin() []*corev3.HeaderValueOption {
	return []*corev3.HeaderValueOption{{
		Header: &corev3.HeaderValue{Key: "vary", Value: "origin"}, AppendAction: corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD,
	}}
}

// preflightAction leads to no cluster. The CORS filter answers first, but only on routes that forward. No cluster has a
// path as its name.
func preflightAction() *routev3.Route_Route {
	return &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_ClusterHeader{ClusterHeader: ":path"}}}
}
