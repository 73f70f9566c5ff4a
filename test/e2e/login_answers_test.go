package e2e_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// loginSite is a service behind a login, and its identity provider, which knows anna.
type loginSite struct {
	secured
	idp *testkit.OIDCProvider
	// address is https://shop.test:PORT.
	address string
}

// oidcFilter returns the configuration of a login; fields are additional fields.
func (l loginSite) oidcFilter(secret string, fields ...string) string {
	return `Filter_config={"client_id":"shop","client_secret":"` + secret + `","cookie_secret":"cookies","upstream":"idp",` +
		strings.Join(append(fields, ""), ",") +
		`"authorization_endpoint":"` + l.idp.Issuer + `/auth","token_endpoint":"` + l.idp.Issuer + `/token","redirect_uri":"/callback","logout_uri":"/logout"}`
}

// loginGateway returns a gateway with an identity provider and a service without a
// login.
func loginGateway(ctx context.Context, args ...string) loginSite {
	GinkgoHelper()
	s, _ := secure(args...)
	s.serve("shop", "shop.test", "shop.test")
	l := loginSite{secured: s, address: "https://shop.test:" + strconv.Itoa(s.httpsPort)}
	var err error
	l.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), s.authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{{ID: "shop", Secret: "s3cret", RedirectURIs: []string{l.address + "/callback"}}},
		Users:   map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{"email": "anna@shop.test"}}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(l.idp.Kill()).To(Succeed()) })
	s.trust(l.idp)
	post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
	return l
}

// askForLogin puts a login in front of the service.
func (l loginSite) askForLogin(secret string, fields ...string) {
	GinkgoHelper()
	post(l.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", l.oidcFilter(secret, fields...))
	applied(l.api, http.MethodPost, "/service/shop/filter/staff")
}

func (l loginSite) browser() *testkit.Browser {
	b := testkit.NewBrowser(l.authority)
	DeferCleanup(b.Close)
	return b
}

// logIn opens a page, logs anna in, and returns the last page.
func (l loginSite) logIn(ctx context.Context, b *testkit.Browser) testkit.Visit {
	GinkgoHelper()
	page, err := b.Open(ctx, l.address+"/deep?a=1")
	Expect(err).NotTo(HaveOccurred())
	Expect(page.URL.Host).To(Equal("localhost:"+strconv.Itoa(l.idp.Port)), page.Body)
	back, err := b.LogIn(ctx, page, "anna", "pw")
	Expect(err).NotTo(HaveOccurred())
	return back
}

// beSafe checks that an answer contains nothing of the request except its ID.
func beSafe(v testkit.Visit) {
	GinkgoHelper()
	Expect(v.Header.Get("Cache-Control")).To(Equal("no-store"))
	for _, secret := range []string{"marker", "OAuth flow failed", "s3cret", "access_denied", "callback", "state"} {
		Expect(v.Body).NotTo(ContainSubstring(secret))
	}
}

var _ = Describe("The error of a login", func() {
	It("is a page with advice for a browser, and a problem for other clients", func(ctx SpecContext) {
		l := loginGateway(ctx)
		l.askForLogin("s3cret")
		b := l.browser()

		By("when the provider's answer belongs to no login")
		page, err := b.Open(ctx, l.address+"/callback?code=marker-code&state=marker-state")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Status).To(Equal(http.StatusUnauthorized))
		Expect(page.Header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
		Expect(page.Header.Get("Content-Security-Policy")).To(Equal("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
		Expect(page.Header.Get("Referrer-Policy")).To(Equal("no-referrer"))
		Expect(page.Body).To(ContainSubstring("<h1>This login is no longer valid</h1>"))
		Expect(page.Body).To(ContainSubstring(`<a href="/">Try again</a>`))
		Expect(page.Body).To(MatchRegexp(`Request ID: <code>[0-9a-f]{8}-[0-9a-f-]{27}</code>`))
		Expect(page.Body).NotTo(MatchRegexp(`(?i)<script|<style|style=|https?:|//`))
		beSafe(page)

		By("when the user cancels")
		begun, err := b.Do(ctx, testkit.Request{URL: l.address + "/deep"})
		Expect(err).NotTo(HaveOccurred())
		to, err := begun.Location()
		Expect(err).NotTo(HaveOccurred())
		page, err = b.Open(ctx, l.address+"/callback?error=access_denied&error_description=marker%3Cb%3E&state="+to.Query().Get("state"))
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Status).To(Equal(http.StatusUnauthorized))
		Expect(page.Body).To(ContainSubstring("The login was canceled, or the identity provider refused it."))
		beSafe(page)

		By("when a program calls, with its own request ID")
		v, err := b.Do(ctx, testkit.Request{Method: http.MethodPost, URL: l.address + "/marker", Header: http.Header{"X-Request-Id": {"<b>marker</b>"}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Status).To(Equal(http.StatusUnauthorized))
		Expect(v.Header.Get("Content-Type")).To(Equal("text/plain"))
		Expect(v.Header.Values("WWW-Authenticate")).To(BeEmpty())
		Expect(v.Body).To(MatchRegexp(`^the request has no valid session, and is not one that a browser can be sent to log in with: log in with a browser first \(request [0-9a-f-]{36}\)\n$`))
		beSafe(v)

		By("when a program accepts JSON")
		v, err = b.Do(ctx, testkit.Request{Method: http.MethodPost, URL: l.address + "/marker", Header: http.Header{"Accept": {"application/json"}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Header.Get("Content-Type")).To(Equal("application/problem+json"))
		Expect(v.Body).To(MatchRegexp(`^\{"request_id":"[0-9a-f-]{36}","status":401,"title":"the request has no valid session, and is not one that a browser can be sent to log in with: log in with a browser first"\}\n?$`))
		beSafe(v)

		By("when the gateway has another secret than the provider, and then the right one")
		applied(l.api, http.MethodPatch, "/filter/staff", l.oidcFilter("wrong"))
		page = l.logIn(ctx, b)
		Expect(page.Status).To(Equal(http.StatusUnauthorized))
		Expect(page.Body).To(ContainSubstring("<h1>The login failed</h1>"))
		beSafe(page)
		applied(l.api, http.MethodPatch, "/filter/staff", l.oidcFilter("s3cret"))
		again, err := b.Open(ctx, l.address+"/")
		Expect(err).NotTo(HaveOccurred())
		Expect(again.Status).To(Equal(http.StatusOK), again.Body)
		Expect(again.Header.Get(testkit.BackendHeader)).To(Equal("blue"))
	})
})
