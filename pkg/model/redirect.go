package model

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
)

// Redirect is where an identity provider sends browsers back to.
type Redirect struct {
	// URI is a template of Envoy's.
	URI string
	// Path is the part of it that requests are compared with.
	Path string
	// Host is the host in it, in lower case; empty means that of the request.
	Host string
}

// fromRequest begins a redirect to the host that the request was for.
const fromRequest = "%REQ(x-forwarded-proto)%://%REQ(:authority)%"

// ParseRedirect reads a URI, its path alone, or a template. A template may name headers
// that the gateway sets, and nothing else: Envoy accepts others and ends with the
// first request.
func ParseRedirect(s string) (Redirect, error) {
	var r Redirect
	rest, templated := cutFold(s, fromRequest)
	switch {
	case len(s) > 0 && s[0] == '/':
		r.URI, rest = fromRequest, s
	case templated:
		r.URI = fromRequest
	default:
		scheme, after, ok := cutScheme(s)
		if !ok {
			return r, fmt.Errorf(`%q is not a URL such as https://shop.example.com/callback, a path, or %s/callback`, s, fromRequest)
		}
		host, authority, path, err := splitAuthority(after)
		if err != nil {
			return r, fmt.Errorf("%q: %w", s, err)
		}
		r.Host, rest = host, path
		r.URI = scheme + "://" + authority
	}
	if err := checkRedirectPath(rest); err != nil {
		return r, fmt.Errorf("%q: %w", s, err)
	}
	r.Path = rest
	r.URI += rest
	return r, nil
}

func cutFold(s, prefix string) (after string, found bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return s[len(prefix):], true
}

func cutScheme(s string) (scheme, after string, found bool) {
	for _, scheme := range []string{"https", "http"} {
		if after, found := cutFold(s, scheme+"://"); found {
			return scheme, after, true
		}
	}
	return "", s, false
}

// splitAuthority splits what follows the scheme of a URL.
func splitAuthority(s string) (host, authority, path string, err error) {
	at := strings.IndexByte(s, '/')
	if at < 0 {
		return "", "", "", errors.New("needs a path of its own, such as /callback: requests for it are answered by the gateway")
	}
	authority, path = s[:at], s[at:]
	u, err := url.Parse("http://" + authority)
	if err != nil || u.User != nil || u.Host != authority || u.Hostname() == "" || strings.Contains(authority, "%") {
		return "", "", "", fmt.Errorf("%q is not a host, optionally with a port", authority)
	}
	host = strings.ToLower(u.Hostname())
	if _, notIP := netip.ParseAddr(host); notIP != nil && !isDNSName(host) {
		return "", "", "", fmt.Errorf("%q is not a host, optionally with a port", authority)
	}
	return host, authority, path, nil
}

// checkRedirectPath accepts the path of a redirect. The gateway compares it with paths
// from which it has taken dots and escaped slashes.
func checkRedirectPath(path string) error {
	var v validator
	v.urlPath("", path)
	switch {
	case len(v.errs) > 0:
		return errors.New("its path " + v.errs[0].Message)
	case path == "/":
		return errors.New("needs a path of its own, such as /callback: requests for it are answered by the gateway")
	case strings.Contains(path, "%"):
		return errors.New(`its path must not contain "%": choose one of letters and digits, such as /callback`)
	case strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../") || strings.ContainsAny(path, `\;`):
		return errors.New("its path must be one that browsers and gateways leave as it is: without //, /./, /../, a backslash and a semicolon")
	}
	return nil
}
