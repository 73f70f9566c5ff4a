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

// Assignment is what the endpoints of a discovered upstream are for Envoy. An address that
// the settings rule out is left out. Where every endpoint drains they get the requests all
// the same, as kube-proxy has it: they still serve, and nobody else does. The condition says
// that nobody gets requests; nil means that somebody does.
func Assignment(upstream string, endpoints *model.Endpoints, s Settings) (*ir.Assignment, *model.Condition) {
	a := &ir.Assignment{Name: AssignmentName(upstream), Upstream: upstream}
	draining := 0
	for _, e := range endpoints.All() {
		if s.Upstreams.Refusal(e.Address) != "" {
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
	c := &model.Condition{Key: model.UpstreamKey(upstream), Code: model.NoEndpoints, Message: "nobody is there: requests are answered with 503 until an endpoint is ready"}
	if n := len(endpoints.All()); n > 0 {
		c.Message = fmt.Sprintf("--upstream-allow or --upstream-deny rules out its endpoints (%d): requests are answered with 503", n)
	}
	return a, c
}
