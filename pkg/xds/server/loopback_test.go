package server_test

import (
	"log/slog"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("an Envoy that requests listeners on the loopback", func() {
	DescribeTable("receives them, and no other one does",
		func(metadata map[string]any, want string) {
			l, err := snapshot.NewListener(&listenerv3.Listener{
				Name: "http-0.0.0.0:8080", Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
					Address: "0.0.0.0", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
				}}},
			})
			Expect(err).NotTo(HaveOccurred())
			b := snapshot.NewBuilder(nil, nil)
			b.SetListeners([]*snapshot.Resource{l}, snapshot.Named{})
			s := server.New(server.Options{Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
			s.Publish(1, map[string]*snapshot.Snapshot{"gw": b.Snapshot(1)})
			said, err := structpb.NewStruct(metadata)
			Expect(err).NotTo(HaveOccurred())
			c := dialClient(serveGRPC(s.GRPC()))
			c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, Node: &corev3.Node{Id: "gw", Metadata: said}})
			got := c.next().GetResources()
			Expect(got).To(HaveLen(1))
			Expect(got[0].GetName()).To(Equal(want))
		},
		Entry("a sidecar", map[string]any{"gatehouse_listeners": "loopback"}, "http-127.0.0.1:8080"),
		Entry("one without the setting", map[string]any{}, "http-0.0.0.0:8080"),
		Entry("one with another value", map[string]any{"gatehouse_listeners": "all", "listeners": "loopback"}, "http-0.0.0.0:8080"),
	)
})
