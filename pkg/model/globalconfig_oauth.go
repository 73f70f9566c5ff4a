package model

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

func readOAuth(v *validator, at, _ string, config JSON) Spec {
	var c OAuthConfig
	if v.decode(at, config, &c) {
		c.check(v, at)
	}
	return &c
}

func (c *OAuthConfig) check(v *validator, at string) {
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
		v.checkRange(at+".external_oauth_service.port", s.Port, 1, 65535)
	}
}

func (c *OAuthConfig) uses() []Key {
	var keys []Key
	for _, name := range []string{c.OpenIDConnect.ClientSecret, c.OpenIDConnect.HMACSecret} {
		if name != "" {
			keys = append(keys, SecretKey(name))
		}
	}
	return keys
}
