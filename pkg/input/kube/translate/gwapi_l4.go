package translate

import (
	"cmp"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// kindConnections stands for what routes of connections claim: a port of a Gateway, or a host name there.
const kindConnections = "connections of Gateway"

// connectionRoute is what TLSRoutes, TCPRoutes and UDPRoutes have.
type connectionRoute struct {
	gwapi.CommonRouteSpec
	hostnames []gwapi.Hostname
	// rules are the backends of each rule.
	rules [][]gwapi.BackendRef
}

// connectionService is a service with the certificates that decrypt its connections; none means that they are passed on
// as they are.
type connectionService struct {
	*model.Service
	secrets []string
}

func tlsRoute(o *gwapi.TLSRoute) connectionRoute {
	r := connectionRoute{CommonRouteSpec: o.Spec.CommonRouteSpec, hostnames: o.Spec.Hostnames}
	for _, rule := range o.Spec.Rules {
		r.rules = append(r.rules, rule.BackendRefs)
	}
	return r
}

func tcpRoute(o *gwapi.TCPRoute) connectionRoute {
	r := connectionRoute{CommonRouteSpec: o.Spec.CommonRouteSpec}
	for _, rule := range o.Spec.Rules {
		r.rules = append(r.rules, rule.BackendRefs)
	}
	return r
}

func udpRoute(o *gwapi.UDPRoute) connectionRoute {
	r := connectionRoute{CommonRouteSpec: o.Spec.CommonRouteSpec}
	for _, rule := range o.Spec.Rules {
		r.rules = append(r.rules, rule.BackendRefs)
	}
	return r
}

// modeOf returns the mode of the services for a listener's protocol.
func modeOf(protocol gwapi.ProtocolType) string {
	return map[gwapi.ProtocolType]string{
		gwapi.TLSProtocolType: model.ModeTLS, gwapi.TCPProtocolType: model.ModeTCP, gwapi.UDPProtocolType: model.ModeUDP,
	}[protocol]
}

// connections makes the services of a route of connections: one for each listener, and with mode tls for each of its
// hosts. Of several routes for one, the oldest gets the connections; the API accepts the others too.
func (s *scope) connections(u *unit, o connectionRoute) {
	all, result := &rulesReading{}, &RouteResult{}
	upstreams := s.connectionBackends(all, o.rules)
	services := map[claim]connectionService{}
	var claims []claim
	var parents []parent
	for i, ref := range o.ParentRefs {
		g := s.gatewayOf(&o.ParentRefs[i])
		if g == nil {
			continue
		}
		reason, message := s.attach(o.hostnames, &o.ParentRefs[i], g, func(l *listenerState, hosts []string) (gwapi.RouteConditionReason, string) {
			return s.claimHosts(g, l, hosts, func(c claim, svc *model.Service) {
				if services[c].Service == nil {
					services[c], claims = connectionService{svc, l.secrets}, append(claims, c)
				}
			})
		})
		parents = append(parents, parent{nil, reason, message})
		result.Parents = append(result.Parents, ParentResult{Ref: ref})
	}
	slices.Sort(s.proxies)
	s.proxies = slices.Compact(s.proxies)
	s.ignored, s.api = len(result.Parents) == 0, result
	s.world.claim(u, claims)
	for _, c := range claims {
		if s.world.holder(c) == u {
			s.connect(services[c], c.proxy, upstreams)
		}
	}
	for i, p := range parents {
		result.Parents[i].Conditions = all.verdicts(s.of.Kind, p)
	}
}

// claimHosts adds what the route wants of a listener.
func (s *scope) claimHosts(g *gatewayState, l *listenerState, hosts []string, add func(claim, *model.Service)) (reason gwapi.RouteConditionReason, message string) {
	served := 0
	for _, h := range hosts {
		svc := l.service(g, h)
		place := h
		switch {
		case svc.Mode == model.ModeTLS && svc.Port == 0: // beside HTTPS
			s.use(Ref{kindHosts, g.ref.Namespace, g.ref.Name})
		case svc.Mode == model.ModeTLS:
			place = fmt.Sprintf("%s on port %d", h, svc.Port)
		default:
			place = fmt.Sprintf("%s port %d", l.protocol, l.port)
		}
		s.use(Ref{kindHolder, g.proxy, place})
		switch {
		case svc.Mode == model.ModeTLS && g.closest(h, l.entry) != l:
			reason, message = cmp.Or(reason, gwapi.RouteReasonNoMatchingListenerHostname), cmp.Or(message, "another listener has the host "+h)
			continue
		case svc.Mode == model.ModeTLS && h == "*":
			reason, message = gwapi.RouteReasonUnsupportedValue, "a TLSRoute needs a host name: connections without one are closed"
			continue
		case !s.world.hosts.allow(s.of.Namespace, svc.FQDN): // a port is for any host
			reason, message = reasonHostNotAllowed, s.world.hosts.refusal(s.of.Namespace, svc.FQDN)
			continue
		case svc.Mode == model.ModeTLS && svc.Port == 0 && s.world.isServed(g, h):
			reason, message = reasonHostConflict, "an HTTPRoute or a listener for HTTP has the host "+h
			continue
		case s.world.holder(claim{gatewayv1.KindGatewayHost, g.proxy, place}) != nil:
			reason, message = reasonHostConflict, fmt.Sprintf("a GatewayHost has %s on proxy %s", place, g.proxy)
			continue
		}
		served++
		add(claim{kindConnections, g.proxy, place}, svc)
	}
	if served > 0 {
		return "", ""
	}
	return reason, message
}

// service returns the service for a host of a listener of connections.
func (l *listenerState) service(g *gatewayState, host string) *model.Service {
	svc := model.NewService()
	svc.Mode, svc.FQDN, svc.Port = modeOf(l.protocol), "*", int(l.port)
	what := fmt.Sprintf("%s-%d", svc.Mode, l.port)
	if svc.Mode == model.ModeTLS {
		svc.FQDN = host
		if svc.Port = l.envoy; slices.Contains(g.own, entry{"https", l.envoy}) {
			svc.Port = 0
		}
		what += "-" + wildcardless(host)
	}
	svc.Name = ownName(g.ref.Namespace, g.ref.Name, what)
	return svc
}

// connect makes a service with its route.
func (s *scope) connect(svc connectionService, proxy string, upstreams []filterUse) {
	const at = "spec"
	s.make(svc.Service, at)
	for _, secret := range svc.secrets {
		s.make(&model.ServiceSecret{Service: svc.Name, Secret: secret}, at)
	}
	s.make(&model.ProxyService{Proxy: proxy, Service: svc.Name}, at)
	route := &model.Route{Service: svc.Name, Name: "connections", Prefix: "/"}
	s.make(route, at)
	for _, u := range upstreams {
		s.make(&model.RouteUpstream{Service: svc.Name, Route: route.Name, Upstream: u.name}, u.path)
	}
}

// connectionBackends makes the upstreams of a route. The API has one rule.
func (s *scope) connectionBackends(all *rulesReading, rules [][]gwapi.BackendRef) (upstreams []filterUse) {
	for i, refs := range rules {
		if i > 0 {
			all.lack(gwapi.RouteReasonUnsupportedValue, fmt.Sprintf("spec.rules[%d]", i), "connections take one way: a route has one rule")
			break
		}
		even := !slices.ContainsFunc(refs, func(b gwapi.BackendRef) bool { return b.Weight != nil && *b.Weight != 1 })
		seen := map[string]int{}
		for j, b := range refs {
			at := fmt.Sprintf("spec.rules[%d].backendRefs[%d]", i, j)
			id := fmt.Sprintf("%s/%s:%v", text(b.Namespace, ""), b.Name, b.Port)
			seen[id]++
			w := wish{repeated: seen[id] > 1, place: fmt.Sprintf("%s/%s/%s/%d", s.of.Kind, s.of.Namespace, s.of.Name, j)}
			w.settings.Protocol = "http" // appProtocol says what clients speak
			if s.of.Kind == KindUDPRoute {
				w.protocolOfPort = corev1.ProtocolUDP
			}
			if !even {
				weight := int32(1)
				if b.Weight != nil {
					weight = *b.Weight
				}
				w.weight = &weight
			}
			if name, usable := s.backendRef(all, at, b.BackendObjectReference, w); usable {
				upstreams = append(upstreams, filterUse{name, at})
			}
		}
	}
	return upstreams
}
