package e2e_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// idp is the identity provider of all specs of logins: one process, to which each spec
// adds its clients.
var idp *testkit.OIDCProvider

// startProvider runs it until the end of the suite.
func startProvider() {
	GinkgoHelper()
	authority, err := testkit.NewAuthority("provider")
	Expect(err).NotTo(HaveOccurred())
	idp, err = testkit.StartOIDCProvider(limit(), GinkgoT().TempDir(), authority, testkit.OIDCSettings{
		Users: map[string]testkit.OIDCUser{
			"anna": {Password: "pw-anna", Claims: map[string]any{
				"email": "anna@shop.test", "groups": []string{"staff", "cooks"}, "level": 7, "realm_access": map[string]any{"roles": []string{"admin"}},
			}},
			"bert": {Password: "pw-bert", Claims: map[string]any{"email": "bert@shop.test", "groups": []string{"guests"}, "level": 1}},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(idp.Kill()).To(Succeed()) })
}

// loginLab is a gateway with HTTPS in front of blue, whose upstream idp is the provider.
type loginLab struct {
	secured
	blue    *testkit.Backend
	clients []testkit.OIDCClient
}

// oddSecret has characters that a form must encode.
const oddSecret = "se:cret/+basic %&%41"

// cookieKey is a key for the HMAC of cookies.
const cookieKey = "8Jc1vF3h0yQm2Wd7Zt5Rk9Xb4Ns6Lp0A"

func newLoginLab(args ...string) *loginLab {
	GinkgoHelper()
	s, blue := secure(args...)
	l := &loginLab{secured: s, blue: blue}
	post(l.api, "/secret", "Secret_name=idp-ca", "Secret_cert="+idp.Authority.PEM)
	post(l.api, "/upstream", "Upstream_name=idp", "Upstream_ip=localhost", "Upstream_port="+strconv.Itoa(idp.Port),
		"Upstream_protocol=tls", "Upstream_validation_cacertificate=idp-ca")
	post(l.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieKey)
	no := false
	Expect(idp.Change(limit(), testkit.OIDCSettings{
		Consent: &no, RotateRefreshTokens: &no, Faults: map[string]testkit.OIDCFault{"none": {}}, TTL: map[string]int{"AccessToken": 3600},
	})).To(Succeed())
	return l
}

// at returns a URL of a host of the gateway.
func (l *loginLab) at(host, path string) string {
	return "https://" + host + ":" + strconv.Itoa(l.httpsPort) + path
}

// register creates a client of the provider, for hosts of the gateway.
func (l *loginLab) register(id string, hosts ...string) {
	GinkgoHelper()
	c := testkit.OIDCClient{ID: id, Secret: oddSecret, GrantTypes: []string{"authorization_code", "refresh_token"}}
	for _, host := range hosts {
		c.RedirectURIs = append(c.RedirectURIs, l.at(host, "/callback"))
		c.PostLogoutRedirectURIs = append(c.PostLogoutRedirectURIs, l.at(host, "/"))
	}
	l.clients = append(l.clients, c)
	Expect(idp.Change(limit(), testkit.OIDCSettings{Clients: l.clients})).To(Succeed())
}

// filter creates a login filter with these fields and the required ones.
func (l *loginLab) filter(name, client string, fields map[string]any) {
	GinkgoHelper()
	config := map[string]any{
		"client_id": client, "client_secret": oddSecret, "issuer": idp.Issuer, "upstream": "idp",
		"redirect_uri": "/callback", "cookie_secret": "cookies", "logout_uri": "/logout",
	}
	for field, value := range fields {
		if value == nil {
			delete(config, field)
			continue
		}
		config[field] = value
	}
	text, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	post(l.api, "/filter", "Filter_name="+name, "Filter_type=http_filter_oidc", "Filter_config="+string(text))
}

// protect creates a service for a host, with a certificate, a client and a login filter
// of the same name, and waits until a login starts there.
func (l *loginLab) protect(name, host string, fields map[string]any) {
	GinkgoHelper()
	l.serve(name, host, host)
	l.register(name, host)
	l.filter(name, name, fields)
	applied(l.api, http.MethodPost, "/service/"+name+"/filter/"+name)
	l.awaitLogin(host)
}

// awaitLogin waits until a login starts at a host: until then, the provider may be
// unknown.
func (l *loginLab) awaitLogin(host string) {
	GinkgoHelper()
	Eventually(func() (string, error) {
		v, err := l.browser().Do(limit(), testkit.Request{URL: l.at(host, "/")})
		return v.Header.Get("Location"), err
	}).Should(HavePrefix(idp.Issuer + "/auth?"))
}

// browser returns a browser without cookies.
func (l *loginLab) browser() *testkit.Browser {
	b := testkit.NewBrowser(l.authority, idp.Authority)
	DeferCleanup(b.Close)
	return b
}

// open opens a page, and logs a user in if the provider requires it.
func (l *loginLab) open(b *testkit.Browser, host, path, user string) testkit.Visit {
	GinkgoHelper()
	v, err := b.Open(limit(), l.at(host, path))
	Expect(err).NotTo(HaveOccurred())
	if v.URL.Port() == strconv.Itoa(idp.Port) {
		Expect(user).NotTo(BeEmpty(), "%s is asked to log in at %s", host, v.URL)
		v, err = b.LogIn(limit(), v, user, "pw-"+user)
		Expect(err).NotTo(HaveOccurred())
	}
	return v
}

// loggedIn returns a browser in which a user has logged in at hosts.
func (l *loginLab) loggedIn(user string, hosts ...string) *testkit.Browser {
	GinkgoHelper()
	b := l.browser()
	for _, host := range hosts {
		v := l.open(b, host, "/", user)
		Expect(v.Status).To(Equal(200), "%s: %s", v.URL, v.Body)
	}
	return b
}

// ask sends one request of a browser; header has Name: value pairs.
func (l *loginLab) ask(b *testkit.Browser, method, host, path string, header ...string) testkit.Visit {
	GinkgoHelper()
	v, err := b.Do(limit(), testkit.Request{Method: method, URL: l.at(host, path), Header: headers(header...)})
	Expect(err).NotTo(HaveOccurred())
	return v
}

func headers(pairs ...string) http.Header {
	h := http.Header{"Accept": {"text/html,*/*"}}
	for _, pair := range pairs {
		name, value, _ := strings.Cut(pair, ": ")
		h.Set(name, value)
	}
	return h
}

// echo returns the request as the backend received it.
func echo(v testkit.Visit) testkit.Echo {
	GinkgoHelper()
	var e testkit.Echo
	Expect(v.Status).To(Equal(200), "%s %s: %s", v.Method, v.URL, v.Body)
	Expect(json.Unmarshal([]byte(v.Body), &e)).To(Succeed(), v.Body)
	return e
}

// visits returns the paths of a host that a browser requested, with the statuses.
func visits(b *testkit.Browser, port int) []string {
	var list []string
	for _, v := range b.Visits {
		if v.URL.Port() == strconv.Itoa(port) {
			list = append(list, strconv.Itoa(v.Status)+" "+v.URL.Path)
		}
	}
	return list
}

// calls returns how many requests the provider has received for a path.
func calls(path string) int {
	GinkgoHelper()
	list, err := idp.Requests(limit())
	Expect(err).NotTo(HaveOccurred())
	n := 0
	for _, r := range list {
		if r.Path == path {
			n++
		}
	}
	return n
}

// set returns the cookies that an answer sets, by the name before its suffix; it fails if
// two suffixes differ.
func set(v testkit.Visit) map[string]*http.Cookie {
	GinkgoHelper()
	cookies, suffixes := map[string]*http.Cookie{}, map[string]bool{}
	for _, line := range v.Header.Values("Set-Cookie") {
		c, err := http.ParseSetCookie(line)
		Expect(err).NotTo(HaveOccurred(), line)
		// Envoy adds .FLOW to those of a flow, and also sets them without it.
		name, rest, _ := strings.Cut(c.Name, "-")
		suffix, flow, _ := strings.Cut(rest, ".")
		suffixes[suffix] = true
		if flow != "" {
			name += ".FLOW"
		}
		cookies[name] = c
	}
	Expect(len(suffixes)).To(BeNumerically("<=", 1), "%v", v.Header.Values("Set-Cookie"))
	Expect(suffixes).NotTo(HaveKey(""))
	return cookies
}

// query returns the parameters in the target of a redirect.
func query(v testkit.Visit) url.Values {
	GinkgoHelper()
	to, err := v.Location()
	Expect(err).NotTo(HaveOccurred())
	Expect(to).NotTo(BeNil(), "status %d: %s", v.Status, v.Body)
	return to.Query()
}

// raw sends a GET request with unchanged headers, over HTTP/1.1, and returns the first
// line of the answer.
func (l *loginLab) raw(host, target string, header ...string) string {
	GinkgoHelper()
	conn, err := l.handshake(host, func(c *tls.Config) { c.NextProtos = nil })
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = conn.Close() }()
	lines := append([]string{"GET " + target + " HTTP/1.1", "Host: " + host + ":" + strconv.Itoa(l.httpsPort)}, header...)
	_, err = conn.Write([]byte(strings.Join(lines, "\r\n") + "\r\n\r\n"))
	Expect(err).NotTo(HaveOccurred())
	line, err := bufio.NewReader(conn).ReadString('\n')
	Expect(err).NotTo(HaveOccurred())
	return strings.TrimSpace(line)
}
