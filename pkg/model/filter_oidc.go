package model

// OIDCConfig is the JSON of an http_filter_oidc (specification, "OIDC filter
// configuration"; rest-api.md, "Filters and global configs").
type OIDCConfig struct {
	Name     string `json:"name,omitempty"`
	ClientID string `json:"client_id"`
	// ClientSecret is stored sealed.
	ClientSecret          string `json:"client_secret"`
	AuthorizationEndpoint string `json:"authorization_endpoint,omitempty"`
	TokenEndpoint         string `json:"token_endpoint,omitempty"`
	RedirectURI           string `json:"redirect_uri"`
	// CookieSecret names the secret with the key for the HMAC of the cookies.
	CookieSecret string `json:"cookie_secret"`
	LogoutURI    string `json:"logout_uri,omitempty"`
	// Issuer stands for both endpoints: they come from its discovery document.
	Issuer string   `json:"issuer,omitempty"`
	Scopes []string `json:"scopes,omitempty"`
	// Upstream names the identity provider's upstream; without it one is
	// derived from the token endpoint.
	Upstream string `json:"upstream,omitempty"`
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
		{"client_id", c.ClientID}, {"client_secret", c.ClientSecret}, {"redirect_uri", c.RedirectURI}, {"cookie_secret", c.CookieSecret},
	} {
		if f.value == "" {
			v.add(at+"."+f.name, "is required")
		}
	}
	if c.Issuer == "" {
		v.url(at+".authorization_endpoint", c.AuthorizationEndpoint, "is required, unless issuer is given")
		v.url(at+".token_endpoint", c.TokenEndpoint, "is required, unless issuer is given")
	} else {
		v.url(at+".issuer", c.Issuer, "")
	}
	if c.CookieSecret != "" {
		v.name(at+".cookie_secret", c.CookieSecret, false)
	}
	if c.Upstream != "" {
		v.name(at+".upstream", c.Upstream, true)
	}
	if c.LogoutURI != "" {
		v.urlPath(at+".logout_uri", c.LogoutURI)
	}
}

func (c *OIDCConfig) uses() []Key {
	var keys []Key
	if c.CookieSecret != "" {
		keys = append(keys, SecretKey(c.CookieSecret))
	}
	if c.Upstream != "" {
		keys = append(keys, UpstreamKey(c.Upstream))
	}
	return keys
}
