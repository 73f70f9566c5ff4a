package translate

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// assignmentTimeout is how long a cluster waits for its assignment. Envoy holds back its
// answers about all clusters meanwhile, so there is a bound: it counts when the control plane
// goes away between the two. A cluster that had an assignment goes on with that, a new one has
// no endpoints until it comes.
const assignmentTimeout = 5 * time.Second

// discoverEndpoints makes a cluster take its endpoints from an assignment.
func discoverEndpoints(out *clusterv3.Cluster) {
	from := adsSource()
	from.InitialFetchTimeout = seconds(assignmentTimeout)
	out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
	out.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: from}
	// By default Envoy gathers for a second what is no more than another health of an endpoint:
	// one that drains would get requests for that long, and one that passed its first health
	// check none.
	out.CommonLbConfig.UpdateMergeWindow = seconds(0)
	// Else one with a health check would get requests until it fails that.
	out.IgnoreHealthOnHostRemoval = true
}

// Assignment is the endpoints of a discovered cluster, with a locality for each zone. Envoy
// goes to all of them alike: it knows nothing of the zone of its own clients.
func Assignment(a *ir.Assignment) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: a.Name}
	var locality *endpointv3.LocalityLbEndpoints
	for i, e := range a.Endpoints {
		if i == 0 || e.Zone != a.Endpoints[i-1].Zone {
			locality = &endpointv3.LocalityLbEndpoints{}
			if e.Zone != "" {
				locality.Locality = &corev3.Locality{Zone: e.Zone}
			}
			out.Endpoints = append(out.Endpoints, locality)
		}
		endpoint := &endpointv3.LbEndpoint{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{
			Endpoint: &endpointv3.Endpoint{Address: socketAddress(e.Address, e.Port)},
		}}
		if e.Draining {
			endpoint.HealthStatus = corev3.HealthStatus_DRAINING
		}
		locality.LbEndpoints = append(locality.LbEndpoints, endpoint)
	}
	return out
}
