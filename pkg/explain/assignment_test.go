package explain_test

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
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

	It("answers 503 without endpoints", func() {
		a := ask(have(&endpointv3.ClusterLoadAssignment{}), "http://h/cart")
		Expect(a.Code).To(Equal(explain.NoEndpoints))
		Expect(a.Status).To(Equal(503))
	})
})
