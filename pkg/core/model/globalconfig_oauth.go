package model

import (
	"cmp"
	"strings"
)

// OAuthConfig requires a login on every service of a proxy, except public services and services with their own
// login filter. At most 64 KiB.
// +page=login.md
// +example={openid_connect: {provider: {authorization_endpoint: "https://login.example.com/authorize",
// token_endpoint: "https://login.example.com/token"}, client_id: shop, client_secret: shop-client,
// hmac_secret: cookie, client_secret_namespace: gateway, hmac_secret_namespace: gateway, scopes: [email],
// redirect_url: "%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback", redirect_path_matcher: /callback,
// default_signout_path: /signout}, external_oauth_service: {name: login.example.com, namespace: gateway, port: 443,
// protocol: tls}}
type OAuthConfig struct { // specification, "Global config of type globalconfig_oauth"
	// +required
	OpenIDConnect struct {
		// Specify issuer or both endpoints.
		// +required
		Provider struct {
			AuthorizationEndpoint LoginURL `json:"authorization_endpoint,omitempty"`
			TokenEndpoint         LoginURL `json:"token_endpoint,omitempty"`
			Issuer                Issuer   `json:"issuer,omitempty"`
		} `json:"provider"`
		// +required
		// +minLength=1
		// +maxLength=maxWord
		ClientID string `json:"client_id"`
		// Name of the secret with the client secret.
		// +required
		ClientSecret string `json:"client_secret"`
		// Name of the secret with the key of the cookies.
		// +required
		HMACSecret string `json:"hmac_secret"`
		// Stored without effect.
		// +maxLength=253
		ClientSecretNamespace string `json:"client_secret_namespace,omitempty"` // of a Kubernetes cluster
		// Stored without effect.
		// +maxLength=253
		HMACSecretNamespace string `json:"hmac_secret_namespace,omitempty"`
		Scopes              Scopes `json:"scopes,omitempty"`
		// +required
		RedirectURL RedirectURI `json:"redirect_url"`
		// The path of redirect_url.
		// +required
		// +example=/callback
		RedirectPathMatcher string `json:"redirect_path_matcher"`
		// Path that logs a user out.
		// +example=/signout
		DefaultSignoutPath string `json:"default_signout_path,omitempty"`
		// Name of the identity provider's upstream, instead of external_oauth_service.
		Upstream string `json:"upstream,omitempty"`
		LoginOptions
	} `json:"openid_connect"`
	// The address of the provider, if it is not the host of its token endpoint.
	ExternalOAuthService *struct {
		// Host name or IP address.
		// +required
		Name string `json:"name"`
		// Stored without effect.
		// +maxLength=253
		Namespace string `json:"namespace,omitempty"`
		// +required
		// +minimum=1
		// +maximum=65535
		Port int `json:"port"`
		// tcp is in the clear. Default: tls.
		// +enum=[tls, tcp]
		Protocol string `json:"protocol,omitempty"`
	} `json:"external_oauth_service,omitempty"`

	provider *Provider
}

func readOAuth(v *validator, at, _ string, config JSON) Spec {
	var c OAuthConfig
	if v.login(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *OAuthConfig) check(v *validator, at string) {
	oidc, at1 := c.OpenIDConnect, at+".openid_connect"
	v.provider(at1+".provider", oidc.Provider.Issuer, oidc.Provider.AuthorizationEndpoint, oidc.Provider.TokenEndpoint)
	v.clientID(at1+".client_id", oidc.ClientID)
	v.secretName(at1+".client_secret", oidc.ClientSecret)
	v.secretName(at1+".hmac_secret", oidc.HMACSecret)
	r := v.redirect(at1+".redirect_url", oidc.RedirectURL, at1+".default_signout_path", oidc.DefaultSignoutPath)
	switch {
	case oidc.RedirectPathMatcher == "":
		v.add(at1+".redirect_path_matcher", "is required")
	case r.Path != "" && r.Path != oidc.RedirectPathMatcher:
		v.add(at1+".redirect_path_matcher", "%q must be the path of redirect_url, %q", oidc.RedirectPathMatcher, r.Path)
	}
	for _, f := range []struct{ name, value string }{
		{"client_secret_namespace", oidc.ClientSecretNamespace}, {"hmac_secret_namespace", oidc.HMACSecretNamespace},
	} {
		v.namespace(at1+"."+f.name, f.value)
	}
	v.words(at1+".scopes", oidc.Scopes, maxScopes, isScope, "a scope, such as openid or email")
	if oidc.Upstream != "" {
		v.name(at1+".upstream", oidc.Upstream, true)
	}
	oidc.check(v, at1, oidc.Provider.Issuer)
	c.checkService(v, at+".external_oauth_service")
}

func (c *OAuthConfig) checkService(v *validator, at string) {
	s := c.ExternalOAuthService
	if s == nil {
		return
	}
	v.address(at+".name", s.Name)
	v.namespace(at+".namespace", s.Namespace)
	v.checkRange(at+".port", s.Port, 1, 65535)
	if s.Protocol != "" {
		v.oneOf(at+".protocol", s.Protocol, []string{"tls", "tcp"})
	}
	if scheme, _, found := strings.Cut(c.OpenIDConnect.Provider.TokenEndpoint, "://"); found &&
		(scheme == "https") == (s.Protocol == "tcp") {
		v.add(at+".protocol", "%q does not fit openid_connect.provider.token_endpoint, which is %s",
			cmp.Or(s.Protocol, "tls"), scheme)
	}
	if c.OpenIDConnect.Upstream != "" {
		v.add(at, "cannot be combined with openid_connect.upstream: both specify the address of the identity provider")
	}
}

// namespace accepts a namespace, which is only kept, or none.
func (v *validator) namespace(field, s string) {
	if s != "" {
		v.name(field, s, false)
	}
}

// oauthNames are the paths of what uses lists.
func oauthNames() map[string]Kind {
	return map[string]Kind{
		"openid_connect.client_secret": KindSecret, "openid_connect.hmac_secret": KindSecret,
		"openid_connect.upstream": KindUpstream,
	}
}

func (c *OAuthConfig) uses() []Key { return c.Login().uses() }

func (c *OAuthConfig) learn(all Providers) Spec {
	known := *c
	known.provider = all.Of(c.Login().Source())
	return &known
}

// Login is the login that it is.
func (c *OAuthConfig) Login() *Login {
	o := c.OpenIDConnect
	redirect, _ := ParseRedirect(o.RedirectURL) // which check has seen
	l := &Login{
		ClientID: o.ClientID, ClientSecret: ClientSecret{Secret: o.ClientSecret}, CookieSecret: o.HMACSecret,
		AuthorizationEndpoint: o.Provider.AuthorizationEndpoint, TokenEndpoint: o.Provider.TokenEndpoint,
		Issuer:   o.Provider.Issuer,
		Redirect: redirect, SignOutPath: o.DefaultSignoutPath, Scopes: o.Scopes, Upstream: o.Upstream,
		LoginOptions: o.LoginOptions, Provider: c.provider,
	}
	if s := c.ExternalOAuthService; s != nil {
		l.Address = &ProviderAddress{Host: s.Name, Port: s.Port, TLS: s.Protocol != "tcp"}
	}
	return l
}
