package testkit_test

import (
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Glewlwyd", func() {
	It("logs a user in, with a nonce, and remembers the session", func(ctx SpecContext) {
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		app, err := testkit.StartBackend("app", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(app.Close)
		callback := "http://localhost:" + port(app) + "/callback"
		g, err := testkit.StartGlewlwyd(ctx, GinkgoT().TempDir(), authority,
			[]testkit.OIDCClient{{ID: "shop", Secret: "se:cret/+basic %&", RedirectURIs: []string{callback}, PostLogoutRedirectURIs: []string{"http://localhost:" + port(app) + "/"}}},
			[]testkit.GlewlwydUser{{Name: "anna", Password: "pw-anna", Email: "anna@shop.test", Groups: []string{"staff", "admins"}}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(g.Kill()).To(Succeed()) })
		r := relyingParty{issuer: g.Issuer, id: "shop", secret: "se:cret/+basic %&", callback: callback, scope: "openid"}
		b := testkit.NewBrowser(authority)
		DeferCleanup(b.Close)

		page, err := b.Open(ctx, r.begin(g.Issuer+"/auth"))
		Expect(err).NotTo(HaveOccurred())
		_, err = g.LogIn(ctx, b, page, "anna", "wrong")
		Expect(err).To(MatchError(ContainSubstring("status 401")))
		last, err := g.LogIn(ctx, b, page, "anna", "pw-anna")
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.Path).To(Equal("/callback"))
		Expect(last.URL.Query().Get("error_description")).To(Equal("nonce required"))

		last, err = b.Open(ctx, r.begin(g.Issuer+"/auth")+"&nonce=n&g_continue")
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.Path).To(Equal("/callback"), last.URL.String())
		t := r.ask(ctx, b, g.Issuer+"/token", url.Values{"grant_type": {"authorization_code"}, "code": {last.URL.Query().Get("code")}})
		got, _ := claims(t.ID)
		Expect(got).To(And(
			HaveKeyWithValue("iss", g.Issuer), HaveKeyWithValue("aud", "shop"), HaveKeyWithValue("nonce", "n"),
			HaveKeyWithValue("email", "anna@shop.test"), HaveKeyWithValue("groups", ConsistOf("staff", "admins")),
		))
	}, SpecTimeout(time.Minute))
})
