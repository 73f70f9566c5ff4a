package model

import "strings"

// OIDCFilter requires a login of users with an identity provider. Specify issuer or both endpoints.
// At most 64 KiB.
// +page=login.md
// +example={client_id: shop, client_secret: {secret: shop-client}, issuer: "https://login.example.com",
// redirect_uri: "https://shop.example.com/callback", cookie_secret: cookie, logout_uri: /logout, scopes: [email],
// claim_headers: {x-user: email}, require: {groups: [staff]}}
type OIDCFilter struct { // specification, "OIDC filter configuration"; rest-api.md, "Filters and global configs"
	// Stored without effect.
	Name string `json:"name,omitempty"`
	// +required
	// +minLength=1
	// +maxLength=maxWord
	ClientID string `json:"client_id"`
	// +required
	ClientSecret          ClientSecret `json:"client_secret"`
	AuthorizationEndpoint LoginURL     `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         LoginURL     `json:"token_endpoint,omitempty"`
	// +required
	RedirectURI RedirectURI `json:"redirect_uri"`
	// Name of the secret with the key of the cookies.
	// +required
	CookieSecret string `json:"cookie_secret"`
	// Path that logs a user out.
	// +example=/logout
	LogoutURI string `json:"logout_uri,omitempty"`
	Issuer    Issuer `json:"issuer,omitempty"`
	Scopes    Scopes `json:"scopes,omitempty"`
	// Name of the identity provider's upstream. Without it the provider is at the host of the token endpoint.
	Upstream string `json:"upstream,omitempty"`
	LoginOptions

	provider *Provider
}

func readOIDC(v *validator, at, _ string, config JSON) Spec {
	var c OIDCFilter
	if v.login(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *OIDCFilter) check(v *validator, at string) {
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

func (c *OIDCFilter) uses() []Key { return c.Login().uses() }

func (c *OIDCFilter) learn(all Providers) Spec {
	known := *c
	known.provider = all.Of(c.Login().Source())
	return &known
}

// Login is the login that it is.
func (c *OIDCFilter) Login() *Login {
	redirect, _ := ParseRedirect(c.RedirectURI) // which check has seen
	return &Login{
		ClientID: c.ClientID, ClientSecret: c.ClientSecret, CookieSecret: c.CookieSecret,
		AuthorizationEndpoint: c.AuthorizationEndpoint, TokenEndpoint: c.TokenEndpoint, Issuer: c.Issuer,
		Redirect: redirect, SignOutPath: c.LogoutURI, Scopes: c.Scopes, Upstream: c.Upstream,
		LoginOptions: c.LoginOptions, Provider: c.provider,
	}
}
