package newcomer_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// guide runs the commands of docs/login.md against a gateway and a provider.
type guide struct {
	gateway
	idp     *testkit.OIDCProvider
	backend *testkit.Backend
	home    string
}

func newGuide(ctx SpecContext) guide {
	GinkgoHelper()
	g := guide{gateway: standalone()}
	var err error
	g.backend, err = testkit.StartBackend("web", testkit.BackendOptions{})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(g.backend.Close)
	_, port, _ := strings.Cut(g.https, ":")
	g.home = "https://shop.test:" + port
	authority, err := testkit.NewAuthority("login")
	Expect(err).NotTo(HaveOccurred())
	g.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{
			ID: "shop", Secret: "the secret of the client", RedirectURIs: []string{g.home + "/callback"}, PostLogoutRedirectURIs: []string{g.home + "/"},
		}},
		Users: map[string]testkit.OIDCUser{
			"ann": {Password: "pw", Claims: map[string]any{"email": "ann@shop.test", "groups": []string{"staff", "buyers"}}},
			"bob": {Password: "pw", Claims: map[string]any{"email": "bob@shop.test", "groups": []string{"buyers"}}},
			"eve": {Password: "pw", Claims: map[string]any{"email": strings.Repeat("e", 1500)}},
			"max": {Password: "pw", Claims: map[string]any{"email": strings.Repeat("m", 3000)}},
		},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(g.idp.Kill()).To(Succeed()) })
	write(g.dir, "client.secret", "the secret of the client\n") // as an editor saves it
	write(g.dir, "login-ca.pem", authority.PEM)
	return g
}

// do runs a block, and returns the output of all its commands.
func (g guide) do(block []string) string {
	GinkgoHelper()
	script := "set -e\nexport GATEHOUSE_SERVER=http://127.0.0.1:1323\n" + strings.Join(block, "\n")
	out, err := g.run(script, "https://login.example.com", g.idp.Issuer,
		"Upstream_ip=login.example.com", "Upstream_ip=127.0.0.1 -d Upstream_validation_subjectname=localhost",
		"Upstream_port=443", "Upstream_port="+strconv.Itoa(g.idp.Port), "Upstream_port=9000", "Upstream_port="+strconv.Itoa(g.backend.Port))
	Expect(err).NotTo(HaveOccurred(), "%s\n%s", script, out)
	Expect(out).NotTo(ContainSubstring("urn:gatehouse:problem"), script)
	return out
}

// section runs all blocks of a section.
func (g guide) section(heading string, blocks int) (out []string) {
	GinkgoHelper()
	list := blocksOf("../../docs/login.md", heading)
	Expect(list).To(HaveLen(blocks), heading)
	for _, block := range list {
		out = append(out, g.do(block))
	}
	return out
}

func (g guide) browser() *testkit.Browser {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(g.dir, "shop.crt"))
	Expect(err).NotTo(HaveOccurred())
	shop, err := testkit.ReadAuthority(string(text))
	Expect(err).NotTo(HaveOccurred())
	b := testkit.NewBrowser(shop, g.idp.Authority)
	DeferCleanup(b.Close)
	return b
}

// awaitLogin waits until the service requires a login: a provider may answer late.
func (g guide) awaitLogin(ctx SpecContext) {
	GinkgoHelper()
	b := g.browser()
	Eventually(func() (int, error) {
		v, err := b.Do(ctx, testkit.Request{URL: g.home + "/"})
		return v.Status, err
	}).Should(Equal(302))
}

// expectCookies compares the cookies of a browser that has logged in with the table.
func (g guide) expectCookies(b *testkit.Browser) {
	GinkgoHelper()
	set := map[string]string{}
	for _, v := range b.Visits {
		for _, c := range (&http.Response{Header: v.Header}).Cookies() {
			name, suffix, _ := strings.Cut(c.Name, "-")
			name, _, _ = strings.Cut(name, ".")
			if v.URL.Hostname() != "shop.test" || c.Value == "deleted" {
				continue
			}
			Expect(suffix).To(MatchRegexp(`^[0-9a-f]{8}(\.|$)`), c.Name)
			Expect(c.Secure && c.HttpOnly && c.SameSite == http.SameSiteLaxMode && c.Domain == "").To(BeTrue(), c.Raw)
			set[name] = fmt.Sprint(c.Path, " ", c.MaxAge)
		}
	}
	// The provider's tokens are valid for an hour.
	Expect(set).To(HaveLen(6))
	for name, want := range map[string]string{
		"OauthNonce": "^/callback 600$", "CodeVerifier": "^/callback 600$", "OauthHMAC": "^/ 3600$", "OauthExpires": "^/ 3600$", "BearerToken": "^/ 3600$",
		"IdToken": "^/ (3600|359[0-9])$", // it was issued a moment before
	} {
		Expect(set).To(HaveKeyWithValue(name, MatchRegexp(want)))
	}
	for _, c := range b.Cookies {
		if c.Host == "shop.test" {
			Expect(c.Path).To(Equal("/"), "the cookies of the finished login are deleted: %s", c.Name)
		}
	}
}

// logIn opens a page and logs in.
func (g guide) logIn(ctx SpecContext, b *testkit.Browser, name string) testkit.Visit {
	GinkgoHelper()
	page, err := b.Open(ctx, g.home+"/cart?a=1")
	Expect(err).NotTo(HaveOccurred())
	Expect(page.URL.Host).To(Equal("localhost:"+strconv.Itoa(g.idp.Port)), page.Body)
	back, err := b.LogIn(ctx, page, name, "pw")
	Expect(err).NotTo(HaveOccurred())
	Expect(back.URL.String()).To(Equal(g.home + "/cart?a=1"))
	return back
}

// seen returns the headers that the backend has received.
func seen(page testkit.Visit) http.Header {
	GinkgoHelper()
	var body struct{ Headers http.Header }
	Expect(json.Unmarshal([]byte(page.Body), &body)).To(Succeed(), page.Body)
	return body.Headers
}

var _ = Describe("docs/login.md", func() {
	It("leads to a login in ten minutes, and to everything else that it explains", func(ctx SpecContext) {
		g := newGuide(ctx)
		list := blocksOf("../../docs/login.md", "A login in ten minutes")
		Expect(list).To(HaveLen(5))
		for _, block := range list[:4] {
			g.do(block)
		}
		g.awaitLogin(ctx)
		Expect(g.do(list[4])).To(MatchRegexp(`(?s)"ok": true.*\n(HTTP/2|HTTP/1.1) 302 .*\n(HTTP/2|HTTP/1.1) 401 `))
		b := g.browser()
		page := g.logIn(ctx, b, "bob")
		Expect(page.Status).To(Equal(200), page.Body)
		Expect(seen(page)).NotTo(Or(HaveKey("Authorization"), HaveKey("X-Email")))
		Expect(seen(page).Get("Cookie")).NotTo(ContainSubstring("="))
		signedOut, err := b.Open(ctx, g.home+"/logout")
		Expect(err).NotTo(HaveOccurred())
		Expect(signedOut.URL.Host).To(Equal("localhost:" + strconv.Itoa(g.idp.Port)))

		By("Who gets in")
		g.section("Who gets in, and what the backend sees", 1)
		Expect(g.logIn(ctx, g.browser(), "bob").Status).To(Equal(403))
		b = g.browser()
		headers := seen(g.logIn(ctx, b, "ann"))
		Expect(headers.Values("X-User")).To(Equal([]string{"ann"}))
		Expect(headers.Values("X-Email")).To(Equal([]string{"ann@shop.test"}))
		groups, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(headers.Get("X-Groups"), "="))
		Expect(err).NotTo(HaveOccurred())
		Expect(string(groups)).To(Equal(`["staff","buyers"]`))

		By("Cookies")
		g.expectCookies(b)

		By("Public routes")
		g.section("Public routes and services", 1)
		open, err := g.browser().Open(ctx, g.home+"/health")
		Expect(err).NotTo(HaveOccurred())
		Expect(open.URL.String()).To(Equal(g.home + "/health"))
		Expect(open.Status).To(Equal(200))

		By("Rotation")
		again := func() testkit.Visit {
			GinkgoHelper()
			v, err := b.Do(ctx, testkit.Request{URL: g.home + "/"})
			Expect(err).NotTo(HaveOccurred())
			return v
		}
		rotation := blocksOf("../../docs/login.md", "Rotation")
		Expect(rotation).To(HaveLen(1))
		Expect(rotation[0]).To(HaveLen(2))
		g.do(rotation[0][1:]) // the client's secret
		Expect(again().Status).To(Equal(200), "sessions stay")
		g.do(rotation[0][:1])
		Expect(again().Status).To(Equal(302), "sessions end")

		By("When it does not work")
		out := g.section("When it does not work", 1)
		Expect(out[0]).To(ContainSubstring(`"ok": true`))

		By("For every service of a proxy")
		list = blocksOf("../../docs/login.md", "For every service of a proxy")
		Expect(list).To(HaveLen(2))
		last := len(list[0]) - 1
		g.do(list[0][:last])
		g.awaitLogin(ctx)
		Expect(g.do(list[0][last:])).To(And(ContainSubstring(`"ok": true`), ContainSubstring(`"login": "/globalconfig/sso"`)))
		Expect(g.do(list[1])).To(MatchRegexp(`HTTP/1.1 200 `))
		Expect(g.logIn(ctx, g.browser(), "bob").Status).To(Equal(200))

		By("Limits")
		Expect(g.logIn(ctx, g.browser(), "eve").Status).To(Equal(200))
		b = g.browser()
		form, err := b.Open(ctx, g.home+"/")
		Expect(err).NotTo(HaveOccurred())
		_, err = b.LogIn(ctx, form, "max", "pw")
		Expect(err).To(MatchError(testkit.ErrTooManyRedirects))
	})

	It("has no command that no spec runs", func() {
		text, err := os.ReadFile("../../docs/login.md")
		Expect(err).NotTo(HaveOccurred())
		Expect(strings.Count(string(text), "\n```")).To(Equal(2 * 11))
	})
})
