package model

import (
	"cmp"
	"strings"
)

// OAuthConfig is the JSON of a globalconfig_oauth (specification, "Global
// config of type globalconfig_oauth").
type OAuthConfig struct {
	OpenIDConnect struct {
		Provider struct {
			AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
			TokenEndpoint         string `json:"token_endpoint,omitempty"`
			// Issuer stands for both endpoints: they come from its discovery document.
			Issuer string `json:"issuer,omitempty"`
		} `json:"provider"`
		ClientID string `json:"client_id"`
		// ClientSecret and HMACSecret name secrets.
		ClientSecret string `json:"client_secret"`
		HMACSecret   string `json:"hmac_secret"`
		// The namespaces are those of a Kubernetes cluster: here they are kept and say nothing.
		ClientSecretNamespace string   `json:"client_secret_namespace,omitempty"`
		HMACSecretNamespace   string   `json:"hmac_secret_namespace,omitempty"`
		Scopes                []string `json:"scopes,omitempty"`
		// RedirectURL is a URL, a path, or a template (see ParseRedirect).
		RedirectURL string `json:"redirect_url"`
		// RedirectPathMatcher is the path in RedirectURL.
		RedirectPathMatcher string `json:"redirect_path_matcher"`
		DefaultSignoutPath  string `json:"default_signout_path,omitempty"`
		// Upstream names the identity provider's upstream, in place of
		// external_oauth_service.
		Upstream string `json:"upstream,omitempty"`
		LoginOptions
	} `json:"openid_connect"`
	ExternalOAuthService *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
		Port      int    `json:"port"`
		// Protocol is tls or, in the clear, tcp; empty means tls.
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
	for _, f := range []struct{ name, value string }{{"client_secret_namespace", oidc.ClientSecretNamespace}, {"hmac_secret_namespace", oidc.HMACSecretNamespace}} {
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
	if scheme, _, found := strings.Cut(c.OpenIDConnect.Provider.TokenEndpoint, "://"); found && (scheme == "https") == (s.Protocol == "tcp") {
		v.add(at+".protocol", "%q does not fit openid_connect.provider.token_endpoint, which is %s", cmp.Or(s.Protocol, "tls"), scheme)
	}
	if c.OpenIDConnect.Upstream != "" {
		v.add(at, "cannot be combined with openid_connect.upstream: both say where the identity provider is")
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
	return map[string]Kind{"openid_connect.client_secret": KindSecret, "openid_connect.hmac_secret": KindSecret, "openid_connect.upstream": KindUpstream}
}

func (c *OAuthConfig) uses() []Key { return c.Login().uses() }

func (c *OAuthConfig) learn(p *Provider) Spec {
	known := *c
	known.provider = p
	return &known
}

// Login is the login that it is.
func (c *OAuthConfig) Login() *Login {
	o := c.OpenIDConnect
	redirect, _ := ParseRedirect(o.RedirectURL) // which check has seen
	l := &Login{
		ClientID: o.ClientID, ClientSecret: ClientSecret{Secret: o.ClientSecret}, CookieSecret: o.HMACSecret,
		AuthorizationEndpoint: o.Provider.AuthorizationEndpoint, TokenEndpoint: o.Provider.TokenEndpoint, Issuer: o.Provider.Issuer,
		Redirect: redirect, SignOutPath: o.DefaultSignoutPath, Scopes: o.Scopes, Upstream: o.Upstream,
		LoginOptions: o.LoginOptions, Provider: c.provider,
	}
	if s := c.ExternalOAuthService; s != nil {
		l.Address = &ProviderAddress{Host: s.Name, Port: s.Port, TLS: s.Protocol != "tcp"}
	}
	return l
}
