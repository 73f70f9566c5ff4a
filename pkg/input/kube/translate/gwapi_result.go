package translate

import gwapi "sigs.k8s.io/gateway-api/apis/v1"

// Verdict is a condition that depends on the objects alone, and not on the Envoys.
type Verdict struct {
	Type    string
	True    bool
	Reason  string
	Message string
}

// ClassResult is the result for a GatewayClass.
type ClassResult struct{ Conditions []Verdict }

// GatewayResult is the result for a Gateway.
type GatewayResult struct {
	Conditions []Verdict
	Listeners  []ListenerResult
	Addresses  []gwapi.GatewayStatusAddress
	// Sets counts the ListenerSets that are accepted.
	Sets int32
}

// SetResult is the result for a ListenerSet.
type SetResult struct {
	Conditions []Verdict
	Listeners  []ListenerResult
}

// ListenerResult is the result for a listener of a Gateway or ListenerSet.
type ListenerResult struct {
	Name           gwapi.SectionName
	SupportedKinds []gwapi.RouteGroupKind
	// Attached counts the routes that the listener takes.
	Attached   int32
	Conditions []Verdict
	// Served says that the listener has all that it needs.
	Served bool
}

// RouteResult is the result for a route, for each parent that is a Gateway of this installation.
type RouteResult struct{ Parents []ParentResult }

// PolicyResult is the result for a BackendTLSPolicy, for each Gateway whose routes need it.
type PolicyResult struct {
	Conditions []Verdict
	Ancestors  []gwapi.ParentReference
}

// ParentResult is the result for a parent of a route.
type ParentResult struct {
	Ref        gwapi.ParentReference
	Conditions []Verdict
}

// verdict returns a condition that is true unless reason is set.
func verdict[T, R ~string](name T, good R, goodMessage string, reason R, message string) Verdict {
	if reason != "" {
		return Verdict{string(name), false, string(reason), message}
	}
	return Verdict{string(name), true, string(good), goodMessage}
}

// Features are the names of what is supported of the Gateway API, sorted.
func Features() []gwapi.FeatureName {
	return []gwapi.FeatureName{
		"BackendTLSPolicy", "BackendTLSPolicySANValidation", "GRPCRoute", "GRPCRouteNamedRouteRule", "Gateway",
		"GatewayAddressEmpty", "GatewayHTTPListenerIsolation",
		"GatewayPort8080", "HTTPRoute", "HTTPRoute303RedirectStatusCode", "HTTPRoute307RedirectStatusCode",
		"HTTPRoute308RedirectStatusCode", "HTTPRouteBackendProtocolH2C", "HTTPRouteBackendProtocolWebSocket",
		"HTTPRouteBackendRequestHeaderModification", "HTTPRouteBackendTimeout", "HTTPRouteCORS",
		"HTTPRouteDestinationPortMatching", "HTTPRouteHostRewrite", "HTTPRouteMethodMatching", "HTTPRouteNamedRouteRule",
		"HTTPRouteParentRefPort", "HTTPRoutePathRedirect", "HTTPRoutePathRewrite", "HTTPRoutePortRedirect",
		"HTTPRouteQueryParamMatching", "HTTPRouteRequestMirror", "HTTPRouteRequestMultipleMirrors",
		"HTTPRouteRequestPercentageMirror", "HTTPRouteRequestTimeout", "HTTPRouteResponseHeaderModification",
		"HTTPRouteSchemeRedirect", "ListenerSet", "ReferenceGrant", "TCPRoute", "TLSRoute", "TLSRouteModeMixed", "TLSRouteModeTerminate",
		"UDPRoute",
	}
}
