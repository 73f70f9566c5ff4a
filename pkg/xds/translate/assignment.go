package translate

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// assignmentTimeout is how long a cluster waits for its assignment. Meanwhile Envoy
// acknowledges no clusters at all, so the wait is bounded. It matters if the control plane
// stops between the cluster and its assignment. A cluster that had an assignment keeps it. A
// new cluster has no endpoints until its assignment arrives.
const assignmentTimeout = 5 * time.Second

// discoverEndpoints makes a cluster read its endpoints from an assignment.
func discoverEndpoints(out *clusterv3.Cluster) {
	from := seam.ADS()
	from.InitialFetchTimeout = seconds(assignmentTimeout)
	out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	out.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: from}
	// By default Envoy delays changes of an endpoint's health by up to a second. Meanwhile a
	// draining endpoint would receive requests, and one that passed its first health check
	// would receive none.
	out.CommonLbConfig.UpdateMergeWindow = seconds(0)
	// Without this, an endpoint with a health check would receive requests until it fails the
	// check.
	out.IgnoreHealthOnHostRemoval = true
}

// Assignment returns the endpoints of a discovered cluster, with a locality for each priority and zone. Envoy treats
// zones alike unless the cluster says otherwise, see balance.
func Assignment(a *ir.Assignment) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: a.Name}
	var locality *endpointv3.LocalityLbEndpoints
	for i, e := range a.Endpoints {
		if i == 0 || e.Zone != a.Endpoints[i-1].Zone || e.Priority != a.Endpoints[i-1].Priority {
			locality = newLocality(e.Priority, e.Zone)
			out.Endpoints = append(out.Endpoints, locality)
		}
		endpoint := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
			Endpoint: &endpointv3.Endpoint{Address: socketAddress(e.Address, e.Port)},
		}}
		if e.Draining {
			endpoint.HealthStatus = corev3.HealthStatus_DRAINING
		}
		if e.Weight > 0 {
			endpoint.LoadBalancingWeight = u32(e.Weight)
		}
		locality.LbEndpoints = append(locality.LbEndpoints, endpoint)
	}
	return out
}
