package compile

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// AssignmentName is the name of the assignment, and of the cluster, of a discovered upstream.
func AssignmentName(upstream string) string { return clusterName([]string{upstream}) }

// Assignment compiles the endpoints of a discovered upstream. It omits addresses that the
// settings rule out. If every endpoint is draining, they still receive requests, as in
// kube-proxy: they still serve, and no other endpoint does. The condition reports that no
// endpoint receives requests; nil means that at least one does.
func Assignment(upstream string, endpoints *model.Endpoints, s Settings) (*ir.Assignment, *model.Condition) {
	a := &ir.Assignment{Name: AssignmentName(upstream), Upstream: upstream}
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
		a.Endpoints = append(a.Endpoints, ir.AssignedEndpoint(e))
	}
	if draining == len(a.Endpoints) {
		for i := range a.Endpoints {
			a.Endpoints[i].Draining = false
		}
	}
	slices.SortStableFunc(a.Endpoints, func(x, y ir.AssignedEndpoint) int { return cmp.Compare(x.Zone, y.Zone) })
	if len(a.Endpoints) > 0 {
		return a, nil
	}
	c := &model.Condition{Key: model.UpstreamKey(upstream), Code: model.NoEndpoints, Message: "no endpoint is ready: requests are answered with 503 until one is"}
	if n := len(endpoints.All()); n > 0 {
		c.Message = fmt.Sprintf("%s (%d): requests are answered with 503", why, n)
	}
	return a, c
}
