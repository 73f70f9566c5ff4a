package translate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// routeReading is a route of a GatewayHost while it is read.
type routeReading struct {
	at    string
	spec  *gatewayv1.Route
	route *model.Route
	// broken says that the route's action cannot be read.
	broken bool
	// fields maps the names of the route's fields to the fields of the GatewayHost that they
	// come from.
	fields map[string]string
}

// readRoutes reads the routes of a host. unreadable says that the conditions of one of them
// cannot be read: its requests would go to another route, which may require less, so the host
// must be closed.
func (s *scope) readRoutes(service string, specs []gatewayv1.Route) (routes []*routeReading, unreadable bool) {
	names := map[string]bool{}
	for i := range specs {
		r := &routeReading{
			at: fmt.Sprintf("spec.routes[%d]", i), spec: &specs[i], fields: map[string]string{},
			route: &model.Route{Service: service, Prefix: "/"},
		}
		if name := specs[i].Name; name != "" {
			r.route.Name = name
			if names[name] {
				s.problem(r.at+".name", Invalid, "%q is also the name of another route of the host", name)
				unreadable = true
			}
			names[name] = true
		}
		matches := s.match(r)
		s.action(r)
		unreadable = !matches || unreadable
		routes = append(routes, r)
	}
	for _, r := range routes {
		if r.route.Name == "" {
			r.route.Name = nameOf(r.route, names)
		}
		unreadable = s.validate(r) || unreadable
	}
	return routes, unreadable
}

// match reads the conditions of a route, all of which must be met.
func (s *scope) match(r *routeReading) (readable bool) {
	readable = true
	path, methods := "", ""
	c := &r.route.Config
	for i, condition := range r.spec.Conditions {
		at := fmt.Sprintf("%s.conditions[%d]", r.at, i)
		for _, kind := range []struct {
			field, match string
			text         *string
		}{
			{".prefix", "", (*string)(condition.Prefix)}, {".segment", "segment", (*string)(condition.Segment)},
			{".exact", "exact", (*string)(condition.Exact)}, {".template", model.MatchTemplate, condition.Template}, {".regex", "regex", condition.Regex},
		} {
			switch {
			case kind.text == nil:
			case path != "":
				s.problem(at+kind.field, Invalid, "all conditions must hold, so only one of them can have a path, and %s has one; write a route for each path", path)
				readable = false
			default:
				path = at + kind.field
				r.route.Prefix, c.Match = *kind.text, kind.match
			}
		}
		if len(condition.Methods) > 0 {
			if methods != "" {
				s.problem(at+".methods", Invalid, "all conditions must hold, so only one of them can have methods, and %s has some; list all methods there", methods)
				readable = false
			}
			methods = at + ".methods"
			for _, m := range condition.Methods {
				c.Methods = append(c.Methods, string(m))
			}
		}
		for j, h := range condition.Headers {
			r.fields[fmt.Sprintf("Route_config.headers[%d]", len(c.Headers))] = fmt.Sprintf("%s.headers[%d]", at, j)
			c.Headers = append(c.Headers, model.ValueMatch{Name: h.Name, Exact: h.Exact, Prefix: h.Prefix, Regex: h.Regex, Invert: h.Invert})
		}
		for j, q := range condition.Query {
			r.fields[fmt.Sprintf("Route_config.query[%d]", len(c.Query))] = fmt.Sprintf("%s.query[%d]", at, j)
			c.Query = append(c.Query, model.ValueMatch{Name: q.Name, Exact: q.Exact, Prefix: q.Prefix, Regex: q.Regex})
		}
	}
	r.fields["Route_prefix"], r.fields["Route_config.methods"] = path, methods
	return readable
}

// action reads what a route does with its requests.
func (s *scope) action(r *routeReading) {
	c := &r.route.Config
	c.Websocket, c.Public = r.spec.Websocket, r.spec.Public
	for _, tag := range r.spec.Tags {
		r.route.Tags = append(r.route.Tags, string(tag))
	}
	r.route.Tags = model.NewTags(r.route.Tags)
	if w := r.spec.Rewrite; w != nil {
		c.Rewrite = &model.Rewrite{Regex: w.Regex, Substitution: w.Substitution, Template: w.Template, Host: w.Host}
		if w.Prefix != nil {
			c.Rewrite.Prefix = string(*w.Prefix)
		}
	}
	if t := r.spec.Timeouts; t != nil {
		c.Timeouts = &model.Timeouts{Request: s.duration(r, ".timeouts.request", t.Request), Idle: s.duration(r, ".timeouts.idle", t.Idle), GRPC: s.duration(r, ".timeouts.grpc", t.GRPC)}
	}
	if t := r.spec.Retries; t != nil {
		c.Retries = &model.Retries{
			Attempts: int(t.Attempts), Hedge: t.Hedge, PerTry: s.duration(r, ".retries.perTry", t.PerTry),
			Backoff: s.duration(r, ".retries.backoff", t.Backoff), MaxBackoff: s.duration(r, ".retries.maxBackoff", t.MaxBackoff),
		}
		for _, m := range t.Methods {
			c.Retries.Methods = append(c.Retries.Methods, string(m))
		}
		for _, on := range t.RetryOn {
			c.Retries.On = append(c.Retries.On, string(on))
		}
	}
	for from, to := range map[string]string{
		"Route_Name": ".name", "tags": ".tags", "Route_config.rewrite": ".rewrite", "Route_config.timeouts": ".timeouts", "Route_config.retries": ".retries",
		"Route_config.retries.on": ".retries.retryOn", "Route_config.retries.per_try": ".retries.perTry", "Route_config.retries.max_backoff": ".retries.maxBackoff",
	} {
		r.fields[from] = r.at + to
	}
}

// duration reads a duration; empty means none.
func (s *scope) duration(r *routeReading, field string, text gatewayv1.Duration) model.Duration {
	if text == "" {
		return 0
	}
	d, err := time.ParseDuration(string(text))
	if err != nil {
		s.problem(r.at+field, Invalid, "%q is not a duration such as 1.5s", text)
		r.broken = true
	}
	return model.Duration(d)
}

// validate reports what is wrong with a route. unreadable says that its conditions cannot be
// read.
func (s *scope) validate(r *routeReading) (unreadable bool) {
	for _, e := range r.route.Validate() {
		s.problem(r.field(e.Field), Invalid, "%s", e.Message)
		isAction := slices.ContainsFunc([]string{"tags", "Route_config.rewrite", "Route_config.timeouts", "Route_config.retries"}, func(field string) bool {
			return strings.HasPrefix(e.Field, field)
		})
		r.broken, unreadable = r.broken || isAction, unreadable || !isAction
	}
	if r.broken {
		r.route.Tags = nil
	}
	return unreadable
}

// field returns the field of the GatewayHost that a field of the route comes from.
func (r *routeReading) field(name string) string {
	for end := len(name); end > 0; end = strings.LastIndexAny(name[:end], ".[") {
		if at := r.fields[name[:end]]; at != "" {
			return at + name[end:]
		}
	}
	return r.at
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
	conditions := model.RouteConfig{Match: r.Config.Match, Methods: r.Config.Methods, Headers: r.Config.Headers, Query: r.Config.Query}
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
