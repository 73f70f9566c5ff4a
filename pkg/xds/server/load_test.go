package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// clusters is a snapshot with nothing else. timeout changes their version.
func clusters(revision int64, n int, timeout time.Duration) *snapshot.Snapshot {
	GinkgoHelper()
	s := snapshot.Empty(revision)
	for i := range n {
		c, err := snapshot.NewCluster(&clusterv3.Cluster{
			Name: fmt.Sprintf("c%05d", i), ClusterDiscoveryType: &clusterv3.Cluster_Type{}, ConnectTimeout: durationpb.New(timeout),
		})
		Expect(err).NotTo(HaveOccurred())
		s.Clusters = append(s.Clusters, c)
	}
	return s
}

// endpoint is the report of one endpoint.
func endpoint(port uint32, ok, bad, issued, active uint64) *endpointv3.UpstreamEndpointStats {
	return &endpointv3.UpstreamEndpointStats{
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
		}}},
		TotalSuccessfulRequests: ok, TotalErrorRequests: bad, TotalIssuedRequests: issued, TotalRequestsInProgress: active,
	}
}

// report is the report of one cluster.
func report(cluster string, list ...*endpointv3.UpstreamEndpointStats) *loadv3.LoadStatsRequest {
	return &loadv3.LoadStatsRequest{ClusterStats: []*endpointv3.ClusterStats{{
		ClusterName: cluster, UpstreamLocalityStats: []*endpointv3.UpstreamLocalityStats{{UpstreamEndpointStats: list}},
	}}}
}

var _ = Describe("Load reports", func() {
	var (
		s      *server.Server
		conn   *grpc.ClientConn
		failed chan string
		ctx    context.Context
	)
	node := func(id string) *corev3.Node {
		parent, err := structpb.NewStruct(map[string]any{"gatehouse_parent": "me"})
		Expect(err).NotTo(HaveOccurred())
		return &corev3.Node{Id: id, Metadata: parent}
	}
	BeforeEach(func() {
		told := make(chan string, 100) // a handler may outlive its spec
		failed = told
		s = server.New(server.Options{
			Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler),
			Failing: func(_ context.Context, parent string, clusters []string) { told <- fmt.Sprint(parent, clusters) },
		})
		var err error
		conn, err = grpc.NewClient(serveGRPC(s.GRPC()), grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = conn.Close() })
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		DeferCleanup(cancel)
	})
	// adsStream registers the Envoy, like its configuration stream.
	adsStream := func() {
		GinkgoHelper()
		ads, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(ads.Send(&discoveryv3.DeltaDiscoveryRequest{Node: node("gw"), TypeUrl: snapshot.ClusterType})).To(Succeed())
		Eventually(func() map[string]bool {
			_, complete := s.Loads("gw", func(server.Endpoint, health.Tally) bool { return true })
			return complete
		}).Should(HaveLen(1))
	}
	loads := func() map[server.Endpoint]health.Counts {
		list, _ := s.Loads("gw", func(server.Endpoint, health.Tally) bool { return true })
		of := map[server.Endpoint]health.Counts{}
		for _, l := range list {
			of[l.Endpoint] = l.Counts
		}
		return of
	}
	open := func(id string) loadv3.LoadReportingService_StreamLoadStatsClient {
		GinkgoHelper()
		rpc, err := loadv3.NewLoadReportingServiceClient(conn).StreamLoadStats(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(rpc.Send(&loadv3.LoadStatsRequest{Node: node(id)})).To(Succeed())
		return rpc
	}
	at := func(port uint32) server.Endpoint {
		return server.Endpoint{Cluster: "c00000", Address: "10.0.0.1", Port: port}
	}

	It("are requested at an interval that depends on the number of clusters, and added up", func() {
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": clusters(1, 1, time.Second)})
		adsStream()
		rpc := open("gw")
		wanted, err := rpc.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(wanted.GetSendAllClusters()).To(BeTrue())
		Expect(wanted.GetReportEndpointGranularity()).To(BeTrue())
		Expect(wanted.GetLoadReportingInterval().AsDuration()).To(Equal(2 * time.Second))

		By("failures with and without a connection")
		Expect(rpc.Send(report("c00000", endpoint(80, 3, 4, 5, 0), endpoint(81, 0, 0, 1, 1)))).To(Succeed())
		Eventually(loads).Should(Equal(map[server.Endpoint]health.Counts{at(80): {Succeeded: 3, Failed: 2, Unconnected: 2}}))
		Eventually(failed).Should(Receive(Equal("me[c00000]")))
		By("a request that was under way fails")
		Expect(rpc.Send(report("c00000", endpoint(81, 0, 1, 0, 0)))).To(Succeed())
		Eventually(loads).Should(HaveKeyWithValue(at(81), health.Counts{Failed: 1}))
		By("requests that neither succeeded nor failed")
		Expect(rpc.Send(report("c00000", endpoint(81, 1, 0, 4, 1)))).To(Succeed())
		Eventually(loads).Should(HaveKeyWithValue(at(81), health.Counts{Succeeded: 1, Untold: 2}), "of four, one is under way")
		Expect(rpc.Send(report("c00000", endpoint(81, 0, 0, 0, 0)))).To(Succeed())
		Eventually(loads).Should(HaveKeyWithValue(at(81), health.Counts{Succeeded: 1, Untold: 3}))
		By("unknown clusters, and clusters of other proxies")
		Expect(rpc.Send(report("other", endpoint(80, 9, 0, 9, 0)))).To(Succeed())
		long := endpoint(80, 9, 0, 9, 0)
		long.GetAddress().GetSocketAddress().Address = strings.Repeat("a", 100)
		Expect(rpc.Send(report("c00000", long))).To(Succeed())
		Expect(rpc.Send(report("c00000", endpoint(82, 1, 0, 1, 0)))).To(Succeed())
		Eventually(loads).Should(HaveKey(at(82)))
		Expect(loads()).To(HaveLen(3))

		By("more clusters")
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": clusters(2, 1000, time.Second)})
		Expect(rpc.Send(&loadv3.LoadStatsRequest{})).To(Succeed())
		wanted, err = rpc.Recv()
		Expect(err).NotTo(HaveOccurred())
		Expect(wanted.GetLoadReportingInterval().AsDuration()).To(Equal(8 * time.Second))
		Expect(loads()).To(HaveLen(3), "the cluster is the same")
	})

	It("are forgotten when the cluster changes, and when the Envoy disconnects", func() {
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": clusters(1, 1, time.Second)})
		adsStream()
		rpc := open("gw")
		Expect(rpc.Send(report("c00000", endpoint(80, 0, 1, 0, 0)))).To(Succeed())
		Eventually(loads).Should(HaveLen(1))
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": clusters(2, 1, 2*time.Second)})
		Expect(loads()).To(BeEmpty())
		Expect(rpc.Send(report("c00000", endpoint(80, 0, 1, 0, 0)))).To(Succeed(), "may be about the form before")
		Expect(rpc.Send(report("c00000", endpoint(81, 0, 1, 0, 0)))).To(Succeed())
		Eventually(loads).Should(Equal(map[server.Endpoint]health.Counts{at(81): {Unconnected: 1}}))
		Expect(conn.Close()).To(Succeed())
		Eventually(loads).Should(BeEmpty())
	})

	It("are limited in memory", func() {
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": clusters(1, 1, time.Second)})
		adsStream()
		rpc := open("gw")
		var many []*endpointv3.UpstreamEndpointStats
		for port := range uint32(3000) {
			many = append(many, endpoint(port+1, 1, 0, 1, 0))
		}
		Expect(rpc.Send(report("c00000", many...))).To(Succeed())
		Eventually(loads).Should(HaveLen(1000))
		_, complete := s.Loads("gw", func(server.Endpoint, health.Tally) bool { return true })
		Expect(complete).To(HaveLen(1))
		Expect(complete).NotTo(ContainElement(true), "what was left out is not known")
		By("one that fails always has room")
		Expect(rpc.Send(report("c00000", endpoint(9999, 0, 7, 0, 0)))).To(Succeed())
		Eventually(loads).Should(And(HaveLen(1000), HaveKeyWithValue(at(9999), health.Counts{Unconnected: 7})))
	})

	It("are accepted once for each connection, and only from Envoys with a name", func() {
		rpc := open("")
		_, err := rpc.Recv()
		Expect(grpcstatus.Code(err)).To(Equal(codes.InvalidArgument))
		_, err = open("gw").Recv()
		Expect(err).NotTo(HaveOccurred())
		_, err = open("gw").Recv()
		Expect(grpcstatus.Code(err)).To(Equal(codes.ResourceExhausted))
	})
})
