package explain_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	upstreamproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/proxy_protocol/v3"
	rawbufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/raw_buffer/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("A cluster that sends the PROXY protocol", func() {
	socket := func(m proto.Message) *corev3.TransportSocket {
		packed, err := anypb.New(m)
		Expect(err).NotTo(HaveOccurred())
		return &corev3.TransportSocket{Name: "a", ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: packed}}
	}
	DescribeTable("has the protocol that comes after it", func(inner proto.Message, want string) {
		r, err := snapshot.NewCluster(&clusterv3.Cluster{Name: "a", TransportSocket: socket(&upstreamproxyv3.ProxyProtocolUpstreamTransport{
			Config: &corev3.ProxyProtocolConfig{}, TransportSocket: socket(inner),
		})})
		Expect(err).NotTo(HaveOccurred())
		c, err := explain.ReadCluster(r, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Protocol).To(Equal(want))
	},
		Entry(nil, &tlsv3.UpstreamTlsContext{}, "tls"),
		Entry(nil, &rawbufferv3.RawBuffer{}, "http"),
	)
})
