package translate

import (
	"net/http"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// ExtAuthzFilter is the name of the filter that asks another service whether a request is allowed.
// ExtAuthzAllowFilter allows requests while that service is unreachable. There are two, since Envoy
// has that setting only on the listener.
const (
	ExtAuthzFilter      = "envoy.filters.http.ext_authz"
	ExtAuthzAllowFilter = ExtAuthzFilter + "/allow"
)

// AuthzSpoofFilter removes headers that only the authorization server may set. It has its own name,
// since a login of the proxy has a message for SpoofFilter too.
const AuthzSpoofFilter = SpoofFilter + "/authz"

// These headers tell a server what the client requested. A gRPC call has that in its message, so the server receives
// none of them.
const (
	forwardedURI    = "x-forwarded-uri"
	forwardedMethod = "x-forwarded-method"
)

// noCluster is the name of a cluster that never exists: no upstream's name has a slash.
const noCluster = "gatehouse/none"

// extAuthzFilters name a server that does not exist, so ExtAuthzFilter refuses every request. Without
// a service, Envoy would crash at the first request. Without a list of allowed headers, the server
// would receive only a few of Envoy's choice. A route cannot set which headers it receives.
func extAuthzFilters(ir.Listener) []filterConfig {
	config := func(onError bool) *extauthzv3.ExtAuthz {
		return &extauthzv3.ExtAuthz{
			Services: &extauthzv3.ExtAuthz_HttpService{HttpService: &extauthzv3.HttpService{ServerUri: askedURI(noCluster, time.Second)}},
			AllowedHeaders: &matcherv3.ListStringMatcher{Patterns: []*matcherv3.StringMatcher{{
				MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(".*")},
			}}},
			StatusOnError:    &typev3.HttpStatus{Code: typev3.StatusCode(http.StatusServiceUnavailable)},
			FailureModeAllow: onError, FailureModeAllowHeaderAdd: onError,
			ValidateMutations: true, DecoderHeaderMutationRules: mutationRules(),
		}
	}
	return []filterConfig{{name: ExtAuthzFilter, config: config(false)}, {name: ExtAuthzAllowFilter, config: config(true)}}
}

// mutationRules set which headers a server's answer may change: no header that frames or routes a message.
// Over gRPC, a server could otherwise change a request's length.
func mutationRules() *mutationv3.HeaderMutationRules {
	return &mutationv3.HeaderMutationRules{
		DisallowSystem:     wrapperspb.Bool(true),
		DisallowExpression: regex("connection|content-length|forwarded|t(e|railer|ransfer-encoding)|upgrade|x-(forwarded-.*|real-ip)"),
	}
}

func extAuthzOfHost(h *ir.Host) ([]filterConfig, error) { return extAuthz(h.ExtAuthz), nil }

// extAuthzOfRoute turns off the instance for which the host may have a message.
func extAuthzOfRoute(r *ir.Route) ([]filterConfig, error) {
	off := &routev3.FilterConfig{Disabled: true}
	switch {
	case r.ExtAuthz != nil && r.ExtAuthz.Allow:
		return append(extAuthz(r.ExtAuthz), filterConfig{name: ExtAuthzFilter, config: off}), nil
	case r.ExtAuthz != nil:
		return append(extAuthz(r.ExtAuthz), filterConfig{name: ExtAuthzAllowFilter, config: off}), nil
	case r.Public:
		return []filterConfig{{name: ExtAuthzFilter, config: off}, {name: ExtAuthzAllowFilter, config: off}}, nil
	}
	return nil, nil
}

func extAuthz(a *ir.ExtAuthz) []filterConfig {
	if a == nil {
		return nil
	}
	settings := &extauthzv3.CheckSettings{}
	if a.GRPC {
		settings.ServiceOverride = &extauthzv3.CheckSettings_GrpcService{GrpcService: askedByGRPC(a.Cluster, a.Timeout)}
	} else {
		settings.ServiceOverride = &extauthzv3.CheckSettings_HttpService{HttpService: askedByHTTP(a)}
	}
	if a.BodyBytes > 0 {
		settings.WithRequestBody = &extauthzv3.BufferSettings{MaxRequestBytes: uint32(a.BodyBytes), PackAsBytes: true} //nolint:gosec // bounded
	}
	name := ExtAuthzFilter
	if a.Allow {
		name = ExtAuthzAllowFilter
	}
	return []filterConfig{{name: name, config: &extauthzv3.ExtAuthzPerRoute{Override: &extauthzv3.ExtAuthzPerRoute_CheckSettings{CheckSettings: settings}}}}
}

func askedByHTTP(a *ir.ExtAuthz) *extauthzv3.HttpService {
	out := &extauthzv3.HttpService{ServerUri: askedURI(a.Cluster, a.Timeout), PathPrefix: a.PathPrefix, PathOverride: a.Path}
	// Servers read these, whatever the path of the call is. A client could otherwise write them.
	out.AuthorizationRequest = &extauthzv3.AuthorizationRequest{HeadersToAdd: []*corev3.HeaderValue{
		{Key: forwardedURI, Value: "%REQ(:path)%"}, {Key: forwardedMethod, Value: "%REQ(:method)%"}, {Key: "x-forwarded-host", Value: "%REQ(:authority)%"},
	}}
	if len(a.UpstreamHeaders) > 0 {
		names := &matcherv3.ListStringMatcher{}
		for _, name := range a.UpstreamHeaders {
			names.Patterns = append(names.Patterns, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}})
		}
		out.AuthorizationResponse = &extauthzv3.AuthorizationResponse{AllowedUpstreamHeaders: names}
	}
	return out
}

func askedURI(cluster string, timeout time.Duration) *corev3.HttpUri {
	return &corev3.HttpUri{Uri: "http://" + cluster, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: cluster}, Timeout: seconds(timeout)}
}

func askedByGRPC(cluster string, timeout time.Duration) *corev3.GrpcService {
	return &corev3.GrpcService{
		TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: cluster}}, Timeout: seconds(timeout),
	}
}

func authzSpoofFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: AuthzSpoofFilter, config: &headermutationv3.HeaderMutation{}}}
}

// authzHeadersOfHost leaves the headers of the host's Identity to SpoofFilter.
func authzHeadersOfHost(h *ir.Host) ([]filterConfig, error) {
	return authzHeaders(h.ExtAuthz, h.Identity), nil
}

func authzHeadersOfRoute(r *ir.Route) ([]filterConfig, error) {
	return authzHeaders(r.ExtAuthz, nil), nil
}

// authzHeaders removes the headers that only the server sets or the gateway tells it, except those that are removed
// elsewhere.
func authzHeaders(a *ir.ExtAuthz, elsewhere []string) []filterConfig {
	if a == nil {
		return nil
	}
	list := removeHeaders(withoutNames(a.UpstreamHeaders, elsewhere))
	if a.GRPC {
		list = append(list, removeHeaders([]string{forwardedURI, forwardedMethod})...)
	}
	if list == nil {
		return nil
	}
	return []filterConfig{requestMutations(AuthzSpoofFilter, list)}
}

// extAuthzReplies explain why a request is refused that the server could not be asked about. A refusal
// of the authorization server itself stays unchanged.
func extAuthzReplies(ir.Listener) ([]*hcmv3.ResponseMapper, error) {
	filter, err := celFilter(details + " == 'ext_authz_error'")
	return []*hcmv3.ResponseMapper{{
		Filter: filter, StatusCode: u32(http.StatusServiceUnavailable), Body: inline("the authorization server cannot be asked\n"),
	}}, err
}
