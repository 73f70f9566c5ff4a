package config

import (
	"errors"
	"net"
	"net/netip"
	"net/url"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
)

// errNotAllowed means that a value is not what Setting.allowed says.
var errNotAllowed = errors.New("not allowed")

func anyText(s string) (string, error) {
	if strings.ContainsRune(s, 0) {
		return "", errNotAllowed
	}
	return s, nil
}

func boolean(s string) (bool, error) { return strconv.ParseBool(s) }

func word(s string) (string, error) {
	return matching(s, `^[A-Za-z][A-Za-z0-9_]{0,62}$`)
}

// proxyName follows rest-api.md, "Names", so that the object can be created.
func proxyName(s string) (string, error) {
	if slices.Contains([]string{"dump", "copy", "deepcopy", "copyroute", ".", ".."}, s) {
		return "", errNotAllowed
	}
	return matching(s, `^[A-Za-z0-9._-]{1,253}$`)
}

func matching(s, expr string) (string, error) {
	if !regexp.MustCompile(expr).MatchString(s) {
		return "", errNotAllowed
	}
	return s, nil
}

func port(s string) (int, error) {
	n, err := portOrZero(s)
	if n == 0 {
		return 0, errNotAllowed
	}
	return n, err
}

// hops reads the number of proxies that a proxy object may have in front of it.
func hops(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 8)
	if n > 10 {
		return 0, errNotAllowed
	}
	return int(n), err
}

func portOrZero(s string) (int, error) {
	n, err := strconv.ParseUint(s, 10, 16)
	return int(n), err
}

// hostOf returns the host of HOST:PORT.
func hostOf(s string) (string, error) {
	host, p, err := net.SplitHostPort(s)
	if err != nil {
		return "", err
	}
	_, err = portOrZero(p)
	return host, err
}

// listenAddr accepts any host, or none for every address of the machine.
func listenAddr(s string) (string, error) {
	host, err := hostOf(s)
	if err != nil || strings.ContainsAny(host, " /@") {
		return "", errNotAllowed
	}
	return s, nil
}

// remoteAddr accepts the address of another server, or nothing.
func remoteAddr(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	host, err := hostOf(s)
	if err != nil {
		return "", errNotAllowed
	}
	if _, err := port(s[strings.LastIndexByte(s, ':')+1:]); err != nil {
		return "", errNotAllowed
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.Zone() == "" {
		return s, nil
	}
	if _, err := matching(host, `^[A-Za-z0-9_]([A-Za-z0-9._-]{0,252})$`); err != nil {
		return "", errNotAllowed
	}
	return s, nil
}

// ipPort accepts an IP address or nothing: Envoy does not resolve names there.
func ipPort(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	_, err := netip.ParseAddrPort(s)
	return s, err
}

// loopbackAddr accepts an IP address that only this machine reaches, or nothing. It
// accepts no name, because the address of a name may change.
func loopbackAddr(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	addr, err := netip.ParseAddrPort(s)
	if err != nil || !addr.Addr().IsLoopback() {
		return "", errNotAllowed
	}
	return s, nil
}

// socketPath accepts a path that fits in the address of a Unix socket, or nothing.
func socketPath(s string) (string, error) {
	if s != "" && (!path.IsAbs(s) || len(s) > 107 || strings.ContainsFunc(s, unicode.IsControl)) {
		return "", errNotAllowed
	}
	return s, nil
}

func ipAddress(s string) (string, error) {
	ip, err := netip.ParseAddr(s)
	if err != nil || ip.Zone() != "" {
		return "", errNotAllowed
	}
	return s, nil
}

func databaseURL(s string) (string, error) {
	if s == "" {
		return s, nil
	}
	u, err := url.Parse(s)
	if err != nil {
		return "", errNotAllowed
	}
	switch u.Scheme {
	case "sqlite":
		if u.Host != "" || !path.IsAbs(u.Path) || strings.HasSuffix(u.Path, "/") {
			return "", errNotAllowed
		}
	case "postgres", "postgresql":
		if u.Opaque != "" {
			return "", errNotAllowed
		}
	default:
		return "", errNotAllowed
	}
	return s, nil
}

// hostNames reads a comma-separated list; empty means none.
func hostNames(s string) ([]string, error) {
	var list []string
	for name := range strings.SplitSeq(s, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if name == "" && s == "" {
			return nil, nil
		}
		if _, err := matching(name, `^[a-z0-9_]([a-z0-9._-]{0,252})$`); err != nil {
			return nil, err
		}
		list = append(list, name)
	}
	return list, nil
}

// program reads an absolute path; empty means none.
func program(s string) (string, error) {
	if s != "" && !filepath.IsAbs(s) || strings.ContainsRune(s, 0) {
		return "", errNotAllowed
	}
	return s, nil
}

// directories reads a comma-separated list of absolute paths; empty means none.
func directories(s string) (list []string, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		dir := filepath.Clean(strings.TrimSpace(one))
		if !filepath.IsAbs(dir) || strings.ContainsRune(dir, 0) {
			return nil, errNotAllowed
		}
		list = append(list, dir)
	}
	return list, nil
}

// addresses reads a comma-separated list; empty means none.
func addresses(s string) (list []egress.Entry, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		e, err := egress.ParseEntry(strings.TrimSpace(one))
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, nil
}

// metricsURLs reads a comma-separated list; empty means none. The default path is that
// of Prometheus.
func metricsURLs(s string) (list []*url.URL, err error) {
	if s == "" {
		return nil, nil
	}
	for one := range strings.SplitSeq(s, ",") {
		u, err := httpURL(strings.TrimSpace(one), "/metrics")
		if err != nil {
			return nil, err
		}
		list = append(list, u)
	}
	return list, nil
}

// httpURL reads a URL without a user. path is its path if it has none.
func httpURL(s, path string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil ||
		u.Fragment != "" {
		return nil, errNotAllowed
	}
	if p := u.Port(); p != "" {
		if _, err := port(p); err != nil {
			return nil, errNotAllowed
		}
	}
	if u.Path == "" {
		u.Path = path
	}
	return u, nil
}

// collectorURL reads the URL of a collector; empty means none.
func collectorURL(path string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == "" {
			return "", nil
		}
		u, err := httpURL(s, path)
		if err != nil || u.RawQuery != "" {
			return "", errNotAllowed
		}
		return u.String(), nil
	}
}

// minAdminToken is the minimum length of the admin token: people choose it.
const minAdminToken = 16

// adminToken checks a token: it must fit into a header and be hard to guess.
func adminToken(s string) error {
	if len(s) < minAdminToken {
		return errors.New("the admin token has fewer than 16 characters; make one with: openssl rand -hex 32")
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the admin token may contain only visible ASCII characters, and no space")
	}
	return nil
}

func keepAge(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if err != nil || d < time.Minute {
		return 0, errNotAllowed
	}
	return d, nil
}

// durationWithin returns the parser of a duration from low to high.
func durationWithin(low, high time.Duration) func(string) (time.Duration, error) {
	return func(s string) (time.Duration, error) {
		d, err := time.ParseDuration(s)
		if err != nil || d < low || d > high {
			return 0, errNotAllowed
		}
		return d, nil
	}
}

func keepEntries(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > 100_000_000 {
		return 0, errNotAllowed
	}
	return n, nil
}
