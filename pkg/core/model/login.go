package model

import (
	"cmp"
	"encoding/json"
	"errors"
	"net"
	"net/url"
	"slices"
	"strconv"
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

// LoginURL is an http or https URL without user and fragment.
// +maxLength=maxURL
// +example=https://login.example.com/token
type LoginURL = string

// Issuer is the provider's name for itself, a URL, exactly as in its discovery document. That document then
// supplies what is not specified here: the endpoints and the keys that verify the id_token.
// +maxLength=maxURL
// +example=https://login.example.com
type Issuer = string

// RedirectURI is the address to which the provider sends users back: a URL, a path on the host of the request, or a
// template: %REQ(x-forwarded-proto)% or a scheme, "://%REQ(:authority)%" and a path. The gateway answers this path.
// +minLength=1
// +maxLength=maxRedirect
// +example="%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback"
type RedirectURI = string // see ParseRedirect

// Scopes are requested in addition to openid. With offline_access the gateway renews sessions.
// +maxItems=maxScopes
// +items={type: string, minLength: 1, maxLength: maxWord}
// +example=[email]
type Scopes = []string

// LoginOptions are the fields of a login that the specification does not have.
type LoginOptions struct {
	// URL of the provider's keys, if issuer is not set or its discovery document does not have it.
	// +maxLength=maxURL
	JWKSURI string `json:"jwks_uri,omitempty"`
	// URL that also signs the user out at the provider. Default: the end_session_endpoint of the discovery document, if it
	// has one.
	// +maxLength=maxURL
	EndSessionEndpoint string `json:"end_session_endpoint,omitempty"`
	// Audiences (aud) that an id_token may have, in addition to client_id.
	// +maxItems=maxAudiences
	// +items={type: string, minLength: 1, maxLength: maxWord}
	Audiences []string `json:"audiences,omitempty"`
	// Claims of the id_token that the upstream receives: a map of headers to claims. Dots separate the steps to a claim.
	// +maxProperties=maxClaimHeaders
	// +additionalProperties={type: string, minLength: 1, maxLength: maxWord}
	// +example={x-user: email}
	ClaimHeaders map[string]string `json:"claim_headers,omitempty"`
	// A map of claims to values. The user must have every claim with one of its values; others get 403.
	// +maxProperties=maxRequired
	// +additionalProperties={type: array, minItems: 1, maxItems: maxRequiredValues, items: {type: string, minLength: 1, maxLength: maxWord}}
	// +example={groups: [staff, admins]}
	Require map[string][]string `json:"require,omitempty"`
	// Whether the upstream receives the tokens: in the Cookie header, and the access token in Authorization. Default:
	// false.
	ForwardTokens bool `json:"forward_tokens,omitempty"`
	// Keep the access token in a cookie. Default: true.
	AccessTokenCookie *bool `json:"access_token_cookie,omitempty"` // off: small cookies, and no backend has the token
	// How the gateway authenticates at the token endpoint. Default: client_secret_post.
	// +enum=[ClientSecretPost, ClientSecretBasic]
	TokenEndpointAuthMethod string `json:"token_endpoint_auth_method,omitempty"` // OpenID Connect Core 1.0 section 9
}

// How a client proves itself at the token endpoint.
const (
	ClientSecretPost  = "client_secret_post"
	ClientSecretBasic = "client_secret_basic"
)

// ClientSecret is the secret itself, which is stored sealed and shown as <redacted>, or an object with the name
// of a secret that contains it. A string that is the name of a secret is stored as that name, with a warning.
// +anyOf=[{type: string, minLength: 1, maxLength: maxClientSecret}, {type: object, required: [secret],
// additionalProperties: false, properties: {secret: {$ref: "#/components/schemas/Name"}}}]
type ClientSecret struct {
	// Text is stored sealed.
	Text string
	// Secret is in JSON the object {"secret": NAME}.
	Secret string
}

// UnmarshalJSON reads either form.
func (c *ClientSecret) UnmarshalJSON(b []byte) (err error) {
	c.Text, c.Secret, err = textOrSecret("client_secret", b)
	return err
}

// textOrSecret reads a text that is secret, or the object that names a secret with it. key is what it is under.
func textOrSecret(key string, b []byte) (text, secret string, err error) {
	if len(b) > 0 && b[0] == '"' {
		return text, "", json.Unmarshal(b, &text)
	}
	var named struct {
		Secret string `json:"secret"`
	}
	if err := decodeStrict(string(b), &named); err != nil || named.Secret == "" {
		return "", "", errors.New(key + ` must be a string, or {"secret": NAME} with the name of a secret`)
	}
	return "", named.Secret, nil
}

// NameSecret puts {"secret": NAME} in place of a client secret that is the name of a
// secret which exists, and returns the name; empty means that nothing was changed.
func (f *Filter) NameSecret(exists func(name string) (bool, error)) (name string, err error) {
	c, ok := f.Parse().Spec.(*OIDCFilter)
	if !ok {
		return "", nil
	}
	name = c.ClientSecret.Text
	var v validator
	if v.name("", name, false); len(v.errs) > 0 {
		return "", nil
	}
	if found, err := exists(name); err != nil || !found {
		return "", err
	}
	f.Config, err = replaceValue(f.Config, clientSecretKey, `{"secret":"`+name+`"}`)
	return name, err
}

// DetachClientSecret puts {"secret": NAME} in place of a client secret that is a text, and
// returns the text. Empty means that there is none, and that nothing was changed.
func (f *Filter) DetachClientSecret(name string) (text string, err error) {
	c, ok := f.Parse().Spec.(*OIDCFilter)
	if !ok || c.ClientSecret.Text == "" {
		return "", nil
	}
	f.Config, err = replaceValue(f.Config, clientSecretKey, `{"secret":"`+name+`"}`)
	return c.ClientSecret.Text, err
}

// clientSecretKey is the key of OIDCFilter.ClientSecret in JSON.
const clientSecretKey = "client_secret"

// replaceValue puts another value under a key of an object.
func replaceValue(object JSON, key, value string) (JSON, error) {
	text := object.text()
	dec := json.NewDecoder(strings.NewReader(text))
	if _, err := dec.Token(); err != nil { // the brace
		return "", err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return "", err
		}
		var old json.RawMessage
		if err := dec.Decode(&old); err != nil {
			return "", err
		}
		if end := int(dec.InputOffset()); name == key {
			return JSON(text[:end-len(old)] + value + text[end:]), nil
		}
	}
	return object, nil
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
	s := ProviderSource{
		Issuer: l.Issuer, JWKSURI: l.JWKSURI, Upstream: l.Upstream,
		Discover: l.Issuer != "" && (l.JWKSURI == "" || l.TokenEndpoint == "" || l.AuthorizationEndpoint == ""),
	}
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

// DerivedUpstream is where the provider is if no upstream is named: at Address, or at the
// host of an endpoint. Its name has a slash, which that of no object has.
func (l *Login) DerivedUpstream(endpoint *url.URL) *Upstream {
	u := NewUpstream()
	u.IP, u.Protocol = endpoint.Hostname(), "http"
	tls, port := endpoint.Scheme == "https", endpoint.Port()
	if port == "" && tls {
		port = "443"
	}
	u.Port, _ = strconv.Atoi(cmp.Or(port, "80"))
	if a := l.Address; a != nil {
		u.IP, u.Port, tls = a.Host, a.Port, a.TLS
	}
	if tls {
		u.Protocol = "tls"
	}
	u.Name = "login/" + u.Protocol + "/" + net.JoinHostPort(u.IP, strconv.Itoa(u.Port))
	if tls && l.Address != nil {
		u.ValidationSubjectName = endpoint.Hostname()
		u.Name += "/" + u.ValidationSubjectName
	}
	return u
}
