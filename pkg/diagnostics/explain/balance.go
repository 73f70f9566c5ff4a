package explain

import (
	"maps"
	"math"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/load_balancing_policies/common/v3"
)

// overprovisioning is how much more than its share of healthy endpoints a priority receives (Envoy's default).
const overprovisioning = 1.4

// setPercents divides the share of a cluster among its endpoints. An endpoint of one of several priorities counts only
// if it is healthy, as far as is known.
func (c *Cluster) setPercents(share float64) {
	type level struct{ all, healthy, weight float64 }
	levels := map[uint32]*level{}
	for _, e := range c.Endpoints {
		l := levels[e.Priority]
		if l == nil {
			l = &level{}
			levels[e.Priority] = l
		}
		if !e.Draining { // Envoy leaves these out
			l.all++
		}
		if c.receives(e) {
			l.healthy++
			l.weight += float64(e.Weight)
		}
	}
	rest, loads := 1.0, map[uint32]float64{}
	for _, p := range slices.Sorted(maps.Keys(levels)) {
		l := levels[p]
		loads[p] = min(rest, overprovisioning*l.healthy/max(l.all, 1))
		rest -= loads[p]
	}
	for i := range c.Endpoints {
		e := &c.Endpoints[i]
		e.Percent = 0
		if l := levels[e.Priority]; rest < 1 && c.receives(*e) {
			load := loads[e.Priority] / (1 - rest)
			e.Percent = math.Round(share*load*float64(e.Weight)/l.weight*1e4) / 100
		}
	}
}

// receives reports whether an endpoint counts. Without priorities, percentages are those while all are healthy.
func (c *Cluster) receives(e Endpoint) bool {
	return !e.Draining && (!e.Health.Excluded() || !c.hasPriorities())
}

func (c *Cluster) hasPriorities() bool {
	return slices.ContainsFunc(c.Endpoints, func(e Endpoint) bool { return e.Priority > 0 })
}

// zoneMinOf returns how many endpoints of the Envoy's zone must be healthy to receive all requests; 0 means that zones do
// not matter.
func zoneMinOf(c *clusterv3.Cluster) uint32 {
	for _, p := range c.GetLoadBalancingPolicy().GetPolicies() {
		m, err := p.GetTypedExtensionConfig().GetTypedConfig().UnmarshalNew()
		if policy, is := m.(interface {
			GetLocalityLbConfig() *commonv3.LocalityLbConfig
		}); err == nil && is {
			return policy.GetLocalityLbConfig().GetZoneAwareLbConfig().GetForceLocalZone().GetMinSize().GetValue()
		}
	}
	return 0
}
