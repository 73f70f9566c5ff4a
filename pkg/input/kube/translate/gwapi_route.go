package translate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// maxRoutesOfOne bounds the routes that one HTTPRoute becomes: each of its matches for each of its hosts, on all its
// Gateways.
const maxRoutesOfOne = 20_000

// The reasons of Accepted that are not the Gateway API's.
const (
	reasonHostConflict   gwapi.RouteConditionReason = HostConflict
	reasonHostNotAllowed gwapi.RouteConditionReason = HostNotAllowed
	reasonTooManyRoutes  gwapi.RouteConditionReason = "TooManyRoutes"
)

// binding is what an HTTPRoute serves on one Gateway: by host, at which entries.
type binding struct {
	gateway *gatewayState
	hosts   map[string]map[entry]bool
	// left counts the hosts of other routes that it does not serve where these do not, because of maxRoutesOfOne.
	left int
}

// parent is a Gateway that a route names. binding is nil for a route of connections. reason says why it does not take the route; empty means that it does.
type parent struct {
	*binding
	reason  gwapi.RouteConditionReason
	message string
}

// precedenceOf returns the number that orders a match of a rule: that with the higher one comes first.
type precedenceOf func(rule, match int, c *model.RouteConfig, path string) int

// httpRoute makes the routes of an HTTPRoute on each Gateway that it names and that takes it.
func (s *scope) httpRoute(o *gwapi.HTTPRoute, order precedenceOf) {
	var bindings []*binding
	var parents []parent
	result := &RouteResult{}
	rules := s.rules(o, order)
	for i, ref := range o.Spec.ParentRefs {
		g := s.gatewayOf(&o.Spec.ParentRefs[i])
		if g == nil {
			continue
		}
		at := slices.IndexFunc(bindings, func(b *binding) bool { return b.gateway == g })
		if at < 0 {
			at = len(bindings)
			bindings = append(bindings, &binding{gateway: g, hosts: map[string]map[entry]bool{}})
		}
		reason, message := s.attach(o.Spec.Hostnames, &o.Spec.ParentRefs[i], g, func(l *listenerState, hosts []string) (gwapi.RouteConditionReason, string) {
			return s.addHosts(bindings[at], l, hosts)
		})
		parents = append(parents, parent{bindings[at], reason, message})
		result.Parents = append(result.Parents, ParentResult{Ref: ref})
	}
	slices.Sort(s.proxies)
	s.proxies = slices.Compact(s.proxies)
	s.ignored = len(result.Parents) == 0
	s.api = result
	n, own := 0, 0
	for _, b := range bindings {
		n = max(n, rules.matches(len(b.gateway.unusualPorts())+1))
	}
	for _, b := range bindings {
		own += n * len(b.hosts)
	}
	if s.ignored || rules.unreadable || own > maxRoutesOfOne {
		clear(s.made) // nothing is served
		clear(s.serves)
	} else {
		for _, b := range bindings {
			own += n * s.bind(b, rules, (maxRoutesOfOne-own)/max(1, n))
		}
	}
	for i, p := range parents {
		if p.reason == "" && own > maxRoutesOfOne {
			p.reason, p.message = reasonTooManyRoutes, fmt.Sprintf("its %d matches for each of its hosts are %d routes: one %s may be %d",
				n, own, s.of.Kind, maxRoutesOfOne)
		}
		result.Parents[i].Conditions = rules.verdicts(s.of.Kind, p)
	}
}

// gatewayOf returns the Gateway that a parent is, or that the ListenerSet is for which it is; nil if it does not exist, or is another controller's.
func (s *scope) gatewayOf(ref *gwapi.ParentReference) *gatewayState {
	to := s.parentNamed(ref)
	if text(ref.Group, gwapi.GroupName) != gwapi.GroupName || to.Kind != KindGateway && to.Kind != KindListenerSet {
		return nil
	}
	s.use(to)
	r := s.world.resultOf(to)
	if to.Kind == KindListenerSet {
		if r == nil || r.set == nil {
			return nil
		}
		s.use(r.set.gateway)
		r = s.world.resultOf(r.set.gateway)
	}
	if r == nil || r.state == nil {
		return nil
	}
	s.proxies = append(s.proxies, r.state.proxy)
	return r.state
}

// parentNamed returns what a route names as its parent.
func (s *scope) parentNamed(ref *gwapi.ParentReference) Ref {
	return Ref{text(ref.Kind, KindGateway), text(ref.Namespace, s.of.Namespace), string(ref.Name)}
}

// attach finds the listeners of a Gateway, or of one of its ListenerSets, that take the route, and adds the hosts that it then serves. The reason says
// why there are none; empty means that there are some.
func (s *scope) attach(
	hostnames []gwapi.Hostname, ref *gwapi.ParentReference, g *gatewayState, add func(*listenerState, []string) (gwapi.RouteConditionReason, string),
) (reason gwapi.RouteConditionReason, message string) {
	reason, message = gwapi.RouteReasonNoMatchingParent, "the parent has no listener with this sectionName and port"
	owner := s.parentNamed(ref)
	for i := range g.listeners {
		l := &g.listeners[i]
		if l.owner != owner {
			continue
		}
		if ref.SectionName != nil && string(*ref.SectionName) != l.name || ref.Port != nil && *ref.Port != l.port {
			continue
		}
		if !slices.Contains(l.kinds, s.of.Kind) || !s.takes(l) {
			reason, message = rank(reason, message, gwapi.RouteReasonNotAllowedByListeners, "allowedRoutes of the listener does not allow it")
			continue
		}
		hosts := hostsFor(hostnames, l)
		if len(hosts) == 0 {
			reason, message = rank(reason, message, gwapi.RouteReasonNoMatchingListenerHostname, "no host name of it is one of the listener's")
			continue
		}
		if names := s.attached[owner]; !slices.Contains(names, l.name) {
			s.attached[owner] = append(names, l.name)
		}
		if l.refused != "" {
			reason, message = rank(reason, message, gwapi.RouteReasonNoMatchingParent, "listener "+l.name+" serves nothing: "+l.refused)
			continue
		}
		why, what := add(l, hosts)
		reason, message = rank(reason, message, why, what)
	}
	return reason, message
}

// rank keeps the reason that says most: none at all, or the one that was found last on the way to it.
func rank(r gwapi.RouteConditionReason, message string, now gwapi.RouteConditionReason, nowMessage string) (gwapi.RouteConditionReason, string) {
	order := []gwapi.RouteConditionReason{
		gwapi.RouteReasonNoMatchingParent, gwapi.RouteReasonNotAllowedByListeners, gwapi.RouteReasonNoMatchingListenerHostname,
		gwapi.RouteReasonUnsupportedValue, reasonHostNotAllowed, reasonHostConflict, "",
	}
	if slices.Index(order, now) >= slices.Index(order, r) {
		return now, nowMessage
	}
	return r, message
}

// hostsFor lists the hosts of a route that a listener has.
func hostsFor(hostnames []gwapi.Hostname, l *listenerState) (hosts []string) {
	if len(hostnames) == 0 {
		return []string{l.host}
	}
	for i := range hostnames {
		if h := intersection(l.host, hostname(&hostnames[i])); h != "" && !slices.Contains(hosts, h) {
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// addHosts adds the hosts that the route serves by a listener. It leaves out those of a listener with a narrower host
// name, and those that others have.
func (s *scope) addHosts(b *binding, l *listenerState, hosts []string) (reason gwapi.RouteConditionReason, message string) {
	served := 0
	for _, h := range hosts {
		switch {
		case b.gateway.closest(h, l.entry) != l:
			reason, message = cmp.Or(reason, gwapi.RouteReasonNoMatchingListenerHostname), cmp.Or(message, "another listener has the host "+h)
			continue
		case !s.world.hosts.allow(s.of.Namespace, h):
			reason, message = reasonHostNotAllowed, s.world.hosts.refusal(s.of.Namespace, h)
			continue
		case s.hostService(b.gateway, h, "spec") == "":
			reason, message = reasonHostConflict, "a GatewayHost has the host "+h+" on proxy "+b.gateway.proxy
			continue
		}
		served++
		if b.hosts[h] == nil {
			b.hosts[h] = map[entry]bool{}
		}
		b.hosts[h][l.entry] = true
		s.serves[hostOn{b.gateway.ref, h, l.entry}] = struct{}{}
	}
	if served > 0 {
		return "", ""
	}
	return reason, message
}

// bind makes the routes of an HTTPRoute on a Gateway. It adds at most room hosts that are only other routes', and returns
// how many: those must not displace a host of its own.
func (s *scope) bind(b *binding, rules *rulesReading, room int) (added int) {
	gaps := b.gaps(s)
	for _, host := range slices.Sorted(maps.Keys(gaps)) {
		switch {
		case b.hosts[host] != nil:
			maps.Copy(b.hosts[host], gaps[host])
		case added == room:
			b.left++
		default:
			b.hosts[host] = gaps[host]
			added++
		}
	}
	for _, host := range slices.Sorted(maps.Keys(b.hosts)) {
		service := s.hostService(b.gateway, host, "spec")
		if service == "" {
			continue
		}
		for _, r := range rules.list {
			s.emit(b.gateway, r, service, b.hosts[host])
		}
	}
	return added
}

// gaps lists the hosts of a Gateway that other routes serve at other entries only: those requests at this entry go to
// the routes with the next wider host of the same listener.
func (b *binding) gaps(s *scope) map[string]map[entry]bool {
	if !slices.ContainsFunc(slices.Collect(maps.Keys(b.hosts)), func(h string) bool { return strings.HasPrefix(h, "*") }) {
		return nil
	}
	s.use(Ref{kindHosts, b.gateway.ref.Namespace, b.gateway.ref.Name})
	all := s.world.hostCount[b.gateway.ref] // a change of the own hosts leads here again
	found := map[string]map[entry]bool{}
	entries := b.gateway.entries()
	for h := range all {
		for _, at := range entries {
			if all[hostOn{h.gateway, h.host, at}] > 0 {
				continue
			}
			l, next := b.gateway.closest(h.host, at), nextWider(all, h, at)
			if l == nil || next == "" || !covers(l.host, next) || !b.hosts[next][at] {
				continue
			}
			if found[h.host] == nil {
				found[h.host] = map[entry]bool{}
			}
			found[h.host][at] = true
		}
	}
	return found
}

// nextWider returns the narrowest host at an entry that is wider than another one; empty if there is none.
func nextWider(all map[hostOn]int, h hostOn, at entry) string {
	for parent := h.host; parent != "*"; {
		_, rest, found := strings.Cut(strings.TrimPrefix(parent, "*."), ".")
		if parent = "*"; found {
			parent = "*." + rest
		}
		if all[hostOn{h.gateway, parent, at}] > 0 {
			return parent
		}
	}
	return ""
}

// emit makes the routes of a rule for a service and the requests at some entries.
func (s *scope) emit(g *gatewayState, r *ruleReading, service string, at map[entry]bool) {
	for port, part := range g.byPort(at, r.keepsPort != nil) {
		only, ports := g.conditionsFor(part)
		filters := s.filtersFor(r, port)
		for _, m := range r.matches {
			route := *m
			route.Service, route.Config.Ports = service, ports
			if port != 0 {
				route.Name += fmt.Sprintf("--port-%d", port)
			}
			if only != "" {
				condition := model.ValueMatch{Name: "x-forwarded-proto", Exact: &only}
				route.Config.Headers = append(slices.Clone(route.Config.Headers), condition)
			}
			s.make(&route, r.at)
			for _, u := range r.upstreams {
				s.make(&model.RouteUpstream{Service: service, Route: route.Name, Upstream: u.name}, u.path)
			}
			for _, f := range filters {
				s.make(&model.RouteFilter{Service: service, Route: route.Name, Filter: f.name}, f.path)
			}
		}
	}
}

// verdicts are the conditions of a parent.
func (r *rulesReading) verdicts(kind string, p parent) []Verdict {
	reason, message := p.reason, p.message
	if reason == "" && (r.unreadable || r.refused == len(r.list) && r.refused > 0) {
		reason, message = cmp.Or(r.refusedReason, gwapi.RouteReasonUnsupportedValue), r.refusedMessage
	}
	list := []Verdict{
		verdict(gwapi.RouteConditionAccepted, gwapi.RouteReasonAccepted, "it is a part of the configuration", reason, message),
		verdict(gwapi.RouteConditionResolvedRefs, gwapi.RouteReasonResolvedRefs, "every object that it names exists and may be used", r.brokenReason, r.brokenMessage),
	}
	partial := func(reason gwapi.RouteConditionReason, format string, args ...any) {
		list = append(list, Verdict{string(gwapi.RouteConditionPartiallyInvalid), true, string(reason), fmt.Sprintf(format, args...)})
	}
	switch {
	case reason != "":
	case r.refused > 0:
		partial(gwapi.RouteReasonUnsupportedValue, "Dropped Rule: requests for it are answered with 500: %s", r.refusedMessage)
	case p.binding != nil && p.left > 0:
		partial(reasonTooManyRoutes, "it does not serve %d hosts that only other listeners have routes for: "+
			"one %s may be %d routes", p.left, kind, maxRoutesOfOne)
	}
	return list
}
