package feature_test

import (
	"context"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("an Envoy that connects", func() {
	It("receives what its proxy object specifies", func() {
		g := serve(GinkgoT().TempDir())
		upstream(g, "blue")
		shop(g, "blue")
		c := connect(g, "gw", "")
		Eventually(c.said).Should(ContainElements("clusters +blue", "listeners +http-0.0.0.0:8080", "routes shop.test[/=blue]"))
	})

	It("receives an empty configuration under an unknown name, and all of it once the proxy exists", func() {
		g := serve(GinkgoT().TempDir())
		c := connect(g, "gw", "")
		Eventually(c.said).Should(Equal([]string{"clusters", "listeners"}))
		c.forget()
		upstream(g, "blue")
		shop(g, "blue")
		// The proxy and its service may arrive as one change or as two.
		Eventually(c.said).Should(ContainElements("listeners +http-0.0.0.0:8080", "clusters +blue", "routes shop.test[/=blue]"))
	})

	It("receives nothing of another proxy", func() {
		g := serve(GinkgoT().TempDir())
		upstream(g, "blue")
		shop(g, "blue")
		post(g, "/proxy", "Name=other", "Http_port=81")
		other := connect(g, "other", "")
		Eventually(other.said).Should(ContainElements("clusters", "listeners +http-0.0.0.0:81", "routes"))
		other.forget()
		remove(g, "/service/shop/route/root/upstream/blue")
		post(g, "/service", "Service_Name=theirs", "fqdn=theirs.test")
		post(g, "/proxy/other/service/theirs")
		Eventually(other.said).Should(Equal([]string{"routes theirs.test[]"}))
	})

	It("is told how to connect if it connects wrongly", func() {
		g := serve(GinkgoT().TempDir())
		conn, err := grpc.NewClient(g.XDSAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		ads := discoveryv3.NewAggregatedDiscoveryServiceClient(conn)

		nameless, err := ads.DeltaAggregatedResources(limit())
		Expect(err).NotTo(HaveOccurred())
		Expect(nameless.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, Node: &corev3.Node{}})).To(Succeed())
		_, err = nameless.Recv()
		Expect(status.Code(err)).To(Equal(codes.InvalidArgument))
		Expect(err).To(MatchError(ContainSubstring("node id is empty: set node.id")))

		old, err := ads.StreamAggregatedResources(limit())
		Expect(err).NotTo(HaveOccurred())
		Expect(old.Send(&discoveryv3.DiscoveryRequest{TypeUrl: clusterType, Node: &corev3.Node{Id: "gw"}})).To(Succeed())
		_, err = old.Recv()
		Expect(status.Code(err)).To(Equal(codes.Unimplemented))
		Expect(err).To(MatchError(ContainSubstring("DELTA_GRPC")))
	})
})

var _ = Describe("a change", func() {
	var (
		g *testkit.Gatehouse
		c *client
	)
	BeforeEach(func() {
		g = serve(GinkgoT().TempDir())
		upstream(g, "blue")
		upstream(g, "green")
		shop(g, "blue")
		c = connect(g, "gw", "")
		Eventually(c.said).Should(ContainElement("routes shop.test[/=blue]"))
		c.forget()
	})

	It("of a route changes nothing but the routes", func() {
		post(g, "/service/shop/route", "Route_Name=api", "Route_prefix=/api")
		Eventually(c.said).Should(Equal([]string{"routes shop.test[/api=503 /=blue]"}))
		post(g, "/service/shop/route/api/upstream/blue")
		Eventually(c.said).Should(HaveLen(2))
		Expect(c.said()[1]).To(Equal("routes shop.test[/api=blue /=blue]"))
	})

	It("of the upstreams makes, switches, and breaks last", func() {
		post(g, "/service/shop/route/root/upstream/green")
		Eventually(c.said).Should(Equal([]string{"clusters +blue+green", "routes shop.test[/=blue+green]"}))
		remove(g, "/service/shop/route/root/upstream/blue")
		Eventually(c.said).Should(ContainElement(ContainSubstring("-blue")))
		Eventually(c.said).Should(ContainElement(ContainSubstring("-blue+green")))
		said := c.said()
		Expect(said[2:4]).To(Equal([]string{"clusters +green", "routes shop.test[/=green]"}))
		for _, s := range said[:4] {
			Expect(s).NotTo(ContainSubstring("-"))
		}
	})

	It("of what no proxy serves is sent to nobody", func() {
		post(g, "/service", "Service_Name=idle", "fqdn=idle.test")
		post(g, "/service/idle/route", "Route_Name=root", "Route_prefix=/")
		post(g, "/service/idle/route/root/upstream/green")
		post(g, "/service/shop/route", "Route_Name=last", "Route_prefix=/last")
		Eventually(c.said).Should(Equal([]string{"routes shop.test[/last=503 /=blue]"}))
	})

	It("to a cluster that warms delays only the host that names it", func() {
		slow := connect(g, "gw", "slow")
		Eventually(slow.said).Should(ContainElement("routes shop.test[/=blue]"))
		slow.forget()
		upstream(g, "slow", "Upstream_hc_path=/healthz")
		post(g, "/service", "Service_Name=blog", "fqdn=blog.test")
		post(g, "/service/blog/route", "Route_Name=root", "Route_prefix=/")
		post(g, "/proxy/gw/service/blog")
		Eventually(slow.said).Should(Equal([]string{"routes blog.test[/=503] shop.test[/=blue]"}))
		slow.forget()

		post(g, "/service/shop/route/root/upstream/slow")
		remove(g, "/service/shop/route/root/upstream/blue")
		post(g, "/service/blog/route/root/upstream/green")
		Eventually(slow.said).Should(ContainElement("routes blog.test[/=green] shop.test[/=blue]"))
		slow.release()
		Eventually(slow.said).Should(ContainElement("routes blog.test[/=green] shop.test[/=slow]"))
	})

	It("removes everything when the proxy is deleted", func() {
		remove(g, "/proxy/gw?force=true")
		Eventually(c.said).Should(Equal([]string{"listeners -http-0.0.0.0:8080"}))
		Expect(c.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: routeType, ResourceNamesUnsubscribe: []string{"gatehouse"}})).To(Succeed())
		Eventually(c.said).Should(Equal([]string{"listeners -http-0.0.0.0:8080", "clusters -blue"}))
	})
})

var _ = Describe("a restart of the control plane", func() {
	It("changes nothing that the Envoy has", func() {
		dir := GinkgoT().TempDir()
		g := serve(dir)
		upstream(g, "blue")
		shop(g, "blue")
		c := connect(g, "gw", "")
		Eventually(func() int {
			return len(c.Resources(clusterType)) + len(c.Resources(listenerType)) + len(c.Resources(routeType))
		}).Should(Equal(3))
		Eventually(c.said).Should(ContainElement("routes shop.test[/=blue]"))
		Expect(g.Kill()).To(Succeed())

		g = serve(dir)
		again := &client{}
		x, err := testkit.DialXDS(g.XDSAddr, "gw", again.hear)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(x.Close)
		for typeURL, names := range map[string][]string{clusterType: nil, listenerType: nil, routeType: {"gatehouse"}} {
			versions := map[string]string{}
			for name, r := range c.Resources(typeURL) {
				versions[name] = r.GetVersion()
			}
			Expect(x.Send(&discoveryv3.DeltaDiscoveryRequest{
				TypeUrl: typeURL, ResourceNamesSubscribe: names, InitialResourceVersions: versions,
			})).To(Succeed())
		}
		post(g, "/service/shop/route", "Route_Name=new", "Route_prefix=/new")
		By("except an empty message, whose answer proves that it has requested everything")
		Eventually(again.said).Should(Equal([]string{"listeners", "routes shop.test[/new=503 /=blue]"}))
	})
})

var _ = Describe("a client that never answers", func() {
	It("delays nobody", func() {
		g := serve(GinkgoT().TempDir())
		upstream(g, "blue")
		shop(g, "blue")
		conn, err := grpc.NewClient(g.XDSAddr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(conn.Close)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		DeferCleanup(cancel)
		silent, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(silent.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: clusterType, Node: &corev3.Node{Id: "gw"}})).To(Succeed())

		c := connect(g, "gw", "")
		Eventually(c.said).Should(ContainElement("routes shop.test[/=blue]"))
		post(g, "/service/shop/route", "Route_Name=new", "Route_prefix=/new")
		Eventually(c.said).Should(ContainElement("routes shop.test[/new=503 /=blue]"))
	})
})
