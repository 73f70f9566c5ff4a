package translate

import (
	"cmp"
	"slices"
	"strings"

	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// entry is where requests or connections come in: a protocol in lower case, and a port of the Envoys.
type entry struct {
	scheme string
	envoy  int
}

// listenerPorts are the ports of the Envoys for the listeners of a Gateway, and the ports that several protocols want.
type listenerPorts struct {
	proxy *model.Proxy
	// own are the ports of the Gateway that the proxy's own ports are for.
	own map[gwapi.ProtocolType]int32
	// taken are the ports of the Envoys that have a listener, with the port of the Gateway.
	taken  map[int]int32
	shared map[int32]bool
}

// portOwner returns the protocol whose port on a proxy a protocol has; empty means that it has ports of its own.
func portOwner(protocol gwapi.ProtocolType) gwapi.ProtocolType {
	switch protocol {
	case gwapi.TLSProtocolType:
		return gwapi.HTTPSProtocolType
	case gwapi.TCPProtocolType, gwapi.UDPProtocolType:
		return ""
	}
	return protocol
}

// moved is added to a port of a Gateway that the proxy has for another one.
const moved = 10_000

// portsOfListeners returns the ports of listeners. The proxy's own ports are those of listeners at 80 and 443 or, if
// there is none, of the first one. Any other listener has the port with its own number, so that no port depends on
// others.
func portsOfListeners(list []gwapi.Listener, proxy *model.Proxy) listenerPorts {
	p := listenerPorts{proxy: proxy, own: map[gwapi.ProtocolType]int32{}, taken: map[int]int32{}, shared: map[int32]bool{}}
	protocols := map[int32]gwapi.ProtocolType{}
	for _, l := range list {
		if l.Protocol == gwapi.UDPProtocolType {
			continue // its ports have numbers of their own
		}
		if had, is := protocols[l.Port]; is && had != l.Protocol {
			p.shared[l.Port] = true
		}
		protocols[l.Port] = l.Protocol
		owner := portOwner(l.Protocol)
		if p.own[owner] == 0 || l.Port == usualPort(owner) {
			p.own[owner] = l.Port
		}
		if owner == "" {
			p.taken[int(l.Port)] = l.Port
		}
	}
	for _, l := range list {
		if owner := portOwner(l.Protocol); owner != "" && p.own[owner] != l.Port {
			port := p.wanted(l.Port)
			p.taken[port] = cmp.Or(p.taken[port], l.Port)
		}
	}
	return p
}

// join takes the port of a listener of a ListenerSet, unless another listener has it. The proxy's own ports are those of
// the Gateway's listeners; if it has none, of any at 80 and 443. So a set changes the port of no other one.
func (p *listenerPorts) join(l *gwapi.Listener) {
	switch owner := portOwner(l.Protocol); {
	case l.Protocol == gwapi.UDPProtocolType, p.own[owner] == l.Port:
	case owner == "":
		p.taken[int(l.Port)] = cmp.Or(p.taken[int(l.Port)], l.Port)
	case p.own[owner] == 0 && l.Port == usualPort(owner):
		p.own[owner] = l.Port
	default:
		port := p.wanted(l.Port)
		p.taken[port] = cmp.Or(p.taken[port], l.Port)
	}
}

// usualPort returns the port that URLs need not name.
func usualPort(protocol gwapi.ProtocolType) int32 {
	return map[gwapi.ProtocolType]int32{gwapi.HTTPProtocolType: 80, gwapi.HTTPSProtocolType: 443}[protocol]
}

// wanted returns the port of the Envoys for a port that is not the proxy's own.
func (p *listenerPorts) wanted(port int32) int {
	if at := int(port); at != p.proxy.HTTPPort && at != p.proxy.HTTPSPort {
		return at
	}
	if port > 65535-moved {
		return int(port) - moved
	}
	return int(port) + moved
}

// of returns the port of the Envoys for a listener; 0 if there is none.
func (p *listenerPorts) of(l *gwapi.Listener) int {
	owner := portOwner(l.Protocol)
	switch {
	case owner == "" && l.Protocol == gwapi.TCPProtocolType && p.taken[int(l.Port)] != l.Port:
		return 0
	case owner == "":
		return int(l.Port)
	case p.own[owner] == l.Port && owner == gwapi.HTTPSProtocolType:
		return p.proxy.HTTPSPort
	case p.own[owner] == l.Port:
		return p.proxy.HTTPPort
	case p.taken[p.wanted(l.Port)] == l.Port:
		return p.wanted(l.Port)
	}
	return 0
}

// entries are where requests come in.
func (g *gatewayState) entries() (list []entry) {
	for i := range g.listeners {
		l := &g.listeners[i]
		if l.refused == "" && modeOf(l.protocol) == "" && !slices.Contains(list, l.entry) {
			list = append(list, l.entry)
		}
	}
	return list
}

// portsForRoutes lists the ports for requests that routes distinguish.
func (g *gatewayState) portsForRoutes() (list model.Ports) {
	for _, at := range g.entries() {
		list = append(list, model.Port{Port: at.envoy, HTTPS: at.scheme == "https"})
	}
	slices.SortFunc(list, func(a, b model.Port) int { return cmp.Compare(a.Port, b.Port) })
	return list
}

// unusual returns the port of the Gateway for an entry; 0 if URLs need not name it.
func (g *gatewayState) unusual(at entry) int32 {
	for i := range g.listeners {
		if l := &g.listeners[i]; l.entry == at && l.port != map[string]int32{"http": 80, "https": 443}[l.scheme] {
			return l.port
		}
	}
	return 0
}

// unusualPorts lists the ports for requests that URLs name.
func (g *gatewayState) unusualPorts() (list []int32) {
	for _, at := range g.entries() {
		if port := g.unusual(at); port != 0 {
			list = append(list, port)
		}
	}
	return list
}

// byPort divides entries by the port that URLs name, if that matters; otherwise, all are under 0.
func (g *gatewayState) byPort(all map[entry]bool, matters bool) map[int32]map[entry]bool {
	if !matters {
		return map[int32]map[entry]bool{0: all}
	}
	parts := map[int32]map[entry]bool{}
	for at := range all {
		port := g.unusual(at)
		if parts[port] == nil {
			parts[port] = map[entry]bool{}
		}
		parts[port][at] = true
	}
	return parts
}

// proxy returns a proxy of the installation, with the ports of its Gateway.
func (s *scope) proxy(p *model.Proxy) *model.Proxy {
	own := *p
	if namespace, name, found := strings.Cut(p.Name, "."); found {
		gateway := Ref{KindGateway, namespace, name}
		s.use(gateway)
		if r := s.world.resultOf(gateway); r != nil && r.state != nil {
			own.Ports = r.state.ports
		}
	}
	return &own
}

// conditionsFor returns what limits a route to some of the entries: the scheme, empty for both, and the ports, none for
// all of the scheme.
func (g *gatewayState) conditionsFor(at map[entry]bool) (only string, ports []int) {
	all := g.entries()
	schemes := map[string]bool{}
	for e := range at {
		schemes[e.scheme] = true
		ports = append(ports, e.envoy)
	}
	slices.Sort(ports)
	both := func(scheme string) bool {
		return slices.ContainsFunc(all, func(e entry) bool { return e.scheme != scheme })
	}
	for scheme := range schemes {
		// Plain HTTP reaches a Gateway that has no listener for it, too.
		if len(schemes) == 1 && (scheme == "https" || both(scheme)) {
			only = scheme
		}
	}
	if !slices.ContainsFunc(append(all, g.own...), func(e entry) bool { return schemes[e.scheme] && !at[e] }) {
		ports = nil
	}
	return only, ports
}
