package model

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// Login is what an http_filter_oidc or a globalconfig_oauth says of a login (OpenID
// Connect).
type Login struct {
	ClientID string
	// ClientSecret is what the provider has issued to the client.
	ClientSecret ClientSecret
	// CookieSecret names the secret with the key of the HMAC over the cookies.
	CookieSecret string
	// AuthorizationEndpoint and TokenEndpoint are empty if they come from discovery.
	AuthorizationEndpoint, TokenEndpoint string
	// Issuer is the issuer of the id_token, and where the discovery document is. Empty
	// means that neither is known.
	Issuer string
	// Redirect is where the provider sends browsers back to.
	Redirect Redirect
	// SignOutPath signs a user out; empty means that there is none.
	SignOutPath string
	// Scopes are asked for beside openid.
	Scopes []string
	// Upstream names the provider's upstream. Empty means that it is derived from the
	// token endpoint, or is at Address.
	Upstream string
	// Address is where the provider is, if not at the host of its token endpoint.
	Address *ProviderAddress
	LoginOptions
	// Provider is what the provider says of itself; nil means that it is not known.
	Provider *Provider
}

// ProviderAddress is where a provider is.
type ProviderAddress struct {
	Host string
	Port int
	TLS  bool
}

// LoginOptions are the fields of a login that the specification does not have.
type LoginOptions struct {
	// JWKSURI is where the provider's keys are, if discovery does not say so.
	JWKSURI string `json:"jwks_uri,omitempty"`
	// EndSessionEndpoint signs a user out at the provider too.
	EndSessionEndpoint string `json:"end_session_endpoint,omitempty"`
	// Audiences are those that an id_token may be for beside the client itself.
	Audiences []string `json:"audiences,omitempty"`
	// ClaimHeaders tell the backend claims of the id_token: by header, the claim, with
	// dots between its steps.
	ClaimHeaders map[string]string `json:"claim_headers,omitempty"`
	// Require lists, by claim, the values of which the id_token must have one; others
	// are answered with 403.
	Require map[string][]string `json:"require,omitempty"`
	// ForwardTokens leaves the tokens in the Cookie header, and puts the access token into
	// Authorization, on the way to the backend.
	ForwardTokens bool `json:"forward_tokens,omitempty"`
	// AccessTokenCookie keeps the access token in a cookie; nil means true. Without it the
	// cookies are smaller, and no backend can have the token.
	AccessTokenCookie *bool `json:"access_token_cookie,omitempty"`
	// TokenEndpointAuthMethod is how the client proves itself: ClientSecretPost or
	// ClientSecretBasic (OpenID Connect Core 1.0 section 9); empty means the first.
	TokenEndpointAuthMethod string `json:"token_endpoint_auth_method,omitempty"`
}

// How a client proves itself at the token endpoint.
const (
	ClientSecretPost  = "client_secret_post"
	ClientSecretBasic = "client_secret_basic"
)

// ClientSecret is the text of a secret, or the name of the secret with it.
type ClientSecret struct {
	// Text is stored sealed.
	Text string
	// Secret is in JSON the object {"secret": NAME}.
	Secret string
}

// UnmarshalJSON reads either form.
func (c *ClientSecret) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &c.Text)
	}
	var named struct {
		Secret string `json:"secret"`
	}
	if err := decodeStrict(string(b), &named); err != nil || named.Secret == "" {
		return fmt.Errorf(`client_secret must be a text, or {"secret": NAME} with the name of a secret`)
	}
	c.Secret = named.Secret
	return nil
}

// Asks reports whether a scope is asked for.
func (l *Login) Asks(scope string) bool { return slices.Contains(l.Scopes, scope) }

// KeepsAccessToken reports whether the access token is kept in a cookie.
func (o LoginOptions) KeepsAccessToken() bool {
	return o.AccessTokenCookie == nil || *o.AccessTokenCookie
}

// Source is what has to be asked to know the provider; the zero value means nothing.
func (l *Login) Source() ProviderSource {
	if l.JWKSURI == "" && l.Issuer == "" {
		return ProviderSource{}
	}
	s := ProviderSource{Issuer: l.Issuer, JWKSURI: l.JWKSURI, Upstream: l.Upstream, Discover: l.Issuer != "" && (l.JWKSURI == "" || l.TokenEndpoint == "" || l.AuthorizationEndpoint == "")}
	if l.Upstream != "" {
		// Envoy asks the upstream for tokens.
		s.UpstreamFor = cmp.Or(l.TokenEndpoint, l.Issuer)
	}
	return s
}

// uses lists what a login names.
func (l *Login) uses() []Key {
	var keys []Key
	for _, name := range []string{l.ClientSecret.Secret, l.CookieSecret} {
		if name != "" && !slices.Contains(keys, SecretKey(name)) {
			keys = append(keys, SecretKey(name))
		}
	}
	if l.Upstream != "" {
		keys = append(keys, UpstreamKey(l.Upstream))
	}
	return keys
}

// checkOptions reports what is wrong with the fields that both forms have.
func (o LoginOptions) checkOptions(v *validator, at, issuer string) {
	if o.JWKSURI != "" {
		v.url(at+".jwks_uri", o.JWKSURI, "")
	}
	if o.EndSessionEndpoint != "" {
		v.url(at+".end_session_endpoint", o.EndSessionEndpoint, "")
	}
	if o.TokenEndpointAuthMethod != "" {
		v.oneOf(at+".token_endpoint_auth_method", o.TokenEndpointAuthMethod, []string{ClientSecretPost, ClientSecretBasic})
	}
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(o.ClaimHeaders)) {
		v.headerName(at+".claim_headers", name, seen)
		v.claim(at+".claim_headers."+name, o.ClaimHeaders[name])
	}
	for _, claim := range slices.Sorted(maps.Keys(o.Require)) {
		v.claim(at+".require", claim)
		if len(o.Require[claim]) == 0 || slices.Contains(o.Require[claim], "") {
			v.add(at+".require."+claim, "must list the values, of which a user needs one")
		}
	}
	if (len(o.Require) > 0 || len(o.ClaimHeaders) > 0) && issuer == "" && o.JWKSURI == "" {
		v.add(at, "claims can be used only if the id_token is verified: give issuer, or jwks_uri")
	}
	if o.ForwardTokens && !o.KeepsAccessToken() {
		v.add(at+".forward_tokens", "needs the access token: leave access_token_cookie out")
	}
}

// claim accepts the name of a claim, with dots between its steps.
func (v *validator) claim(field, s string) {
	if s == "" || len(s) > 255 || slices.Contains(strings.Split(s, "."), "") || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		v.add(field, "%q is not the name of a claim, such as email or realm_access.roles", s)
	}
}

// endpoint accepts an absolute URL without a fragment. Envoy puts it into a Location
// header, and takes what is between percent signs as it is.
func (v *validator) endpoint(field, s, missing string) {
	v.url(field, s, missing)
	if u, err := url.Parse(s); err == nil && (u.Fragment != "" || u.User != nil) {
		v.add(field, "%q must have neither a user nor a fragment (#)", s)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		v.add(field, "%q contains a space, a control character or a character that must be percent-encoded in a URL", s)
	}
}
