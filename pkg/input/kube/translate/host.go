package translate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/mapping"
)

// unavailableRoute is the name of the route that closes a host.
const unavailableRoute = "unavailable"

// gatewayHost makes the service of a GatewayHost, its routes, and the objects that they need.
func (s *scope) gatewayHost(u *unit, h *gatewayv1.GatewayHost) {
	proxy := s.world.proxyOf(string(h.Spec.Proxy))
	if proxy == "" {
		s.ignored = true
		s.useFilters(h) // so that another installation may report their state
		return
	}
	s.proxies = []string{proxy}
	svc := serviceOf(h)
	if wrong := svc.Validate(); len(wrong) > 0 {
		s.problem(mapping.HostField(wrong[0].Field), Invalid, "%s", wrong[0].Message)
		return // no request can match it
	}
	if !s.world.hosts.allow(s.of.Namespace, svc.FQDN) {
		s.problem("spec.virtualhost.fqdn", HostNotAllowed, "%s", s.world.hosts.refusal(s.of.Namespace, svc.FQDN))
		return
	}
	place, field := s.world.place(proxy, svc), "spec.virtualhost.fqdn"
	if place != strings.ToLower(svc.FQDN) {
		field = "spec.virtualhost.port"
	} else {
		place = "host " + svc.FQDN
	}
	if holder := s.world.holder(claim{s.of.Kind, proxy, s.world.place(proxy, svc)}); holder != nil && holder != u {
		s.problem(field, HostConflict, "%s has the %s on proxy %s and is older; this one is left out", holder.ref, place, proxy)
		return
	}
	if why := s.world.portRefusal(proxy, svc); why != "" {
		s.problem(field, HostConflict, "it %s; this one is left out", why)
		return
	}
	closed := s.virtualHost(svc, &h.Spec)
	exempt := s.exemptions()
	svc.ExemptFilters = model.NewTags(exempt[allRoutes])
	s.make(svc, "")
	s.make(&model.ProxyService{Proxy: proxy, Service: svc.Name}, "")
	filters, broken := s.filters("spec.filters", h.Spec.Filters, model.KindService)
	routes, unreadable := s.readRoutes(svc.Name, h.Spec.Routes)
	if svc.IsL4() {
		closed = s.checkL4(svc, h, routes) || closed
	}
	if closed || broken || unreadable {
		s.make(&model.Route{Service: svc.Name, Name: unavailableRoute, Prefix: "/"}, "spec")
		return
	}
	for _, f := range filters {
		s.make(&model.ServiceFilter{Service: svc.Name, Filter: f.name}, f.path)
	}
	for _, r := range routes {
		r.mode = svc.Mode
		s.exempt(r, exempt[r.Name])
		s.route(r)
	}
}

// checkL4 reports what a host of a mode other than http cannot have. It then must be closed.
func (s *scope) checkL4(svc *model.Service, h *gatewayv1.GatewayHost, routes []*routeReading) (closed bool) {
	problem := func(path, format string, args ...any) {
		s.problem(path, Invalid, format, args...)
		closed = true
	}
	if len(routes) > 1 {
		problem("spec.routes[1]", "a host of mode %s has one route: connections take one way", svc.Mode)
	}
	filters := func(at string, list []gatewayv1.FilterReference) {
		for i, f := range list {
			found := s.world.resultOf(Ref{gatewayv1.KindRouteFilter, s.of.Namespace, string(f.Name)})
			if found != nil && found.filter.exists && found.filter.typeName != model.FilterIPAccess {
				problem(fmt.Sprintf("%s[%d].name", at, i), "is of type %s, which is about requests: a host of mode %s can have filters of type %s",
					found.filter.typeName, svc.Mode, model.FilterIPAccess)
			}
		}
	}
	filters("spec.filters", h.Spec.Filters)
	for i, r := range routes {
		for _, e := range r.ValidateL4() {
			path, _ := r.Field(e.Field)
			problem(path, "%s", e.Message)
		}
		filters(r.at+".filters", r.spec.Filters)
		for j := range r.spec.Services {
			b := &h.Spec.Routes[i].Services[j]
			if svc.UpstreamRefusal(&model.Upstream{Protocol: b.Protocol}) != "" {
				problem(fmt.Sprintf("%s.services[%d].protocol", r.at, j), "a host of mode %s passes on what it gets: write http", svc.Mode)
			}
		}
	}
	if t := h.Spec.VirtualHost.TLS; t != nil && svc.SecretRefusal() != "" {
		problem("spec.virtualhost.tls", "the host %s", svc.SecretRefusal())
	}
	return closed
}

// useFilters records the RouteFilters that a host and its routes name.
func (s *scope) useFilters(h *gatewayv1.GatewayHost) {
	list := slices.Clone(h.Spec.Filters)
	for _, r := range h.Spec.Routes {
		list = append(list, r.Filters...)
	}
	for _, f := range list {
		s.use(Ref{gatewayv1.KindRouteFilter, s.of.Namespace, string(f.Name)})
	}
}

// virtualHost sets the certificates and fields of a service. It reports whether the service must be closed.
func (s *scope) virtualHost(svc *model.Service, spec *gatewayv1.GatewayHostSpec) (closed bool) {
	if t := spec.VirtualHost.TLS; t != nil {
		const at = "spec.virtualhost.tls"
		if t.SecretName != "" {
			ref := gatewayv1.SecretReference{Name: t.SecretName, Namespace: t.SecretNamespace}
			s.certificate(svc, at+".secretName", ref)
		}
		for i, ref := range t.AdditionalSecrets {
			s.certificate(svc, fmt.Sprintf("%s.additionalSecrets[%d]", at, i), ref)
		}
	}
	bare := *svc
	mapping.ReadHost(spec, svc, s.secretOf)
	wrong := svc.Validate()
	for _, e := range wrong {
		s.problem(mapping.HostField(e.Field), Invalid, "%s", e.Message)
	}
	if len(wrong) == 0 {
		return false
	}
	*svc = bare
	return true
}

// certificate sets the certificate of a service from a Secret. Without it the host is not served
// over HTTPS.
func (s *scope) certificate(svc *model.Service, path string, ref gatewayv1.SecretReference) {
	if name, usable := s.secret(path, s.secretRef(ref), forPair); usable {
		s.make(&model.ServiceSecret{Service: svc.Name, Secret: name}, path)
	}
}

// filterUse is a filter that a host or a route has.
type filterUse struct{ name, path string }

// filters finds the RouteFilters that a host or a route names. It reports whether one of them
// cannot be used, so that the host or route must be closed.
func (s *scope) filters(at string, list []gatewayv1.FilterReference, on model.Kind) (uses []filterUse, broken bool) {
	for i, f := range list {
		path := fmt.Sprintf("%s[%d].name", at, i)
		ref := Ref{gatewayv1.KindRouteFilter, s.of.Namespace, string(f.Name)}
		s.use(ref)
		found := s.world.resultOf(ref)
		if found == nil || !found.filter.exists {
			s.notFound(path, ref)
			broken = true
			continue
		}
		if found.filter.list != "" {
			s.problem(path, Invalid, "%s is a list, which filters name in their configurations", ref)
			broken = true
			continue
		}
		if len(found.problems) > 0 {
			p := found.closed()
			s.problem(path, p.Reason, "%s cannot be used: %s: %s", ref, p.Path, p.Message)
		}
		if !found.filter.usable {
			broken = true
			continue
		}
		if on == model.KindRoute && !found.filter.onRoutes {
			s.problem(path, Invalid, "%s is of type %s, which is for whole hosts: name it in spec.filters", ref,
				found.filter.typeName)
			broken = true
			continue
		}
		uses = append(uses, filterUse{objectName(ref.Namespace, ref.Name), path})
	}
	return uses, broken
}

// exempt gives the filters of the host from which a route is exempt their names in the store, where names of another
// namespace's filters have no place, and adds the filters of proxies from which GlobalConfigs exempt the route.
func (s *scope) exempt(r *routeReading, ofProxy []string) {
	if r.Config.Exempt == nil && len(ofProxy) > 0 {
		r.Config.Exempt = &model.Exempt{}
	}
	if r.Config.Exempt == nil {
		return
	}
	for i, name := range r.Config.Exempt.Service {
		r.Config.Exempt.Service[i] = objectName(s.of.Namespace, name)
	}
	r.Config.Exempt.Proxy = ofProxy
}

// route makes a route, its links, and the objects that they need.
func (s *scope) route(r *routeReading) {
	filters, closed := s.filters(r.at+".filters", r.spec.Filters, model.KindRoute)
	upstreams, broken := s.services(r)
	closed = closed || broken || r.Broken
	if closed {
		r.Config.Rewrite, r.Config.Timeouts, r.Config.Retries, r.Config.Exempt = nil, nil, nil, nil
	}
	s.make(r.Route.Route, r.at)
	if closed {
		return // without an upstream it answers a fixed 503
	}
	for _, u := range upstreams {
		s.make(&model.RouteUpstream{Service: r.Service, Route: r.Name, Upstream: u.name}, u.path)
	}
	for _, f := range filters {
		s.make(&model.RouteFilter{Service: r.Service, Route: r.Name, Filter: f.name}, f.path)
	}
}

// services makes the upstreams of a route. A missing one is left out, so that the others get its
// share. broken says that one cannot be reached with the required protocol or settings.
func (s *scope) services(r *routeReading) (uses []filterUse, broken bool) {
	seen := map[string]int{}
	for i, b := range r.spec.Services {
		at := fmt.Sprintf("%s.services[%d]", r.at, i)
		ref := Ref{KindService, cmp.Or(string(b.Namespace), s.of.Namespace), string(b.Name)}
		id := ref.String() + " " + b.Port.String()
		seen[id]++
		settings, protocol := b.BackendSettings, corev1.Protocol("")
		if r.mode != model.ModeHTTP { // appProtocol says what clients speak
			settings.Protocol = cmp.Or(settings.Protocol, "http")
		}
		if r.mode == model.ModeUDP {
			protocol = corev1.ProtocolUDP
		}
		name, f := s.upstream(wish{
			at: at + ".name", portAt: at + ".port", settingsAt: at, ref: ref, port: b.Port, settings: settings,
			protocolOfPort: protocol,
			weight:         b.Weight,
			place:          fmt.Sprintf("%s/%s/%s/%d", s.of.Namespace, s.of.Name, r.Name, seen[id]), repeated: seen[id] > 1,
		})
		broken = broken || f == unusable
		if f == granted {
			uses = append(uses, filterUse{name, at})
		}
	}
	return uses, broken
}
