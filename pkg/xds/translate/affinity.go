package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	statefulv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/stateful_session/v3"
	cookiev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/stateful_session/cookie/v3"
	httptypev3 "github.com/envoyproxy/go-control-plane/envoy/type/http/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// AffinityFilter is the name of the filter that keeps a client at one endpoint.
const AffinityFilter = "envoy.filters.http.stateful_session"

// affinityFilter does nothing without a host's or route's message.
func affinityFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AffinityFilter, config: &statefulv3.StatefulSession{}}}
}

func affinityOfRoute(r *ir.Route) ([]filterConfig, error) {
	if r.Forward == nil || r.Forward.Affinity == nil || !r.Forward.Affinity.Exact {
		return nil, nil
	}
	a := r.Forward.Affinity
	state, err := pack(&cookiev3.CookieBasedSessionState{Cookie: &httptypev3.Cookie{Name: a.Cookie, Path: "/", Ttl: seconds(a.TTL)}})
	if err != nil {
		return nil, err
	}
	return []filterConfig{{name: AffinityFilter, config: &statefulv3.StatefulSessionPerRoute{Override: &statefulv3.StatefulSessionPerRoute_StatefulSession{
		StatefulSession: &statefulv3.StatefulSession{SessionState: &corev3.TypedExtensionConfig{Name: "envoy.http.stateful_session.cookie", TypedConfig: state}},
	}}}}, nil
}

// applyHash sets the hash policies for the choice of an endpoint, and of a
// cluster if there are several.
func applyHash(out *routev3.RouteAction, a *ir.Affinity) {
	if a == nil || a.Exact {
		return
	}
	policy := &routev3.RouteAction_HashPolicy{}
	switch {
	case a.Cookie != "":
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Cookie_{Cookie: &routev3.RouteAction_HashPolicy_Cookie{
			Name: a.Cookie, Path: "/", Ttl: seconds(a.TTL),
			Attributes: []*routev3.RouteAction_HashPolicy_CookieAttribute{{Name: "SameSite", Value: "Lax"}},
		}}
	case a.Header != "":
		policy.PolicySpecifier = &routev3.RouteAction_HashPolicy_Header_{Header: &routev3.RouteAction_HashPolicy_Header{HeaderName: a.Header}}
	default:
		policy = sourceHash()
	}
	out.HashPolicy = []*routev3.RouteAction_HashPolicy{policy}
	if w := out.GetWeightedClusters(); w != nil {
		w.RandomValueSpecifier = &routev3.WeightedCluster_UseHashPolicy{UseHashPolicy: wrapperspb.Bool(true)}
	}
}

// sourceHash distinguishes clients by their addresses.
func sourceHash() *routev3.RouteAction_HashPolicy {
	return &routev3.RouteAction_HashPolicy{PolicySpecifier: &routev3.RouteAction_HashPolicy_ConnectionProperties_{
		ConnectionProperties: &routev3.RouteAction_HashPolicy_ConnectionProperties{SourceIp: true},
	}}
}
