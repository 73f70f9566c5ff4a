package e2e_test

import (
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// cookieSecret is 32 bytes in base64.
const cookieSecret = "4Bk0Zc3DqDZcHbQ7rX9Yw5h6q0Ku1v8m2Tn4Lx3Ss1E="

var _ = Describe("A login", func() {
	It("is required by a service with an http_filter_oidc, and lasts", func(ctx SpecContext) {
		s, _ := secure()
		s.serve("shop", "shop.test", "shop.test")
		port := strconv.Itoa(s.httpsPort)
		callback := "https://shop.test:" + port + "/callback"
		idp, err := testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), s.authority, testkit.OIDCSettings{
			Clients: []testkit.OIDCClient{{ID: "shop", Secret: "s3cret", RedirectURIs: []string{callback}}},
			Users:   map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{"email": "anna@shop.test"}}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(idp.Kill()).To(Succeed()) })
		s.trust(idp)
		post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
		post(s.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", `Filter_config={
			"client_id": "shop", "client_secret": "s3cret", "cookie_secret": "cookies", "upstream": "idp",
			"authorization_endpoint": "`+idp.Issuer+`/auth", "token_endpoint": "`+idp.Issuer+`/token",
			"redirect_uri": "/callback", "logout_uri": "/logout"}`)
		applied(s.api, http.MethodPost, "/service/shop/filter/staff")

		b := testkit.NewBrowser(s.authority)
		DeferCleanup(b.Close)
		page, err := b.Open(ctx, "https://shop.test:"+port+"/deep?a=1")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.URL.Host).To(Equal("localhost:"+strconv.Itoa(idp.Port)), page.Body)
		back, err := b.LogIn(ctx, page, "anna", "pw")
		Expect(err).NotTo(HaveOccurred())
		Expect(back.URL.String()).To(Equal("https://shop.test:" + port + "/deep?a=1"))
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	})
})

// trust creates the upstream of an identity provider whose certificate is verified.
func (s secured) trust(idp *testkit.OIDCProvider) {
	GinkgoHelper()
	post(s.api, "/secret", "Secret_name=idp-ca", "Secret_cert="+idp.Authority.PEM)
	post(s.api, "/upstream", "Upstream_name=idp", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(idp.Port), "Upstream_protocol=tls",
		"Upstream_validation_subjectname=localhost", "Upstream_validation_cacertificate=idp-ca")
}
