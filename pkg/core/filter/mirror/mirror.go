// Package mirror is route_filter_mirror: it sends copies of requests to other upstreams. Envoy's router does that, so
// there is no filter on the listener.
package mirror

import (
	"fmt"
	"slices"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	key seam.Key[[]Mirror] = "mirror"
	// most bounds the copies of one request: each of them costs as much as the request.
	most = 8
)

// Mirror copies requests to a cluster. The cluster is one of the route's Asked clusters.
type Mirror struct {
	Cluster string `json:"cluster"`
	// Millionths is the share of requests that are copied, in millionths.
	Millionths int `json:"millionths"`
	// KeepCredentials leaves the client's credentials in the copy.
	KeepCredentials bool `json:"keepCredentials,omitempty"`
}

// Filter returns the filter.
func Filter() seam.Filter {
	config := seam.LastOf(add, nil)
	config.Several, config.Clash = true, tooMany
	return seam.Filter{Type: model.FilterMirror, Config: config, ChangeRoute: copyRequests, DescribeForward: describe}
}

func tooMany(filters []*model.ParsedFilter) string {
	n := 0
	for _, f := range filters {
		if f.Type == model.FilterMirror {
			n++
		}
	}
	if n > most {
		return fmt.Sprintf("has %d filters of type %s, of which %d are allowed,", n, model.FilterMirror, most)
	}
	return ""
}

func add(r *ir.Route, f *model.MirrorFilter, at seam.Place) error {
	if r.Forward == nil {
		return nil
	}
	cluster, err := at.Named(f.Upstream)
	if err != nil {
		return err
	}
	m := Mirror{Cluster: cluster.Name, Millionths: f.Millionths(), KeepCredentials: !f.Strips()}
	key.Forward(r, append(slices.Clone(key.OfForward(r)), m))
	r.Asked = ir.WithCluster(r.Asked, cluster)
	return nil
}

// credentials are the headers that a mirror does not receive.
func credentials() []string { return []string{"authorization", "proxy-authorization", "cookie"} }

func copyRequests(r *ir.Route, out *routev3.Route) error {
	for _, m := range key.OfForward(r) {
		out.GetRoute().RequestMirrorPolicies = append(out.GetRoute().RequestMirrorPolicies, policyOf(m))
	}
	return nil
}

func policyOf(m Mirror) *routev3.RouteAction_RequestMirrorPolicy {
	policy := &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: m.Cluster,
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator:   uint32(m.Millionths), //nolint:gosec // at most a million
			Denominator: typev3.FractionalPercent_MILLION,
		}},
	}
	if !m.KeepCredentials {
		for _, name := range credentials() {
			policy.RequestHeadersMutations = append(policy.RequestHeadersMutations, &mutationv3.HeaderMutation{
				Action: &mutationv3.HeaderMutation_Remove{Remove: name},
			})
		}
	}
	return policy
}

func describe(r *routev3.RouteAction) []string {
	var told []string
	for _, m := range r.GetRequestMirrorPolicies() {
		const percent = 10_000
		told = append(told, fmt.Sprintf("a copy of %g%% of the requests goes to %s, whose answers are discarded",
			float64(m.GetRuntimeFraction().GetDefaultValue().GetNumerator())/percent, m.GetCluster()))
	}
	return told
}
