package translate_test

import (
	"net/netip"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tcpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	ipv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/input_matchers/ip/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("a port", func() {
	service := &ir.L4Service{Name: "db", Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "db"}, Share: 1}}}

	made := func(from ...string) *listenerv3.Listener {
		GinkgoHelper()
		l := &ir.L4Listener{Address: "0.0.0.0", Port: 5432, Services: []*ir.L4Service{service}, ProxyProtocol: &ir.ProxyProtocol{}}
		for _, text := range from {
			l.ProxyProtocol.From = append(l.ProxyProtocol.From, netip.MustParsePrefix(text))
		}
		out, err := translate.L4Listener(l)
		Expect(err).NotTo(HaveOccurred())
		Expect(out.ValidateAll()).To(Succeed())
		Expect(out.GetListenerFilters()[0].GetName()).To(Equal(translate.ProxyProtocol))
		return out
	}

	It("is for the load balancers of the PROXY protocol only", func() {
		matcher := made("10.0.0.0/8").GetFilterChainMatcher()
		Expect(matcher.GetOnNoMatch()).To(BeNil())
		one := matcher.GetMatcherList().GetMatchers()[0].GetPredicate().GetSinglePredicate()
		Expect(one.GetInput().GetName()).To(Equal("envoy.matching.inputs.direct_source_ip"))
		var list ipv3.Ip
		Expect(one.GetCustomMatch().GetTypedConfig().UnmarshalTo(&list)).To(Succeed())
		Expect(list.GetCidrRanges()).To(HaveLen(2))
		Expect(list.GetCidrRanges()[0].GetAddressPrefix()).To(Equal("10.0.0.0"))
	})

	It("connects to the backend of a client once that has shown its certificate", func() {
		verified := *service
		verified.TLS = &ir.L4TLS{MinVersion: "1.2", Pairs: []*ir.Pair{{Secret: "pair"}}, ClientCA: &ir.Authorities{Secret: "staff", PEM: "pem"}}
		l := &ir.L4Listener{Address: "0.0.0.0", Port: 5432, Services: []*ir.L4Service{&verified}}
		out, err := translate.L4Listener(l)
		Expect(err).NotTo(HaveOccurred())
		var proxy tcpv3.TcpProxy
		Expect(out.GetFilterChains()[0].GetFilters()[0].GetTypedConfig().UnmarshalTo(&proxy)).To(Succeed())
		Expect(proxy.GetUpstreamConnectMode()).To(Equal(tcpv3.UpstreamConnectMode_ON_DOWNSTREAM_TLS_HANDSHAKE))
		var tls tlsv3.DownstreamTlsContext
		Expect(out.GetFilterChains()[0].GetTransportSocket().GetTypedConfig().UnmarshalTo(&tls)).To(Succeed())
		Expect(tls.GetRequireClientCertificate().GetValue()).To(BeTrue())
		authorities := tls.GetCommonTlsContext().GetValidationContextSdsSecretConfig().GetName()
		var names []string
		for _, s := range translate.L4Secrets(l) {
			names = append(names, s.GetName())
		}
		Expect(names).To(And(HaveLen(2), ContainElement(authorities)))
	})

	It("is for nobody if no load balancer may send it", func() {
		none := made().GetFilterChainMatcher().GetMatcherList().GetMatchers()[0].GetPredicate().GetNotMatcher().GetSinglePredicate()
		Expect(none.GetInput().GetName()).To(Equal("envoy.matching.inputs.direct_source_ip"))
		var list ipv3.Ip
		Expect(none.GetCustomMatch().GetTypedConfig().UnmarshalTo(&list)).To(Succeed())
		for _, c := range list.GetCidrRanges() {
			Expect(c.GetPrefixLen().GetValue()).To(BeElementOf(uint32(0), uint32(96)), "everyone")
		}
	})
})
