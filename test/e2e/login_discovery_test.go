package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// discovering is a login at an identity provider that is configured by its issuer.
type discovering struct {
	secured
	idp *testkit.OIDCProvider
	dir string
}

// discover starts a gateway and a provider, and adds a login to the service shop. It
// waits for the last write.
func discover(ctx SpecContext, args ...string) discovering {
	GinkgoHelper()
	s, _ := secure(args...)
	s.serve("shop", "shop.test", "shop.test")
	s.serve("open", "open.test", "open.test")
	d := discovering{secured: s, dir: GinkgoT().TempDir()}
	var err error
	d.idp, err = testkit.StartOIDCProvider(ctx, d.dir, s.authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{ID: "shop", Secret: "s3cret", RedirectURIs: []string{d.shop("/callback")}}},
		Users:   map[string]testkit.OIDCUser{"anna": {Password: "pw"}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { _ = d.idp.Kill() })
	s.trust(d.idp)
	post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
	post(s.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", "Filter_config="+d.config(d.idp.Issuer))
	applied(s.api, http.MethodPost, "/service/shop/filter/staff")
	return d
}

// config returns the configuration of the login with an issuer.
func (d discovering) config(issuer string) string {
	return fmt.Sprintf(`{"client_id": "shop", "client_secret": "s3cret", "cookie_secret": "cookies", "upstream": "idp", "issuer": %q, "redirect_uri": "/callback"}`, issuer)
}

// shop returns a URL of the service.
func (d discovering) shop(path string) string {
	return "https://shop.test:" + strconv.Itoa(d.httpsPort) + path
}

// logIn opens a page of the service and logs in.
func (d discovering) logIn(ctx SpecContext) (*testkit.Browser, testkit.Visit) {
	GinkgoHelper()
	b := testkit.NewBrowser(d.authority)
	DeferCleanup(b.Close)
	page, err := b.Open(ctx, d.shop("/deep?a=1"))
	Expect(err).NotTo(HaveOccurred())
	Expect(page.URL.Host).To(Equal("localhost:"+strconv.Itoa(d.idp.Port)), page.Body)
	back, err := b.LogIn(ctx, page, "anna", "pw")
	Expect(err).NotTo(HaveOccurred())
	return b, back
}

var _ = Describe("A login with an issuer", func() {
	It("is active when the write that adds it has been waited for", func(ctx SpecContext) {
		d := discover(ctx)
		_, back := d.logIn(ctx)
		Expect(back.URL.String()).To(Equal(d.shop("/deep?a=1")))
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	})

	It("continues while the provider is away, also after a restart", func(ctx SpecContext) {
		dir, api := GinkgoT().TempDir(), freePort()
		where := []string{"--data-dir", dir, "--api-addr", fmt.Sprintf("127.0.0.1:%d", api)}
		d := discover(ctx, where...)
		b, back := d.logIn(ctx)
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
		Expect(d.idp.Kill()).To(Succeed())

		By("a restart of everything but the provider")
		Expect(d.Kill()).To(Succeed())
		start(nil, append([]string{
			"standalone", "--xds-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0",
			"--http-port", strconv.Itoa(d.port), "--https-port", strconv.Itoa(d.httpsPort),
		}, where...)...)
		Eventually(func() int {
			visit, err := b.Do(ctx, testkit.Request{URL: d.shop("/again")})
			if err != nil {
				return 0
			}
			return visit.Status
		}).WithContext(ctx).WithTimeout(30*time.Second).Should(Equal(http.StatusOK), "a session is verified with the keys from before")
		stranger := testkit.NewBrowser(d.authority)
		DeferCleanup(stranger.Close)
		sent, err := stranger.Do(ctx, testkit.Request{URL: d.shop("/")})
		Expect(err).NotTo(HaveOccurred())
		Expect(sent.Status).To(Equal(http.StatusFound))
		Expect(sent.Location()).To(HaveField("Host", "localhost:"+strconv.Itoa(d.idp.Port)))
		for _, path := range []string{"/service/shop", "/filter/staff"} {
			Eventually(func() string { return read(d.api, path) }).WithContext(ctx).WithTimeout(30 * time.Second).Should(And(
				ContainSubstring(`"code":"ProviderFailing"`), ContainSubstring("refuses connections: is the provider running there?; logins continue with its answer of ")))
		}

		By("the return of the provider, with other keys")
		Expect(d.idp.Restart(ctx, d.dir)).To(Succeed())
		Eventually(func() string { return read(d.api, "/service/shop") }).WithContext(ctx).WithTimeout(90 * time.Second).ShouldNot(ContainSubstring("ProviderFailing"))
		applied(d.api, http.MethodPatch, "/filter/staff", "Filter_config="+url.QueryEscape(d.config(d.idp.Issuer)))
		_, back = d.logIn(ctx)
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	})

	It("learns a new key when the first token is signed with it, and keeps sessions of the old one", func(ctx SpecContext) {
		d := discover(ctx)
		old, back := d.logIn(ctx)
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
		Expect(d.idp.Change(ctx, testkit.OIDCSettings{Keys: "rotate"})).To(Succeed())
		b, _ := d.logIn(ctx)
		status := func(b *testkit.Browser) int {
			visit, err := b.Do(ctx, testkit.Request{URL: d.shop("/again")})
			Expect(err).NotTo(HaveOccurred())
			return visit.Status
		}
		// Without that, the next request to the provider is after 4.5 minutes.
		Eventually(func() int { return status(b) }).WithTimeout(time.Minute).Should(Equal(http.StatusOK))
		Expect(status(old)).To(Equal(http.StatusOK))
		Expect(read(d.api, "/proxy/gw/xds?type=extension")).To(MatchRegexp(`(?s)kid.*kid`), "both keys")
	})

	It("needs no upstream, if the operator allows the address", func() {
		idp := provider(testkit.CertificateOptions{})
		authorities := filepath.Join(GinkgoT().TempDir(), "ca.pem")
		Expect(os.WriteFile(authorities, []byte(idp.Authority.PEM), 0o600)).To(Succeed())
		s, _ := secure("--provider-allow", "127.0.0.0/8", "--upstream-ca-file", authorities)
		s.serve("shop", "shop.test", "shop.test")
		post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
		post(s.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", fmt.Sprintf(
			`Filter_config={"client_id": "shop", "client_secret": "s3cret", "cookie_secret": "cookies", "issuer": %q, "redirect_uri": "/callback"}`, idp.Issuer()))
		applied(s.api, http.MethodPost, "/service/shop/filter/staff")
		code, body, header := s.ask("shop.test", "shop.test")
		Expect(code).To(Equal(http.StatusFound), body)
		Expect(header.Get("Location")).To(HavePrefix(idp.Issuer() + "/auth?"))
	})
})
