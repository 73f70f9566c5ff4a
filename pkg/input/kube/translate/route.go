package translate

import (
	"encoding/json"
	"fmt"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// routeReading is a route of a GatewayHost while it is read.
type routeReading struct {
	*mapping.Route
	at   string
	spec *gatewayv1.Route
	// mode is that of the host.
	mode string
}

// readRoutes reads the routes of a host. unreadable says that the conditions of one of them
// cannot be read: its requests would go to another route, which may require less, so the host
// must be closed.
func (s *scope) readRoutes(service string, specs []gatewayv1.Route) (routes []*routeReading, unreadable bool) {
	names := map[string]bool{}
	invalid := func(path, format string, args ...any) { s.problem(path, Invalid, format, args...) }
	for i := range specs {
		at := fmt.Sprintf("spec.routes[%d]", i)
		if name := specs[i].Name; name != "" {
			if names[name] {
				s.problem(at+".name", Invalid, "%q is also the name of another route of the host", name)
				unreadable = true
			}
			names[name] = true
		}
		r := &routeReading{mapping.ReadRoute(&specs[i], at, invalid), at, &specs[i], model.ModeHTTP}
		r.Service, unreadable = service, unreadable || r.Unreadable
		routes = append(routes, r)
	}
	for _, r := range routes {
		if r.Name == "" {
			r.Name = nameOf(r.Route.Route, names)
		}
		unreadable = s.validate(r) || unreadable
	}
	return routes, unreadable
}

// validate reports what is wrong with a route. unreadable says that its conditions cannot be
// read.
func (s *scope) validate(r *routeReading) (unreadable bool) {
	for _, e := range r.Validate() {
		path, isAction := r.Field(e.Field)
		s.problem(path, Invalid, "%s", e.Message)
		r.Broken, unreadable = r.Broken || isAction, unreadable || !isAction
	}
	if r.Broken {
		r.Tags = nil
	}
	return unreadable
}

// maxSlug bounds the part of a name that shows a path.
const maxSlug = 40

// nameOf returns a name for a route without one. It is made from the route's conditions, so that
// it stays when other routes are added or removed. taken are the names of the others.
func nameOf(r *model.Route, taken map[string]bool) string {
	slug := strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, r.Prefix), "-")
	slug = slug[:min(maxSlug, len(slug))]
	name := slug
	if slug == "" {
		name = "root"
	}
	conditions := model.RouteConfig{
		Match: r.Config.Match, Methods: r.Config.Methods, Headers: r.Config.Headers, Query: r.Config.Query,
	}
	text, err := json.Marshal(conditions)
	if err != nil || string(text) != "{}" || r.Prefix != "/"+slug || taken[name] {
		name += "-" + hash(r.Prefix, string(text))[:8]
	}
	base := name
	for n := 2; taken[name]; n++ { // the same conditions again
		name = fmt.Sprintf("%s-%d", base, n)
	}
	taken[name] = true
	return name
}
