package model

import (
	"encoding/json"
	"net/url"
	"strings"
)

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

func checkOIDC(v *validator, at string, config JSON) {
	var c OIDCConfig
	if !v.decode(at, config, &c) {
		return
	}
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

func usesOfOIDC(config JSON) []Key {
	var c OIDCConfig
	if json.Unmarshal([]byte(config.text()), &c) != nil {
		return nil
	}
	var keys []Key
	if c.CookieSecret != "" {
		keys = append(keys, SecretKey(c.CookieSecret))
	}
	if c.Upstream != "" {
		keys = append(keys, UpstreamKey(c.Upstream))
	}
	return keys
}

// OAuthConfig is the JSON of a globalconfig_oauth (specification, "Global
// config of type globalconfig_oauth").
type OAuthConfig struct {
	OpenIDConnect struct {
		Provider struct {
			AuthorizationEndpoint string `json:"authorization_endpoint"`
			TokenEndpoint         string `json:"token_endpoint"`
		} `json:"provider"`
		ClientID string `json:"client_id"`
		// ClientSecret and HMACSecret name secrets.
		ClientSecret          string   `json:"client_secret"`
		HMACSecret            string   `json:"hmac_secret"`
		ClientSecretNamespace string   `json:"client_secret_namespace,omitempty"`
		HMACSecretNamespace   string   `json:"hmac_secret_namespace,omitempty"`
		Scopes                []string `json:"scopes,omitempty"`
		RedirectURL           string   `json:"redirect_url"`
		RedirectPathMatcher   string   `json:"redirect_path_matcher"`
		DefaultSignoutPath    string   `json:"default_signout_path,omitempty"`
	} `json:"openid_connect"`
	ExternalOAuthService *struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace,omitempty"`
		Port      int    `json:"port"`
		Protocol  string `json:"protocol,omitempty"`
	} `json:"external_oauth_service,omitempty"`
}

func checkOAuth(v *validator, at string, config JSON) {
	var c OAuthConfig
	if !v.decode(at, config, &c) {
		return
	}
	oidc, at1 := c.OpenIDConnect, at+".openid_connect"
	v.url(at1+".provider.authorization_endpoint", oidc.Provider.AuthorizationEndpoint, "is required")
	v.url(at1+".provider.token_endpoint", oidc.Provider.TokenEndpoint, "is required")
	if oidc.ClientID == "" {
		v.add(at1+".client_id", "is required")
	}
	v.name(at1+".client_secret", oidc.ClientSecret, false)
	v.name(at1+".hmac_secret", oidc.HMACSecret, false)
	if oidc.RedirectURL == "" {
		v.add(at1+".redirect_url", "is required")
	}
	v.urlPath(at1+".redirect_path_matcher", oidc.RedirectPathMatcher)
	if oidc.DefaultSignoutPath != "" {
		v.urlPath(at1+".default_signout_path", oidc.DefaultSignoutPath)
	}
	if s := c.ExternalOAuthService; s != nil {
		v.address(at+".external_oauth_service.name", s.Name)
		v.between(at+".external_oauth_service.port", s.Port, 1, 65535)
	}
}

func usesOfOAuth(config JSON) []Key {
	var c OAuthConfig
	if json.Unmarshal([]byte(config.text()), &c) != nil {
		return nil
	}
	var keys []Key
	for _, name := range []string{c.OpenIDConnect.ClientSecret, c.OpenIDConnect.HMACSecret} {
		if name != "" {
			keys = append(keys, SecretKey(name))
		}
	}
	return keys
}

// url accepts an absolute http or https URL; missing is said of an empty one.
func (v *validator) url(field, s, missing string) {
	if s == "" {
		v.add(field, "%s", missing)
		return
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.ContainsAny(s, " \t\r\n") {
		v.add(field, "%q is not a URL such as https://login.example.com/token", s)
	}
}
