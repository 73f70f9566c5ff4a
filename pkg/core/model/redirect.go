package model

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// Redirect is where an identity provider sends browsers back to.
type Redirect struct {
	// URI is a template of Envoy's. What was in it is in it in one form: no text that a
	// user has sent has a percent sign in it.
	URI string
	// Path is the part of it that requests are compared with.
	Path string
	// Host is the host in it, in lower case; empty means that of the request.
	Host string
	// Scheme is the scheme in it, in lower case; empty means that of the request.
	Scheme string
}

// What stands in a redirect for the scheme and the host of the request.
const (
	requestScheme = "%REQ(x-forwarded-proto)%"
	requestHost   = "%REQ(:authority)%"
	fromRequest   = requestScheme + "://" + requestHost
)

const (
	// maxRedirect bounds a redirect, which is a part of a URL twice.
	maxRedirect = 1024
	// maxLoginPath bounds a path that is the Path of a cookie too.
	maxLoginPath = 255
)

// ParseRedirect reads a URI, its path alone, or a template. A template may have the
// scheme and the host of the request in their places, in any letter case, and nothing
// else: Envoy accepts others and ends with the first request.
func ParseRedirect(s string) (Redirect, error) {
	if len(s) > maxRedirect {
		return Redirect{}, fmt.Errorf("has %d bytes; at most %d are allowed", len(s), maxRedirect)
	}
	r, rest, err := parseOrigin(s)
	if err == nil {
		err = checkLoginPath(rest)
	}
	if err != nil {
		return Redirect{}, fmt.Errorf("%q %w", s, err)
	}
	r.Path = rest
	r.URI += rest
	return r, nil
}

// parseOrigin reads what is before the path.
func parseOrigin(s string) (r Redirect, path string, err error) {
	if strings.HasPrefix(s, "/") {
		return Redirect{URI: fromRequest}, s, nil
	}
	scheme, rest, found := strings.Cut(s, "://")
	lower := strings.ToLower(scheme)
	switch {
	case !found:
		return r, "", fmt.Errorf("is not a URL such as https://shop.example.com/callback, a path such as /callback, "+
			"or %s/callback", fromRequest)
	case strings.EqualFold(scheme, requestScheme):
		r.URI = requestScheme + "://"
	case lower == "https" || lower == "http":
		r.Scheme, r.URI = lower, lower+"://"
	case strings.Contains(scheme, "%"):
		return r, "", fmt.Errorf("must have https, http or %s as the scheme", requestScheme)
	default:
		return r, "", errors.New("is neither an https nor an http URL")
	}
	authority, path := rest, ""
	if at := strings.IndexByte(rest, '/'); at >= 0 {
		authority, path = rest[:at], rest[at:]
	}
	switch {
	case strings.EqualFold(authority, requestHost):
		r.URI += requestHost
		return r, path, nil
	case strings.Contains(authority, "%"):
		return r, "", fmt.Errorf("must have a host name or %s as the host", requestHost)
	}
	if r.Host, err = hostOf(authority); err != nil {
		return r, "", err
	}
	r.URI += authority
	return r, path, nil
}

// hostOf is the host of an authority (RFC 3986 section 3.2) without a user, in lower
// case.
func hostOf(authority string) (string, error) {
	bad := fmt.Errorf("has %q where a host is needed, optionally with a port", authority)
	u, err := url.Parse("//" + authority)
	if err != nil || u.User != nil || u.Host != authority || strings.HasSuffix(authority, ":") {
		return "", bad
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return "", fmt.Errorf("has the port %s, which is not between 1 and 65535", port)
		}
	}
	host := strings.ToLower(u.Hostname())
	addr, err := netip.ParseAddr(host)
	switch {
	case err == nil && addr.Is4() == strings.HasPrefix(authority, "["), err == nil && addr.Zone() != "":
		return "", bad
	case err != nil && (!isDNSName(host) || looksLikeIPv4(host) || strings.HasSuffix(host, ".")):
		return "", bad
	case strings.Contains(host, "_"):
		return "", fmt.Errorf("has an underscore in the host %s, which Envoy does not accept in a URL", host)
	}
	return host, nil
}

// checkLoginPath accepts a path that the gateway answers itself. It comes back from
// browsers, and is compared with paths from which the gateway has taken dots and
// escaped slashes: so it has only what all of them leave as it is (RFC 3986 section
// 3.3, pchar), and neither semicolon nor comma, which cannot be in the Path of a cookie.
func checkLoginPath(path string) error {
	switch {
	case path == "" || path == "/":
		return errors.New("requires a path of its own, such as /callback: the gateway answers requests for it")
	case path[0] != '/':
		return errors.New(`must be a path, which starts with "/"`)
	case len(path) > maxLoginPath:
		return fmt.Errorf("has a path of %d bytes; at most %d are allowed", len(path), maxLoginPath)
	case strings.ContainsAny(path, "?#"):
		return errors.New("must have neither a query (?) nor a fragment (#)")
	case strings.Contains(path, "%"):
		return errors.New(`must not have "%" in its path; choose one of letters and digits, such as /callback`)
	case strings.ContainsFunc(path,
		func(r rune) bool { return !isAlphanumeric(r) && !strings.ContainsRune("/-._~!$&'()*+=:@", r) }):
		return errors.New("has a character in its path that browsers or gateways change; choose one of letters and digits, " +
			"such as /callback")
	case strings.Contains(path, "//") || strings.Contains(path+"/", "/./") || strings.Contains(path+"/", "/../"):
		return errors.New("must not have //, /./ or /../ in its path, which gateways change")
	}
	return nil
}
