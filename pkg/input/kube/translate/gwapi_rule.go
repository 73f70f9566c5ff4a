package translate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// rulesReading is what was read of the rules of an HTTPRoute.
type rulesReading struct {
	list []*ruleReading
	// unreadable says that a match cannot be read, so that nothing of the route is served.
	unreadable bool
	// refused counts the rules that are closed, because something of them is not supported.
	refused        int
	refusedReason  gwapi.RouteConditionReason
	refusedMessage string
	// brokenReason says which object that the route names cannot be used.
	brokenReason  gwapi.RouteConditionReason
	brokenMessage string
}

// ruleReading is a rule.
type ruleReading struct {
	at string
	// name is the part of the names of its objects.
	name string
	// matches are its routes, without a service.
	matches            []*model.Route
	upstreams, filters []filterUse
	// keepsPort is a redirect that names no port; nil means none.
	keepsPort *redirectToPort
	// config is the action of its routes.
	config model.RouteConfig
	// answers says that a filter answers, closed that requests get 500, because something is missing.
	answers, closed bool
}

// matches counts the matches of all rules; ports are how many ports a redirect may have to name.
func (r *rulesReading) matches(ports int) (n int) {
	for _, rule := range r.list {
		if rule.keepsPort != nil {
			n += len(rule.matches) * ports
		} else {
			n += len(rule.matches)
		}
	}
	return n
}

// refuse records a rule, or all of them, that cannot be done.
func (r *rulesReading) refuse(path, format string, args ...any) {
	if r.refusedMessage == "" {
		r.refusedMessage = path + ": " + fmt.Sprintf(format, args...)
	}
}

// lack records an object that a route names and that cannot be used.
func (r *rulesReading) lack(reason gwapi.RouteConditionReason, path, message string) {
	if r.brokenReason == "" {
		r.brokenReason, r.brokenMessage = reason, path+": "+message
	}
}

// rules reads the rules of an HTTPRoute, and makes the upstreams and filters that they need.
func (s *scope) rules(o *gwapi.HTTPRoute, order precedenceOf) *rulesReading {
	all, kind := &rulesReading{}, ""
	if s.of.Kind != KindHTTPRoute { // another route may have the same name
		kind = strings.ToLower(s.of.Kind) + "-"
	}
	for i := range o.Spec.Rules {
		spec := &o.Spec.Rules[i]
		r := &ruleReading{at: fmt.Sprintf("spec.rules[%d]", i), name: fmt.Sprintf("%srule-%d", kind, i)}
		supported := s.action(all, r, spec)
		for j, m := range matchesOf(spec) {
			route := s.match(all, fmt.Sprintf("%s.matches[%d]", r.at, j), m)
			route.Name = s.nameOf(o, i, j)
			route.Config.Priority = order(i, j, &route.Config, route.Prefix)
			if supported {
				route.Config.Rewrite, route.Config.Timeouts, route.Config.Retries = r.config.Rewrite, r.config.Timeouts, r.config.Retries
			}
			if wrong := route.Validate(); len(wrong) > 0 && !all.unreadable {
				all.refuse(r.at, "%s %s", wrong[0].Field, wrong[0].Message)
				if strings.HasPrefix(wrong[0].Field, "Route_config.rewrite") || strings.HasPrefix(wrong[0].Field, "Route_config.timeouts") {
					supported = false
				} else {
					all.unreadable = true
				}
			}
			r.matches = append(r.matches, route)
		}
		if !supported {
			all.refused++
			for _, m := range r.matches {
				m.Config.Rewrite, m.Config.Timeouts, m.Config.Retries = nil, nil, nil
			}
			r.upstreams = nil
			r.filters, r.keepsPort = []filterUse{s.answer500(r.at)}, nil
		}
		all.list = append(all.list, r)
	}
	return all
}

func matchesOf(spec *gwapi.HTTPRouteRule) []gwapi.HTTPRouteMatch {
	if len(spec.Matches) == 0 {
		return []gwapi.HTTPRouteMatch{{}}
	}
	return spec.Matches
}

// nameOf returns the name of the route for a match. It orders those that are otherwise equal: the oldest object comes
// first, then the first by namespace and name, then the first rule. A dash is less than what else is in a name.
func (s *scope) nameOf(o *gwapi.HTTPRoute, rule, match int) string {
	name := fmt.Sprintf("%010d--%s--%s--%02d--%03d", max(0, o.CreationTimestamp.Unix()), s.of.Namespace, s.of.Name, rule, match)
	if s.of.Kind != KindHTTPRoute {
		name += "--" + strings.ToLower(s.of.Kind)
	}
	return shorten(name)
}

// match reads a match, at a path.
func (s *scope) match(all *rulesReading, at string, m gwapi.HTTPRouteMatch) *model.Route {
	route := &model.Route{Prefix: "/"}
	kind := gwapi.PathMatchPathPrefix
	if p := m.Path; p != nil {
		kind, route.Prefix = gwapi.PathMatchType(text(p.Type, string(kind))), text(p.Value, "/")
	}
	c := &route.Config
	switch kind {
	case gwapi.PathMatchExact:
		c.Match = "exact"
	case gwapi.PathMatchRegularExpression:
		c.Match = "regex"
	case gwapi.PathMatchPathPrefix:
		if c.Match = "segment"; route.Prefix == "/" {
			c.Match = ""
		}
	default:
		all.unreadable = true
		all.refuse(at+".path.type", "%q is not supported", kind)
	}
	if m.Method != nil {
		c.Methods = []string{string(*m.Method)}
	}
	seen := map[string]bool{}
	for _, h := range m.Headers {
		if name := strings.ToLower(string(h.Name)); !seen[name] { // only the first one counts
			seen[name] = true
			c.Headers = append(c.Headers, valueMatch(string(h.Name), h.Value, text(h.Type, "") == string(gwapi.HeaderMatchRegularExpression)))
		}
	}
	seen = map[string]bool{}
	for _, q := range m.QueryParams {
		if !seen[string(q.Name)] {
			seen[string(q.Name)] = true
			c.Query = append(c.Query, valueMatch(string(q.Name), q.Value, text(q.Type, "") == string(gwapi.QueryParamMatchRegularExpression)))
		}
	}
	return route
}

func valueMatch(name, value string, regex bool) model.ValueMatch {
	if regex {
		return model.ValueMatch{Name: name, Regex: &value}
	}
	return model.ValueMatch{Name: name, Exact: &value}
}

// precedence orders matches as the Gateway API does: exact paths, regular expressions, the longest prefix, a method, the
// most headers, the most query parameters.
func precedence(_, _ int, c *model.RouteConfig, path string) int {
	length := len(path)
	if c.Match == "segment" {
		length = len(strings.TrimSuffix(path, "/"))
	}
	kind := map[string]int{"exact": 2, "regex": 1}[c.Match]
	return packed(part{kind, 2}, part{length, 11}, part{len(c.Methods), 1}, part{len(c.Headers), 5}, part{len(c.Query), 5})
}

// part is a number that comes before those after it, with its bits.
type part struct{ value, bits int }

// packed returns one number for several.
func packed(parts ...part) (n int) {
	for _, p := range parts {
		n = n<<p.bits | min(p.value, 1<<p.bits-1)
	}
	return n
}

// action reads what a rule does. It reports whether all of it is supported.
func (s *scope) action(all *rulesReading, r *ruleReading, spec *gwapi.HTTPRouteRule) bool {
	for _, extra := range []struct {
		field string
		set   bool
	}{{"retry", spec.Retry != nil}, {"sessionPersistence", spec.SessionPersistence != nil}} {
		if extra.set {
			all.refuse(r.at+"."+extra.field, "is not supported")
			return false
		}
	}
	if !s.timeouts(all, r, spec.Timeouts) || !s.ruleFilters(all, r, spec) {
		return false
	}
	if !s.backends(all, r, spec) {
		return false
	}
	if r.closed {
		r.upstreams, r.filters = nil, []filterUse{s.answer500(r.at)}
	}
	return true
}

// timeouts reads the timeouts of a rule.
func (s *scope) timeouts(all *rulesReading, r *ruleReading, t *gwapi.HTTPRouteTimeouts) bool {
	if t == nil {
		return true
	}
	var request, backend time.Duration
	for _, f := range []struct {
		name string
		from *gwapi.Duration
		to   *time.Duration
	}{{"request", t.Request, &request}, {"backendRequest", t.BackendRequest, &backend}} {
		if f.from == nil {
			continue
		}
		d, err := time.ParseDuration(string(*f.from))
		if err != nil {
			all.refuse(r.at+".timeouts."+f.name, "%q is not a duration", *f.from)
			return false
		}
		*f.to = d
	}
	// A request is tried once unless it cannot reach a backend, so the shorter one bounds both.
	if bound := cmp.Or(backend, request); bound > 0 {
		r.config.Timeouts = &model.Timeouts{Request: model.Duration(bound)}
	}
	return true
}

// backends makes the upstreams of a rule. Requests for those that cannot be used are answered with 500.
func (s *scope) backends(all *rulesReading, r *ruleReading, spec *gwapi.HTTPRouteRule) bool {
	if r.answers {
		return true
	}
	good, bad := 0, 0
	seen := map[string]int{}
	changed := slices.ContainsFunc(spec.BackendRefs, func(b gwapi.HTTPBackendRef) bool { return len(b.Filters) > 0 })
	var shares []jsonObject
	for i := range spec.BackendRefs {
		b := &spec.BackendRefs[i]
		at := fmt.Sprintf("%s.backendRefs[%d]", r.at, i)
		share := jsonObject{}
		if !backendFilters(all, at, share, b.Filters) {
			return false
		}
		weight := 1
		if b.Weight != nil {
			weight = int(*b.Weight)
		}
		id := fmt.Sprintf("%s/%s:%v", text(b.Namespace, ""), b.Name, b.Port)
		seen[id]++
		var own *int32
		if !changed && !evenWeights(spec.BackendRefs) {
			w := int32(weight) // #nosec G115 -- it was an int32
			own = &w
		}
		name, usable := s.backendRef(all, at, b.BackendObjectReference, wish{
			weight: own, repeated: seen[id] > 1, place: fmt.Sprintf("%s/%s/%s/%d", s.of.Namespace, s.of.Name, r.name, i),
			grpc: s.of.Kind == KindGRPCRoute,
		})
		if !usable {
			bad += weight
			continue
		}
		good += weight
		if share["name"], share["weight"] = name, weight; changed {
			shares = append(shares, share)
			continue
		}
		r.upstreams = append(r.upstreams, filterUse{name, at})
	}
	switch {
	case good == 0:
		r.closed = true
		return true
	case changed && !s.addFilter(all, r, r.at+".backendRefs", "backends", model.FilterCanary, jsonObject{"upstreams": shares}):
		return false
	case bad > 0:
		percent := math.Round(float64(bad)/float64(good+bad)*1e6) / 1e4
		return s.addFilter(all, r, r.at, "share", model.FilterFault, model.FaultFilter{Abort: 500, Percent: &percent})
	}
	return true
}

// backendFilters adds the filters of a backend to its share. It reports whether all of them are supported.
func backendFilters(all *rulesReading, at string, share jsonObject, filters []gwapi.HTTPRouteFilter) bool {
	for i := range filters {
		switch f := &filters[i]; {
		case f.Type == gwapi.HTTPRouteFilterRequestHeaderModifier && f.RequestHeaderModifier != nil:
			addHeaders(share, "request", f.RequestHeaderModifier)
		case f.Type == gwapi.HTTPRouteFilterResponseHeaderModifier && f.ResponseHeaderModifier != nil:
			addHeaders(share, "response", f.ResponseHeaderModifier)
		default:
			all.refuse(fmt.Sprintf("%s.filters[%d].type", at, i), "a backend can have filters that change headers, and not of type %s: "+
				"write it in the rule", f.Type)
			return false
		}
	}
	return true
}

// evenWeights reports whether backends share the requests evenly.
func evenWeights(list []gwapi.HTTPBackendRef) bool {
	for i := range list {
		if list[i].Weight != nil && *list[i].Weight != 1 && len(list) > 1 || list[i].Weight != nil && *list[i].Weight == 0 {
			return false
		}
	}
	return true
}

// backendRef makes the upstream of a Service that a route names. It records why it cannot be used.
func (s *scope) backendRef(all *rulesReading, at string, ref gwapi.BackendObjectReference, w wish) (name string, usable bool) {
	fail := func(reason gwapi.RouteConditionReason, message string) (string, bool) {
		all.lack(reason, at, message)
		return "", false
	}
	if text(ref.Group, "") != "" || text(ref.Kind, KindService) != KindService {
		return fail(gwapi.RouteReasonInvalidKind, fmt.Sprintf("only a Service can be a backend, and not a %s", text(ref.Kind, KindService)))
	}
	if ref.Port == nil {
		return fail(gwapi.RouteReasonUnsupportedValue, "port is required")
	}
	w.at, w.portAt, w.settingsAt = at, at+".port", at
	w.ref = Ref{KindService, text(ref.Namespace, s.of.Namespace), string(ref.Name)}
	w.port = intstr.FromInt32(*ref.Port)
	fate := missing
	wrong := s.problemsOf(func() { name, fate = s.upstream(w) })
	if fate == granted {
		return name, true
	}
	reason, message := gwapi.RouteReasonBackendNotFound, "it does not exist"
	if len(wrong) > 0 {
		message = wrong[0].Message
		switch wrong[0].Reason {
		case RefNotPermitted:
			reason = gwapi.RouteReasonRefNotPermitted
		case Invalid:
			reason = gwapi.RouteReasonUnsupportedValue
		}
	}
	return fail(reason, message)
}

// answer500 makes the filter that closes rules. All routes share it.
func (s *scope) answer500(path string) filterUse {
	f := &model.Filter{Name: "invalid-backend_500", Type: model.FilterDirectResponse}
	f.Config = `{"status":500,"body":"this rule cannot be served: the status of its route says why\n"}`
	s.make(f, path)
	return filterUse{f.Name, path}
}

// addFilter makes a filter of a rule.
func (s *scope) addFilter(all *rulesReading, r *ruleReading, path, what, kind string, config any) bool {
	text, err := json.Marshal(config)
	if err != nil {
		all.refuse(path, "%s", err)
		return false
	}
	f := &model.Filter{Name: ownName(s.of.Namespace, s.of.Name, r.name+"-"+what), Type: kind, Config: model.JSON(text)}
	if wrong := f.Validate(); len(wrong) > 0 {
		all.refuse(path, "%s", wrong[0].Message)
		return false
	}
	s.make(f, path)
	r.filters = append(r.filters, filterUse{f.Name, path})
	return true
}
