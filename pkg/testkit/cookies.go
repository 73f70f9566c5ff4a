package testkit

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Cookie is a cookie that a browser keeps.
type Cookie struct {
	// Cookie is the server's cookie, with its attributes.
	http.Cookie
	// Host is the host that set it or, with a Domain, that domain.
	Host string
	// HostOnly says that other hosts of the domain do not receive it.
	HostOnly bool

	expires time.Time
}

// Cookies are the cookies of a browser, in the order in which they were set.
type Cookies []Cookie

// maxCookie is the longest pair of name and value that browsers keep.
const maxCookie = 4096

// Named returns those with a name that starts with a prefix.
func (c Cookies) Named(prefix string) Cookies {
	return slices.DeleteFunc(slices.Clone(c), func(k Cookie) bool { return !strings.HasPrefix(k.Name, prefix) })
}

// store adds the cookies that an answer sets: as in Chromium, none that is too long,
// and no Secure one from a URL that is not secure.
func (c Cookies) store(u *url.URL, header http.Header) Cookies {
	for _, line := range header.Values("Set-Cookie") {
		set, err := http.ParseSetCookie(line)
		if err != nil || len(set.Name)+len(set.Value) > maxCookie || set.Secure && u.Scheme != "https" {
			continue
		}
		k := Cookie{Cookie: *set, Host: u.Hostname(), HostOnly: true}
		if domain := strings.TrimPrefix(strings.ToLower(set.Domain), "."); domain != "" {
			if !within(k.Host, domain) {
				continue
			}
			k.Host, k.HostOnly = domain, false
		}
		if !strings.HasPrefix(k.Path, "/") {
			k.Path = defaultPath(u)
		}
		switch {
		case k.MaxAge > 0:
			k.expires = time.Now().Add(time.Duration(k.MaxAge) * time.Second)
		case k.MaxAge == 0:
			k.expires = k.Expires
		}
		c = slices.DeleteFunc(c, func(old Cookie) bool {
			return old.Name == k.Name && old.Host == k.Host && old.Path == k.Path
		})
		if k.MaxAge >= 0 && k.alive() {
			c = append(c, k)
		}
	}
	return c
}

// sent returns the cookies for a request. initiator is the host of the page that sends
// it; empty for an address that a person enters.
func (c Cookies) sent(method string, u *url.URL, initiator string) Cookies {
	crossSite := initiator != "" && site(initiator) != site(u.Hostname())
	safe := method == http.MethodGet || method == http.MethodHead
	sent := slices.DeleteFunc(slices.Clone(c), func(k Cookie) bool {
		switch {
		case !k.alive(), k.Secure && u.Scheme != "https" && u.Hostname() != "localhost",
			k.HostOnly && k.Host != u.Hostname(), !k.HostOnly && !within(u.Hostname(), k.Host), !covers(k.Path, u.Path):
			return true
		case crossSite && k.SameSite == http.SameSiteStrictMode:
			return true
		}
		// Without SameSite it counts as Lax.
		return crossSite && !safe && k.SameSite != http.SameSiteNoneMode
	})
	slices.SortStableFunc(sent, func(a, b Cookie) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	return sent
}

// header returns the value of the header Cookie.
func (c Cookies) header() string {
	pairs := make([]string, len(c))
	for i, k := range c {
		pairs[i] = k.Name + "=" + k.Value
	}
	return strings.Join(pairs, "; ")
}

func (k Cookie) alive() bool { return k.expires.IsZero() || k.expires.After(time.Now()) }

// covers follows RFC 6265, 5.1.4.
func covers(cookie, path string) bool {
	if path == "" {
		path = "/"
	}
	return path == cookie || strings.HasPrefix(path, cookie) &&
		(strings.HasSuffix(cookie, "/") || path[len(cookie)] == '/')
}

func defaultPath(u *url.URL) string {
	if i := strings.LastIndexByte(u.Path, '/'); i > 0 {
		return u.Path[:i]
	}
	return "/"
}

func within(host, domain string) bool {
	return host == domain || strings.HasSuffix(host, "."+domain)
}

// site returns the registrable domain, for domains directly below a top-level label:
// the hosts of tests.
func site(host string) string {
	labels := strings.Split(host, ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
