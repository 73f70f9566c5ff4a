package credential

import (
	"cmp"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const loginKey seam.Key[*Login] = "login"

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
	Cluster *ir.Cluster `json:"cluster"`
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

// addLogin adds the login of a filter to its host, or returns why it cannot.
func addLogin(h *ir.Host, c *model.OIDCFilter, at seam.Place) error {
	if loginKey.Of(h.Filters) != nil {
		return errors.New("the service has another http_filter_oidc too, and only one login can apply")
	}
	l, err := loginOf(c.Login(), at)
	if err != nil {
		return err
	}
	return l.AddTo(h)
}

// GlobalLogin returns the login that a global config of a proxy requires, without what differs from host
// to host; nil if there is none.
func GlobalLogin(configs []*model.ParsedGlobalConfig, place func(model.Key) seam.Place) (login *Login, err error) {
	for _, g := range configs {
		if g.Type != model.GlobalConfigOAuth {
			continue
		}
		c, ok := g.Spec.(*model.OAuthConfig)
		switch {
		case g.Fault != nil:
			err = fmt.Errorf("it cannot be read (%w)", g.Fault)
		case !ok:
			err = errors.New("its configuration is not that of a " + g.Type)
		case login != nil:
			err = errors.New(login.Name + " is a login too, and only one login can apply")
		default:
			login, err = loginOf(c.Login(), place(g.Key()))
		}
		if err != nil {
			return nil, fmt.Errorf("globalconfig %s cannot be enforced: %w", g.Name, err)
		}
	}
	return login, nil
}

// TakesGlobalLogin reports whether the login of a proxy's global config applies to a service: the service
// has no filter for a login, tokens or other credentials of users, and is not public.
func TakesGlobalLogin(t *model.ServiceTree) bool {
	return !t.Service.Public && !slices.ContainsFunc(t.Filters, asksWho)
}

// WithLogin returns a host with only its login and what shares filters with it. l is a
// GlobalLogin.
func WithLogin(h *ir.Host, l *Login) (*ir.Host, error) {
	with := &ir.Host{Name: h.Name, Domain: h.Domain, Identity: h.Identity}
	if keys := keysKey.Of(h.Filters); keys != nil {
		with.Filters = keysKey.In(nil, keys)
	}
	if err := l.AddTo(with); err != nil {
		return nil, fmt.Errorf("%s cannot be enforced: %w", strings.Replace(l.Name, "/", " ", 1), err)
	}
	return with, nil
}

// LoginOf returns the login of a host; nil if there is none.
func LoginOf(h *ir.Host) *Login { return loginKey.Of(h.Filters) }

// AddTo adds a login to a host.
func (l *Login) AddTo(h *ir.Host) error {
	own := *l
	// The browser says where to go after a login, and the target must be on this host.
	if domain := strings.Trim(h.Domain, "[]"); domain != "*" && !slices.Contains(l.RedirectDomains, domain) {
		own.RedirectDomains = append([]string{domain}, l.RedirectDomains...)
	}
	if len(own.RedirectDomains) == 0 {
		return errors.New(`the service is for every host ("*"): set a host in redirect_uri, or anybody could send users ` +
			`elsewhere after a login`)
	}
	h.Filters, h.Reserved = loginKey.In(h.Filters, &own), ReservedRoutes(l)
	return nil
}

// loginOf compiles a login. Its RedirectDomains do not contain the host yet.
func loginOf(l *model.Login, at seam.Place) (*Login, error) {
	out := &Login{
		Name: string(at.Key.Kind) + "/" + at.Key.Name(), ClientID: l.ClientID,
		BasicAuth:   l.TokenEndpointAuthMethod == model.ClientSecretBasic,
		RedirectURI: l.Redirect.URI, CallbackPath: l.Redirect.Path, SignOutPath: l.SignOutPath,
		RefreshTokens: l.Asks("offline_access"), ForwardTokens: l.ForwardTokens, DropAccessToken: !l.KeepsAccessToken(),
		Require: claimsOfMap(l.Require),
	}
	sum := sha256.Sum256([]byte(out.Name))
	out.CookieSuffix = hex.EncodeToString(sum[:4])
	if l.Asks("openid") {
		out.Scopes = l.Scopes
	} else {
		out.Scopes = append([]string{"openid"}, l.Scopes...)
	}
	if l.Redirect.Host != "" {
		out.RedirectDomains = []string{l.Redirect.Host}
	}
	for _, step := range []func() error{
		func() error { return setEndpoints(out, l) },
		func() error { return setLoginSecrets(out, l, at) },
		func() (err error) { out.Cluster, err = providerCluster(out, l, at); return err },
		func() error { return setTokenCheck(out, l) },
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// ReservedRoutes returns the routes that a login answers. Without them, Envoy would answer 404 before the
// filter runs.
func ReservedRoutes(l *Login) []*ir.Route {
	reserved := func(name, path string) *ir.Route {
		return &ir.Route{
			Name: name, Match: ir.Match{PathKind: ir.PathExact, Path: path},
			Respond: &ir.Respond{Status: http.StatusNotFound, Body: "not found\n"},
		}
	}
	list := []*ir.Route{reserved(LoginCallback, l.CallbackPath)}
	if l.SignOutPath != "" {
		list = append(list, reserved("login-sign-out", l.SignOutPath))
	}
	return list
}

// learnedProvider returns what was learned from the provider; nil before its first answer.
func learnedProvider(l *model.Login) *model.Provider {
	if l.Provider == nil || l.Provider.Source != l.Source() {
		return nil
	}
	return l.Provider
}

// errUnknown reports that the provider has not answered.
func errUnknown(l *model.Login, what string) error {
	why := "it has not answered yet"
	if p := learnedProvider(l); p != nil && p.Fault != "" {
		why = p.Fault
	}
	return fmt.Errorf("the %s of the identity provider are not known: %s", what, why)
}

// setEndpoints sets the configured endpoints, and otherwise those that the provider publishes.
func setEndpoints(out *Login, l *model.Login) error {
	p := learnedProvider(l)
	if p == nil {
		p = &model.Provider{}
	}
	out.AuthorizationEndpoint = cmp.Or(l.AuthorizationEndpoint, p.AuthorizationEndpoint)
	out.TokenEndpoint = cmp.Or(l.TokenEndpoint, p.TokenEndpoint)
	out.EndSessionEndpoint = endSession(cmp.Or(l.EndSessionEndpoint, p.EndSessionEndpoint))
	if out.AuthorizationEndpoint == "" || out.TokenEndpoint == "" {
		return errUnknown(l, "endpoints")
	}
	return nil
}

// endSession returns a URL to which Envoy appends ?id_token_hint=...&client_id=... and more. If the URL
// already has a query, as with providers that use policies or tenants, the "?id_token_hint=..." becomes
// the value of an unused parameter. The other parameters work as usual.
func endSession(url string) string {
	if strings.Contains(url, "?") {
		return strings.TrimSuffix(url, "&") + "&_="
	}
	return url
}

// setLoginSecrets opens the client's secret and derives the key of the cookies. Each login at each
// provider has its own key, even with the same cookie secret, so that its cookies are worthless to the
// others.
func setLoginSecrets(out *Login, l *model.Login, at seam.Place) error {
	if at.Open == nil {
		return errors.New("secrets cannot be read")
	}
	var err error
	if l.ClientSecret.Secret != "" {
		out.ClientSecret, err = at.Secret(l.ClientSecret.Secret)
	} else if out.ClientSecret = l.ClientSecret.Text; model.IsSealed(out.ClientSecret) {
		if out.ClientSecret, err = at.Open(out.ClientSecret, out.Name+"/client_secret"); err != nil {
			err = errors.New("client_secret cannot be read: it was sealed with another key")
		}
	}
	if err != nil {
		return err
	}
	master, err := at.Secret(l.CookieSecret)
	if err != nil {
		return err
	}
	provider := cmp.Or(l.Issuer, out.TokenEndpoint)
	info := strings.Join([]string{"gatehouse login cookies", out.Name, out.ClientID, provider}, "\x00")
	out.HMACKey, err = hkdf.Key(sha256.New, []byte(master), nil, info, sha256.Size)
	return err
}

// providerCluster returns the cluster of the token endpoint: that of the named upstream, or one for the
// host of the endpoint, whose certificate is verified with the system's authorities.
func providerCluster(out *Login, l *model.Login, at seam.Place) (*ir.Cluster, error) {
	endpoint, err := url.Parse(out.TokenEndpoint)
	if err != nil || endpoint.Hostname() == "" {
		return nil, fmt.Errorf("token_endpoint %q is not a URL", out.TokenEndpoint)
	}
	u, derived := (*model.Upstream)(nil), l.Upstream == ""
	if derived {
		u = l.DerivedUpstream(endpoint)
	} else if u = at.Upstream(l.Upstream); u == nil {
		return nil, fmt.Errorf("upstream %s does not exist", l.Upstream)
	}
	c, err := at.Cluster(u)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the identity provider %w", err)
	case (endpoint.Scheme == "https") != u.SpeaksTLS():
		return nil, fmt.Errorf("the token endpoint is %s, and upstream %s has the protocol %s",
			endpoint.Scheme, u.Name, u.Protocol)
	case u.Weight == 0:
		return nil, fmt.Errorf("upstream %s has weight 0", u.Name)
	case derived:
		c.Upstreams, c.Endpoints[0].Upstream = nil, "" // it is not an object
	}
	return c, nil
}

// setTokenCheck sets how the id_token is verified, if the issuer or its keys are configured.
func setTokenCheck(out *Login, l *model.Login) error {
	if l.Issuer == "" && l.JWKSURI == "" {
		if len(l.Require) > 0 || len(l.ClaimHeaders) > 0 {
			return errors.New("claims can be used only if the id_token is verified: set issuer or jwks_uri")
		}
		return nil
	}
	p := learnedProvider(l)
	if p == nil || p.JWKS == "" {
		return errUnknown(l, "keys")
	}
	check := &TokenCheck{
		Issuer: l.Issuer, Audiences: append([]string{l.ClientID}, l.Audiences...),
		Cookie: "IdToken-" + out.CookieSuffix, JWKS: p.JWKS,
	}
	for _, header := range slices.Sorted(maps.Keys(l.ClaimHeaders)) {
		check.ClaimHeaders = append(check.ClaimHeaders, ClaimHeader{
			Header: strings.ToLower(header), Claim: l.ClaimHeaders[header],
		})
	}
	check.Name = checkName(out.Name, check)
	out.Token = check
	return nil
}
