package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// faulty is a gateway whose service shop requires a login at a provider that can
// misbehave, and whose service open does not.
type faulty struct {
	secured
	idp *testkit.Provider
	// host is what Envoys have for the service open, and listener what they have for
	// listeners.
	host, listener string
}

func startFaulty() *faulty {
	GinkgoHelper()
	s, _ := secure()
	s.serve("shop", "shop.test", "shop.test")
	s.serve("open", "open.test", "open.test")
	f := &faulty{secured: s, idp: provider(testkit.CertificateOptions{})}
	post(s.api, "/secret", "Secret_name=idp-ca", "Secret_cert="+f.idp.Authority.PEM)
	post(s.api, "/upstream", "Upstream_name=idp", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(f.idp.Port()), "Upstream_protocol=tls",
		"Upstream_validation_subjectname=localhost", "Upstream_validation_cacertificate=idp-ca")
	post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
	post(s.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", "Filter_config="+f.config(f.idp.Issuer(), "idp"))
	applied(s.api, http.MethodPost, "/service/shop/filter/staff")
	f.host, f.listener = f.served()
	return f
}

func provider(o testkit.CertificateOptions) *testkit.Provider {
	GinkgoHelper()
	p, err := testkit.StartProvider(o)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

func (f *faulty) config(issuer, upstream string) string {
	text, _ := json.Marshal(map[string]string{
		"client_id": "shop", "client_secret": "s3cret", "cookie_secret": "cookies", "redirect_uri": "/callback", "issuer": issuer, "upstream": upstream,
	})
	return string(text)
}

// use switches the login to another issuer, and waits as a user does.
func (f *faulty) use(issuer, upstream string) {
	GinkgoHelper()
	applied(f.api, http.MethodPatch, "/filter/staff", "Filter_config="+url.QueryEscape(f.config(issuer, upstream)))
}

// served returns what Envoys have for the service open, and for the listeners.
func (f *faulty) served() (host, listener string) {
	GinkgoHelper()
	var routes struct {
		Data struct {
			XDS []struct {
				Resource struct {
					VirtualHosts []json.RawMessage `json:"virtual_hosts"`
				} `json:"resource"`
			} `json:"core_db_xds"`
		} `json:"data"`
	}
	Expect(json.Unmarshal([]byte(read(f.api, "/proxy/gw/xds?type=route")), &routes)).To(Succeed())
	for _, r := range routes.Data.XDS {
		for _, h := range r.Resource.VirtualHosts {
			if strings.Contains(string(h), `"open.test"`) {
				host = string(h)
			}
		}
	}
	Expect(host).NotTo(BeEmpty())
	return host, read(f.api, "/proxy/gw/xds?type=listener")
}

// expect compares what a user sees at shop, and what its status and that of the filter
// report; nothing else may have changed.
func (f *faulty) expect(status int, words string) {
	GinkgoHelper()
	for _, path := range []string{"/service/shop", "/filter/staff"} {
		Eventually(func() string { return read(f.api, path) }).WithTimeout(20*time.Second).Should(ContainSubstring(words), path)
	}
	Eventually(func() int { code, _, _ := f.ask("shop.test", "shop.test"); return code }).WithTimeout(20 * time.Second).Should(Equal(status))
	code, body, _ := f.ask("open.test", "open.test")
	Expect(code).To(Equal(http.StatusOK), body)
	host, listener := f.served()
	Expect(host).To(Equal(f.host))
	Expect(listener).To(Equal(f.listener))
}

var _ = Describe("A provider of a login", func() {
	It("that answers something wrong closes the service until it does not, and no other is affected", func() {
		f := startFaulty()
		code, _, header := f.ask("shop.test", "shop.test")
		Expect(code).To(Equal(http.StatusFound))
		Expect(header.Get("Location")).To(HavePrefix(f.idp.Issuer() + "/auth?client_id=shop&"))

		serve := func(text string) http.HandlerFunc {
			return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }
		}
		for i, c := range []struct {
			what     string
			document func(issuer string) http.HandlerFunc
			words    string
		}{
			{"an error", func(string) http.HandlerFunc {
				return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }
			}, "is answered with 502: check the provider"},
			{"nothing", func(string) http.HandlerFunc { return nil }, "does not exist (404): correct the URL"},
			{"another issuer", func(string) http.HandlerFunc { return serve(f.idp.Document("https://other.example")) }, "names the issuer https://other.example, not "},
			{"a slash more", func(issuer string) http.HandlerFunc { return serve(f.idp.Document(issuer + "/")) }, "write the one that it names"},
			{"5 MB", func(issuer string) http.HandlerFunc {
				return serve(f.idp.Document(issuer, "x", strings.Repeat("x", 5<<20)))
			}, "is larger than 256 KiB"},
			{"redirects in a circle", func(string) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }
			}, "redirects to "},
			{"a page", func(string) http.HandlerFunc { return serve("<!doctype html>") }, "is HTML or XML in place of JSON"},
			{"no keys", func(issuer string) http.HandlerFunc {
				return serve(f.idp.Document(issuer, "jwks_uri", f.idp.Issuer()+"/no-keys"))
			}, "/no-keys does not exist (404)"},
		} {
			By(c.what)
			issuer := fmt.Sprintf("%s/%d", f.idp.Issuer(), i)
			document := fmt.Sprintf("/%d/.well-known/openid-configuration", i)
			f.idp.Handle(document, c.document(issuer))
			f.use(issuer, "idp")
			f.expect(http.StatusServiceUnavailable, c.words)
			Expect(read(f.api, "/filter/staff")).To(ContainSubstring("nobody can log in before it answers"))
			f.idp.Serve(document, f.idp.Document(issuer))
			Eventually(func() int { code, _, _ := f.ask("shop.test", "shop.test"); return code }).WithTimeout(60 * time.Second).Should(Equal(http.StatusFound))
		}

		By("silence")
		f.idp.Handle("/slow/.well-known/openid-configuration", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		began := time.Now()
		f.use(f.idp.Issuer()+"/slow", "idp")
		Expect(time.Since(began)).To(BeNumerically(">=", 2*time.Second), "the write waits a moment for the provider")
		f.expect(http.StatusServiceUnavailable, "did not arrive within 5s: check whether this machine reaches 127.0.0.1 (upstream \\\"idp\\\", port")

		By("being away")
		f.use(fmt.Sprintf("https://localhost:%d", freePort()), "")
		f.expect(http.StatusServiceUnavailable, "is a loopback address; if the provider is at this address, name an upstream with this address")
		f.idp.Close()
		f.use(f.idp.Issuer()+"/away", "idp")
		f.expect(http.StatusServiceUnavailable, "refuses connections: is the provider running there?")
		Expect(read(f.api, "/metrics")).To(MatchRegexp(`(?m)^gatehouse_provider_failures_total\{object="/filter/staff"\} [1-9]`))
	})

	It("with an untrusted certificate closes the service, and tells what to do", func() {
		f := startFaulty()
		other, expired, elsewhere := provider(testkit.CertificateOptions{}),
			provider(testkit.CertificateOptions{NotAfter: time.Now().Add(-time.Hour)}), provider(testkit.CertificateOptions{Names: []string{"a.example"}})
		post(f.api, "/secret", "Secret_name=elsewhere-ca", "Secret_cert="+elsewhere.Authority.PEM)
		// An authority is not checked when it is stored together with what it signs.
		post(f.api, "/secret", "Secret_name=expired-ca", "Secret_cert="+expired.Authority.PEM)
		for _, c := range []struct {
			at     *testkit.Provider
			secret string
			words  string
		}{
			{other, "idp-ca", `is not signed by any of the authorities of secret \"idp-ca\": put the authority into a secret, and name it in Upstream_validation_cacertificate of upstream \"idp\"`},
			{expired, "expired-ca", "renew it at the provider, or set this machine's clock"},
			{elsewhere, "elsewhere-ca", `is not for localhost, but for a.example: name one that it is for in Upstream_validation_subjectname of upstream \"idp\"`},
		} {
			By(c.words)
			applied(f.api, http.MethodPatch, "/upstream/idp", "Upstream_port="+strconv.Itoa(c.at.Port()), "Upstream_validation_cacertificate="+c.secret)
			f.use(c.at.Issuer(), "idp")
			f.expect(http.StatusServiceUnavailable, c.words)
		}
		By("a repair")
		applied(f.api, http.MethodPatch, "/upstream/idp", "Upstream_validation_subjectname=a.example")
		code, _, header := f.ask("shop.test", "shop.test")
		Expect(code).To(Equal(http.StatusFound))
		Expect(header.Get("Location")).To(HavePrefix(elsewhere.Issuer() + "/auth?"))
	})
})
