package crd

import (
	"fmt"
	"slices"
	"time"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// routeOf converts a route without its attachments.
func routeOf(r *model.Route) gatewayv1.Route {
	c, path := gatewayv1.Condition{}, gatewayv1.URLPath(r.Prefix)
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
	c.Methods = convert[gatewayv1.Method](r.Config.Methods)
	for _, h := range r.Config.Headers {
		c.Headers = append(c.Headers, gatewayv1.HeaderMatch{Name: h.Name, Exact: h.Exact, Prefix: h.Prefix, Regex: h.Regex, Invert: h.Invert})
	}
	for _, q := range r.Config.Query {
		c.Query = append(c.Query, gatewayv1.QueryMatch{Name: q.Name, Exact: q.Exact, Prefix: q.Prefix, Regex: q.Regex})
	}
	out := gatewayv1.Route{Name: r.Name, Conditions: []gatewayv1.Condition{c}, Websocket: r.Config.Websocket, Public: r.Config.Public}
	for _, tag := range r.Tags {
		out.Tags = append(out.Tags, gatewayv1.Tag(tag))
	}
	if w := r.Config.Rewrite; w != nil {
		out.Rewrite = &gatewayv1.Rewrite{Regex: w.Regex, Substitution: w.Substitution, Template: w.Template, Host: w.Host}
		if w.Prefix != "" {
			prefix := gatewayv1.URLPath(w.Prefix)
			out.Rewrite.Prefix = &prefix
		}
	}
	if t := r.Config.Timeouts; t != nil {
		out.Timeouts = &gatewayv1.Timeouts{Request: durationOf(t.Request), Idle: durationOf(t.Idle), GRPC: durationOf(t.GRPC)}
	}
	if t := r.Config.Retries; t != nil {
		out.Retries = &gatewayv1.Retries{
			Attempts: int32(t.Attempts), PerTry: durationOf(t.PerTry), Backoff: durationOf(t.Backoff), MaxBackoff: durationOf(t.MaxBackoff), //nolint:gosec // at most 100
			Methods: convert[gatewayv1.Method](t.Methods), Hedge: t.Hedge,
		}
		for _, on := range t.On {
			out.Retries.RetryOn = append(out.Retries.RetryOn, gatewayv1.RetryCondition(on))
		}
	}
	return out
}

// durationOf formats a duration; 0 becomes an empty text.
func durationOf(d model.Duration) gatewayv1.Duration {
	if d == 0 {
		return ""
	}
	return gatewayv1.Duration(time.Duration(d).String())
}

// checkRoute describes the bound of the schema that a route exceeds; empty means none.
func checkRoute(r gatewayv1.Route) string {
	c := r.Conditions[0]
	for _, part := range []struct {
		what      string
		have, max int
	}{
		{"methods", len(c.Methods), 16}, {"conditions on headers", len(c.Headers), 16}, {"conditions on query parameters", len(c.Query), 16},
		{"upstreams", len(r.Services), 32}, {"filters", len(r.Filters), 32},
	} {
		if part.have > part.max {
			return fmt.Sprintf("has %d %s; a GatewayHost has at most %d", part.have, part.what, part.max)
		}
	}
	if r.Retries != nil && len(r.Retries.Methods) > 16 {
		return fmt.Sprintf("has %d methods of retries; a GatewayHost has at most 16", len(r.Retries.Methods))
	}
	if what := checkMethods(c.Methods); what != "" || r.Retries == nil {
		return what
	}
	return checkMethods(r.Retries.Methods)
}

func checkMethods(methods []gatewayv1.Method) string {
	for i, m := range methods {
		if len(m) > 20 {
			return fmt.Sprintf("has the method %s; those of a GatewayHost have at most 20 characters", m)
		}
		if slices.Contains(methods[:i], m) {
			return fmt.Sprintf("has the method %s twice; write it once", m)
		}
	}
	return ""
}

// readRoute converts a route that routeOf wrote, or any other.
func readRoute(service, name string, r gatewayv1.Route) (*model.Route, error) {
	out := &model.Route{Service: service, Name: name, Prefix: "/"}
	for _, tag := range r.Tags {
		out.Tags = append(out.Tags, string(tag))
	}
	out.Tags = model.NewTags(out.Tags)
	for _, c := range r.Conditions {
		readCondition(out, c)
	}
	out.Config.Websocket, out.Config.Public = r.Websocket, r.Public
	if w := r.Rewrite; w != nil {
		out.Config.Rewrite = &model.Rewrite{Regex: w.Regex, Substitution: w.Substitution, Template: w.Template, Host: w.Host}
		if w.Prefix != nil {
			out.Config.Rewrite.Prefix = string(*w.Prefix)
		}
	}
	if t := r.Timeouts; t != nil {
		into := &model.Timeouts{}
		out.Config.Timeouts = into
		if err := readDurations([]duration{{t.Request, &into.Request}, {t.Idle, &into.Idle}, {t.GRPC, &into.GRPC}}); err != nil {
			return nil, err
		}
	}
	if t := r.Retries; t != nil {
		into := &model.Retries{Attempts: int(t.Attempts), Methods: convert[string](t.Methods), Hedge: t.Hedge}
		out.Config.Retries = into
		for _, on := range t.RetryOn {
			into.On = append(into.On, string(on))
		}
		return out, readDurations([]duration{{t.PerTry, &into.PerTry}, {t.Backoff, &into.Backoff}, {t.MaxBackoff, &into.MaxBackoff}})
	}
	return out, nil
}

// duration is the text of a duration and its destination.
type duration struct {
	text gatewayv1.Duration
	into *model.Duration
}

func readDurations(list []duration) error {
	for _, d := range list {
		if d.text == "" {
			continue
		}
		if err := d.into.UnmarshalText([]byte(d.text)); err != nil {
			return err
		}
	}
	return nil
}

func readCondition(out *model.Route, c gatewayv1.Condition) {
	switch {
	case c.Prefix != nil:
		out.Prefix = string(*c.Prefix)
	case c.Exact != nil:
		out.Prefix, out.Config.Match = string(*c.Exact), "exact"
	case c.Segment != nil:
		out.Prefix, out.Config.Match = string(*c.Segment), "segment"
	case c.Template != nil:
		out.Prefix, out.Config.Match = *c.Template, model.MatchTemplate
	case c.Regex != nil:
		out.Prefix, out.Config.Match = *c.Regex, "regex"
	}
	out.Config.Methods = append(out.Config.Methods, convert[string](c.Methods)...)
	for _, h := range c.Headers {
		out.Config.Headers = append(out.Config.Headers, model.ValueMatch{Name: h.Name, Exact: h.Exact, Prefix: h.Prefix, Regex: h.Regex, Invert: h.Invert})
	}
	for _, q := range c.Query {
		out.Config.Query = append(out.Config.Query, model.ValueMatch{Name: q.Name, Exact: q.Exact, Prefix: q.Prefix, Regex: q.Regex})
	}
}

// convert converts texts to another text type.
func convert[To, From ~string](list []From) []To {
	var out []To
	for _, s := range list {
		out = append(out, To(s))
	}
	return out
}
