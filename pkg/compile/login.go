package compile

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

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Place is where a configuration applies.
type Place struct {
	// Key is the key of the filter or global config.
	Key model.Key
	// Named are the objects that it names, and those that they name.
	Named map[model.Key]model.Object
	Settings
}

// addLogin adds the login of a filter to its host, or returns why it cannot.
func addLogin(h *ir.Host, c *model.OIDCFilter, at Place) error {
	if h.Login != nil {
		return errors.New("the service has another http_filter_oidc too, and only one login can apply")
	}
	l, err := loginOf(c.Login(), at)
	if err != nil {
		return err
	}
	return putLogin(h, l)
}

// GlobalLogin returns the login that a global config of a proxy requires, without what differs from host
// to host; nil if there is none.
func GlobalLogin(p *model.ProxyTree, s Settings) (login *ir.Login, err error) {
	for _, g := range p.GlobalConfigs {
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
			login, err = loginOf(c.Login(), Place{Key: g.Key(), Named: p.Named, Settings: s})
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
func WithLogin(h *ir.Host, l *ir.Login) (*ir.Host, error) {
	with := &ir.Host{Name: h.Name, Domain: h.Domain, Keys: h.Keys, Identity: h.Identity}
	if err := putLogin(with, l); err != nil {
		return nil, fmt.Errorf("%s cannot be enforced: %w", strings.Replace(l.Name, "/", " ", 1), err)
	}
	return with, nil
}

// putLogin adds a login to a host.
func putLogin(h *ir.Host, l *ir.Login) error {
	own := *l
	// The browser says where to go after a login, and the target must be on this host.
	if domain := strings.Trim(h.Domain, "[]"); domain != "*" && !slices.Contains(l.RedirectDomains, domain) {
		own.RedirectDomains = append([]string{domain}, l.RedirectDomains...)
	}
	if len(own.RedirectDomains) == 0 {
		return errors.New(`the service is for every host ("*"): set a host in redirect_uri, or anybody could send users elsewhere after a login`)
	}
	h.Login, h.Reserved = &own, ReservedRoutes(l)
	return nil
}

// loginOf compiles a login. Its RedirectDomains do not contain the host yet.
func loginOf(l *model.Login, at Place) (*ir.Login, error) {
	out := &ir.Login{
		Name: string(at.Key.Kind) + "/" + at.Key.Name(), ClientID: l.ClientID,
		BasicAuth:   l.TokenEndpointAuthMethod == model.ClientSecretBasic,
		RedirectURI: l.Redirect.URI, CallbackPath: l.Redirect.Path, SignOutPath: l.SignOutPath,
		RefreshTokens: l.Asks("offline_access"), ForwardTokens: l.ForwardTokens, DropAccessToken: !l.KeepsAccessToken(),
		Require: claimMatches(l.Require),
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
func ReservedRoutes(l *ir.Login) []*ir.Route {
	reserved := func(name, path string) *ir.Route {
		return &ir.Route{
			Name: name, Match: ir.Match{PathKind: ir.PathExact, Path: path},
			Respond: &ir.Respond{Status: http.StatusNotFound, Body: "not found\n"},
		}
	}
	list := []*ir.Route{reserved(ir.LoginCallback, l.CallbackPath)}
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
func setEndpoints(out *ir.Login, l *model.Login) error {
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
func setLoginSecrets(out *ir.Login, l *model.Login, at Place) error {
	if at.Open == nil {
		return errors.New("secrets cannot be read")
	}
	var err error
	if l.ClientSecret.Secret != "" {
		out.ClientSecret, err = secretValue(l.ClientSecret.Secret, at)
	} else if out.ClientSecret = l.ClientSecret.Text; model.IsSealed(out.ClientSecret) {
		if out.ClientSecret, err = at.Open(out.ClientSecret, out.Name+"/client_secret"); err != nil {
			err = errors.New("client_secret cannot be read: it was sealed with another key")
		}
	}
	if err != nil {
		return err
	}
	master, err := secretValue(l.CookieSecret, at)
	if err != nil {
		return err
	}
	info := strings.Join([]string{"gatehouse login cookies", out.Name, out.ClientID, cmp.Or(l.Issuer, out.TokenEndpoint)}, "\x00")
	out.HMACKey, err = hkdf.Key(sha256.New, []byte(master), nil, info, sha256.Size)
	return err
}

func secretValue(name string, at Place) (string, error) {
	s, _ := at.Named[model.SecretKey(name)].(*model.Secret)
	if s == nil {
		return "", fmt.Errorf("secret %s does not exist", name)
	}
	value, err := s.OpenValue(at.Open)
	if err != nil {
		return "", fmt.Errorf("secret %s cannot be read: it was sealed with another key", name)
	}
	if value == "" {
		return "", fmt.Errorf("secret %s has no value (Secret_value)", name)
	}
	return value, nil
}

// providerCluster returns the cluster of the token endpoint: that of the named upstream, or one for the
// host of the endpoint, whose certificate is verified with the system's authorities.
func providerCluster(out *ir.Login, l *model.Login, at Place) (*ir.Cluster, error) {
	endpoint, err := url.Parse(out.TokenEndpoint)
	if err != nil || endpoint.Hostname() == "" {
		return nil, fmt.Errorf("token_endpoint %q is not a URL", out.TokenEndpoint)
	}
	u, derived := (*model.Upstream)(nil), l.Upstream == ""
	if derived {
		u = l.DerivedUpstream(endpoint)
	} else if u, _ = at.Named[model.UpstreamKey(l.Upstream)].(*model.Upstream); u == nil {
		return nil, fmt.Errorf("upstream %s does not exist", l.Upstream)
	}
	if why := ruledOut(u, at.Settings); why != "" {
		return nil, fmt.Errorf("the identity provider has an address that %s", why)
	}
	if (endpoint.Scheme == "https") != u.SpeaksTLS() {
		return nil, fmt.Errorf("the token endpoint is %s, and upstream %s has the protocol %s", endpoint.Scheme, u.Name, u.Protocol)
	}
	with := Credentials{Secrets: secretsAmong(at.Named), Open: at.Open, System: at.Authorities}
	if what := unusableTLS([]*model.Upstream{u}, with); what != "" {
		return nil, errors.New("the identity provider " + strings.TrimSuffix(what, ","))
	}
	clusters := Clusters([]*model.Upstream{u}, with)
	if len(clusters) == 0 {
		return nil, fmt.Errorf("upstream %s has weight 0", u.Name)
	}
	c := clusters[0].Cluster
	if derived {
		c.Upstreams, c.Endpoints[0].Upstream = nil, "" // it is not an object
	}
	return c, nil
}

func secretsAmong(named map[model.Key]model.Object) map[string]*model.Secret {
	list := map[string]*model.Secret{}
	for _, obj := range named {
		if s, ok := obj.(*model.Secret); ok {
			list[s.Name] = s
		}
	}
	return list
}

// setTokenCheck sets how the id_token is verified, if the issuer or its keys are configured.
func setTokenCheck(out *ir.Login, l *model.Login) error {
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
	check := &ir.TokenCheck{
		Issuer: l.Issuer, Audiences: append([]string{l.ClientID}, l.Audiences...), Cookie: "IdToken-" + out.CookieSuffix, JWKS: p.JWKS,
	}
	for _, header := range slices.Sorted(maps.Keys(l.ClaimHeaders)) {
		check.ClaimHeaders = append(check.ClaimHeaders, ir.ClaimHeader{Header: strings.ToLower(header), Claim: l.ClaimHeaders[header]})
	}
	check.Name = checkName(out.Name, check)
	out.Token = check
	return nil
}

func claimMatches(require map[string][]string) []ir.ClaimMatch {
	var list []ir.ClaimMatch
	for _, claim := range slices.Sorted(maps.Keys(require)) {
		list = append(list, ir.ClaimMatch{Claim: strings.Split(claim, "."), Values: require[claim]})
	}
	return list
}
