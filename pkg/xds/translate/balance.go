package translate

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
	leastrequestv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/least_request/v3"
	randomv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/random/v3"
	roundrobinv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/round_robin/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// newLocality returns the endpoints of one zone with one priority, which are none yet.
func newLocality(priority int, zone string) *endpointv3.LocalityLbEndpoints {
	l := &endpointv3.LocalityLbEndpoints{Priority: uint32(priority)} //nolint:gosec // 0 to 7
	if zone != "" {
		l.Locality = &corev3.Locality{Zone: zone}
	}
	return l
}

// balance sets what depends on the zone and the age of endpoints. LbPolicy stays set, for whoever reads the cluster:
// Envoy takes the policy here in place of it.
func balance(out *clusterv3.Cluster, c *ir.Cluster) error {
	if c.ZoneMin == 0 && c.SlowStart == 0 {
		if c.Discovered || hasZones(c) {
			out.CommonLbConfig.LocalityConfigSpecifier = &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig_{
				ZoneAwareLbConfig: &clusterv3.Cluster_CommonLbConfig_ZoneAwareLbConfig{RoutingEnabled: &typev3.Percent{}},
			}
		}
		return nil
	}
	zones := zonesOf(c)
	var policy message
	switch slow := slowStart(c.SlowStart); c.Strategy {
	case "least_request":
		policy = &leastrequestv3.LeastRequest{LocalityLbConfig: zones, SlowStartConfig: slow}
	case "random":
		policy = &randomv3.Random{LocalityLbConfig: zones}
	default:
		policy = &roundrobinv3.RoundRobin{LocalityLbConfig: zones, SlowStartConfig: slow}
	}
	packed, err := pack(policy)
	out.LoadBalancingPolicy = &clusterv3.LoadBalancingPolicy{Policies: []*clusterv3.LoadBalancingPolicy_Policy{{
		TypedExtensionConfig: &corev3.TypedExtensionConfig{Name: "envoy.load_balancing_policies." + c.Strategy, TypedConfig: packed},
	}}}
	return err
}

func hasZones(c *ir.Cluster) bool {
	for _, e := range c.Endpoints {
		if e.Zone != "" {
			return true
		}
	}
	return false
}

// zonesOf keeps requests in the zone of the Envoy while a number of endpoints is healthy there. It has no effect in an
// Envoy without a zone: Envoy compares with the zone of its local cluster (envoy/bootstrap.yaml.tmpl). Without a number,
// zones must not matter: an Envoy with a zone would compare the number of endpoints in each, and not their weights.
func zonesOf(c *ir.Cluster) *commonv3.LocalityLbConfig {
	aware := &commonv3.LocalityLbConfig_ZoneAwareLbConfig{RoutingEnabled: &typev3.Percent{}}
	switch {
	case c.ZoneMin > 0:
		aware = &commonv3.LocalityLbConfig_ZoneAwareLbConfig{
			MinClusterSize: wrapperspb.UInt64(1),
			ForceLocalZone: &commonv3.LocalityLbConfig_ZoneAwareLbConfig_ForceLocalZone{MinSize: u32(c.ZoneMin)},
		}
	case !c.Discovered && !hasZones(c):
		return nil
	}
	return &commonv3.LocalityLbConfig{
		LocalityConfigSpecifier: &commonv3.LocalityLbConfig_ZoneAwareLbConfig_{ZoneAwareLbConfig: aware},
	}
}

func slowStart(window time.Duration) *commonv3.SlowStartConfig {
	if window == 0 {
		return nil
	}
	return &commonv3.SlowStartConfig{SlowStartWindow: seconds(window)}
}

// resolve makes a cluster resolve the names of its endpoints.
func resolve(out *clusterv3.Cluster, d ir.DNS) {
	out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	if d.Logical {
		out.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	}
	switch d.Family {
	case "v6_preferred":
		out.DnsLookupFamily = clusterv3.Cluster_AUTO
	case "v4_only":
		out.DnsLookupFamily = clusterv3.Cluster_V4_ONLY
	case "v6_only":
		out.DnsLookupFamily = clusterv3.Cluster_V6_ONLY
	case "all":
		out.DnsLookupFamily = clusterv3.Cluster_ALL
	default:
		out.DnsLookupFamily = clusterv3.Cluster_V4_PREFERRED
	}
	// The cluster type that replaces these fields (envoy.clusters.dns) is no DiscoveryType, by which others tell DNS apart.
	out.RespectDnsTtl = d.TTL //nolint:staticcheck // see above
	if d.Refresh > 0 {
		out.DnsRefreshRate = seconds(d.Refresh) //nolint:staticcheck // see above
	}
}
