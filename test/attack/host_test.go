package attack_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// The expected results for a host.
const (
	// same is the answer of the service with that host.
	same = -1
	// sameUnsent is the answer of that service too, but 401 where it would send the client to log in: no login
	// returns to such a host.
	sameUnsent = -2
	// wider is the answer of the service for every host.
	wider = http.StatusOK
)

// hostTry is one way to write the host of a request; NAME stands for that of
// the service.
type hostTry struct {
	name string
	// lines are the first ones of an HTTP/1.1 request, or all headers except the usual
	// ones of an HTTP/2 request.
	lines []string
	want  int
}

// host returns a request with a Host header for each value.
func host(name string, want int, values ...string) hostTry {
	t := hostTry{name, []string{"GET / HTTP/1.1"}, want}
	for _, v := range values {
		t.lines = append(t.lines, "Host: "+v)
	}
	return t
}

// hosts returns ways to write a host in HTTP/1.1.
func hosts() []hostTry {
	return append([]hostTry{
		host("a trailing dot", same, "NAME."),
		host("the same header twice", 400, "NAME", "NAME"),
		host("another host behind", 400, "NAME", "other.example"),
		host("another host before", 400, "other.example", "NAME"),
		host("two hosts in one header", 400, "NAME,other.example"),
		host("a trailing dot and a port", same, "NAME.:8080"),
		host("two trailing dots", 400, "NAME.."),
		host("an upper-case name with a trailing dot", same, "N-A-M-E."),
		{"an absolute URL with a trailing dot", []string{"GET http://NAME./ HTTP/1.1", "Host: other.example"}, same},
		host("nothing odd", same, "NAME"),
		host("upper case", same, "N-A-M-E"),
		host("a port", same, "NAME:80"),
		host("a port that is none", sameUnsent, "NAME:99999"),
		host("a port of zeros", same, "NAME:0080"),
		host("an empty port", sameUnsent, "NAME:"),
		host("a trailing dot and an empty port", sameUnsent, "NAME.:"),
		host("a trailing dot behind the port", same, "NAME:80."),
		host("trailing dots before and behind the port", 400, "NAME.:80."),
		host("two trailing dots and a port", 400, "NAME..:80"),
		host("two ports", 400, "NAME:80:81"),
		host("a trailing dot and two ports", 400, "NAME.:80:81"),
		host("a port of letters", 400, "NAME:x"),
		host("a port with a sign", 400, "NAME:+80"),
		host("user information", 400, "user@NAME"),
		host("a password", 400, "user:secret@NAME"),
		host("an escaped dot", 400, "NAME%2e"),
		host("an escaped letter", 400, "%NAME"),
		host("a path", 400, "NAME/x"),
		host("a semicolon", 400, "NAME;x"),
		host("a space behind", same, "NAME "),
		host("a tab behind", same, "NAME\t"),
		host("a space within", 400, "NAME x"),
		host("a space before the port", 400, "NAME :80"),
		host("a backslash", 400, `NAME\x`),
		host("a question mark", 400, "NAME?x"),
		host("a number sign", 400, "NAME#x"),
		host("a byte above ASCII", 400, "NAME\xad"),
		host("a full-width dot", 400, "NAME\u3002"),
		host("a leading dot", 400, ".NAME"),
		host("a star", 400, "*"),
		host("a name with a star", 400, "*.NAME"),
		host("brackets", 400, "[NAME]"),
		host("nothing", 400, ""),
		host("a dot alone", 400, "."),
		host("a port alone", 400, ":80"),
		host("no header", 400),
		// Envoy combines the two into one value, so that every backend sees the same.
		host("an empty header before", same, "", "NAME"),
		host("an empty header behind", same, "NAME", ""),
		host("an address", wider, "127.0.0.1"),
		host("an address with a trailing dot", wider, "127.0.0.1."),
		host("an IPv6 address", wider, "[::1]"),
		host("an IPv6 address with a port", wider, "[::1]:8080"),
		host("an IPv6 address without brackets", 400, "::1"),
		host("an IPv6 address with a zone", 400, "[fe80::1%25lo]"),
		host("another name in punycode", wider, "xn--nme-1na.test"),
		host("an underscore", wider, "a_b.test"),
		host("a name that ends like it", wider, "xNAME"),
		host("a name below it", wider, "x.NAME"),
	}, absoluteHosts()...)
}

// absoluteHosts have the host in the first line, which takes precedence (RFC 9112
// section 3.2.2).
func absoluteHosts() []hostTry {
	return []hostTry{
		{"an absolute URL", []string{"GET http://NAME/ HTTP/1.1", "Host: other.example"}, same},
		{"an absolute URL without a Host", []string{"GET http://NAME/ HTTP/1.1"}, same},
		{"an absolute URL and two Hosts", []string{"GET http://NAME/ HTTP/1.1", "Host: a.example", "Host: b.example"}, same},
		{"an absolute URL with a port", []string{"GET http://NAME.:8080/ HTTP/1.1", "Host: other.example"}, same},
		{"an absolute URL with a user", []string{"GET http://user@NAME/ HTTP/1.1", "Host: other.example"}, same},
		{"an absolute URL in upper case", []string{"GET HTTP://N-A-M-E/ HTTP/1.1", "Host: other.example"}, same},
		{"an absolute URL with two hosts", []string{"GET http://NAME,other.example/ HTTP/1.1", "Host: NAME"}, 400},
		{"an absolute URL with two trailing dots", []string{"GET http://NAME../ HTTP/1.1", "Host: NAME"}, 400},
		{"an absolute URL of another scheme", []string{"GET ftp://NAME/ HTTP/1.1", "Host: other.example"}, 400},
		{"an absolute URL over TLS, without TLS", []string{"GET https://NAME/ HTTP/1.1", "Host: other.example"}, 403},
		{"a host where the path begins", []string{"GET //NAME/ HTTP/1.1", "Host: other.example"}, wider},
		{"HTTP/1.0", []string{"GET / HTTP/1.0", "Host: NAME."}, 426},
	}
}

// hosts2 returns ways to write a host in HTTP/2.
func hosts2() []hostTry {
	return []hostTry{
		{"a trailing dot", []string{":authority: NAME."}, same},
		{"another Host beside it", []string{":authority: NAME", "host: other.example"}, same},
		{"the Host beside another", []string{":authority: other.example", "host: NAME"}, wider},
		{"a Host alone, with a trailing dot", []string{"host: NAME."}, same},
		{"two hosts in one", []string{":authority: NAME,other.example"}, 400},
		{"two Hosts", []string{"host: NAME", "host: other.example"}, dead},
		{"two Hosts beside it", []string{":authority: NAME", "host: a.example", "host: b.example"}, dead},
		{"twice", []string{":authority: NAME", ":authority: other.example"}, dead},
		{"nothing odd", []string{":authority: NAME"}, same},
		{"a trailing dot and a port", []string{":authority: NAME.:80"}, same},
		{"two trailing dots", []string{":authority: NAME.."}, 400},
		{"upper case", []string{":authority: N-A-M-E."}, same},
		{"user information", []string{":authority: user@NAME"}, dead},
		{"nothing", []string{":authority: "}, dead},
		{"no host", nil, dead},
	}
}

// as replaces NAME in the lines.
func (t hostTry) as(name string) []string {
	lines := make([]string, len(t.lines))
	for i, l := range t.lines {
		l = strings.ReplaceAll(l, "N-A-M-E", strings.ToUpper(name))
		l = strings.ReplaceAll(l, "%NAME", "%63"+name[1:])
		lines[i] = strings.ReplaceAll(l, "NAME", name)
	}
	return lines
}

var _ = Describe("A host", func() {
	// guarded adds a service that a login closes, and one whose limit is used up.
	guarded := func(ctx context.Context) {
		GinkgoHelper()
		gw.add(ctx, "/secret", "Secret_name=h", "Secret_value=0123456789abcdef0123456789abcdef")
		gw.add(ctx, "/filter", "Filter_name=login", "Filter_type=http_filter_oidc", `Filter_config={"client_id":"c","client_secret":"s",`+
			`"authorization_endpoint":"https://login.example/a","token_endpoint":"https://login.example/t","redirect_uri":"https://staff.test/c","cookie_secret":"h"}`)
		gw.addService(ctx, "staff", "staff.test")
		gw.link(ctx, "/service/staff/filter/login")
		gw.add(ctx, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit",
			`config={"domain":"edge","descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":1}}]}`)
		gw.add(ctx, "/filter", "Filter_name=once", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		gw.addService(ctx, "limited", "limited.test")
		gw.link(ctx, "/service/limited/filter/once")
		gw.link(ctx, "/proxy/gw/service/staff")
		gw.link(ctx, "/proxy/gw/service/limited?wait=applied")
		// Envoy accepts a configuration before all of its workers have it.
		for name, status := range map[string]int{"staff.test": http.StatusFound, "limited.test": http.StatusTooManyRequests} {
			Eventually(func() int { return gw.raw(ctx, "GET / HTTP/1.1", "Host: "+name).Status }).
				WithContext(ctx).MustPassRepeatedly(10).Should(Equal(status), "%s", name)
		}
	}
	// verdict says what is wrong with an answer; "" if nothing is.
	verdict := func(t hostTry, own, got int) string {
		want := t.want
		switch {
		case want == sameUnsent && own == http.StatusFound:
			want = http.StatusUnauthorized
		case want == same || want == sameUnsent:
			want = own
		}
		if got == want {
			return ""
		}
		return fmt.Sprintf("%s: %q: %d instead of %d\n", t.name, t.lines, got, want)
	}

	It("matches its service however it is written, or none", func(ctx SpecContext) {
		guarded(ctx)
		wrong := ""
		for name, own := range map[string]int{"staff.test": http.StatusFound, "limited.test": http.StatusTooManyRequests} {
			for _, t := range some(9, hosts()) {
				wrong += verdict(t, own, gw.raw(ctx, t.as(name)...).Status)
			}
			for _, t := range some(6, hosts2()) {
				headers := append([]string{":method: GET", ":scheme: http", ":path: /"}, t.as(name)...)
				wrong += verdict(t, own, gw.raw2(ctx, headers...).Status)
			}
		}
		Expect(wrong).To(BeEmpty())
	}, SpecTimeout(3*time.Minute))
})
