package model

import (
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// onTheWay is what is wrong with keys over plain HTTP.
const onTheWay = "anyone on the network path can replace the provider's keys"

// Advice says what of a login works, but probably not as intended. Each sentence
// follows the path of the filter or global config.
func (l *Login) Advice() []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if l.Issuer == "" && l.JWKSURI == "" {
		add("has neither issuer nor jwks_uri: the id_token is not verified, so that whoever has the cookie secret, " +
			"or is between here and the provider, can act as any user")
	}
	if l.Redirect.Scheme == "http" && !isLoopback(l.Redirect.Host) {
		add("sends users back over plain HTTP: browsers keep the cookies of a login only over HTTPS, so no login completes")
	}
	for _, f := range []struct{ name, url, what string }{
		{"issuer", l.Issuer, onTheWay},
		{"jwks_uri", l.JWKSURI, onTheWay},
		{"authorization_endpoint", l.AuthorizationEndpoint, "anyone on the network path can ask users for their passwords"},
		{"token_endpoint", l.TokenEndpoint, "anyone on the network path reads the client secret and the tokens"},
		{"end_session_endpoint", l.EndSessionEndpoint, "anyone on the network path reads id_tokens"},
	} {
		if u, err := url.Parse(f.url); err == nil && u.Scheme == "http" && !isLoopback(u.Hostname()) {
			add("has %s %s, which is plain HTTP: %s", f.name, f.url, f.what)
		}
	}
	if l.Address != nil && !strings.Contains(strings.TrimSuffix(l.Address.Host, "."), ".") && !isLoopback(l.Address.Host) {
		if _, err := netip.ParseAddr(l.Address.Host); err != nil {
			add("looks for the provider at the host %s (external_oauth_service.name), which is a name within one network: "+
				"outside a cluster, set the provider's host name", l.Address.Host)
		}
	}
	if l.TokenEndpointAuthMethod == ClientSecretBasic && needsEncoding(l.ClientID) {
		add(`has a client_id that client_secret_basic needs percent-encoded (RFC 6749 section 2.3.1), ` +
			`and Envoy sends it as it is: use client_secret_post`)
	}
	return list
}

// ClientSecretAdvice says what is wrong with the text of a client secret that a secret
// holds; empty if nothing is.
func (l *Login) ClientSecretAdvice(text string) string {
	switch {
	case text != strings.TrimSpace(text):
		return "begins or ends with a space or a line end, which the provider takes as part of the secret"
	case l.TokenEndpointAuthMethod == ClientSecretBasic && needsEncoding(text):
		return "has a character that client_secret_basic needs percent-encoded (RFC 6749 section 2.3.1), " +
			"and Envoy sends it as it is: use client_secret_post"
	}
	return ""
}

// CookieSecretAdvice says what is wrong with the text of a cookie secret; empty if nothing
// is.
func CookieSecretAdvice(text string) string {
	const least = 16
	if len(text) >= least {
		return ""
	}
	return fmt.Sprintf("has %d bytes, and whoever guesses it can forge a session of any user: "+
		"use 32 random bytes (openssl rand -hex 32)", len(text))
}

// needsEncoding reports whether a text changes when it is encoded as in a form.
func needsEncoding(s string) bool { return url.QueryEscape(s) != s }

// isLoopback reports whether a host is this machine, as browsers see it.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback() || strings.EqualFold(host, "localhost")
}

// AdviceFor says what of a login works otherwise than intended on one service, which
// has a certificate for its host or not. direct says that no proxy is trusted in front
// of the gateway, which might have the certificate. Each sentence follows the path of
// the filter or global config.
func (l *Login) AdviceFor(s *Service, hasCertificate, direct bool) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	switch host := l.Redirect.Host; {
	case host == "" && s.FQDN == "*":
		add(`sends users back to the host that they requested, and service %q is for every host ("*"): it answers 503, `+
			`because anybody could send users elsewhere after a login; set a host in the redirect`, s.Name)
	case host != "" && !covers(s.FQDN, host):
		add("sends users back to %s, and service %q is for %s: a login that begins there does not complete there", host,
			s.Name, s.FQDN)
	}
	if strings.Contains(s.FQDN, "_") && l.Redirect.Host == "" {
		add("cannot log anybody in on service %q: its host %s has an underscore, which Envoy does not accept in a URL",
			s.Name, s.FQDN)
	}
	local := isLoopback(s.FQDN) || isLoopback(l.Redirect.Host)
	switch {
	case local || !direct:
	case !hasCertificate:
		add("cannot complete a login on service %q, which has no certificate, unless a proxy in front has one: "+
			"browsers keep the cookies of a login only over HTTPS; attach a certificate, "+
			"or set Trusted_hops of the proxy to the number of proxies in front",
			s.Name)
	case s.HTTPS == HTTPSBoth:
		add("cannot complete a login on service %q over plain HTTP, where browsers do not keep its cookies: "+
			"set Https=redirect", s.Name)
	}
	return list
}

// covers reports whether a host is one of an fqdn.
func covers(fqdn, host string) bool {
	suffix, wild := strings.CutPrefix(fqdn, "*")
	if wild {
		return len(host) > len(suffix) && strings.HasSuffix(strings.ToLower(host), strings.ToLower(suffix))
	}
	return strings.EqualFold(fqdn, host)
}

// TakesFrom reports whether the login answers every request for a route's path, so that
// the route has none.
func (l *Login) TakesFrom(r *Route) bool {
	return r.Config.Match == "exact" && (r.Prefix == l.Redirect.Path || r.Prefix == l.SignOutPath)
}
