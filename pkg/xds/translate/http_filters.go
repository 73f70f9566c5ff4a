package translate

import (
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// httpFilters is the one place that decides the order of the HTTP filters:
//
//	rbac/host   refuses what is not one host, before anything is asked about it
//	cors        answers a preflight before anything asks who is calling
//	ratelimit   before the logins, so that a flood does not reach them
//	oauth2      makes the token that the next ones read
//	jwt_authn   verifies the token
//	rbac        decides on the verified claims
//	ext_authz   may need all of the above
//	lua         the operator's own code sees an allowed request
//	router      is always the last
func httpFilters(l ir.Listener) []*hcmv3.HttpFilter {
	return append(append([]*hcmv3.HttpFilter{hostFilter()}, rateLimitFilters(l)...), &hcmv3.HttpFilter{
		Name:       "envoy.filters.http.router",
		ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: anyOf(&routerv3.Router{})},
	})
}
