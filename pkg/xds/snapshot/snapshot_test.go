package snapshot_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

func static(name string) *clusterv3.Cluster {
	return &clusterv3.Cluster{Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}}
}

func prefix(prefix string) *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}}
}

func to(clusters ...string) *routev3.Route_Route {
	action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: clusters[0]}}
	if len(clusters) > 1 {
		weighted := &routev3.WeightedCluster{}
		for _, c := range clusters {
			weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: c, Weight: wrapperspb.UInt32(1)})
		}
		action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	}
	return &routev3.Route_Route{Route: action}
}

func host(name string, routes ...*routev3.Route) *snapshot.Host {
	GinkgoHelper()
	var list []*snapshot.Route
	for _, r := range routes {
		made, err := snapshot.NewRoute(r)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, made)
	}
	h, err := snapshot.NewHost(&routev3.VirtualHost{Name: name, Domains: []string{name}}, list, snapshot.ObjectRef{Kind: "service", Name: name})
	Expect(err).NotTo(HaveOccurred())
	return h
}

func head() *snapshot.RouteHead {
	GinkgoHelper()
	h, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, &routev3.Route{
		Match:  prefix("/"),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}, nil)
	Expect(err).NotTo(HaveOccurred())
	return h
}

var _ = Describe("A resource", func() {
	It("cannot violate Envoy's constraints", func() {
		_, err := snapshot.NewCluster(static(""))
		Expect(err).To(MatchError(ContainSubstring("Name")))
		_, err = snapshot.NewListener(&listenerv3.Listener{Name: "l", ListenerFilters: []*listenerv3.ListenerFilter{{}}})
		Expect(err).To(MatchError(ContainSubstring(`listener "l"`)))
		_, err = snapshot.NewRoute(&routev3.Route{Name: "r"})
		Expect(err).To(MatchError(ContainSubstring(`route "r"`)))
		_, err = snapshot.NewHost(&routev3.VirtualHost{Name: "h"}, nil, snapshot.ObjectRef{})
		Expect(err).To(MatchError(ContainSubstring(`virtual host "h"`)))
	})

	DescribeTable("of a cluster warms", func(warms bool, change func(*clusterv3.Cluster)) {
		c := static("c")
		change(c)
		r, err := snapshot.NewCluster(c)
		Expect(err).NotTo(HaveOccurred())
		Expect(r.Warms).To(Equal(warms))
	},
		Entry("not with only addresses", false, func(*clusterv3.Cluster) {}),
		Entry("with names to resolve", true, func(c *clusterv3.Cluster) {
			c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
		}),
		Entry("with a health check", true, func(c *clusterv3.Cluster) {
			c.HealthChecks = []*corev3.HealthCheck{{
				Timeout: durationpb.New(1e9), Interval: durationpb.New(1e9), UnhealthyThreshold: wrapperspb.UInt32(1), HealthyThreshold: wrapperspb.UInt32(1),
				HealthChecker: &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}},
			}}
		}),
	)

	It("has a version that depends on its content", func() {
		a, b := &routev3.Route{Match: prefix("/a"), Action: to("x")}, &routev3.Route{Match: prefix("/b"), Action: to("x")}
		Expect(host("h", a).Version).To(Equal(host("h", a).Version))
		Expect(host("h", a).Version).NotTo(Equal(host("h", b).Version))
		Expect(host("h", a, b).Version).NotTo(Equal(host("h", b, a).Version), "the order of routes matters")
		rc := func(hosts ...*snapshot.Host) string { return head().Join(hosts).Version }
		Expect(rc(host("h", a))).To(Equal(rc(host("h", a))))
		Expect(rc(host("h", a))).NotTo(Equal(rc(host("h", b))))
		Expect(rc(host("h", a))).NotTo(Equal(rc(host("h", a), host("i", a))))
	})

	It("of a host names the clusters of all its routes", func() {
		h := host("h", &routev3.Route{Match: prefix("/a"), Action: to("y", "z")}, &routev3.Route{Match: prefix("/b"), Action: to("x")},
			&routev3.Route{Match: prefix("/c"), Action: to("x")})
		Expect(h.Clusters).To(Equal([]string{"x", "y", "z"}))
	})
})

var _ = Describe("A builder", func() {
	var b *snapshot.Builder
	cluster := func(name, stat string) *snapshot.Resource {
		GinkgoHelper()
		c := static(name)
		c.AltStatName = stat
		r, err := snapshot.NewCluster(c)
		Expect(err).NotTo(HaveOccurred())
		return r
	}
	set := func(name, domain string, order int64, clusters ...*snapshot.Resource) {
		GinkgoHelper()
		b.SetHost(name, &snapshot.Parts{Host: host(name), Domain: domain, Order: order, Named: snapshot.Named{Clusters: clusters}})
	}
	served := func() (hosts, clusters []string) {
		s := b.Snapshot(1)
		for _, h := range s.Hosts {
			hosts = append(hosts, h.Name)
		}
		for _, c := range s.Clusters {
			clusters = append(clusters, c.Name)
		}
		return hosts, clusters
	}
	BeforeEach(func() {
		b = snapshot.NewBuilder(head(), nil)
		b.SetListeners(nil, snapshot.Named{Clusters: []*snapshot.Resource{cluster("own", "")}})
	})

	It("serves a domain with the host of the lowest order, and with the next one when that is deleted", func() {
		set("b", "shop.test", 2, cluster("y", ""))
		set("a", "shop.test", 1, cluster("x", ""))
		set("c", "shop.test", 3, cluster("z", ""))
		hosts, clusters := served()
		Expect(hosts).To(Equal([]string{"a"}))
		Expect(clusters).To(Equal([]string{"own", "x"}))
		Expect(b.Conflicts()).To(Equal(map[string]string{"b": "a", "c": "a"}))

		b.SetHost("a", nil)
		hosts, clusters = served()
		Expect(hosts).To(Equal([]string{"b"}))
		Expect(clusters).To(Equal([]string{"own", "y"}))

		set("b", "other.test", 2, cluster("y", ""))
		hosts, _ = served()
		Expect(hosts).To(Equal([]string{"b", "c"}), "each has a domain of its own")
		Expect(b.Conflicts()).To(BeEmpty())
	})

	It("keeps a cluster as long as a host uses it, in its newest form", func() {
		set("a", "a.test", 1, cluster("x", ""))
		set("b", "b.test", 2, cluster("x", ""))
		b.SetHost("a", nil)
		_, clusters := served()
		Expect(clusters).To(Equal([]string{"own", "x"}))
		changed := cluster("x", "changed")
		set("b", "b.test", 2, changed)
		Expect(b.Snapshot(2).Clusters[1].Version).To(Equal(changed.Version))
		b.SetHost("b", nil)
		_, clusters = served()
		Expect(clusters).To(Equal([]string{"own"}))
		set("b", "b.test", 2, changed)
		_, clusters = served()
		Expect(clusters).To(Equal([]string{"own", "x"}), "it comes back")
	})
})
