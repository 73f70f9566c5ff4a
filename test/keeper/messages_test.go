package keeper_test

import (
	"fmt"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// The names of the filters on the listener.
const (
	oauth2Filter = "envoy.filters.http.oauth2"
	jwtFilter    = "envoy.filters.http.jwt_authn"
	provider     = "https://idp.invalid/authorize"
	tokenPath    = "/token"
)

func packed(m proto.Message) *anypb.Any {
	GinkgoHelper()
	return must(anypb.New(m))
}

func ads() *corev3.ConfigSource {
	return &corev3.ConfigSource{
		InitialFetchTimeout:   durationpb.New(0),
		ResourceApiVersion:    corev3.ApiVersion_V3,
		ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}},
	}
}

// listener returns one with the filters of logins, switched off.
func listener(port int) *snapshot.Resource {
	GinkgoHelper()
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix:     "http",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: ads(), RouteConfigName: "rc"}},
		HttpFilters: []*hcmv3.HttpFilter{
			{Name: oauth2Filter, Disabled: true, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&oauth2v3.OAuth2{})}},
			{Name: jwtFilter, Disabled: true, ConfigType: &hcmv3.HttpFilter_ConfigDiscovery{ConfigDiscovery: &corev3.ExtensionConfigSource{
				ConfigSource: ads(), TypeUrls: []string{"type.googleapis.com/envoy.extensions.filters.http.jwt_authn.v3.JwtAuthentication"},
			}}},
			{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: packed(&routerv3.Router{})}},
		},
	}
	return must(snapshot.NewListener(&listenerv3.Listener{
		Name: fmt.Sprintf("http-%d", port),
		Address: &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
			Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(port)}, //nolint:gosec // a port
		}}},
		FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
			Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed(manager)},
		}}}},
	}))
}

// heads returns what route configurations and the extension begin with.
func heads() (*snapshot.RouteHead, *snapshot.ExtensionHead) {
	GinkgoHelper()
	rc := &routev3.RouteConfiguration{Name: "rc", IgnorePortInHostMatching: true}
	routes := must(snapshot.NewRouteHead(rc, answer("/", 503, ""), &snapshot.SecretHost{Host: credential.KeeperHost(), Route: credential.KeeperRoute}))
	return routes, must(snapshot.NewExtensionHead(jwtFilter, &jwtauthnv3.JwtAuthentication{}))
}

func answer(prefix string, status uint32, body string) *routev3.Route {
	return &routev3.Route{
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: prefix}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
			Status: status, Body: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: body}},
		}},
	}
}

// open returns a host that answers 200 with a body.
func open(name, body string) *snapshot.Parts {
	GinkgoHelper()
	route := must(snapshot.NewRoute(answer("/", 200, body)))
	h := must(snapshot.NewHost(&routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}}, []*snapshot.Route{route}, snapshot.ObjectRef{Kind: "service", Name: name}))
	return &snapshot.Parts{Host: h, Domain: name + ".test"}
}

// closed returns a host whose clients must log in with the filter named login. edition
// changes the requirements for a token, keys the keys, and content the secrets.
func closed(name, login string, edition, keys, content int) *snapshot.Parts {
	GinkgoHelper()
	pair := "login/filter/" + login
	client, hmac := credential.LoginSecrets(pair)
	demand := fmt.Sprintf("filter/%s/%d", login, edition)
	sds := func(name string) *tlsv3.SdsSecretConfig { return &tlsv3.SdsSecretConfig{Name: name, SdsConfig: ads()} }
	config := oauth2Of(must(credential.KeeperRoute(pair)))
	config.Config.RedirectUri = "https://%REQ(:authority)%/callback"
	config.Config.AuthorizationEndpoint, config.Config.AllowedRedirectDomains = provider, []string{name + ".test"}
	config.Config.Credentials.ClientId = fmt.Sprintf("client-%d", edition)
	config.Config.Credentials.TokenSecret = sds(client)
	config.Config.Credentials.TokenFormation = &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: sds(hmac)}
	vh := &routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}, TypedPerFilterConfig: map[string]*anypb.Any{
		oauth2Filter: packed(config),
		jwtFilter:    packed(&jwtauthnv3.PerRouteConfig{RequirementSpecifier: &jwtauthnv3.PerRouteConfig_RequirementName{RequirementName: demand}}),
	}}
	token := answer(tokenPath, 200, "in") // where only the token is checked
	token.TypedPerFilterConfig = map[string]*anypb.Any{oauth2Filter: packed(&routev3.FilterConfig{Disabled: true})}
	routes := []*snapshot.Route{must(snapshot.NewRoute(token)), must(snapshot.NewRoute(answer("/", 200, "in")))}
	h := must(snapshot.NewHost(vh, routes, snapshot.ObjectRef{Kind: "service", Name: name},
		snapshot.Needs{Secrets: []string{client, hmac}, Providers: []string{demand}}))
	p := must(snapshot.NewProvider(demand, &jwtauthnv3.JwtAuthentication{
		Providers: map[string]*jwtauthnv3.JwtProvider{demand: {
			Issuer: "https://idp.invalid", Audiences: []string{fmt.Sprintf("client-%d", edition)}, FromCookies: []string{"IdToken-" + login},
			JwksSourceSpecifier: &jwtauthnv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: fmt.Sprintf(`{"keys":[{"kty":"oct","kid":"%d","alg":"HS256","k":"c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTEyMzQ"}]}`, keys)},
			}},
		}},
		RequirementMap: map[string]*jwtauthnv3.JwtRequirement{demand: {RequiresType: &jwtauthnv3.JwtRequirement_ProviderName{ProviderName: demand}}},
	}, snapshot.ObjectRef{Kind: "http_filter", Name: login}))
	return &snapshot.Parts{Host: h, Domain: name + ".test", Named: snapshot.Named{
		Secrets: []*snapshot.Resource{generic(client, content), generic(hmac, content)}, Providers: []*snapshot.Resource{p},
	}}
}

func generic(name string, content int) *snapshot.Resource {
	GinkgoHelper()
	return must(snapshot.NewSecret(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: fmt.Sprintf("%s %d", name, content)}},
	}}}))
}

// oauth2Of returns the message of a route of the keeper.
func oauth2Of(r *routev3.Route) *oauth2v3.OAuth2PerRoute {
	GinkgoHelper()
	m := &oauth2v3.OAuth2PerRoute{}
	Expect(r.GetTypedPerFilterConfig()[oauth2Filter].UnmarshalTo(m)).To(Succeed())
	return m
}
