package explain

import (
	"fmt"
	"net/netip"
	"strings"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	udpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/udp/udp_proxy/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// This file explains connections and datagrams that are no requests.

// serviceOfChain returns the service that a filter chain passes connections to; empty if it is for requests.
func serviceOfChain(c *listenerv3.FilterChain) string {
	service, found := strings.CutPrefix(c.GetName(), "service/")
	if !found {
		return ""
	}
	return service
}

// explainL4 returns what the Envoy does with a connection or a datagram.
func explainL4(have State, r Request) (Answer, error) {
	a := Answer{Steps: []Step{}, Hosts: []Host{}, Routes: []Route{}, Filters: []Filter{}}
	for _, h := range r.Headers {
		a.Request.Host = h.Value
	}
	resource, l, err := findL4(have, r)
	if err != nil || l == nil {
		a.endWith(NoListener, 0, "listener", fmt.Sprintf("the proxy has no listener for %s there: no service of such a mode has the port", r.L4))
		return a, err
	}
	if !a.takeConnection(have, resource.Name) {
		return a, nil
	}
	if r.L4 == model.ModeUDP {
		a.Service = objectName(resource, "service")
		return a, a.passDatagram(have, r, l)
	}
	chain, err := findChain(l, r.ServerName, "")
	if err != nil {
		return a, err
	}
	if chain == nil {
		a.endWith(Closed, 0, "tls", fmt.Sprintf("no service of the port has the name %s, so the connection is closed", nameText(r.ServerName)))
		return a, nil
	}
	a.Envoy.FilterChain = chain.GetName()
	if a.Service = serviceOfChain(chain); a.Service == "" {
		a.endWith(NoHost, 0, "tls", fmt.Sprintf("no service of mode tls has the name %s, so the connection is decrypted: explain https://%s/",
			nameText(r.ServerName), r.ServerName))
		return a, nil
	}
	a.step("service", fmt.Sprintf("the connection is for service %s", a.Service))
	if allowed, err := findChain(l, r.ServerName, r.client()); err != nil || allowed == nil {
		a.refuseAddress(r)
		return a, err
	}
	return a, a.passConnection(have, chain)
}

// findL4 returns the listener for a connection; nil if there is none.
func findL4(have State, r Request) (*snapshot.Resource, *listenerv3.Listener, error) {
	for _, resource := range have.Listeners {
		var l listenerv3.Listener
		if err := resource.Body.UnmarshalTo(&l); err != nil {
			return nil, nil, fmt.Errorf("decoding listener %q: %w", resource.Name, err)
		}
		port := int(l.GetAddress().GetSocketAddress().GetPortValue())
		switch {
		case isHTTP(&l) && r.L4 == model.ModeTLS && isSecure(&l) && (r.Port == 0 || r.Port == port),
			strings.HasPrefix(l.GetName(), "tcp-") && r.L4 != model.ModeUDP && r.Port == port,
			strings.HasPrefix(l.GetName(), "udp-") && r.L4 == model.ModeUDP && r.Port == port:
			return resource, &l, nil
		}
	}
	return nil, nil, nil
}

// passConnection passes a connection through the filters of its chain.
func (a *Answer) passConnection(have State, chain *listenerv3.FilterChain) error {
	for _, f := range chain.GetFilters() {
		switch f.GetName() {
		case "envoy.filters.network.tcp_proxy":
			var proxy tcpv3.TcpProxy
			if err := f.GetTypedConfig().UnmarshalTo(&proxy); err != nil {
				return fmt.Errorf("decoding filter chain %q: %w", chain.GetName(), err)
			}
			return a.forwardL4(have, &Forward{
				Timeout: duration(proxy.GetMaxDownstreamConnectionDuration()), IdleTimeout: duration(proxy.GetIdleTimeout()),
			}, &proxy)
		default:
			a.endWith(Closed, 0, "service", fmt.Sprintf("service %s cannot work, so its connections are closed: its conditions say why", a.Service))
			return nil
		}
	}
	return nil
}

func (a *Answer) passDatagram(have State, r Request, l *listenerv3.Listener) error {
	var proxy udpv3.UdpProxyConfig
	if err := l.GetListenerFilters()[0].GetTypedConfig().UnmarshalTo(&proxy); err != nil {
		return fmt.Errorf("decoding listener %q: %w", l.GetName(), err)
	}
	a.step("service", fmt.Sprintf("the datagram is for service %s", a.Service))
	matcher := proxy.GetMatcher()
	then := matcher.GetOnNoMatch()
	if list := matcher.GetMatcherList().GetMatchers(); len(list) > 0 {
		client, err := netip.ParseAddr(r.client())
		if err != nil {
			return fmt.Errorf("explaining the addresses of service %q: %w", a.Service, err)
		}
		if ok, err := allows(list[0].GetPredicate(), client); err != nil || !ok {
			a.refuseAddress(r)
			return err
		}
		then = list[0].GetOnMatch()
	}
	var route udpv3.Route
	if err := then.GetAction().GetTypedConfig().UnmarshalTo(&route); err != nil {
		return fmt.Errorf("decoding listener %q: %w", l.GetName(), err)
	}
	return a.forwardL4(have, &Forward{Timeout: none, IdleTimeout: duration(proxy.GetIdleTimeout())},
		&tcpv3.TcpProxy{ClusterSpecifier: &tcpv3.TcpProxy_Cluster{Cluster: route.GetCluster()}})
}

// refuseAddress ends with the refusal of the client's address.
func (a *Answer) refuseAddress(r Request) {
	a.FilterType = model.FilterIPAccess
	a.endWith("address_refused", 0, "filter", fmt.Sprintf(
		"a vh_filter_ipaccess does not allow %s: the connection is closed, and a datagram dropped", r.client()))
}

// isAboutAddress reports whether a condition compares addresses (see translate.L4Listener).
func isAboutAddress(p *xdsmatcherv3.Matcher_MatcherList_Predicate) bool {
	switch kind := p.GetMatchType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher:
		return isAboutAddress(kind.AndMatcher.GetPredicate()[0])
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher:
		return isAboutAddress(kind.NotMatcher)
	}
	return p.GetSinglePredicate().GetCustomMatch() != nil
}

// allows reports whether a condition on the address of a client holds. Which load balancers may connect is not asked.
func allows(p *xdsmatcherv3.Matcher_MatcherList_Predicate, client netip.Addr) (bool, error) {
	switch kind := p.GetMatchType().(type) {
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_AndMatcher:
		for _, part := range kind.AndMatcher.GetPredicate() {
			if ok, err := allows(part, client); err != nil || !ok {
				return false, err
			}
		}
		return true, nil
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_NotMatcher:
		ok, err := allows(kind.NotMatcher, client)
		return !ok && err == nil, err
	case *xdsmatcherv3.Matcher_MatcherList_Predicate_SinglePredicate_:
		var list ipv3.Ip
		if strings.HasSuffix(kind.SinglePredicate.GetInput().GetName(), "direct_source_ip") {
			return true, nil
		}
		if err := kind.SinglePredicate.GetCustomMatch().GetTypedConfig().UnmarshalTo(&list); err != nil {
			return false, fmt.Errorf("decoding a condition on addresses: %w", err)
		}
		for _, c := range list.GetCidrRanges() {
			at, err := netip.ParseAddr(c.GetAddressPrefix())
			if err == nil && netip.PrefixFrom(at, int(c.GetPrefixLen().GetValue())).Contains(client) {
				return true, nil
			}
		}
		return false, nil
	}
	return false, fmt.Errorf("condition %T is not known", p.GetMatchType())
}

// forwardL4 passes a connection on to one of the clusters.
func (a *Answer) forwardL4(have State, f *Forward, to *tcpv3.TcpProxy) error {
	f.Clusters = []Cluster{{Name: to.GetCluster(), Weight: 1}}
	if list := to.GetWeightedClusters().GetClusters(); len(list) > 0 {
		f.Clusters = nil
		for _, c := range list {
			f.Clusters = append(f.Clusters, Cluster{Name: c.GetName(), Weight: c.GetWeight()})
		}
	}
	missing, err := f.readClusters(have)
	if err != nil {
		return err
	}
	a.Forward = f
	for _, c := range f.Clusters {
		a.Envoy.Clusters = append(a.Envoy.Clusters, c.Name)
	}
	all := strings.Join(a.Envoy.Clusters, " or ")
	switch nobody := f.reachesNobody(); {
	case nobody && missing != "":
		a.endWith(NoCluster, 0, "answer", "the Envoy does not have cluster "+missing+", so the connection is closed")
	case nobody:
		a.endWith(NoEndpoints, 0, "answer", all+" has no endpoint that receives connections, so the connection is closed")
	default:
		a.Code, a.Message = Forwarded, fmt.Sprintf("service %s: it goes to %s", a.Service, all)
		a.step("forward", "it goes to "+all)
	}
	return nil
}
