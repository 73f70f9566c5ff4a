package server_test

import (
	"log/slog"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = DescribeTable("the name that an Envoy says is known",
	func(metadata map[string]any, want string) {
		registry := status.NewRegistry()
		s := server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler)})
		said, err := structpb.NewStruct(metadata)
		Expect(err).NotTo(HaveOccurred())
		c := dialClient(serveGRPC(s.GRPC()))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, Node: &corev3.Node{Id: "gw", Metadata: said}})
		Eventually(registry.Envoys).Should(ConsistOf(And(HaveField("Proxy", "gw"), HaveField("Instance", want))))
	},
	Entry("as it says it", map[string]any{"gatehouse_instance": "host-7"}, "host-7"),
	Entry("not from another field", map[string]any{"instance": "host-7", "gatehouse_parent": "host-8"}, ""),
	Entry("only if it is a text", map[string]any{"gatehouse_instance": 7}, ""),
	Entry("no longer than 128 bytes", map[string]any{"gatehouse_instance": strings.Repeat("x", 129)}, strings.Repeat("x", 125)+"…"),
)
