package attack_test

import (
	"context"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// cookieKey is the secret from which the keys of the cookies are derived.
const cookieKey = "8Jc1vF3h0yQm2Wd7Zt5Rk9Xb4Ns6Lp0A"

// loginTarget is the gateway with services that require a login:
//
//	a.test   filter a, client a; /public is public
//	b.test   filter b, client b
//	r.test   filter r, client r, with refresh tokens
//	s.test   filter s, the client and the cookie secret of r.test
type loginTarget struct {
	idp       *testkit.OIDCProvider
	authority *testkit.Authority
	// browser has logged in at all of them as anna.
	browser *testkit.Browser
	// access and id are tokens of anna at client a, and other is an id_token at client b:
	// they are genuine, and the attacker has them.
	access, id, other string
}

// startLogins creates the services, until the end of the container.
func startLogins(ctx context.Context) *loginTarget {
	GinkgoHelper()
	var l loginTarget
	var err error
	l.authority, err = testkit.NewAuthority("test")
	Expect(err).NotTo(HaveOccurred())
	var clients []testkit.OIDCClient
	for _, id := range []string{"a", "b", "r"} {
		c := testkit.OIDCClient{ID: id, Secret: "secret-" + id, GrantTypes: []string{"authorization_code", "refresh_token"}}
		for _, host := range []string{"a.test", "b.test", "r.test", "s.test"} {
			if host == id+".test" || id == "r" {
				c.RedirectURIs = append(c.RedirectURIs, l.at(host, "/callback"))
			}
		}
		clients = append(clients, c)
	}
	l.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), l.authority, testkit.OIDCSettings{
		Clients: clients,
		Users:   map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{"email": "anna@a.test"}}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.idp.Kill()).To(Succeed()) })

	gw.add(ctx, "/secret", "Secret_name=idp-ca", "Secret_cert="+l.authority.PEM)
	gw.add(ctx, "/secret", "Secret_name=cookies", "Secret_value="+cookieKey)
	gw.add(ctx, "/upstream", "Upstream_name=idp", "Upstream_ip=localhost", "Upstream_port="+strconv.Itoa(l.idp.Port),
		"Upstream_protocol=tls", "Upstream_validation_cacertificate=idp-ca")
	l.protect(ctx, "a", "a", `"claim_headers":{"x-user":"email"}`)
	l.protect(ctx, "b", "b", `"claim_headers":{"x-user":"email"}`)
	refresh := `"scopes":["offline_access"],"authorization_endpoint":"` + l.idp.Issuer + `/auth?prompt=consent"`
	l.protect(ctx, "r", "r", refresh)
	l.protect(ctx, "s", "r", refresh)
	gw.add(ctx, "/service/a/route", "Route_Name=public", "Route_prefix=/public", `Route_config={"match":"segment","public":true}`)
	gw.link(ctx, "/service/a/route/public/upstream/blue?wait=applied")

	l.browser = testkit.NewBrowser(l.authority)
	DeferCleanup(l.browser.Close)
	for _, host := range []string{"a.test", "b.test", "r.test", "s.test"} {
		Eventually(func() (int, error) {
			v, err := l.browser.Clone().Do(ctx, testkit.Request{URL: l.at(host, "/")})
			return v.Status, err
		}).WithContext(ctx).Should(Equal(http.StatusFound), host)
		page, err := l.browser.Open(ctx, l.at(host, "/"))
		Expect(err).NotTo(HaveOccurred())
		if page.URL.Port() == strconv.Itoa(l.idp.Port) {
			page, err = l.browser.LogIn(ctx, page, "anna", "pw")
			Expect(err).NotTo(HaveOccurred())
		}
		Expect(page.Status).To(Equal(http.StatusOK), page.Body)
	}
	l.access, l.id = l.tokens(ctx, "a")
	_, l.other = l.tokens(ctx, "b")
	return &l
}

// protect creates a service with a certificate and a login filter, all with the same
// name.
func (l *loginTarget) protect(ctx context.Context, name, client, more string) {
	GinkgoHelper()
	pair, err := l.authority.Issue(testkit.CertificateOptions{Names: []string{name + ".test"}})
	Expect(err).NotTo(HaveOccurred())
	gw.addService(ctx, name, name+".test")
	gw.add(ctx, "/secret", "Secret_name="+name, "Secret_cert="+pair.Cert, "Secret_key="+pair.Key)
	gw.link(ctx, "/service/"+name+"/secret/"+name)
	gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=http_filter_oidc", fmt.Sprintf(`Filter_config={"client_id":%q,"client_secret":%q,
		"issuer":%q,"upstream":"idp","redirect_uri":"/callback","logout_uri":"/logout","cookie_secret":"cookies",%s}`, client, "secret-"+client, l.idp.Issuer, more))
	gw.link(ctx, "/service/"+name+"/filter/"+name)
	gw.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
}

// at returns a URL of a host of the gateway.
func (l *loginTarget) at(host, path string) string {
	return "https://" + host + ":" + strconv.Itoa(gw.httpsPort) + path
}

// begin sends a browser to the provider, on behalf of a client, and returns the URL to
// which the provider redirects it.
func (l *loginTarget) begin(ctx context.Context, b *testkit.Browser, address string) *url.URL {
	GinkgoHelper()
	callback := func(to *url.URL) bool { return to != nil && to.Port() == strconv.Itoa(gw.httpsPort) }
	for range 5 {
		v, err := b.Do(ctx, testkit.Request{URL: address})
		Expect(err).NotTo(HaveOccurred())
		to, err := v.Location()
		Expect(err).NotTo(HaveOccurred())
		Expect(to).NotTo(BeNil(), "%s: %d: %s", v.URL, v.Status, v.Body)
		if callback(to) {
			return to
		}
		address = to.String()
	}
	Fail("the provider does not send the browser back")
	return nil
}

// tokens returns anna's tokens for a client; the provider has a session of hers.
func (l *loginTarget) tokens(ctx context.Context, client string) (access, id string) {
	GinkgoHelper()
	const verifier = "a-verifier-of-at-least-43-characters-is-needed"
	sum := sha256.Sum256([]byte(verifier))
	callback := l.at(client+".test", "/callback")
	to := l.begin(ctx, l.browser, l.idp.Issuer+"/auth?"+url.Values{
		"client_id": {client}, "redirect_uri": {callback}, "response_type": {"code"}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}.Encode())
	v, err := l.browser.Do(ctx, testkit.Request{Method: http.MethodPost, URL: l.idp.Issuer + "/token", Form: url.Values{
		"grant_type": {"authorization_code"}, "code": {to.Query().Get("code")}, "redirect_uri": {callback}, "code_verifier": {verifier},
		"client_id": {client}, "client_secret": {"secret-" + client},
	}})
	Expect(err).NotTo(HaveOccurred())
	var t struct {
		Access string `json:"access_token"`
		ID     string `json:"id_token"`
	}
	Expect(json.Unmarshal([]byte(v.Body), &t)).To(Succeed())
	Expect(t.ID).NotTo(BeEmpty(), v.Body)
	return t.Access, t.ID
}

// key returns the key of the HMAC over the cookies of a filter, as the gateway derives it
// (ADR 0055).
func (l *loginTarget) key(filter, client string) string {
	GinkgoHelper()
	key, err := hkdf.Key(sha256.New, []byte(cookieKey), nil, "gatehouse login cookies\x00filter/"+filter+"\x00"+client+"\x00"+l.idp.Issuer, 32)
	Expect(err).NotTo(HaveOccurred())
	return hex.EncodeToString(key)
}

// suffix returns the suffix of the names of a filter's cookies.
func suffix(filter string) string {
	sum := sha256.Sum256([]byte("filter/" + filter))
	return "-" + hex.EncodeToString(sum[:4])
}

// pair is a cookie.
type pair struct{ name, value string }

// session returns anna's cookies for a host, with names before their suffix.
func (l *loginTarget) session(host string) []pair {
	GinkgoHelper()
	var list []pair
	for _, c := range l.browser.Cookies {
		if c.Host == host && c.Path == "/" {
			list = append(list, pair{c.Name, c.Value})
		}
	}
	Expect(len(list)).To(BeNumerically(">=", 4), "%v", list)
	return list
}

// forge returns a session of a filter, made by somebody who has a key and tokens.
func forge(key, filter, authority, access, id string) []pair {
	expires := strconv.FormatInt(time.Now().Add(time.Hour).Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte(strings.Join([]string{authority, expires, access, id, ""}, "\n")))
	return []pair{
		{"OauthHMAC" + suffix(filter), base64.StdEncoding.EncodeToString(mac.Sum(nil))},
		{"OauthExpires" + suffix(filter), expires}, {"BearerToken" + suffix(filter), access}, {"IdToken" + suffix(filter), id},
	}
}

// renamed returns cookies under the names of another filter.
func renamed(cookies []pair, from, to string) []pair {
	cookies = slices.Clone(cookies)
	for i := range cookies {
		cookies[i].name = strings.Replace(cookies[i].name, suffix(from), suffix(to), 1)
	}
	return cookies
}

// with returns cookies in which the one whose name begins with name has another value.
func with(cookies []pair, name, value string) []pair {
	cookies = slices.Clone(cookies)
	for i := range cookies {
		if strings.HasPrefix(cookies[i].name, name) {
			cookies[i].value = value
		}
	}
	return cookies
}

// without returns cookies except those whose names begin with one of names.
func without(cookies []pair, names ...string) []pair {
	return slices.DeleteFunc(slices.Clone(cookies), func(c pair) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.HasPrefix(c.name, name) })
	})
}

// flipped returns a text with one byte replaced, from the same alphabet.
func flipped(s string, at int) string {
	other := byte('A')
	if s[at] == 'A' {
		other = 'B'
	}
	if s[at] >= '0' && s[at] <= '9' {
		other = '0' + (s[at]-'0'+1)%10
	}
	return s[:at] + string(other) + s[at+1:]
}

// send sends a request over a connection for a host, byte by byte. Without a Host line,
// it is for that host.
func (l *loginTarget) send(ctx context.Context, sni, first string, cookies []pair, lines ...string) testkit.Answer {
	GinkgoHelper()
	pool := x509.NewCertPool()
	Expect(pool.AppendCertsFromPEM([]byte(l.authority.PEM))).To(BeTrue())
	dialer := &tls.Dialer{Config: &tls.Config{ServerName: sni, RootCAs: pool, MinVersion: tls.VersionTLS12}}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(gw.httpsPort)))
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	all := []string{first + " HTTP/1.1"}
	if !slices.ContainsFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Host:") }) {
		all = append(all, "Host: "+sni+":"+strconv.Itoa(gw.httpsPort))
	}
	var pairs []string
	for _, c := range cookies {
		pairs = append(pairs, c.name+"="+c.value)
	}
	if len(pairs) > 0 {
		all = append(all, "Cookie: "+strings.Join(pairs, "; "))
	}
	return exchange(conn, append(all, lines...)...)
}

// outcome describes an answer: "login" for a redirect to the provider, "page" if the
// backend answered, otherwise the status and the redirect.
func (l *loginTarget) outcome(a testkit.Answer) string {
	location := a.Header.Get("Location")
	switch {
	case a.Status == http.StatusFound && strings.HasPrefix(location, l.idp.Issuer+"/auth?"):
		return "login"
	case a.Status == http.StatusOK && a.Header.Get(testkit.BackendHeader) == gw.blue.Name:
		return "page"
	case location != "":
		return fmt.Sprintf("%d to %s", a.Status, location)
	}
	return strconv.Itoa(a.Status)
}

// backendSaw returns the request as the backend received it.
func backendSaw(a testkit.Answer) testkit.Echo {
	GinkgoHelper()
	var e testkit.Echo
	Expect(json.Unmarshal([]byte(a.Body), &e)).To(Succeed(), a.Body)
	return e
}
