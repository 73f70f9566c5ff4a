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

// OAuth2Filter is the name of the filter that requires a login and keeps it in cookies.
const OAuth2Filter = "envoy.filters.http.oauth2"

// tokenTimeout bounds the call of the token endpoint.
const tokenTimeout = 5 * time.Second

// sessionTime is the length of a session if the identity provider does not set one (RFC 6749 section 5.1).
const sessionTime = time.Hour

// oauth2Filter does nothing without a host's message. It must be on every listener: Envoy ignores messages
// for a filter that the listener does not have, and the host would be open.
func oauth2Filter(ir.Listener) []filterConfig {
	return []filterConfig{{name: OAuth2Filter, config: &oauth2v3.OAuth2{}}}
}

func loginOfHost(h *ir.Host) ([]filterConfig, error) {
	if h.Login == nil {
		return nil, nil
	}
	return []filterConfig{{name: OAuth2Filter, config: &oauth2v3.OAuth2PerRoute{Config: oauth2Config(h.Login)}}}, nil
}

// exemptRoute turns a filter for credentials off for routes that require none, and for those that require
// others.
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
		// Envoy requires a path. No request has a path with a space.
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

// cookieConfigs set how the cookies are sent. With SameSite=Lax, browsers send them when the identity
// provider sends them back; with Strict they do not. Cookies of an unfinished login go to the callback only,
// since each request without a session adds two.
func cookieConfigs(l *ir.Login) *oauth2v3.CookieConfigs {
	session := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX}
	flow := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX, Path: l.CallbackPath}
	return &oauth2v3.CookieConfigs{
		BearerTokenCookieConfig: session, OauthHmacCookieConfig: session, OauthExpiresCookieConfig: session, IdTokenCookieConfig: session,
		RefreshTokenCookieConfig: session, OauthNonceCookieConfig: flow, CodeVerifierCookieConfig: flow,
	}
}

// notBrowsers match requests for which no person can log in. They receive a 401 and are not sent to the
// identity provider.
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

// LoginPair returns the prefix of the names of a login's secrets (see LoginSecrets).
func LoginPair(l *ir.Login) string { return "login/" + l.Name }

// SecretsOfLogin returns the secrets that a login's filter names. The names stay when the content changes:
// Envoy crashes when one of them leaves its routes.
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

// inForm escapes percent signs and spaces. Envoy writes them unescaped into a form, and a provider would read
// them as something else.
func inForm(secret string) string {
	return strings.NewReplacer("%", "%25", " ", "%20").Replace(secret)
}

// SpoofFilter is the name of the filter that removes headers that only the gateway may set, also on routes
// without a login.
const SpoofFilter = "envoy.filters.http.header_mutation/in"

func spoofFilter(ir.Listener) []filterConfig {
	// A route's message is applied after the host's, which removes more.
	return []filterConfig{{name: SpoofFilter, config: &headermutationv3.HeaderMutation{MostSpecificHeaderMutationsWins: true}}}
}

// tokenOfHost returns the token whose claims the upstream receives in headers; nil if there is none.
func tokenOfHost(h *ir.Host) *ir.TokenCheck {
	switch {
	case h.AllTokens() != nil:
		return h.AllTokens().Check
	case h.Login != nil:
		return h.Login.Token
	}
	return nil
}

// claimHeaders returns the headers that carry the token's claims.
func claimHeaders(t *ir.TokenCheck) []string {
	if t == nil {
		return nil
	}
	var names []string
	for _, c := range t.ClaimHeaders {
		names = append(names, c.Header)
	}
	return names
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

// cleanLogin removes the gateway's own cookies.
func cleanLogin(l *ir.Login) []*mutationv3.HeaderMutation {
	names := cookieNames(l)
	// On routes without a login, the request still has all of them from the browser.
	cookies := []string{names.GetOauthHmac(), names.GetOauthExpires(), names.GetRefreshToken()}
	if !l.ForwardTokens {
		cookies = slices.Concat(cookies, []string{names.GetBearerToken(), names.GetIdToken()})
	}
	var list []*mutationv3.HeaderMutation
	for _, cookie := range cookies {
		list = append(list, removeCookie(cookie))
	}
	return append(list, tidyCookies()...)
}

func cleanOfRoute(r *ir.Route) ([]filterConfig, error) {
	list := append(removeKey(r.AllKeys()), cleanTokens(r.AllTokens())...)
	if list == nil {
		return nil, nil
	}
	return []filterConfig{requestMutations(CleanFilter, list)}, nil
}

// cleanTokens removes a token that the filter which verifies it does not remove.
func cleanTokens(t *ir.Tokens) []*mutationv3.HeaderMutation {
	if t == nil || t.Check.Forward || t.Check.Cookie == "" {
		return nil
	}
	return append([]*mutationv3.HeaderMutation{removeCookie(t.Check.Cookie)}, tidyCookies()...)
}

func requestMutations(filter string, list []*mutationv3.HeaderMutation) filterConfig {
	return filterConfig{name: filter, config: &headermutationv3.HeaderMutationPerRoute{Mutations: &headermutationv3.Mutations{RequestMutations: list}}}
}

// cookieHeader carries the cookies while Cookie is removed.
const cookieHeader = "x-gatehouse-cookie"

// tidyCookies removes what separated removed cookies from others. Envoy does not set a header to an empty value, so
// Cookie is removed, and set again if cookies are left.
func tidyCookies() []*mutationv3.HeaderMutation {
	set := func(name, value string) *mutationv3.HeaderMutation {
		return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: setHeader(name, value)}}
	}
	const left = `%CEL('cookie' in request.headers ? re.extract(request.headers['cookie'], r'^[; ]*(.*?)[; ]*$', r'\1') : '')%`
	return []*mutationv3.HeaderMutation{
		removeHeader(cookieHeader), set(cookieHeader, left), removeHeader("cookie"), set("cookie", "%REQ("+cookieHeader+")%"), removeHeader(cookieHeader),
	}
}

// removeCookie removes one cookie from the Cookie header.
func removeCookie(name string) *mutationv3.HeaderMutation {
	const cookie = "request.headers['cookie']"
	value := fmt.Sprintf(`%%CEL(%[1]s.matches(r'(^|; *)%[2]s=') ? re.extract(%[1]s, r'^(?:(.*); *)?%[2]s=[^;]*(?:; *(.*))?$', r'\1; \2') : %[1]s)%%`, cookie, name)
	return &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_Append{Append: &corev3.HeaderValueOption{
		Header: &corev3.HeaderValue{Key: "cookie", Value: value}, AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS,
	}}}
}
