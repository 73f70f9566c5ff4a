package server_test

import (
	"log/slog"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func TestServer(t *testing.T) {
	RegisterFailHandler(Fail)
	SetDefaultEventuallyTimeout(time.Minute)
	RunSpecs(t, "xDS server")
}

// withCluster is a snapshot with one host that routes to one cluster.
func withCluster(revision int64, name string) *snapshot.Snapshot {
	GinkgoHelper()
	c, err := snapshot.NewCluster(&clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{}})
	Expect(err).NotTo(HaveOccurred())
	h, err := snapshot.NewHost(&routev3.VirtualHost{Name: "shop", Domains: []string{"*"}}, nil, snapshot.ObjectRef{Kind: "service", Name: "shop"})
	Expect(err).NotTo(HaveOccurred())
	head, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, unavailable(), nil)
	Expect(err).NotTo(HaveOccurred())
	b := snapshot.NewBuilder(head, nil)
	b.SetHost("shop", &snapshot.Parts{Host: h, Domain: "*", Named: snapshot.Named{Clusters: []*snapshot.Resource{c}}})
	return b.Snapshot(revision)
}

var _ = Describe("the server", func() {
	var (
		s        *server.Server
		registry *status.Registry
		addr     string
	)
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		registry = status.NewRegistry()
		s = server.New(server.Options{Status: registry, Log: slog.New(slog.DiscardHandler)})
		addr = serveGRPC(s.GRPC())
	})
	connect := func(answer func(*testkit.XDSResponse)) *testkit.XDSClient {
		GinkgoHelper()
		x, err := testkit.DialXDS(addr, "gw", answer)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = x.Close() }) // a spec may have closed it
		return x
	}
	answers := func() status.Answers {
		for _, e := range registry.Envoys() {
			return e.Types[snapshot.ClusterType]
		}
		return status.Answers{}
	}

	It("answers nothing before the first publication, then everything", func() {
		heard := make(chan string, 10)
		x := connect(func(r *testkit.XDSResponse) {
			heard <- r.GetTypeUrl()
			_ = r.Ack()
		})
		Expect(x.Subscribe(snapshot.ClusterType)).To(Succeed())
		Eventually(registry.Envoys).Should(HaveLen(1))
		Consistently(heard).WithTimeout(100 * time.Millisecond).ShouldNot(Receive())
		s.Publish(1, map[string]*snapshot.Snapshot{"gw": withCluster(1, "blue")})
		Eventually(heard).Should(Receive(Equal(snapshot.ClusterType)))
	})

	It("keeps the last acknowledged and the last refused version of each Envoy", func() {
		x := connect(func(r *testkit.XDSResponse) {
			if r.GetResources()[0].GetName() == "bad" {
				_ = r.Nack("no such thing")
				return
			}
			_ = r.Ack()
		})
		good := withCluster(3, "blue")
		s.Publish(3, map[string]*snapshot.Snapshot{"gw": good})
		Expect(x.Subscribe(snapshot.ClusterType)).To(Succeed())
		Eventually(func() int64 { return answers().Acked.Revision }).Should(Equal(int64(3)))
		Expect(answers().Acked.Resources).To(Equal([]status.Resource{{Name: "blue", Version: good.Clusters[0].Version}}))
		Expect(answers().Rejected).To(BeZero())

		bad := withCluster(4, "bad")
		s.Publish(4, map[string]*snapshot.Snapshot{"gw": bad})
		Eventually(func() string { return answers().Rejected.Text }).Should(Equal("no such thing"))
		Expect(answers().Rejected.Revision).To(Equal(int64(4)))
		Expect(answers().Rejected.Resources).To(Equal([]status.Resource{{Name: "bad", Version: bad.Clusters[0].Version}}))
		Expect(answers().Acked.Revision).To(Equal(int64(3)))
	})

	It("knows which revision an Envoy has in full", func() {
		x := connect(nil)
		s.Publish(7, map[string]*snapshot.Snapshot{"gw": withCluster(7, "blue")})
		Expect(x.Subscribe(snapshot.ClusterType)).To(Succeed())
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(func() int64 {
			for _, e := range registry.Envoys() {
				return e.Applied
			}
			return 0
		}).Should(Equal(int64(7)))
	})

	It("forgets an Envoy that disconnects", func() {
		x := connect(nil)
		Expect(x.Subscribe(snapshot.ClusterType)).To(Succeed())
		Eventually(registry.Envoys).Should(HaveLen(1))
		Expect(registry.Envoys()[0].Proxy).To(Equal("gw"))
		Expect(registry.Envoys()[0].Address).To(HavePrefix("127.0.0.1:"))
		Expect(x.Close()).To(Succeed())
		Eventually(registry.Envoys).Should(BeEmpty())
	})
})

// unavailable is the route of a host that was refused.
func unavailable() *routev3.Route {
	return &routev3.Route{
		Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}
}
