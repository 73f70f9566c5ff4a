package mapping

import (
	"fmt"
	"reflect"
	"strings"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Route is what was read of a route of a GatewayHost.
type Route struct {
	*model.Route
	// Unreadable says that its conditions cannot be read, Broken that its action cannot.
	Unreadable, Broken bool
	at                 string
	// fields maps names of fields of the model to the conditions that they come from.
	fields map[string]string
}

// matches lists the kinds of paths that a condition may have, with the Match of each.
func matches(c *gatewayv1.Condition) []struct {
	field, match string
	text         *string
} {
	return []struct {
		field, match string
		text         *string
	}{
		{".prefix", "", (*string)(c.Prefix)}, {".segment", "segment", (*string)(c.Segment)},
		{".exact", "exact", (*string)(c.Exact)}, {".template", model.MatchTemplate, c.Template}, {".regex", "regex", c.Regex},
	}
}

// ReadRoute reads a route at a path of its GatewayHost, without its Services and filters.
func ReadRoute(spec *gatewayv1.Route, at string, wrong Report) *Route {
	r := &Route{Route: &model.Route{Name: spec.Name, Prefix: "/"}, at: at, fields: map[string]string{}}
	for i := range spec.Conditions {
		r.readCondition(fmt.Sprintf("%s.conditions[%d]", at, i), &spec.Conditions[i], wrong)
	}
	action := reader{wrong: func(path, format string, args ...any) {
		wrong(path, format, args...)
		r.Broken = true
	}}
	action.read(at, reflect.ValueOf(spec).Elem(), reflect.ValueOf(&r.Config).Elem())
	for _, tag := range spec.Tags {
		r.Tags = append(r.Tags, string(tag))
	}
	r.Tags = model.NewTags(r.Tags)
	return r
}

// readCondition adds a condition to those before it: all of them must hold.
func (r *Route) readCondition(at string, c *gatewayv1.Condition, wrong Report) {
	const path, methods = "Route_prefix", "Route_config.methods"
	for _, kind := range matches(c) {
		switch {
		case kind.text == nil:
		case r.fields[path] != "":
			wrong(at+kind.field, "all conditions must hold, so only one of them can have a path, and %s has one; "+
				"write a route for each path", r.fields[path])
			r.Unreadable = true
		default:
			r.fields[path], r.Prefix, r.Config.Match = at+kind.field, *kind.text, kind.match
		}
	}
	if len(c.Methods) > 0 {
		if r.fields[methods] != "" {
			wrong(at+".methods", "all conditions must hold, so only one of them can have methods, and %s has some; "+
				"list all methods there", r.fields[methods])
			r.Unreadable = true
		}
		r.fields[methods] = at + ".methods"
	}
	for i := range c.Headers {
		r.fields[fmt.Sprintf("Route_config.headers[%d]", len(r.Config.Headers)+i)] = fmt.Sprintf("%s.headers[%d]", at, i)
	}
	for i := range c.Query {
		r.fields[fmt.Sprintf("Route_config.query[%d]", len(r.Config.Query)+i)] = fmt.Sprintf("%s.query[%d]", at, i)
	}
	reader{wrong: wrong}.read(at, reflect.ValueOf(c).Elem(), reflect.ValueOf(&r.Config).Elem())
}

// Field returns the field of the GatewayHost that a field of the route comes from, and whether it belongs to the action
// of the route, not to its conditions.
func (r *Route) Field(name string) (path string, isAction bool) {
	if path, found := longest(r.fields, name); found {
		return path, false
	}
	if name == "Route_Name" {
		return r.at + ".name", false
	}
	path, isAction = longest(paths(reflect.TypeFor[gatewayv1.Route](), reflect.TypeFor[model.RouteConfig]()),
		strings.TrimPrefix(name, "Route_config."))
	if !isAction && strings.HasPrefix(name, "tags") {
		path, isAction = "."+name, true
	}
	return r.at + path, isAction
}

// WriteRoute returns a route of a GatewayHost without its Services and filters.
func WriteRoute(r *model.Route) gatewayv1.Route {
	out := gatewayv1.Route{Name: r.Name, Conditions: []gatewayv1.Condition{{}}}
	c, path := &out.Conditions[0], gatewayv1.URLPath(r.Prefix)
	switch r.Config.Match {
	case "exact":
		c.Exact = &path
	case "segment":
		c.Segment = &path
	case model.MatchTemplate:
		c.Template = &r.Prefix
	case "regex":
		c.Regex = &r.Prefix
	default:
		c.Prefix = &path
	}
	config, none := reflect.ValueOf(r.Config), reflect.ValueOf(model.RouteConfig{})
	secretRef(nil).write(config, none, reflect.ValueOf(c).Elem())
	secretRef(nil).write(config, none, reflect.ValueOf(&out).Elem())
	for _, tag := range r.Tags {
		out.Tags = append(out.Tags, gatewayv1.Tag(tag))
	}
	return out
}
