package credential

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
)

// KeeperName is the name of the virtual host that keeps the secrets of logins in a route
// configuration. No service's name has a slash.
const KeeperName = "login/keeper"

// bootstrapCluster is a cluster that every Envoy has from its bootstrap. Envoy logs a warning
// for an unknown cluster each time it reads a route configuration.
const bootstrapCluster = "gatehouse_xds"

// KeeperHost returns the virtual host without its routes. No client can resolve its domain
// (RFC 6761).
func KeeperHost() *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: KeeperName, Domains: []string{"keeper.invalid"}}
}

// LoginSecrets returns the names of a pair's two secrets: the client secret, and the key that
// signs cookies.
func LoginSecrets(pair string) (client, hmac string) { return pair + "/client", pair + "/hmac" }

// KeeperRoute returns a route that names both secrets of a pair. Envoy 1.39 crashes when a
// secret that a login uses leaves a route configuration, so the route stays as long as the
// Envoy process. Its URLs lead nowhere. It matches no request, since every request has a
// method.
func KeeperRoute(pair string) (*routev3.Route, error) {
	client, hmac := LoginSecrets(pair)
	noMethod := &routev3.HeaderMatcher{
		Name: ":method", HeaderMatchSpecifier: &routev3.HeaderMatcher_PresentMatch{PresentMatch: false},
	}
	packed, err := seam.Pack(&oauth2v3.OAuth2PerRoute{Config: &oauth2v3.OAuth2Config{
		TokenEndpoint: &corev3.HttpUri{
			Uri:              "https://keeper.invalid/token",
			HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: bootstrapCluster},
			Timeout:          durationpb.New(1),
		},
		AuthorizationEndpoint: "https://keeper.invalid/authorize",
		RedirectUri:           "https://keeper.invalid/callback",
		RedirectPathMatcher:   exactPath("/callback"),
		SignoutPath:           exactPath("/signout"),
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       "keeper",
			TokenSecret:    seam.SDSSecret(client),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: seam.SDSSecret(hmac)},
		},
		AuthScopes:             []string{"openid"},
		AllowedRedirectDomains: []string{"keeper.invalid"},
	}})
	return &routev3.Route{
		Name: pair,
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Path{Path: "/" + pair}, Headers: []*routev3.HeaderMatcher{noMethod},
		},
		Action:               &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 404}},
		TypedPerFilterConfig: map[string]*anypb.Any{oauth2Filter: packed},
	}, err
}

func exactPath(path string) *matcherv3.PathMatcher {
	return &matcherv3.PathMatcher{Rule: &matcherv3.PathMatcher_Path{
		Path: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: path}},
	}}
}
