package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// dialect is another implementation of an identity provider, with its way to log in.
type dialect struct {
	issuer    string
	port      int
	authority *testkit.Authority
	// authorize is the authorization endpoint for the configuration, if it is needed.
	authorize string
	logIn     func(b *testkit.Browser, page testkit.Visit, name, password string) (testkit.Visit, error)
}

// speak tests a login with a provider whose user anna is in the group staff and bert is
// not.
func speak(start func(client testkit.OIDCClient) dialect) {
	GinkgoHelper()
	s, _ := secure()
	at := func(path string) string { return "https://shop.test:" + strconv.Itoa(s.httpsPort) + path }
	d := start(testkit.OIDCClient{ID: "shop", Secret: oddSecret, RedirectURIs: []string{at("/callback")}, PostLogoutRedirectURIs: []string{at("/")}})
	s.serve("shop", "shop.test", "shop.test")
	post(s.api, "/secret", "Secret_name=idp-ca", "Secret_cert="+d.authority.PEM)
	post(s.api, "/upstream", "Upstream_name=idp", "Upstream_ip=localhost", "Upstream_port="+strconv.Itoa(d.port), "Upstream_protocol=tls", "Upstream_validation_cacertificate=idp-ca")
	post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieKey)
	config := map[string]any{
		"client_id": "shop", "client_secret": oddSecret, "issuer": d.issuer, "upstream": "idp", "redirect_uri": "/callback", "cookie_secret": "cookies",
		"logout_uri": "/logout", "claim_headers": map[string]string{"x-user": "email"}, "require": map[string]any{"groups": []string{"staff"}},
	}
	if d.authorize != "" {
		config["authorization_endpoint"] = d.authorize
	}
	text, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	post(s.api, "/filter", "Filter_name=shop", "Filter_type=http_filter_oidc", "Filter_config="+string(text))
	applied(s.api, http.MethodPost, "/service/shop/filter/shop")
	logIn := func(name string) (*testkit.Browser, testkit.Visit) {
		GinkgoHelper()
		b := testkit.NewBrowser(s.authority, d.authority)
		DeferCleanup(b.Close)
		var page testkit.Visit
		Eventually(func() (port string, err error) { // the provider may need some time to answer
			page, err = b.Open(limit(), at("/deep?a=b"))
			return page.URL.Port(), err
		}).Should(Equal(strconv.Itoa(d.port)))
		last, err := d.logIn(b, page, name, "pw-"+name)
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.String()).To(Equal(at("/deep?a=b")), last.Body)
		return b, last
	}
	b, last := logIn("anna")
	Expect(echo(last).Headers.Get("X-User")).To(Equal("anna@shop.test"))
	v, err := b.Do(limit(), testkit.Request{URL: at("/again")})
	Expect(err).NotTo(HaveOccurred())
	Expect(echo(v).Path).To(Equal("/again"))
	By("with a claim that not everybody has")
	_, last = logIn("bert")
	Expect(last.Status).To(Equal(http.StatusForbidden), last.Body)
	By("and its logout at the provider")
	v, err = b.Do(limit(), testkit.Request{URL: at("/logout")})
	Expect(err).NotTo(HaveOccurred())
	to, err := v.Location()
	Expect(err).NotTo(HaveOccurred())
	Expect(to.Port()).To(Equal(strconv.Itoa(d.port)))
	Expect(to.Query()).To(And(HaveKeyWithValue("post_logout_redirect_uri", []string{at("/")}), HaveKey("id_token_hint")))
	Expect(hostCookies(b, "shop.test").Named("IdToken")).To(BeEmpty())
	v, err = b.Do(limit(), testkit.Request{URL: to.String(), Initiator: "shop.test"})
	Expect(err).NotTo(HaveOccurred())
	Expect(v.Status).To(Equal(http.StatusFound), v.Body)
}

var _ = Describe("A login", func() {
	It("works with Glewlwyd, which requires a nonce", func(ctx SpecContext) {
		speak(func(client testkit.OIDCClient) dialect {
			authority, err := testkit.NewAuthority("glewlwyd")
			Expect(err).NotTo(HaveOccurred())
			g, err := testkit.StartGlewlwyd(ctx, GinkgoT().TempDir(), authority, []testkit.OIDCClient{client}, []testkit.GlewlwydUser{
				{Name: "anna", Password: "pw-anna", Email: "anna@shop.test", Groups: []string{"cooks", "staff"}},
				{Name: "bert", Password: "pw-bert", Email: "bert@shop.test", Groups: []string{"guests"}},
			})
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() { Expect(g.Kill()).To(Succeed()) })
			return dialect{g.Issuer, g.Port, authority, g.Issuer + "/auth?nonce=gateway", func(b *testkit.Browser, page testkit.Visit, name, password string) (testkit.Visit, error) {
				return g.LogIn(ctx, b, page, name, password)
			}}
		})
	})
})
