package ir

// LoginCallback is the name of the route that the identity provider sends browsers back
// to.
const LoginCallback = "login-callback"

// Login is a login at an identity provider (OpenID Connect), which a host asks for.
type Login struct {
	// Name is that of the filter or global config with its kind, such as filter/staff. The
	// secrets of the login are named after it.
	Name string `json:"name"`
	// ClientID and ClientSecret are what the provider knows the gateway by.
	ClientID     string `json:"clientID"`
	ClientSecret string `json:"-"`
	// HMACKey is the key of the HMAC over the cookies; no other login has it.
	HMACKey []byte `json:"-"`
	// CookieSuffix ends the names of its cookies.
	CookieSuffix string `json:"cookieSuffix"`
	// AuthorizationEndpoint, TokenEndpoint and EndSessionEndpoint are URLs of the
	// provider. Without the last, a user is signed out here only.
	AuthorizationEndpoint string `json:"authorizationEndpoint"`
	TokenEndpoint         string `json:"tokenEndpoint"`
	EndSessionEndpoint    string `json:"endSessionEndpoint,omitempty"`
	// BasicAuth sends the client's secret in Authorization, not in the body.
	BasicAuth bool `json:"basicAuth,omitempty"`
	// Cluster is where the token endpoint is.
	Cluster *Cluster `json:"cluster"`
	// RedirectURI is a template; CallbackPath is the path in it.
	RedirectURI  string `json:"redirectURI"`
	CallbackPath string `json:"callbackPath"`
	// SignOutPath ends a session; empty means that no path does.
	SignOutPath string `json:"signOutPath,omitempty"`
	// RedirectDomains are the hosts that a user may be sent back to after a login.
	RedirectDomains []string `json:"redirectDomains"`
	// Scopes are asked for; openid is among them.
	Scopes []string `json:"scopes"`
	// RefreshTokens are used when a session ends.
	RefreshTokens bool `json:"refreshTokens,omitempty"`
	// ForwardTokens leaves the tokens on the way to the backend.
	ForwardTokens bool `json:"forwardTokens,omitempty"`
	// DropAccessToken keeps no access token.
	DropAccessToken bool `json:"dropAccessToken,omitempty"`
	// Token says how the id_token is verified; nil means that it is not.
	Token *TokenCheck `json:"token,omitempty"`
	// Require are conditions on claims of the id_token, all of which must hold.
	Require []ClaimMatch `json:"require,omitempty"`
}

// Tokens are what a request has to bring: a token of an issuer.
type Tokens struct {
	Check *TokenCheck `json:"check"`
	// Require are conditions on claims of the token, all of which must hold.
	Require []ClaimMatch `json:"require,omitempty"`
}

// TokenCheck is how the id_token of a login is verified, or a token that a request brings.
type TokenCheck struct {
	// Name is unique: it says all but the keys.
	Name   string `json:"name"`
	Issuer string `json:"issuer,omitempty"`
	// Audiences are those that it may be for.
	Audiences []string `json:"audiences"`
	// Cookie is the name of the cookie that has it; else it is in the parameter Query or in
	// Header, behind Prefix.
	Cookie string `json:"cookie,omitempty"`
	Header string `json:"header,omitempty"`
	Prefix string `json:"prefix,omitempty"`
	Query  string `json:"query,omitempty"`
	// Forward leaves it on the way to the backend.
	Forward bool `json:"forward,omitempty"`
	// Optional lets requests without one pass.
	Optional bool `json:"optional,omitempty"`
	// JWKS is the JSON of the keys.
	JWKS string `json:"-"`
	// ClaimHeaders are told to the backend, sorted by header.
	ClaimHeaders []ClaimHeader `json:"claimHeaders,omitempty"`
}

// ClaimHeader is a header that tells the backend a claim.
type ClaimHeader struct {
	// Header is in lower case.
	Header string `json:"header"`
	// Claim has dots between its steps.
	Claim string `json:"claim"`
}

// ClaimMatch is a condition on a claim.
type ClaimMatch struct {
	// Claim are the steps to it.
	Claim []string `json:"claim"`
	// Values are alternatives; a claim that is a list has one of them.
	Values []string `json:"values"`
}
