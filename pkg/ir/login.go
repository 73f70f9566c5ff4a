package ir

// LoginCallback is the name of the route to which the identity provider sends browsers
// back.
const LoginCallback = "login-callback"

// Login is a login of a host at an identity provider (OpenID Connect).
type Login struct {
	// Name is the kind and name of the filter or global config, such as filter/staff. The
	// login's secrets are named after it.
	Name string `json:"name"`
	// ClientID and ClientSecret identify the gateway at the provider.
	ClientID     string `json:"clientID"`
	ClientSecret string `json:"-"`
	// HMACKey is the key of the HMAC over the cookies. Each login has its own.
	HMACKey []byte `json:"-"`
	// CookieSuffix is the end of the names of the login's cookies.
	CookieSuffix string `json:"cookieSuffix"`
	// AuthorizationEndpoint, TokenEndpoint and EndSessionEndpoint are URLs of the provider.
	// Without EndSessionEndpoint, users sign out of the gateway only.
	AuthorizationEndpoint string `json:"authorizationEndpoint"`
	TokenEndpoint         string `json:"tokenEndpoint"`
	EndSessionEndpoint    string `json:"endSessionEndpoint,omitempty"`
	// BasicAuth sends the client's secret in the Authorization header, not in the body.
	BasicAuth bool `json:"basicAuth,omitempty"`
	// Cluster is the cluster of the token endpoint.
	Cluster *Cluster `json:"cluster"`
	// RedirectURI is a template. CallbackPath is its path.
	RedirectURI  string `json:"redirectURI"`
	CallbackPath string `json:"callbackPath"`
	// SignOutPath is the path that ends a session; empty means that no path does.
	SignOutPath string `json:"signOutPath,omitempty"`
	// RedirectDomains are the hosts to which a user may be sent back after a login.
	RedirectDomains []string `json:"redirectDomains"`
	// Scopes are the requested scopes. openid is one of them.
	Scopes []string `json:"scopes"`
	// RefreshTokens uses a refresh token when a session ends.
	RefreshTokens bool `json:"refreshTokens,omitempty"`
	// ForwardTokens passes the tokens on to the backend.
	ForwardTokens bool `json:"forwardTokens,omitempty"`
	// DropAccessToken does not keep the access token.
	DropAccessToken bool `json:"dropAccessToken,omitempty"`
	// Token sets how the id_token is verified; nil means that it is not verified.
	Token *TokenCheck `json:"token,omitempty"`
	// Require are conditions on claims of the id_token. All must match.
	Require []ClaimMatch `json:"require,omitempty"`
}

// Tokens requires a token of an issuer.
type Tokens struct {
	Check *TokenCheck `json:"check"`
	// Require are conditions on claims of the token. All must match.
	Require []ClaimMatch `json:"require,omitempty"`
}

// TokenCheck sets how to verify the id_token of a login, or the token of a request.
type TokenCheck struct {
	// Name is unique. It covers every field except the keys.
	Name   string `json:"name"`
	Issuer string `json:"issuer,omitempty"`
	// Audiences are the accepted audiences.
	Audiences []string `json:"audiences"`
	// Cookie is the name of the cookie with the token. If it is empty, the token is in the
	// query parameter Query, or in Header after Prefix.
	Cookie string `json:"cookie,omitempty"`
	Header string `json:"header,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Query  string `json:"query,omitempty"`
	// Forward passes the token on to the backend.
	Forward bool `json:"forward,omitempty"`
	// Optional allows requests without a token.
	Optional bool `json:"optional,omitempty"`
	// JWKS is the JSON of the key set (RFC 7517).
	JWKS string `json:"-"`
	// ClaimHeaders are sent to the backend, sorted by header.
	ClaimHeaders []ClaimHeader `json:"claimHeaders,omitempty"`
}

// ClaimHeader is a header that carries a claim to the backend.
type ClaimHeader struct {
	// Header is in lower case.
	Header string `json:"header"`
	// Claim is the path to the claim, with dots between its steps.
	Claim string `json:"claim"`
}

// ClaimMatch is a condition on a claim.
type ClaimMatch struct {
	// Claim is the path to the claim, one element for each step.
	Claim []string `json:"claim"`
	// Values are alternatives. A claim that is a list must contain one of them.
	Values []string `json:"values"`
}
