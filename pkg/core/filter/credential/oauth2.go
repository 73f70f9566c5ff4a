package credential

import (
	"encoding/hex"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// oauth2Filter is the name of the filter that requires a login and keeps it in cookies.
const oauth2Filter = "envoy.filters.http.oauth2"

// tokenTimeout bounds the call of the token endpoint.
const tokenTimeout = 5 * time.Second

// sessionTime is the length of a session if the identity provider does not set one (RFC 6749 section 5.1).
const sessionTime = time.Hour

// noLogin does nothing without a host's message. It must be on every listener: Envoy ignores messages
// for a filter that the listener does not have, and the host would be open.
func noLogin(ir.Listener) []seam.Message {
	return []seam.Message{{Name: oauth2Filter, Config: &oauth2v3.OAuth2{}}}
}

func login(d demands) []seam.Message {
	if d.login == nil {
		return nil
	}
	return []seam.Message{{Name: oauth2Filter, Config: &oauth2v3.OAuth2PerRoute{Config: oauth2Config(d.login)}}}
}

func oauth2Config(l *Login) *oauth2v3.OAuth2Config {
	client, hmac := LoginSecrets(LoginPair(l))
	out := &oauth2v3.OAuth2Config{
		TokenEndpoint: &corev3.HttpUri{
			Uri: l.TokenEndpoint, HttpUpstreamType: &corev3.HttpUri_Cluster{Cluster: l.Cluster.Name},
			Timeout: durationpb.New(tokenTimeout),
		},
		AuthorizationEndpoint: l.AuthorizationEndpoint,
		EndSessionEndpoint:    l.EndSessionEndpoint,
		RedirectUri:           l.RedirectURI,
		RedirectPathMatcher:   exactPath(l.CallbackPath),
		// Envoy requires a path. No request has a path with a space.
		SignoutPath: exactPath("/ "),
		Credentials: &oauth2v3.OAuth2Credentials{
			ClientId:       l.ClientID,
			TokenSecret:    seam.SDSSecret(client),
			TokenFormation: &oauth2v3.OAuth2Credentials_HmacSecret{HmacSecret: seam.SDSSecret(hmac)},
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
		DefaultExpiresIn:            durationpb.New(sessionTime),
	}
	if l.SignOutPath != "" {
		out.SignoutPath = exactPath(l.SignOutPath)
	}
	if l.BasicAuth {
		out.AuthType = oauth2v3.OAuth2Config_BASIC_AUTH
	}
	return out
}

func cookieNames(l *Login) *oauth2v3.OAuth2Credentials_CookieNames {
	name := func(base string) string { return base + "-" + l.CookieSuffix }
	return &oauth2v3.OAuth2Credentials_CookieNames{
		BearerToken: name("BearerToken"), OauthHmac: name("OauthHMAC"), OauthExpires: name("OauthExpires"),
		IdToken:      name("IdToken"),
		RefreshToken: name("RefreshToken"), OauthNonce: name("OauthNonce"), CodeVerifier: name("CodeVerifier"),
	}
}

// cookieConfigs set how the cookies are sent. With SameSite=Lax, browsers send them when the identity
// provider sends them back; with Strict they do not. Cookies of an unfinished login go to the callback only,
// since each request without a session adds two.
func cookieConfigs(l *Login) *oauth2v3.CookieConfigs {
	session := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX}
	flow := &oauth2v3.CookieConfig{SameSite: oauth2v3.CookieConfig_LAX, Path: l.CallbackPath}
	return &oauth2v3.CookieConfigs{
		BearerTokenCookieConfig: session, OauthHmacCookieConfig: session, OauthExpiresCookieConfig: session,
		IdTokenCookieConfig:      session,
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
		list = append(list, seam.HeaderMatcher(m))
	}
	return list
}

// LoginPair returns the prefix of the names of a login's secrets (see LoginSecrets).
func LoginPair(l *Login) string { return "login/" + l.Name }

// secretsOf returns the secrets that a login's filter names. The names stay when the content changes:
// Envoy crashes when one of them leaves its routes.
func secretsOf(l *Login) []*tlsv3.Secret {
	secret := func(name, text string) *tlsv3.Secret {
		return &tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{
			GenericSecret: &tlsv3.GenericSecret{Secret: seam.Inline(text)},
		}}
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
