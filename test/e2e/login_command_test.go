package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// loginTest is the output of gatehouse login test.
type loginTest struct {
	URL   string
	OK    bool
	Steps []struct{ Step, Result, Message, Advice string }
}

// results returns the results of the steps, by their names.
func (t loginTest) results() map[string]string {
	all := map[string]string{}
	for _, s := range t.Steps {
		all[s.Step] = s.Result
	}
	return all
}

// of returns the message and the advice of a step.
func (t loginTest) of(step string) string {
	for _, s := range t.Steps {
		if s.Step == step {
			return s.Message + " -> " + s.Advice
		}
	}
	return ""
}

// tryLogin runs gatehouse login test.
func (s secured) tryLogin(service string, more ...string) (code int, t loginTest) {
	GinkgoHelper()
	code, stdout, stderr := cliOf(s.Gatehouse).run(append([]string{"login", "test", service, "-o", "json"}, more...)...)
	Expect(json.Unmarshal([]byte(stdout), &t)).To(Succeed(), stdout+stderr)
	Expect(stdout + stderr).NotTo(ContainSubstring(clientSecret))
	return code, t
}

const clientSecret = "s3cret-of-the-client"

var _ = Describe("gatehouse login test", func() {
	var s secured
	var idp *testkit.OIDCProvider
	var home string
	// staff returns the login of service shop, with changes of its configuration.
	staff := func(change map[string]any) {
		GinkgoHelper()
		config := map[string]any{
			"client_id": "shop", "client_secret": clientSecret, "cookie_secret": "cookies", "upstream": "idp", "issuer": idp.Issuer,
			"redirect_uri": "/callback", "logout_uri": "/logout", "scopes": []string{"email"},
		}
		for k, v := range change {
			config[k] = v
		}
		text, err := json.Marshal(config)
		Expect(err).NotTo(HaveOccurred())
		post(s.api, "/filter", "Filter_name=staff", "Filter_type=http_filter_oidc", "Filter_config="+string(text))
		applied(s.api, http.MethodPost, "/service/shop/filter/staff")
	}
	known := func() map[string]any {
		return map[string]any{"issuer": "", "authorization_endpoint": idp.Issuer + "/auth", "token_endpoint": idp.Issuer + "/token"}
	}
	// change makes it again, and tries it.
	change := func(fields map[string]any) (int, loginTest) {
		GinkgoHelper()
		remove(s.api, "/service/shop/filter/staff")
		remove(s.api, "/filter/staff")
		staff(fields)
		return s.tryLogin("shop")
	}
	BeforeEach(func(ctx SpecContext) {
		s, _ = secure()
		home = "https://shop.test:" + strconv.Itoa(s.httpsPort)
		var err error
		idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), s.authority, testkit.OIDCSettings{
			Clients: []testkit.OIDCClient{{ID: "shop", Secret: clientSecret, RedirectURIs: []string{home + "/callback"}}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = idp.Kill() })
		s.trust(idp)
		post(s.api, "/secret", "Secret_name=cookies", "Secret_value="+cookieSecret)
	})

	It("reports success for each step", func() {
		s.serve("shop", "shop.test", "shop.test")
		staff(known())
		code, t := s.tryLogin("shop")
		Expect(t.results()).To(Equal(map[string]string{
			"login": "ok", "keys": "unclear", "configuration": "ok", "certificate": "ok", "gateway": "ok", "scripts": "ok", "authorization": "ok", "secret": "ok",
		}), "%+v", t)
		Expect(code).To(BeZero())
		Expect(t.URL).To(Equal(home + "/"))
		Expect(t.of("gateway")).To(ContainSubstring(idp.Issuer + "/auth, with PKCE (S256), state and scopes openid email"))
		By("as a table")
		out := cliOf(s.Gatehouse).good("login", "test", "shop", "-o", "table", "--proxy", "gw", "--url", home)
		Expect(out).To(HavePrefix(home + "/\nok       login          /filter/staff requires it, as client \"shop\"\n"))
		By("of a provider that publishes its endpoints")
		_, t = change(nil)
		Eventually(func() map[string]string { // it may answer late
			_, t = s.tryLogin("shop")
			return t.results()
		}).Should(Equal(map[string]string{
			"login": "ok", "discovery": "ok", "keys": "ok", "configuration": "ok", "certificate": "ok", "gateway": "ok", "scripts": "ok",
			"authorization": "ok", "secret": "ok",
		}))
		Expect(t.of("keys")).To(HavePrefix(idp.Issuer + "/jwks has 2 that verify signatures"))
	})

	It("reports what is wrong, and what to do", func(ctx SpecContext) {
		s.serve("shop", "shop.test", "shop.test")
		By("a wrong secret")
		staff(map[string]any{"client_secret": "another-than-" + clientSecret[:2]})
		code, t := s.tryLogin("shop")
		Expect(code).To(Equal(1))
		Expect(t.results()).To(And(HaveKeyWithValue("secret", "failed"), HaveKeyWithValue("authorization", "ok")), "%+v", t)
		Expect(t.of("secret")).To(And(ContainSubstring("refuses the client: invalid_client"),
			ContainSubstring(`write the client_secret that the identity provider has assigned for client "shop"`)))
		By("an unregistered redirect URI")
		code, t = change(map[string]any{"redirect_uri": "/other"})
		Expect(code).To(Equal(1))
		Expect(t.OK).To(BeFalse())
		Expect(t.results()).To(And(HaveKeyWithValue("secret", "ok"), HaveKeyWithValue("authorization", "failed")), "%+v", t)
		Expect(t.of("authorization")).To(ContainSubstring("register " + home + `/other at the identity provider, exactly so, as a redirect URI of client "shop"`))
		By("an unknown client")
		_, t = change(map[string]any{"client_id": "nobody"})
		Expect(t.results()).To(And(HaveKeyWithValue("secret", "failed"), HaveKeyWithValue("authorization", "failed")), "%+v", t)
		Expect(t.of("authorization")).To(ContainSubstring("write the client_id that the identity provider has assigned"))
		By("an issuer with a trailing slash")
		_, t = change(map[string]any{"issuer": idp.Issuer + "/"})
		Expect(t.results()).To(Equal(map[string]string{"login": "ok", "discovery": "failed", "configuration": "failed", "certificate": "ok"}), "%+v", t)
		Expect(t.of("discovery")).To(ContainSubstring("names the issuer " + idp.Issuer + ", not " + idp.Issuer + "/: write the one that it names"))
		By("a provider that is down")
		Expect(idp.Kill()).To(Succeed())
		_, t = change(known())
		Expect(t.results()).To(Equal(map[string]string{
			"login": "ok", "keys": "unclear", "configuration": "ok", "certificate": "ok", "gateway": "ok", "scripts": "ok", "authorization": "unclear", "secret": "failed",
		}), "%+v", t)
		Expect(t.of("secret")).To(ContainSubstring("refuses connections: is the provider running there?"))
	})

	It("reports that a login requires a certificate, and a service a login", func() {
		s.serve("shop", "shop.test")
		code, _, stderr := cliOf(s.Gatehouse).run("login", "test", "shop")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`service "shop" requires no login; attach a filter of type http_filter_oidc to it, with gatehouse attach filter/NAME service/shop`))
		staff(nil)
		code, t := s.tryLogin("shop")
		Expect(code).To(Equal(1))
		Expect(t.results()).To(And(HaveKeyWithValue("certificate", "failed"), HaveKeyWithValue("gateway", "unclear"), HaveKeyWithValue("authorization", "ok")), "%+v", t)
		Expect(t.of("certificate")).To(And(ContainSubstring("browsers keep its cookies over https only"), ContainSubstring("gatehouse attach secret/NAME service/shop")))
		By("and what else cannot be tested")
		for _, c := range [][]string{
			{"--proxy", "no", `the link from proxy "no" to service "shop" does not exist`},
			{"--url", "https://other.test/", `its host other.test is not that of service "shop"`},
			{"--url", "http://shop.test/", "a login needs https"},
		} {
			code, _, stderr := cliOf(s.Gatehouse).run("login", "test", "shop", c[0], c[1])
			Expect(code).To(Equal(1))
			Expect(stderr).To(ContainSubstring(c[2]))
		}
	})

	It("tests the login that a global config requires, and reports that a public service requires none", func() {
		s.serve("shop", "shop.test", "shop.test")
		post(s.api, "/secret", "Secret_name=client", "Secret_value="+clientSecret)
		post(s.api, "/globalconfig", "globalconfig_name=sso", "globalconfig_type=globalconfig_oauth", `config={"openid_connect": {
			"provider": {"issuer": "`+idp.Issuer+`"}, "client_id": "shop", "client_secret": "client", "hmac_secret": "cookies", "upstream": "idp",
			"redirect_url": "%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback", "redirect_path_matcher": "/callback"}}`)
		applied(s.api, http.MethodPost, "/proxy/gw/globalconfig/sso")
		var t loginTest
		Eventually(func() (code int) {
			code, t = s.tryLogin("shop")
			return code
		}).Should(BeZero())
		Expect(t.of("login")).To(HavePrefix("/globalconfig/sso requires it"))
		Expect(t.Steps).To(HaveLen(9))
		applied(s.api, http.MethodPatch, "/service/shop", "Public=true")
		code, _, stderr := cliOf(s.Gatehouse).run("login", "test", "shop")
		Expect(code).To(Equal(1))
		Expect(stderr).To(ContainSubstring(`service "shop" requires no login`))
	})
})
