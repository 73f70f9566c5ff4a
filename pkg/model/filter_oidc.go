package model

import "strings"

// OIDCConfig is the JSON of an http_filter_oidc (specification, "OIDC filter
// configuration"; rest-api.md, "Filters and global configs").
type OIDCConfig struct {
	Name     string `json:"name,omitempty"`
	ClientID string `json:"client_id"`
	// ClientSecret is stored sealed.
	ClientSecret          ClientSecret `json:"client_secret"`
	AuthorizationEndpoint string       `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         string       `json:"token_endpoint,omitempty"`
	// RedirectURI is a URL, a path, or a template (see ParseRedirect).
	RedirectURI string `json:"redirect_uri"`
	// CookieSecret names the secret with the key for the HMAC of the cookies.
	CookieSecret string `json:"cookie_secret"`
	LogoutURI    string `json:"logout_uri,omitempty"`
	// Issuer stands for both endpoints: they come from its discovery document.
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Upstream names the identity provider's upstream; without it one is
	// derived from the token endpoint.
	Upstream string `json:"upstream,omitempty"`
	LoginOptions

	provider *Provider
}

func readOIDC(v *validator, at, _ string, config JSON) Spec {
	var c OIDCConfig
	if v.login(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *OIDCConfig) check(v *validator, at string) {
	v.clientID(at+".client_id", c.ClientID)
	v.clientSecret(at+".client_secret", c.ClientSecret)
	v.redirect(at+".redirect_uri", c.RedirectURI, at+".logout_uri", c.LogoutURI)
	v.secretName(at+".cookie_secret", c.CookieSecret)
	v.provider(at, c.Issuer, c.AuthorizationEndpoint, c.TokenEndpoint)
	v.words(at+".scopes", c.Scopes, maxScopes, isScope, "a scope, such as openid or email")
	if c.Upstream != "" {
		v.name(at+".upstream", c.Upstream, true)
	}
	c.LoginOptions.check(v, at, c.Issuer)
}

// clientSecret accepts either form; a text may be sealed.
func (v *validator) clientSecret(field string, c ClientSecret) {
	switch {
	case c.Secret != "":
		v.secretName(field+".secret", c.Secret)
	case c.Text == "":
		v.add(field, "is required")
	case IsSealed(c.Text):
	case len(c.Text) > maxClientSecret:
		v.add(field, "has %d bytes; at most %d are allowed", len(c.Text), maxClientSecret)
	case !isText(c.Text) || c.Text != strings.TrimSpace(c.Text):
		v.add(field, "begins or ends with a space, or has a control character, such as the line feed at the end of a file")
	}
}

// oidcNames are the paths of what uses lists.
func oidcNames() map[string]Kind {
	return map[string]Kind{clientSecretKey + ".secret": KindSecret, "cookie_secret": KindSecret, "upstream": KindUpstream}
}

func (c *OIDCConfig) uses() []Key { return c.Login().uses() }

func (c *OIDCConfig) learn(p *Provider) Spec {
	known := *c
	known.provider = p
	return &known
}

// Login is the login that it is.
func (c *OIDCConfig) Login() *Login {
	redirect, _ := ParseRedirect(c.RedirectURI) // which check has seen
	return &Login{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, CookieSecret: c.CookieSecret,
		AuthorizationEndpoint: c.AuthorizationEndpoint, TokenEndpoint: c.TokenEndpoint, Issuer: c.Issuer,
		Redirect: redirect, SignOutPath: c.LogoutURI, Scopes: c.Scopes, Upstream: c.Upstream,
		LoginOptions: c.LoginOptions, Provider: c.provider,
	}
}
