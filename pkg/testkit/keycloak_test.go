//go:build idp

package testkit_test

import (
	"net/url"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Keycloak", func() {
	It("logs a user in and out", func(ctx SpecContext) {
		authority, err := testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		app, err := testkit.StartBackend("app", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(app.Close)
		home := "http://localhost:" + port(app)
		r := relyingParty{id: "shop", secret: "se:cret/+basic %&", callback: home + "/callback", scope: "openid"}
		k, err := testkit.StartKeycloak(ctx, GinkgoT().TempDir(), authority,
			[]testkit.OIDCClient{{ID: r.id, Secret: r.secret, RedirectURIs: []string{r.callback}, PostLogoutRedirectURIs: []string{home + "/"}}},
			map[string]testkit.OIDCUser{"anna": {Password: "pw-anna", Claims: map[string]any{"groups": []string{"staff"}, "roles": []string{"manager"}}}})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(k.Kill()).To(Succeed()) })
		b := testkit.NewBrowser(authority)
		DeferCleanup(b.Close)

		page, err := b.Open(ctx, r.begin(k.Issuer+"/protocol/openid-connect/auth"))
		Expect(err).NotTo(HaveOccurred())
		last, err := b.LogIn(ctx, page, "anna", "pw-anna")
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.Path).To(Equal("/callback"), last.Body)
		t := r.ask(ctx, b, k.Issuer+"/protocol/openid-connect/token", url.Values{"grant_type": {"authorization_code"}, "code": {last.URL.Query().Get("code")}})
		got, _ := claims(t.ID)
		Expect(got).To(And(
			HaveKeyWithValue("iss", k.Issuer), HaveKeyWithValue("aud", "shop"), HaveKeyWithValue("email", "anna@shop.test"),
			HaveKeyWithValue("groups", []any{"staff"}), HaveKeyWithValue("realm_access", HaveKeyWithValue("roles", ContainElement("manager"))),
		))
		last, err = b.Open(ctx, k.Issuer+"/protocol/openid-connect/logout?id_token_hint="+t.ID+"&post_logout_redirect_uri="+url.QueryEscape(home+"/"))
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.String()).To(Equal(home + "/"))
	}, SpecTimeout(5*time.Minute))
})
