package server_test

import (
	"log/slog"
	"strings"
	"sync/atomic"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("an Envoy with databases of addresses or a directory for logs", func() {
	listener := func(stats string) *snapshot.Resource {
		GinkgoHelper()
		l, err := snapshot.NewListener(&listenerv3.Listener{
			Name: "http-0.0.0.0:8080", StatPrefix: stats,
			Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: "0.0.0.0", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 8080},
			}}},
		})
		Expect(err).NotTo(HaveOccurred())
		return l
	}
	var (
		registry *status.Registry
		s        *server.Server
		b        *snapshot.Builder
		plain    *snapshot.Resource
		named    snapshot.Named
		made     atomic.Int32
	)
	BeforeEach(func() {
		b = snapshot.NewBuilder(nil, nil)
		made.Store(0)
		plain = listener("plain")
		named = snapshot.Named{
			Wants: snapshot.Wants{Country: true},
			ForFiles: map[string]func(snapshot.Files) (*snapshot.Resource, error){
				"http-0.0.0.0:8080": func(d snapshot.Files) (*snapshot.Resource, error) {
					made.Add(1)
					return listener(d.Country + " " + d.ASN + d.Logs), nil
				},
			},
		}
		b.SetListeners([]*snapshot.Resource{plain}, named)
		registry = status.NewRegistry()
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler)})
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": b.Snapshot(1)})
	})
	received := func(metadata map[string]any) (name, stats string) {
		GinkgoHelper()
		said, err := structpb.NewStruct(metadata)
		Expect(err).NotTo(HaveOccurred())
		c := dialClient(serveGRPC(s.GRPC()))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, Node: &corev3.Node{Id: "gw", Metadata: said}})
		got := c.next().GetResources()
		Expect(got).To(HaveLen(1))
		var l listenerv3.Listener
		Expect(got[0].GetResource().UnmarshalTo(&l)).To(Succeed())
		return l.GetName(), l.GetStatPrefix()
	}

	DescribeTable("receives listeners that read them, and no other one does", func(metadata map[string]any, want string) {
		_, stats := received(metadata)
		Expect(stats).To(Equal(want))
	},
		Entry("countries", map[string]any{"gatehouse_country_database": "/run/g/country.mmdb"}, "/run/g/country.mmdb "),
		Entry("both", map[string]any{"gatehouse_country_database": "/c.mmdb", "gatehouse_asn_database": "/a.mmdb"}, "/c.mmdb /a.mmdb"),
		Entry("a directory for logs", map[string]any{"gatehouse_access_log_dir": "/var/log/g"}, " /var/log/g"),
		Entry("a directory that leads up", map[string]any{"gatehouse_access_log_dir": "/var/log/../g"}, "plain"),
		Entry("no absolute directory", map[string]any{"gatehouse_access_log_dir": "var"}, "plain"),
		Entry("none", map[string]any{}, "plain"),
		Entry("a name of its own", map[string]any{"country_database": "/c.mmdb"}, "plain"),
		Entry("no absolute path", map[string]any{"gatehouse_country_database": "c.mmdb"}, "plain"),
		Entry("a path that leads up", map[string]any{"gatehouse_country_database": "/run/../c.mmdb"}, "plain"),
		Entry("another kind of file", map[string]any{"gatehouse_country_database": "/etc/passwd"}, "plain"),
		Entry("no text", map[string]any{"gatehouse_country_database": 1}, "plain"),
		Entry("a long path", map[string]any{"gatehouse_country_database": "/" + strings.Repeat("x", 2000) + ".mmdb"}, "plain"),
		Entry("a line break", map[string]any{"gatehouse_country_database": "/a\n.mmdb"}, "plain"),
	)

	It("gets other listeners only when they change", func() {
		said, err := structpb.NewStruct(map[string]any{"gatehouse_country_database": "/c.mmdb", "gatehouse_listeners": "loopback"})
		Expect(err).NotTo(HaveOccurred())
		c := dialClient(serveGRPC(s.GRPC()))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, Node: &corev3.Node{Id: "gw", Metadata: said}})
		Expect(c.next().GetTypeUrl()).To(Equal(snapshot.ListenerType))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ClusterType})
		Expect(c.next().GetTypeUrl()).To(Equal(snapshot.ClusterType))
		cluster, err := snapshot.NewCluster(&clusterv3.Cluster{Name: "blue"})
		Expect(err).NotTo(HaveOccurred())
		named.Clusters = []*snapshot.Resource{cluster}
		b.SetListeners([]*snapshot.Resource{plain}, named)
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": b.Snapshot(2)})
		Expect(c.next().GetResources()).To(HaveLen(1))
		Expect(made.Load()).To(BeEquivalentTo(1))
	})

	It("writes to standard output, and has a condition, after it could not open the file of a log", func() {
		named.Wants = snapshot.Wants{Logs: []string{"audit", "shop"}}
		b.SetListeners([]*snapshot.Resource{plain}, named)
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": b.Snapshot(2)})
		said, err := structpb.NewStruct(map[string]any{"gatehouse_access_log_dir": "/var/log/g", "gatehouse_country_database": "/c.mmdb"})
		Expect(err).NotTo(HaveOccurred())
		c := dialClient(serveGRPC(s.GRPC()))
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, Node: &corev3.Node{Id: "gw", Metadata: said}})
		first := c.next()
		Expect(registry.Conditions()).To(BeEmpty())
		c.say(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: snapshot.ListenerType, ResponseNonce: first.GetNonce(), ErrorDetail: &rpcstatus.Status{
			Code: 13, Message: "Error adding/updating listener(s) http-0.0.0.0:8080: unable to open file '/var/log/g/shop.log': No such file or directory\n",
		}})
		var l listenerv3.Listener
		Expect(c.next().GetResources()[0].GetResource().UnmarshalTo(&l)).To(Succeed())
		Expect(l.GetStatPrefix()).To(Equal("/c.mmdb "))
		list := registry.Conditions()
		Expect(list).To(HaveLen(1))
		Expect(list[0].Code).To(Equal(model.NoLogDirectory))
		Expect(list[0].Message).To(HavePrefix("globalconfig audit, shop writes to a file, and the Envoys at 127.0.0.1:"))
	})

	It("may be a sidecar too", func() {
		name, stats := received(map[string]any{"gatehouse_country_database": "/c.mmdb", "gatehouse_listeners": "loopback"})
		Expect([]string{name, stats}).To(Equal([]string{"http-127.0.0.1:8080", "/c.mmdb "}))
	})

	It("does not have a condition, and one that lacks what the services need does", func() {
		received(map[string]any{"gatehouse_country_database": "/c.mmdb"})
		Expect(registry.Conditions()).To(BeEmpty())
		received(map[string]any{"gatehouse_asn_database": "/a.mmdb"})
		list := registry.Conditions()
		Expect(list).To(HaveLen(1))
		Expect(list[0].Key).To(Equal(model.ProxyKey("gw")))
		Expect(list[0].Code).To(Equal(model.NoDatabase))
		Expect(list[0].Message).To(And(HavePrefix("a vh_filter_ipaccess names countries, and the Envoys at 127.0.0.1:"), HaveSuffix("--geoip-country FILE")))
		_, stats := received(map[string]any{})
		Expect(stats).To(Equal("plain"))
		Expect(registry.Conditions()).To(HaveLen(1))
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": nil})
		Expect(registry.Conditions()).To(BeEmpty())
	})
})
