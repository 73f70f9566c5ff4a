package compile

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Assignment compiles the endpoints of a discovered upstream, for its own cluster. It omits
// addresses that the settings rule out. If every endpoint is draining, they still receive
// requests, as in kube-proxy: they still serve, and no other endpoint does. The condition
// reports that no endpoint receives requests; nil means that at least one does.
func Assignment(upstream string, endpoints *model.Endpoints, s Settings) (*ir.Assignment, *model.Condition) {
	a := &ir.Assignment{Name: ClusterName([]string{upstream}), Upstreams: []string{upstream}}
	draining, why := 0, ""
	for _, e := range endpoints.All() {
		if s.Upstreams.Refusal(e.Address) != "" {
			why = byLists + " its endpoints"
			continue
		}
		if refusal := s.Foreign.Endpoint(e.Address, e.Port); refusal != "" {
			why = "the address of an endpoint " + refusal
			continue
		}
		if e.Draining {
			draining++
		}
		a.Endpoints = append(a.Endpoints, ir.AssignedEndpoint{Address: e.Address, Port: e.Port, Draining: e.Draining, Zone: e.Zone, Upstream: upstream})
	}
	if draining == len(a.Endpoints) {
		for i := range a.Endpoints {
			a.Endpoints[i].Draining = false
		}
	}
	slices.SortFunc(a.Endpoints, compareEndpoints)
	if len(a.Endpoints) > 0 {
		return a, nil
	}
	what := "no endpoint is ready"
	if n := len(endpoints.All()); n > 0 {
		what = fmt.Sprintf("%s (%d)", why, n)
	}
	return a, &model.Condition{
		Key: model.UpstreamKey(upstream), Code: model.NoEndpoints,
		Message: what + ": requests go to the other upstreams of its clusters, or are answered with 503",
	}
}

func compareEndpoints(x, y ir.AssignedEndpoint) int {
	return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.Zone, y.Zone), cmp.Compare(x.Address, y.Address), cmp.Compare(x.Port, y.Port))
}

// Share is the assignment of one upstream of a cluster, with the upstream's weight and priority.
type Share struct {
	*ir.Assignment
	Weight, Priority int
}

// maxWeights bounds the sum of an assignment's weights. Envoy's documentation allows a sum below
// 1<<32. The rest is for what is rounded up.
const maxWeights = 1 << 31

// JoinAssignments returns the assignment of a cluster of several discovered upstreams. The
// weight of an upstream is divided among its endpoints that receive requests, so that the share
// of an unhealthy one goes to all others in proportion. The weights are exact if their sum
// allows it. Envoy takes an address once, so an endpoint of several upstreams has the sum of its
// weights at the lowest of their priorities.
func JoinAssignments(cluster string, shares []Share) *ir.Assignment {
	a := &ir.Assignment{Name: cluster}
	type address struct {
		ip   netip.Addr
		port int
	}
	index := map[address]int{}
	divide := divider(shares)
	for _, s := range shares {
		a.Upstreams = append(a.Upstreams, s.Upstreams...)
		if s.Weight == 0 {
			continue
		}
		weight := divide(s)
		for _, e := range s.Endpoints {
			if e.Weight = weight; e.Draining {
				e.Weight = 0
			}
			e.Priority = s.Priority
			ip, _ := netip.ParseAddr(e.Address) // see model.NewEndpoints
			key := address{ip, e.Port}
			i, there := index[key]
			if !there {
				index[key], a.Endpoints = len(a.Endpoints), append(a.Endpoints, e)
				continue
			}
			switch known := &a.Endpoints[i]; {
			case e.Priority < known.Priority:
				*known = e
			case e.Priority == known.Priority:
				known.Weight += e.Weight
				known.Draining = known.Draining && e.Draining
			}
		}
	}
	reduce(a.Endpoints)
	closeGaps(a.Endpoints)
	slices.SortFunc(a.Endpoints, compareEndpoints)
	return a
}

// divider returns the function that divides a share among its endpoints that receive requests.
func divider(shares []Share) func(Share) int {
	total, multiple := 0, 1
	for _, s := range shares {
		if n := receivers(s); n > 0 {
			total += s.Weight
			multiple = min(multiple/gcd(multiple, n)*n, maxWeights+1)
		}
	}
	exact := multiple <= maxWeights/max(total, 1)
	return func(s Share) int {
		n := max(receivers(s), 1)
		if exact {
			return s.Weight * multiple / n
		}
		return max(s.Weight*maxWeights/(total*n), 1)
	}
}

// receivers returns how many endpoints receive requests.
func receivers(s Share) (n int) {
	for _, e := range s.Endpoints {
		if !e.Draining {
			n++
		}
	}
	return n
}

// reduce divides the weights by what they have in common. An endpoint that receives no requests
// has the weight 1, the least that Envoy takes.
func reduce(list []ir.AssignedEndpoint) {
	common := 0
	for _, e := range list {
		common = gcd(common, e.Weight)
	}
	for i := range list {
		list[i].Weight = max(list[i].Weight/max(common, 1), 1)
	}
}

// closeGaps makes the priorities 0, 1 and so on.
func closeGaps(list []ir.AssignedEndpoint) {
	var used []int
	for _, e := range list {
		used = append(used, e.Priority)
	}
	slices.Sort(used)
	used = slices.Compact(used)
	for i := range list {
		list[i].Priority = slices.Index(used, list[i].Priority)
	}
}

func gcd(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}
