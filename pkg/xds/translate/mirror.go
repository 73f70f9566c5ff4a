package translate

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// credentials are the headers that a mirror does not receive.
func credentials() []string { return []string{"authorization", "proxy-authorization", "cookie"} }

func applyMirror(out *routev3.RouteAction, m *ir.Mirror) {
	if m == nil {
		return
	}
	policy := &routev3.RouteAction_RequestMirrorPolicy{
		Cluster: m.Cluster,
		RuntimeFraction: &corev3.RuntimeFractionalPercent{DefaultValue: &typev3.FractionalPercent{
			Numerator: uint32(m.Millionths), Denominator: typev3.FractionalPercent_MILLION, //nolint:gosec // at most a million
		}},
	}
	if !m.KeepCredentials {
		for _, name := range credentials() {
			policy.RequestHeadersMutations = append(policy.RequestHeadersMutations, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Remove{Remove: name}})
		}
	}
	out.RequestMirrorPolicies = []*routev3.RouteAction_RequestMirrorPolicy{policy}
}
