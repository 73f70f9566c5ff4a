package model

import "fmt"

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
	if v.decode(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *OIDCConfig) check(v *validator, at string) {
	for _, f := range []struct{ name, value string }{
		{"client_id", c.ClientID}, {"client_secret", c.ClientSecret.Text + c.ClientSecret.Secret}, {"redirect_uri", c.RedirectURI}, {"cookie_secret", c.CookieSecret},
	} {
		if f.value == "" {
			v.add(at+"."+f.name, "is required")
		}
	}
	v.provider(at, c.Issuer, c.AuthorizationEndpoint, c.TokenEndpoint)
	v.redirect(at, "redirect_uri", c.RedirectURI, "logout_uri", c.LogoutURI)
	v.scopes(at+".scopes", c.Scopes)
	if c.ClientSecret.Secret != "" {
		v.name(at+".client_secret.secret", c.ClientSecret.Secret, false)
	}
	if c.CookieSecret != "" {
		v.name(at+".cookie_secret", c.CookieSecret, false)
	}
	if c.Upstream != "" {
		v.name(at+".upstream", c.Upstream, true)
	}
	c.checkOptions(v, at, c.Issuer)
}

// provider accepts an issuer, or two endpoints.
func (v *validator) provider(at, issuer, authorization, token string) {
	if issuer != "" {
		v.endpoint(at+".issuer", issuer, "")
	}
	for _, f := range []struct{ name, value string }{{"authorization_endpoint", authorization}, {"token_endpoint", token}} {
		if issuer == "" || f.value != "" {
			v.endpoint(at+"."+f.name, f.value, "is required, unless issuer is given")
		}
	}
}

// redirect accepts where the provider sends browsers back to, and the path that signs
// a user out.
func (v *validator) redirect(at, uriField, uri, signOutField, signOut string) {
	r, err := ParseRedirect(uri)
	if err != nil && uri != "" {
		v.add(at+"."+uriField, "%s", err)
	}
	switch err := checkRedirectPath(signOut); {
	case signOut == "":
	case err != nil:
		v.add(at+"."+signOutField, "%q: %s", signOut, err)
	case signOut == r.Path:
		v.add(at+"."+signOutField, "%q is the path that the identity provider sends users back to", signOut)
	}
}

// scopes accepts scopes (RFC 6749 section 3.3).
func (v *validator) scopes(at string, scopes []string) {
	for i, scope := range scopes {
		if !isScope(scope) {
			v.add(fmt.Sprintf("%s[%d]", at, i), "%q is not a scope, such as openid or email", scope)
		}
	}
}

func isScope(s string) bool {
	for _, r := range s {
		if r <= ' ' || r >= 0x7f || r == '"' || r == '\\' {
			return false
		}
	}
	return s != ""
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
