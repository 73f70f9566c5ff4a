package translate

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
)

// OAuth2Filter is the name of the filter that asks for a login, and keeps it in cookies.
const OAuth2Filter = "envoy.filters.http.oauth2"

// tokenTimeout bounds the call of the token endpoint.
const tokenTimeout = 5 * time.Second

// sessionTime is how long a session is if the identity provider does not say so (RFC 6749
// section 5.1).
const sessionTime = time.Hour

// oauth2Filter does nothing without the message of a host. It must be on every listener:
// Envoy ignores messages for a filter that is not, and the host would be open.
func oauth2Filter(ir.Listener) []filterConfig {
	return []filterConfig{{name: OAuth2Filter, config: &oauth2v3.OAuth2{}}}
}

func loginOfHost(h *ir.Host) ([]filterConfig, error) {
	if h.Login == nil {
		return nil, nil
	}
	return []filterConfig{{name: OAuth2Filter, config: &oauth2v3.OAuth2PerRoute{Config: oauth2Config(h.Login)}}}, nil
}

// exemptRoute turns a filter that asks who a request is from off for routes that need no login, and for those
// that ask it in another way.
func exemptRoute(filter string) func(*ir.Route) ([]filterConfig, error) {
	return func(r *ir.Route) ([]filterConfig, error) {
		if !r.Public && !r.SaysWho() {
			return nil, nil
		}
		return []filterConfig{{name: filter, config: &routev3.FilterConfig{Disabled: true}}}, nil
	}
}

func oauth2Config(l *ir.Login) *oauth2v3.OAuth2Config {
	client, hmac := LoginSecrets(LoginPair(l))
	out := &oauth2v3.OAuth2Config{
		TokenEndpoint: &corev3.HttpUri{
			Uri: l.TokenEndpoint, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: l.Cluster.Name}, Timeout: seconds(tokenTimeout),
		},
		AuthorizationEndpoint: l.AuthorizationEndpoint,
		EndSessionEndpoint:    l.EndSessionEndpoint,
		RedirectUri:           l.RedirectURI,
		RedirectPathMatcher:   exactPath(l.CallbackPath),
		// Envoy needs one. No request has a path with a space.
		SignoutPath: exactPath("/ "),
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       l.ClientID,
			TokenSecret:    sdsSecret(client),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: sdsSecret(hmac)},
			CookieNames:    cookieNames(l),
		},
		CookieConfigs:               cookieConfigs(l),
		AuthScopes:                  l.Scopes,
		AuthType:                    oauth2v3.OAuth2Config_URL_ENCODED_BODY,
		UseRefreshToken:             wrapperspb.Bool(l.RefreshTokens),
		ForwardBearerToken:          l.ForwardTokens,
		DisableAccessTokenSetCookie: l.DropAccessToken,
		AllowedRedirectDomains:      l.RedirectDomains,
		DenyRedirectMatcher:         notBrowsers(),
		DefaultExpiresIn:            seconds(sessionTime),
	}
	if l.SignOutPath != "" {
		out.SignoutPath = exactPath(l.SignOutPath)
	}
	if l.BasicAuth {
		out.AuthType = oauth2v3.OAuth2Config_BASIC_AUTH
	}
	return out
}

func cookieNames(l *ir.Login) *oauth2v3.OAuth2Credentials_CookieNames {
	name := func(base string) string { return base + "-" + l.CookieSuffix }
	return &oauth2v3.OAuth2Credentials_CookieNames{
		BearerToken: name("BearerToken"), OauthHmac: name("OauthHMAC"), OauthExpires: name("OauthExpires"), IdToken: name("IdToken"),
		RefreshToken: name("RefreshToken"), OauthNonce: name("OauthNonce"), CodeVerifier: name("CodeVerifier"),
	}
}

// cookieConfigs make cookies that come along when the identity provider sends a browser
// back, which strict ones do not. Those of a login that is under way go to the callback
// only: each request without a session adds two.
func cookieConfigs(l *ir.Login) *oauth2v3.CookieConfigs {
	session := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX}
	flow := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX, Path: l.CallbackPath}
	return &oauth2v3.CookieConfigs{
		BearerTokenCookieConfig: session, OauthHmacCookieConfig: session, OauthExpiresCookieConfig: session, IdTokenCookieConfig: session,
		RefreshTokenCookieConfig: session, OauthNonceCookieConfig: flow, CodeVerifierCookieConfig: flow,
	}
}

// notBrowsers match requests that no person can log in for: they are answered with 401,
// not sent to the identity provider.
func notBrowsers() []*routev3.HeaderMatcher {
	var list []*routev3.HeaderMatcher
	for _, m := range []ir.ValueMatch{
		{Name: ":method", Regex: "GET|HEAD", Invert: true},
		{Name: "x-requested-with"},
		{Name: "upgrade"},
		{Name: "sec-fetch-mode", Regex: "cors|no-cors|same-origin|websocket"},
		{Name: "accept", Regex: `application/([^,]*\+)?json\b.*|text/event-stream.*`},
	} {
		list = append(list, headerMatcher(m))
	}
	return list
}

// LoginPair begins the names of the secrets of a login (see LoginSecrets).
func LoginPair(l *ir.Login) string { return "login/" + l.Name }

// SecretsOfLogin are what the filter of a login asks for by name. The names stay while
// what they hold changes: an Envoy ends when one of them leaves its routes.
func SecretsOfLogin(l *ir.Login) []*tlsv3.Secret {
	secret := func(name, text string) *tlsv3.Secret {
		return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{Secret: inline(text)}}}
	}
	client, hmac := LoginSecrets(LoginPair(l))
	text := l.ClientSecret
	if !l.BasicAuth {
		text = inForm(text)
	}
	return []*tlsv3.Secret{secret(client, text), secret(hmac, hex.EncodeToString(l.HMACKey))}
}

// inForm encodes what Envoy leaves as it is when it writes a form, and a provider would
// read as something else: percent signs and spaces.
func inForm(secret string) string {
	return strings.NewReplacer("%", "%25", " ", "%20").Replace(secret)
}

// SpoofFilter is the name of the filter that removes headers that only the gateway may
// set, on routes without a login too.
const SpoofFilter = "envoy.filters.http.header_mutation/in"

func spoofFilter(ir.Listener) []filterConfig {
	// A route's message is applied behind the host's, which removes more.
	return []filterConfig{{name: SpoofFilter, config: &headermutationv3.HeaderMutation{MostSpecificHeaderMutationsWins: true}}}
}

// tokenOfHost is the token that says what the upstream gets in headers; nil if none does.
func tokenOfHost(h *ir.Host) *ir.TokenCheck {
	switch {
	case h.AllTokens() != nil:
		return h.AllTokens().Check
	case h.Login != nil:
		return h.Login.Token
	}
	return nil
}

// spoofable removes the headers that a token says, from what the client sends.
func spoofable(t *ir.TokenCheck) []*mutationv3.HeaderMutation {
	if t == nil {
		return nil
	}
	var changes []ir.HeaderChange
	for _, c := range t.ClaimHeaders {
		changes = append(changes, ir.HeaderChange{Action: ir.HeaderRemove, Name: c.Header})
	}
	return mutations(changes)
}

// CleanFilter is the name of the filter that keeps the cookies of logins from backends.
const CleanFilter = "envoy.filters.http.header_mutation/clean"

func cleanFilter(ir.Listener) []filterConfig {
	return []filterConfig{{name: CleanFilter, config: &headermutationv3.HeaderMutation{}}}
}

func cleanOfHost(h *ir.Host) ([]filterConfig, error) {
	list := removeKey(h.AllKeys())
	if h.Login != nil {
		list = append(list, cleanLogin(h.Login)...)
	} else {
		list = append(list, cleanTokens(h.AllTokens())...)
	}
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(CleanFilter, list)}, nil
}

// cleanLogin takes the gateway's own cookies away.
func cleanLogin(l *ir.Login) []*mutationv3.HeaderMutation {
	names := cookieNames(l)
	// On routes without a login they are all there, as the browser has them.
	cookies := []string{names.GetOauthHmac(), names.GetOauthExpires(), names.GetRefreshToken()}
	if !l.ForwardTokens {
		cookies = slices.Concat(cookies, []string{names.GetBearerToken(), names.GetIdToken()})
	}
	var list []*mutationv3.HeaderMutation
	for _, cookie := range cookies {
		list = append(list, removeCookie(cookie))
	}
	return list
}

func cleanOfRoute(r *ir.Route) ([]filterConfig, error) {
	list := append(removeKey(r.AllKeys()), cleanTokens(r.AllTokens())...)
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(CleanFilter, list)}, nil
}

// cleanTokens takes a token away that the filter which verifies it leaves.
func cleanTokens(t *ir.Tokens) []*mutationv3.HeaderMutation {
	if t == nil || t.Check.Forward || t.Check.Cookie == "" {
		return nil
	}
	return []*mutationv3.HeaderMutation{removeCookie(t.Check.Cookie)}
}

func requestMutations(filter string, list []*mutationv3.HeaderMutation) filterConfig {
	return filterConfig{name: filter, config: &headermutationv3.HeaderMutationPerRoute{Mutations: &headermutationv3.Mutations{RequestMutations: list}}}
}

// removeCookie takes one cookie out of the Cookie header.
func removeCookie(name string) *mutationv3.HeaderMutation {
	const cookie = "request.headers['cookie']"
	value := fmt.Sprintf(`%%CEL(%[1]s.matches(r'(^|; *)%[2]s=') ? re.extract(%[1]s, r'^(?:(.*); *)?%[2]s=[^;]*(?:; *(.*))?$', r'\1; \2') : %[1]s)%%`, cookie, name)
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: "cookie", Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS,
	}}}
}
