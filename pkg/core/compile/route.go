package compile

import (
	"net/http"
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Route compiles one route. The route answers 503, with a condition, if it has no upstream to forward to, if
// the settings rule out an upstream, if an upstream's TLS lacks something, or if a filter cannot be enforced.
// A route that answers itself needs no upstream.
func Route(t *model.RouteTree, s Settings) (*ir.Route, *model.Condition) {
	for _, what := range []string{Clash(t.Filters), conflict(t)} {
		if what != "" {
			return Unavailable(t, model.Quarantined, what)
		}
	}
	route, condition := routeAlone(t, s)
	if what := addFilters(route, t, s); what != "" {
		return Unavailable(t, model.Quarantined, what)
	}
	if what := finish(route, t, s); what != "" {
		return Unavailable(t, model.Quarantined, what)
	}
	setRetries(route)
	return route, condition
}

// routeAlone returns a route without its filters. It forwards nothing if one of the filters answers.
func routeAlone(t *model.RouteTree, s Settings) (*ir.Route, *model.Condition) {
	if err := t.Route.Config.Fault(); err != nil {
		return Unavailable(t, model.Quarantined, "has a Route_config that cannot be read (it "+err.Error()+")")
	}
	if isAnswered(t) {
		return &ir.Route{Name: t.Route.Name, Match: match(t.Route), Public: t.Route.Config.Public}, nil
	}
	clusters, code, what := clustersOf(t, s)
	if what != "" {
		return Unavailable(t, code, what)
	}
	c := t.Route.Config
	forward := &ir.Forward{Clusters: clusters, NoUpgrade: c.Websocket != nil && !*c.Websocket}
	if c.Rewrite != nil {
		forward.Rewrite = ir.Rewrite(*c.Rewrite)
	}
	if c.Timeouts != nil {
		forward.Timeout = time.Duration(c.Timeouts.Request)
		forward.IdleTimeout = time.Duration(c.Timeouts.Idle)
		forward.GRPCTimeout = time.Duration(c.Timeouts.GRPC)
		forward.StreamTimeout = time.Duration(c.Timeouts.Stream)
	}
	if c.Retries != nil {
		forward.Retries = retriesOf(c)
	}
	return &ir.Route{Name: t.Route.Name, Match: match(t.Route), Forward: forward, Public: c.Public}, nil
}

// clustersOf returns the clusters that a route forwards to; none if a filter sets them. If it cannot forward, what is
// the reason and code is the condition's code.
func clustersOf(t *model.RouteTree, s Settings) (clusters []ir.WeightedCluster, code, what string) {
	if isForwarded(t) {
		return nil, "", ""
	}
	with := Credentials{Secrets: t.Secrets, Open: s.Open, System: s.Authorities}
	if what := unusableTLS(t.Upstreams, with); what != "" {
		return nil, model.Quarantined, what
	}
	for _, u := range t.Upstreams {
		// This reason is for operators. Clients do not see the address.
		if why := ruledOut(u, s); why != "" {
			return nil, model.Quarantined, "has upstream " + u.Name + ", whose address " + why + ","
		}
	}
	if what := splitPriorities(t.Upstreams); what != "" {
		return nil, model.Quarantined, what
	}
	clusters = Clusters(t.Upstreams, with)
	switch {
	case len(clusters) > 0:
		return clusters, "", ""
	case len(t.Upstreams) > 0:
		return nil, model.NoUpstream, "has only upstreams of weight 0"
	}
	return nil, model.NoUpstream, "has no upstream"
}

const byLists = "--upstream-allow or --upstream-deny rules out"

// ruledOut says why the settings rule out the address of an upstream; "" if they do not. The text follows the
// address in a sentence. Addresses of a discovered upstream are checked one by one, see Assignment.
func ruledOut(u *model.Upstream, s Settings) string {
	switch {
	case u.IsDiscovered():
		return ""
	case s.Upstreams.Refusal(u.IP) != "":
		if _, is := u.Socket(); is {
			return "is not in a directory that --upstream-sockets names"
		}
		return byLists
	}
	return s.Foreign.Name(u.IP, u.Port)
}

// unavailable is what clients read where something cannot work. The reason and the names are for operators.
const unavailable = "this service is not available\n"

// Unavailable returns a fixed 503 without filters in place of a route that cannot work, and the condition
// with the reason.
func Unavailable(t *model.RouteTree, code, what string) (*ir.Route, *model.Condition) {
	route := &ir.Route{
		Name: t.Route.Name, Match: match(t.Route),
		Respond: &ir.Respond{Status: http.StatusServiceUnavailable, Body: unavailable},
	}
	return route, &model.Condition{Key: t.Route.Key(), Code: code, Message: "the route " + what + " and answers 503"}
}

// UnavailableRoute answers 503 to all requests for a host that cannot work.
func UnavailableRoute() *ir.Route {
	return &ir.Route{
		Name: "unavailable", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"},
		Respond: &ir.Respond{Status: http.StatusServiceUnavailable, Body: unavailable},
	}
}

func match(r *model.Route) ir.Match {
	m := ir.Match{
		PathKind: ir.PathKind(r.Config.Match), Path: r.Prefix, Methods: r.Config.Methods,
		Headers: valueMatches(r.Config.Headers), Query: valueMatches(r.Config.Query),
		Ports: r.Config.Ports,
	}
	if m.PathKind == "" {
		m.PathKind = ir.PathPrefix
	}
	return m
}

func valueMatches(list []model.ValueMatch) []ir.ValueMatch {
	var out []ir.ValueMatch
	for _, v := range list {
		m := ir.ValueMatch{Name: v.Name, Invert: v.Invert}
		switch {
		case v.Exact != nil:
			m.Exact = *v.Exact
		case v.Prefix != nil:
			m.Prefix = *v.Prefix
		case v.Regex != nil:
			m.Regex = *v.Regex
		}
		out = append(out, m)
	}
	return out
}
