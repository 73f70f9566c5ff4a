package translate

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// gatewayState is what routes need to know of a Gateway.
type gatewayState struct {
	ref       Ref
	proxy     string
	listeners []listenerState
	// own are the entries that the proxy has anyway, ports those that its routes distinguish.
	own   []entry
	ports model.Ports
}

// listenerState is what routes need to know of a listener.
type listenerState struct {
	// owner is the Gateway or the ListenerSet that has it.
	owner    Ref
	name     string
	port     int32
	protocol gwapi.ProtocolType
	entry
	// host is a name, *.SUFFIX or *.
	host string
	// decrypts says that it needs a certificate.
	decrypts bool
	// kinds are the kinds of routes that it takes, from and selector from which namespaces.
	kinds    []string
	from     gwapi.FromNamespaces
	selector *metav1.LabelSelector
	// secrets are the names of its certificates.
	secrets []string
	// refused says why it serves nothing; empty means that it does.
	refused string
}

// gatewayClass reads a GatewayClass.
func (s *scope) gatewayClass(o *gwapi.GatewayClass) {
	if s.world.Controller == "" || string(o.Spec.ControllerName) != s.world.Controller {
		s.ignored = true
		return
	}
	reason, message := gwapi.GatewayClassConditionReason(""), ""
	if o.Spec.ParametersRef != nil {
		reason, message = gwapi.GatewayClassReasonInvalidParameters, "spec.parametersRef: a class has no parameters"
	}
	s.class = reason == ""
	s.api = &ClassResult{Conditions: []Verdict{
		verdict(gwapi.GatewayClassConditionStatusAccepted, gwapi.GatewayClassReasonAccepted,
			"its Gateways are served", reason, message),
	}}
}

// gateway makes the proxy of a Gateway, and a service for the host name of each listener: what no route of the listener
// takes is answered with 404, and not by a route of a listener with a wider host name.
func (s *scope) gateway(o *gwapi.Gateway) {
	class := Ref{Kind: KindGatewayClass, Name: string(o.Spec.GatewayClassName)}
	s.use(class)
	if r := s.world.resultOf(class); r == nil || !r.class {
		s.ignored = true
		return
	}
	state := &gatewayState{ref: s.of, proxy: objectName(s.of.Namespace, s.of.Name)}
	s.proxies, s.state = []string{state.proxy}, state
	reason, message := refusedGateway(o)
	result := &GatewayResult{Addresses: s.addresses()}
	s.api = result
	at := slices.IndexFunc(s.world.proxies, func(p *model.Proxy) bool { return p.Name == state.proxy })
	proxy := model.NewProxy()
	if proxy.Name = state.proxy; at >= 0 {
		proxy = s.world.proxies[at]
	}
	ports := portsOfListeners(o.Spec.Listeners, proxy)
	valid := 0
	for i := range o.Spec.Listeners {
		l, r := s.readListener(&o.Spec.Listeners[i], i).decide(ports, refusedListener(&o.Spec.Listeners[i], o.Spec.Listeners, ports))
		if reason != "" && l.refused == "" {
			l.refused, r.Served = message, false
		}
		if r.Served {
			valid++
		}
		state.listeners, result.Listeners = append(state.listeners, l), append(result.Listeners, r)
	}
	accepted := verdict(gwapi.GatewayConditionAccepted, gwapi.GatewayReasonAccepted,
		"it is a part of the configuration, as proxy "+state.proxy, reason, message)
	if reason == "" && valid < len(result.Listeners) {
		accepted.Reason, accepted.Message = string(gwapi.GatewayReasonListenersNotValid), "some listeners serve nothing: see their conditions"
		accepted.True = valid > 0 || slices.ContainsFunc(state.listeners, func(l listenerState) bool { return l.refused == "" })
	}
	result.Conditions = []Verdict{accepted}
	result.Sets = s.attachSets(o, state, ports, accepted.True)
	state.own = []entry{{"http", proxy.HTTPPort}, {"https", proxy.HTTPSPort}}
	if state.ports = state.portsForRoutes(); at < 0 {
		proxy.Ports = state.ports
		s.make(proxy, "")
		s.filtersOfAll(proxy.Name)
	}
	for i, l := range state.listeners { // those of the Gateway come first
		path := fmt.Sprintf("spec.listeners[%d]", i)
		if l.owner != s.of {
			path = "spec.allowedListeners"
		}
		if l.refused == "" && modeOf(l.protocol) == "" && s.hostService(state, l.host, path) != "" {
			s.serves[hostOn{s.of, l.host, l.entry}] = struct{}{}
		}
	}
}

// refusedGateway says what of a Gateway cannot be done as a whole.
func refusedGateway(o *gwapi.Gateway) (reason gwapi.GatewayConditionReason, message string) {
	switch {
	case o.Spec.Infrastructure != nil && o.Spec.Infrastructure.ParametersRef != nil:
		return gwapi.GatewayReasonInvalidParameters, "spec.infrastructure.parametersRef: a Gateway has no parameters"
	case slices.ContainsFunc(o.Spec.Addresses, func(a gwapi.GatewaySpecAddress) bool { return a.Value != "" }):
		return gwapi.GatewayReasonUnsupportedAddress, "spec.addresses: addresses are those of the Service in front of the Gateway"
	case o.Spec.TLS != nil:
		return gwapi.GatewayReasonInvalid, "spec.tls: certificates of clients, and those for backends, are not supported here"
	}
	return "", ""
}

// routesOf reads which routes a listener takes.
func (s *scope) routesOf(spec *gwapi.Listener, reading *listenerReading) (reason gwapi.ListenerConditionReason, message string) {
	l, can := &reading.state, kindsOf(spec.Protocol)
	l.kinds = can
	if a := spec.AllowedRoutes; a != nil {
		if n := a.Namespaces; n != nil {
			l.from, l.selector = gwapi.FromNamespaces(text(n.From, string(gwapi.NamespacesFromSame))), n.Selector
		}
		if len(a.Kinds) > 0 {
			l.kinds = nil
			for i, k := range a.Kinds {
				if kind := string(k.Kind); text(k.Group, gwapi.GroupName) == gwapi.GroupName && slices.Contains(can, kind) {
					if !slices.Contains(l.kinds, kind) {
						l.kinds = append(l.kinds, kind)
					}
					continue
				}
				reason = gwapi.ListenerReasonInvalidRouteKinds
				message = fmt.Sprintf("allowedRoutes.kinds[%d]: a listener of protocol %s cannot take routes of kind %s", i, spec.Protocol, k.Kind)
			}
		}
	}
	group := gwapi.Group(gwapi.GroupName)
	for _, kind := range l.kinds {
		reading.kinds = append(reading.kinds, gwapi.RouteGroupKind{Group: &group, Kind: gwapi.Kind(kind)})
	}
	return reason, message
}

func isPassthrough(spec *gwapi.Listener) bool {
	return spec.TLS != nil && text(spec.TLS.Mode, "") == string(gwapi.TLSModePassthrough)
}

// kindsOf lists the kinds of routes that a protocol can have.
func kindsOf(protocol gwapi.ProtocolType) []string {
	switch protocol {
	case gwapi.HTTPProtocolType, gwapi.HTTPSProtocolType:
		return []string{KindHTTPRoute, KindGRPCRoute}
	case gwapi.TLSProtocolType:
		return []string{KindTLSRoute}
	case gwapi.TCPProtocolType:
		return []string{KindTCPRoute}
	case gwapi.UDPProtocolType:
		return []string{KindUDPRoute}
	}
	return nil
}

// certificates makes the secrets of a listener.
func (s *scope) certificates(spec *gwapi.Listener, i int, l *listenerState) (reason gwapi.ListenerConditionReason, message string) {
	if spec.TLS == nil || len(spec.TLS.CertificateRefs) == 0 {
		return gwapi.ListenerReasonInvalidCertificateRef, "tls.certificateRefs is required to decrypt"
	}
	for n, ref := range spec.TLS.CertificateRefs {
		path := fmt.Sprintf("spec.listeners[%d].tls.certificateRefs[%d]", i, n)
		if text(ref.Group, "") != "" || text(ref.Kind, KindSecret) != KindSecret {
			reason, message = gwapi.ListenerReasonInvalidCertificateRef, path+": only a Secret can have a certificate"
			continue
		}
		name, usable := "", false
		wrong := s.problemsOf(func() {
			name, usable = s.secret(path, Ref{KindSecret, text(ref.Namespace, s.of.Namespace), string(ref.Name)}, forPair)
		})
		if usable {
			l.secrets = append(l.secrets, name)
			continue
		}
		reason = gwapi.ListenerReasonInvalidCertificateRef
		if len(wrong) > 0 {
			message = path + ": " + wrong[0].Message
			if wrong[0].Reason == RefNotPermitted {
				reason = gwapi.ListenerReasonRefNotPermitted
			}
		}
	}
	return reason, message
}

// problemsOf returns the problems that do records, which are not those of the whole object.
func (s *scope) problemsOf(do func()) []Problem {
	before, dropped := s.problems, s.dropped
	s.problems, s.dropped = nil, 0
	do()
	wrong := s.problems
	s.problems, s.dropped = before, dropped
	return wrong
}

// closest returns the listener that takes what is for a host at an entry: that with the narrowest host.
func (g *gatewayState) closest(host string, at entry) *listenerState {
	var best *listenerState
	for i := range g.listeners {
		l := &g.listeners[i]
		if l.refused == "" && l.entry == at && covers(l.host, host) && (best == nil || covers(best.host, l.host)) {
			best = l
		}
	}
	return best
}

// hostService makes the service of a host name of a Gateway, with the certificates of its listener, and returns its
// name; empty if a GatewayHost of the proxy has the host.
func (s *scope) hostService(g *gatewayState, host, path string) string {
	s.use(Ref{kindHolder, g.proxy, host})
	if s.world.holder(claim{gatewayv1.KindGatewayHost, g.proxy, host}) != nil {
		return ""
	}
	svc := model.NewService()
	svc.Name, svc.FQDN = ownName(g.ref.Namespace, g.ref.Name, wildcardless(host)), host
	if len(svc.Validate()) > 0 {
		return ""
	}
	s.make(svc, path)
	s.make(&model.ProxyService{Proxy: g.proxy, Service: svc.Name}, path)
	for _, at := range g.entries() {
		if l := g.closest(host, at); l != nil {
			for _, secret := range l.secrets {
				s.make(&model.ServiceSecret{Service: svc.Name, Secret: secret}, path)
			}
		}
	}
	return svc.Name
}

// wildcardless returns a host name as a part of a name.
func wildcardless(host string) string { return strings.Replace(host, "*", "_", 1) }

// takes reports whether a listener takes routes of a namespace.
func (s *scope) takes(l *listenerState) bool {
	return s.selects(l.from, l.selector, l.owner.Namespace, s.of.Namespace)
}

// selects reports whether the owner of a namespace allows what is in another one.
func (s *scope) selects(from gwapi.FromNamespaces, by *metav1.LabelSelector, own, namespace string) bool {
	switch from {
	case gwapi.NamespacesFromAll:
		return true
	case gwapi.NamespacesFromSame:
		return namespace == own
	case gwapi.NamespacesFromSelector:
		s.use(Ref{Kind: KindNamespace, Name: namespace})
		of, known := s.world.labels[namespace]
		selector, err := metav1.LabelSelectorAsSelector(by)
		return known && err == nil && by != nil && selector.Matches(labels.Set(of))
	}
	return false
}

// addresses lists the addresses of the Services in front of the Gateway.
func (s *scope) addresses() (list []gwapi.GatewayStatusAddress) {
	s.use(Ref{kindFront, s.of.Namespace, s.of.Name})
	fronts := slices.SortedFunc(maps.Keys(s.world.fronts[s.of]), Ref.Compare)
	for _, ref := range fronts {
		for _, a := range addressesOf(s.world.services[ref]) {
			if len(list) < maxAddresses && !slices.ContainsFunc(list, func(b gwapi.GatewayStatusAddress) bool { return b.Value == a.Value }) {
				list = append(list, a)
			}
		}
	}
	return list
}

// maxAddresses is the most that the status of a Gateway may have.
const maxAddresses = 16

// addressesOf lists the addresses of a Service: those of its load balancer, or else its own in the cluster.
func addressesOf(svc *corev1.Service) (list []gwapi.GatewayStatusAddress) {
	add := func(t gwapi.AddressType, value string) {
		list = append(list, gwapi.GatewayStatusAddress{Type: &t, Value: value})
	}
	if svc == nil {
		return nil
	}
	for _, in := range svc.Status.LoadBalancer.Ingress {
		if in.IP != "" {
			add(gwapi.IPAddressType, in.IP)
		} else if in.Hostname != "" {
			add(gwapi.HostnameAddressType, in.Hostname)
		}
	}
	if len(list) > 0 || svc.Spec.Type == corev1.ServiceTypeLoadBalancer {
		return list
	}
	for _, ip := range svc.Spec.ClusterIPs {
		if ip != corev1.ClusterIPNone {
			add(gwapi.IPAddressType, ip)
		}
	}
	return list
}

// FrontOf returns the name of the Gateway that a Service is in front of; empty if it is none.
func FrontOf(svc *corev1.Service) string {
	return svc.Labels[gwapi.GatewayNameLabelKey]
}

// putFront records whether a Service is in front of a Gateway.
func (w *World) putFront(ref Ref, old, now *corev1.Service) {
	change := func(svc *corev1.Service, there bool) {
		if svc == nil || FrontOf(svc) == "" {
			return
		}
		gateway := Ref{KindGateway, ref.Namespace, FrontOf(svc)}
		of := w.fronts[gateway]
		if of == nil {
			of = map[Ref]struct{}{}
			w.fronts[gateway] = of
		}
		if delete(of, ref); there {
			of[ref] = struct{}{}
		}
		if len(of) == 0 {
			delete(w.fronts, gateway)
		}
		w.markUsers(Ref{kindFront, gateway.Namespace, gateway.Name})
	}
	if old != nil && now != nil && FrontOf(old) == FrontOf(now) && slices.EqualFunc(addressesOf(old), addressesOf(now),
		func(a, b gwapi.GatewayStatusAddress) bool { return a.Value == b.Value }) {
		return
	}
	change(old, false)
	change(now, true)
}
