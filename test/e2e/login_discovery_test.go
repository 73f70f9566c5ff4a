package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// discovering is a login at an identity provider that is known by its issuer.
type discovering struct {
	secured
	idp *testkit.OIDCProvider
	dir string
}

// discover starts a gateway and a provider, and adds a login at it to the service shop.
// The last write has been waited for.
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

// config is the configuration of the login with an issuer.
func (d discovering) config(issuer string) string {
	return fmt.Sprintf(`{"client_id": "shop", "client_secret": "s3cret", "cookie_secret": "cookies", "upstream": "idp", "issuer": %q, "redirect_uri": "/callback"}`, issuer)
}

// shop is a URL of the service.
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
	It("is there when the write that adds it has been waited for", func(ctx SpecContext) {
		d := discover(ctx)
		_, back := d.logIn(ctx)
		Expect(back.URL.String()).To(Equal(d.shop("/deep?a=1")))
		Expect(back.Status).To(Equal(http.StatusOK), back.Body)
	})
})
