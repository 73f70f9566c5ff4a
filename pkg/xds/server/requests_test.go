package server_test

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	loadv3 "github.com/envoyproxy/go-control-plane/envoy/service/load_stats/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// clusterOf is a cluster of upstreams. The first has 10.0.0.1, port 80, and so on; the edition changes its version.
func clusterOf(name string, edition int, upstreams ...string) *snapshot.Resource {
	GinkgoHelper()
	var objects []snapshot.ObjectRef
	for _, u := range upstreams {
		objects = append(objects, snapshot.ObjectRef{Kind: "upstream", Name: u})
	}
	r, err := snapshot.NewCluster(&clusterv3.Cluster{
		Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{}, AltStatName: fmt.Sprint("edition", edition),
	}, objects...)
	Expect(err).NotTo(HaveOccurred())
	for i, o := range objects {
		r.Endpoints = append(r.Endpoints, snapshot.EndpointRef{ObjectRef: o, Address: fmt.Sprint("10.0.0.", i+1), Port: 80})
	}
	return r
}

// snapshotOf has some clusters, in any order.
func snapshotOf(clusters ...*snapshot.Resource) *snapshot.Snapshot {
	s := snapshot.Empty(1)
	s.Clusters = slices.SortedFunc(slices.Values(clusters), func(a, b *snapshot.Resource) int { return strings.Compare(a.Name, b.Name) })
	return s
}

// numbered are n clusters of an upstream each.
func numbered(prefix string, n int) (list []*snapshot.Resource) {
	GinkgoHelper()
	for i := range n {
		name := fmt.Sprintf("%s%04d", prefix, i)
		list = append(list, clusterOf(name, 0, name))
	}
	return list
}

// reportOf is a report of n successful requests to an endpoint of each cluster.
func reportOf(address string, n uint64, clusters ...string) *loadv3.LoadStatsRequest {
	all := &loadv3.LoadStatsRequest{}
	for _, c := range clusters {
		e := endpoint(80, n, 0, n, 0)
		e.GetAddress().GetSocketAddress().Address = address
		all.ClusterStats = append(all.ClusterStats, report(c, e).GetClusterStats()...)
	}
	return all
}

func namesOf(clusters []*snapshot.Resource) (names []string) {
	for _, c := range clusters {
		names = append(names, c.Name)
	}
	return names
}

var _ = Describe("The requests of upstreams", func() {
	var (
		s    *server.Server
		addr string
		ctx  context.Context
	)
	BeforeEach(func() {
		s = server.New(server.Options{Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler)})
		addr = serveGRPC(s.GRPC())
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.Background(), time.Minute)
		DeferCleanup(cancel)
	})
	// envoy connects an Envoy that reports its load.
	envoy := func(proxy string) (send func(*loadv3.LoadStatsRequest), leave func()) {
		GinkgoHelper()
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		leave = func() { _ = conn.Close() }
		DeferCleanup(leave)
		rpc, err := loadv3.NewLoadReportingServiceClient(conn).StreamLoadStats(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(rpc.Send(&loadv3.LoadStatsRequest{Node: &corev3.Node{Id: proxy}})).To(Succeed())
		_, err = rpc.Recv()
		Expect(err).NotTo(HaveOccurred())
		return func(r *loadv3.LoadStatsRequest) {
			GinkgoHelper()
			Expect(rpc.Send(r)).To(Succeed())
		}, leave
	}
	publish := func(proxy string, clusters ...*snapshot.Resource) {
		s.Publish(1, map[string]*snapshot.Snapshot{proxy: snapshotOf(clusters...)})
	}
	counts := func() map[string]health.Counts {
		all := map[string]health.Counts{}
		for _, r := range s.Requests() {
			all[r.Proxy+" "+r.Upstream] = r.Counts
		}
		return all
	}
	succeeded := func() map[string]uint64 {
		all := map[string]uint64{}
		for name, c := range counts() {
			all[name] = c.Succeeded
		}
		return all
	}
	active := func() map[string]uint64 {
		all := map[string]uint64{}
		for _, r := range s.Requests() {
			all[r.Upstream] = r.Active
		}
		return all
	}

	It("have only names of the configuration, whatever an Envoy says", func() {
		publish("gw", clusterOf("blue", 0, "blue"), clusterOf("blue/route", 0, "blue"), clusterOf("gatehouse_own", 0),
			clusterOf("blue+green", 0, "blue", "green"), clusterOf("blue+green/route", 0, "blue", "green"))
		send, _ := envoy("gw")
		stranger, _ := envoy("nobody")
		for _, send := range []func(*loadv3.LoadStatsRequest){send, stranger} {
			send(reportOf("10.0.0.1", 9, "unknown", "", "gatehouse_own", "blue/", "green"))
			send(reportOf(strings.Repeat("1", 100), 9, "blue"))
		}
		stranger(reportOf("10.0.0.1", 9, "blue"))
		send(reportOf("192.0.2.7", 1, "blue", "blue/route"))
		send(reportOf("10.0.0.1", 10, "blue+green", "blue+green/route"))
		send(reportOf("10.0.0.2", 100, "blue+green"))
		Eventually(succeeded).Should(Equal(map[string]uint64{"gw blue": 22, "gw green": 100}))

		By("an address that belongs to none of several, or to two")
		send(reportOf("192.0.2.7", 1, "blue+green", "blue+green/route"))
		Eventually(succeeded).Should(Equal(map[string]uint64{"gw blue": 22, "gw green": 100, "gw blue+green": 2}))
		same := clusterOf("blue+green", 0, "blue", "green")
		same.Endpoints[1].Address = "10.0.0.1"
		publish("gw", same)
		send(reportOf("10.0.0.1", 1, "blue+green"))
		Eventually(succeeded).Should(HaveKeyWithValue("gw blue+green", uint64(3)))

		By("a host name, which has any address")
		named := clusterOf("blue+green", 1, "blue", "green")
		named.Endpoints[1].Address, named.Endpoints[1].DNS = "green.test", true
		publish("gw", named)
		send(&loadv3.LoadStatsRequest{})
		send(reportOf("192.0.2.7", 1, "blue+green"))
		send(reportOf("10.0.0.1", 1, "blue+green"))
		Eventually(succeeded).Should(Equal(map[string]uint64{"gw blue": 23, "gw green": 101, "gw blue+green": 3}))

		By("discovered endpoints")
		discovered := clusterOf("blue+green", 2, "blue", "green")
		endpoints := discovered.Endpoints
		discovered.Discovered, discovered.Endpoints = true, nil
		assignment, err := snapshot.NewAssignment(&endpointv3.ClusterLoadAssignment{ClusterName: "blue+green"}, discovered.Objects...)
		Expect(err).NotTo(HaveOccurred())
		assignment.Endpoints = endpoints
		next := snapshotOf(discovered)
		next.Endpoints = []*snapshot.Resource{assignment}
		s.Publish(2, map[string]*snapshot.Snapshot{"gw": next})
		send(reportOf("10.0.0.2", 1, "blue+green"))
		Eventually(succeeded).Should(HaveKeyWithValue("gw green", uint64(102)))
	})

	It("do not fall, whatever changes and whatever an Envoy says", func() {
		publish("gw", clusterOf("blue", 0, "blue"))
		send, leave := envoy("gw")
		var many []*endpointv3.UpstreamEndpointStats
		for port := range uint32(3000) {
			many = append(many, endpoint(port+1, 1, 2, 2, 0))
		}
		send(report("blue", many...))
		want := health.Counts{Succeeded: 3000, Failed: 3000, Unconnected: 3000}
		Eventually(counts).Should(HaveKeyWithValue("gw blue", want))

		By("another version of the cluster, and its last report")
		publish("gw", clusterOf("blue", 1, "blue"))
		send(report("blue", endpoint(1, 1, 0, 1, 0)))
		want.Succeeded++
		Eventually(counts).Should(HaveKeyWithValue("gw blue", want))
		publish("gw", clusterOf("blue+green", 0, "blue", "green"))
		send(report("blue", endpoint(1, 1, 0, 1, 0)))
		want.Succeeded++
		Eventually(counts).Should(HaveKeyWithValue("gw blue", want))

		By("an Envoy that leaves, and numbers that cannot be")
		leave()
		send, _ = envoy("gw")
		before := want
		for range 3 {
			send(report("blue+green", endpoint(80, math.MaxUint64, math.MaxUint64, math.MaxUint64, math.MaxUint64)))
			Eventually(func() uint64 { return counts()["gw blue"].Succeeded }).Should(BeNumerically(">", before.Succeeded))
			now := counts()["gw blue"]
			Expect([]bool{now.Failed >= before.Failed, now.Unconnected >= before.Unconnected, now.Untold >= before.Untold}).To(HaveEach(true))
			before = now
		}
	})

	It("that are under way are those of the last report of connected Envoys", func() {
		publish("gw", clusterOf("blue", 0, "blue"))
		send, leave := envoy("gw")
		other, _ := envoy("gw")
		send(report("blue", endpoint(80, 0, 0, 3, 3)))
		other(report("blue", endpoint(80, 0, 0, 2, 2)))
		Eventually(active).Should(Equal(map[string]uint64{"blue": 5}))
		send(report("blue", endpoint(80, 1, 1, 0, 1)))
		Eventually(active).Should(Equal(map[string]uint64{"blue": 3}))
		Expect(counts()).To(Equal(map[string]health.Counts{"gw blue": {Succeeded: 1, Failed: 1}}))
		By("one that ended, and the report does not say how")
		send(&loadv3.LoadStatsRequest{})
		Eventually(active).Should(Equal(map[string]uint64{"blue": 2}))
		Expect(counts()).To(Equal(map[string]health.Counts{"gw blue": {Succeeded: 1, Failed: 1, Untold: 1}}))
		send(report("blue", endpoint(80, 0, 0, 7, 7)))
		Eventually(active).Should(Equal(map[string]uint64{"blue": 9}))
		leave()
		Eventually(active).Should(Equal(map[string]uint64{"blue": 2}))
	})

	It("are counted for 2,000 upstreams, and together for the others", func() {
		all := numbered("a", 2005)
		publish("gw", all...)
		s.Publish(1, map[string]*snapshot.Snapshot{"inner": snapshotOf(numbered("b", 3)...)})
		send, _ := envoy("gw")
		send(reportOf("10.0.0.1", 1, namesOf(all)...))
		Eventually(succeeded).Should(And(HaveLen(2001), HaveKeyWithValue("gw other", uint64(5))))
		inner, _ := envoy("inner")
		inner(reportOf("10.0.0.1", 1, "b0000", "b0001"))
		Eventually(succeeded).Should(And(HaveLen(2002), HaveKeyWithValue("inner other", uint64(2))))
		By("which stay")
		send(reportOf("10.0.0.1", 1, namesOf(all)...))
		Eventually(succeeded).Should(And(HaveLen(2002), HaveKeyWithValue("gw other", uint64(10))))
		By("also when there is room again")
		publish("gw", clusterOf("blue", 0, "blue"))
		Eventually(func() map[string]uint64 {
			send(reportOf("10.0.0.1", 1, "blue"))
			return succeeded()
		}).Should(HaveKey("gw blue"))
		Expect(succeeded()).To(And(HaveKeyWithValue("gw other", BeNumerically(">=", 10)), HaveKeyWithValue("inner other", uint64(2))))
	})

	It("make room when their upstreams are deleted", func() {
		send, _ := envoy("gw")
		for round := range 3 {
			all := numbered(fmt.Sprint("round", round, "-"), 1999)
			publish("gw", append(all, clusterOf("blue", 0, "blue"))...)
			Eventually(func() map[string]uint64 {
				send(reportOf("10.0.0.1", 1, append(namesOf(all), "blue")...))
				return succeeded()
			}).Should(And(HaveKey("gw "+all[0].Name), HaveKey("gw "+all[1998].Name), HaveKey("gw blue")))
			Expect(len(succeeded())).To(BeNumerically("<=", 2001))
		}
	})

	It("go five minutes after their upstream, and a late report does not bring them back", func() {
		publish("gw", clusterOf("blue", 0, "blue"), clusterOf("green", 0, "green"))
		s.Publish(1, map[string]*snapshot.Snapshot{"old": snapshotOf(clusterOf("blue", 0, "blue"))})
		send, _ := envoy("gw")
		send(reportOf("10.0.0.1", 1, "blue", "green"))
		old, _ := envoy("old")
		old(reportOf("10.0.0.1", 1, "blue"))
		Eventually(succeeded).Should(HaveLen(3))
		s.Publish(2, map[string]*snapshot.Snapshot{"old": nil})
		publish("gw", clusterOf("green", 0, "green"))
		now := time.Now()
		Expect(s.RequestsAt(now)).To(HaveLen(3))
		By("one that is soon there again")
		publish("gw", clusterOf("blue", 0, "blue"), clusterOf("green", 0, "green"))
		Expect(s.RequestsAt(now.Add(4 * time.Minute))).To(HaveLen(3))
		publish("gw", clusterOf("green", 0, "green"))
		at := func(t time.Time) (names []string) {
			for _, r := range s.RequestsAt(t) {
				names = append(names, r.Proxy+" "+r.Upstream)
			}
			return names
		}
		Expect(at(now.Add(5 * time.Minute))).To(ConsistOf("gw blue", "gw green"))
		Expect(at(now.Add(10 * time.Minute))).To(ConsistOf("gw green"))
		send(reportOf("10.0.0.1", 1, "blue", "green"))
		old(reportOf("10.0.0.1", 1, "blue"))
		Eventually(succeeded).Should(Equal(map[string]uint64{"gw green": 2}))
	})
})
