package explain_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("A cluster whose endpoints are discovered", func() {
	endpoint := func(address string) *endpointv3.LbEndpoint {
		return &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: &corev3.Address{
			Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
				Address: address, PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80},
			}},
		}}}}
	}
	// have is an Envoy with one discovered cluster.
	have := func(a *endpointv3.ClusterLoadAssignment) explain.State {
		const name = "web"
		state := state(host("shop", []string{"*"}, &routev3.Route{Name: "cart", Match: prefixed("/cart"), Action: &routev3.Route_Route{
			Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: name}},
		}}))
		cluster, err := snapshot.NewCluster(&clusterv3.Cluster{
			Name: name, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		}, snapshot.ObjectRef{Kind: "upstream", Name: "web"})
		Expect(err).NotTo(HaveOccurred())
		a.ClusterName = name
		assignment, err := snapshot.NewAssignment(a, snapshot.ObjectRef{Kind: "upstream", Name: "web"})
		Expect(err).NotTo(HaveOccurred())
		for _, locality := range a.GetEndpoints() {
			for range locality.GetLbEndpoints() {
				assignment.Endpoints = append(assignment.Endpoints, snapshot.EndpointRef{ObjectRef: snapshot.ObjectRef{Kind: "upstream", Name: "web"}})
			}
		}
		state.Clusters, state.Endpoints = []*snapshot.Resource{cluster}, []*snapshot.Resource{assignment}
		return state
	}

	It("sends a request to an endpoint that is not draining", func() {
		drains := endpoint("10.0.0.1")
		drains.HealthStatus = corev3.HealthStatus_DRAINING
		a := ask(have(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{
			{LbEndpoints: []*endpointv3.LbEndpoint{drains}},
			{Locality: &corev3.Locality{Zone: "a"}, LbEndpoints: []*endpointv3.LbEndpoint{endpoint("10.0.0.2"), endpoint("10.0.0.3")}},
		}}), "http://h/cart")
		Expect(a.Code).To(Equal(explain.Forwarded))
		Expect(a.Forward.Clusters[0].Endpoints).To(Equal([]explain.Endpoint{
			{Upstream: "web", Address: "10.0.0.1", Port: 80, Weight: 1, Draining: true},
			{Upstream: "web", Address: "10.0.0.2", Port: 80, Weight: 1, Percent: 50, Zone: "a"},
			{Upstream: "web", Address: "10.0.0.3", Port: 80, Weight: 1, Percent: 50, Zone: "a"},
		}))
	})

	// among is an Envoy whose route goes to the cluster and to others that it does not have.
	among := func(a *endpointv3.ClusterLoadAssignment, weight uint32, others ...string) explain.State {
		clusters := []*routev3.WeightedCluster_ClusterWeight{{Name: "web", Weight: wrapperspb.UInt32(weight)}}
		for _, name := range others {
			clusters = append(clusters, &routev3.WeightedCluster_ClusterWeight{Name: name, Weight: wrapperspb.UInt32(1)})
		}
		state := have(a)
		state.Hosts = []*snapshot.Host{host("shop", []string{"*"}, &routev3.Route{Name: "cart", Match: prefixed("/cart"), Action: &routev3.Route_Route{
			Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_WeightedClusters{WeightedClusters: &routev3.WeightedCluster{Clusters: clusters}}},
		}})}
		return state
	}
	one := func(health corev3.HealthStatus) *endpointv3.ClusterLoadAssignment {
		e := endpoint("10.0.0.2")
		e.HealthStatus = health
		return &endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{e}}}}
	}

	DescribeTable("answers 503 if none of several clusters takes requests", func(state func() explain.State, code string) {
		Expect(ask(state(), "http://h/cart").Code).To(Equal(code))
	},
		Entry("the others are missing", func() explain.State { return among(one(corev3.HealthStatus_DRAINING), 1, "away") }, explain.NoCluster),
		Entry("those with endpoints have no weight", func() explain.State { return among(one(corev3.HealthStatus_HEALTHY), 0, "away") }, explain.NoCluster),
		Entry("all are missing", func() explain.State {
			state := among(one(corev3.HealthStatus_HEALTHY), 1, "away")
			state.Clusters = nil
			return state
		}, explain.NoCluster),
		Entry("but not if one does", func() explain.State { return among(one(corev3.HealthStatus_HEALTHY), 1, "away") }, explain.Forwarded),
	)

	DescribeTable("answers 503 if its health keeps all requests away", func(state health.State, panics bool, code string) {
		a := ask(have(one(corev3.HealthStatus_HEALTHY)), "http://h/cart")
		a.Forward.Clusters[0].Panics = panics
		a.Forward.Clusters[0].Endpoints[0].Health = state
		a.DescribeHealth()
		Expect(a.Code).To(Equal(code))
	},
		Entry("unhealthy", health.Unhealthy, false, explain.NoHealthyUpstream),
		Entry("ejected", health.Ejected, false, explain.NoHealthyUpstream),
		Entry("without an address", health.Unresolved, false, explain.NoHealthyUpstream),
		Entry("unless it then gets all of them", health.Unhealthy, true, explain.Forwarded),
		Entry("and not if it only failed", health.Failing, false, explain.Forwarded),
		Entry("and not if nothing is known", health.State(""), false, explain.Forwarded),
	)

	DescribeTable("has percentages for the health of its priorities", func(healthy []bool, percent ...float64) {
		a := ask(have(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{
			{LbEndpoints: []*endpointv3.LbEndpoint{endpoint("10.0.0.1"), endpoint("10.0.0.2")}},
			{Priority: 1, LbEndpoints: []*endpointv3.LbEndpoint{endpoint("10.0.0.3")}},
		}}), "http://h/cart")
		list := a.Forward.Clusters[0].Endpoints
		for i, is := range healthy {
			if !is {
				list[i].Health = health.Unhealthy
			}
		}
		a.DescribeHealth()
		for i, want := range percent {
			Expect(list[i].Percent).To(Equal(want))
		}
	},
		Entry("all", []bool{true, true, true}, 50., 50., 0.),
		Entry("one of two", []bool{true, false, true}, 70., 0., 30.),
		Entry("only the next", []bool{false, false, true}, 0., 0., 100.),
		Entry("none at the next", []bool{true, false, false}, 100., 0., 0.),
		Entry("none", []bool{false, false, false}, 0., 0., 0.),
	)

	It("does not count an endpoint that drains for the health of a priority", func() {
		drains := endpoint("10.0.0.1")
		drains.HealthStatus = corev3.HealthStatus_DRAINING
		a := ask(have(&endpointv3.ClusterLoadAssignment{Endpoints: []*endpointv3.LocalityLbEndpoints{
			{LbEndpoints: []*endpointv3.LbEndpoint{drains, endpoint("10.0.0.2")}},
			{Priority: 1, LbEndpoints: []*endpointv3.LbEndpoint{endpoint("10.0.0.3")}},
		}}), "http://h/cart")
		list := a.Forward.Clusters[0].Endpoints
		Expect([]float64{list[0].Percent, list[1].Percent, list[2].Percent}).To(Equal([]float64{0, 100, 0}))
	})

	It("answers 503 without endpoints", func() {
		a := ask(have(&endpointv3.ClusterLoadAssignment{}), "http://h/cart")
		Expect(a.Code).To(Equal(explain.NoEndpoints))
		Expect(a.Status).To(Equal(503))
	})
})
