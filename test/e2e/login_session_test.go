package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The session of a login", Ordered, ContinueOnFailure, func() {
	var l *loginLab
	refreshing := func() map[string]any {
		return map[string]any{
			"scopes": []string{"offline_access"}, "authorization_endpoint": idp.Issuer + "/auth?prompt=consent", "claim_headers": map[string]string{"x-user": "email"},
		}
	}
	// lasting sets how long the tokens of new sessions are valid.
	lasting := func(seconds int) {
		GinkgoHelper()
		Expect(idp.Change(limit(), testkit.OIDCSettings{TTL: map[string]int{"AccessToken": seconds}})).To(Succeed())
	}

	BeforeAll(func() {
		l = newLoginLab()
		l.protect("fresh", "fresh.test", refreshing())
		l.protect("shop", "shop.test", nil)
		l.protect("bare", "bare.test", map[string]any{
			"issuer": nil, "authorization_endpoint": idp.Issuer + "/auth", "token_endpoint": idp.Issuer + "/token",
		})
		l.protect("small", "small.test", map[string]any{"access_token_cookie": false})
	})
	BeforeEach(func() { lasting(3600) })

	It("is renewed without the user, again and again, if it has a refresh token", func() {
		lasting(1)
		for _, rotate := range []bool{false, true} {
			Expect(idp.Change(limit(), testkit.OIDCSettings{RotateRefreshTokens: &rotate})).To(Succeed())
			b := l.loggedIn("anna", "fresh.test")
			Expect(hostCookies(b, "fresh.test").Named("RefreshToken")).To(HaveLen(1))
			started := calls("/auth")
			for range 2 {
				tokens, before := calls("/token"), hostCookies(b, "fresh.test").Named("IdToken")
				Eventually(func() int {
					Expect(echo(l.ask(b, http.MethodGet, "fresh.test", "/")).Headers.Get("X-User")).To(Equal("anna@shop.test"))
					return calls("/token") - tokens
				}).Should(Equal(1))
				Expect(hostCookies(b, "fresh.test").Named("IdToken")).NotTo(Equal(before))
			}
			Expect(calls("/auth")).To(Equal(started))
		}
	})

	It("ends with its refresh token: in a login for a browser, with 401 for a script", func() {
		lasting(1)
		b := l.loggedIn("anna", "fresh.test")
		By("because the provider has forgotten the client")
		Expect(idp.Change(limit(), testkit.OIDCSettings{Clients: l.clients[1:]})).To(Succeed())
		DeferCleanup(func(ctx SpecContext) {
			Expect(idp.Change(ctx, testkit.OIDCSettings{Clients: l.clients})).To(Succeed())
		})
		Eventually(func() int {
			return l.ask(b.Clone(), http.MethodGet, "fresh.test", "/", "X-Requested-With: XMLHttpRequest").Status
		}).Should(Equal(http.StatusUnauthorized))
		Expect(l.ask(b, http.MethodGet, "fresh.test", "/").Header.Get("Location")).To(HavePrefix(idp.Issuer + "/auth?"))
	})

	It("starts again without a form if it has no refresh token, as long as the provider remembers the user", func() {
		lasting(1)
		b := l.loggedIn("anna", "shop.test")
		Expect(hostCookies(b, "shop.test").Named("RefreshToken")).To(BeEmpty())
		Eventually(func() int { return l.ask(b.Clone(), http.MethodGet, "shop.test", "/").Status }).Should(Equal(http.StatusFound))
		Expect(echo(l.open(b, "shop.test", "/again", "")).Path).To(Equal("/again"))
	})

	It("ends only here if the provider has no end_session_endpoint", func() {
		b := l.loggedIn("anna", "bare.test")
		ends := calls("/session/end")
		v := l.ask(b, http.MethodGet, "bare.test", "/logout?any=thing")
		Expect(v.Status).To(Equal(http.StatusFound))
		Expect(v.Header.Get("Location")).To(Equal(l.at("bare.test", "/")))
		for _, name := range []string{"OauthHMAC", "OauthExpires", "BearerToken", "IdToken"} {
			Expect(hostCookies(b, "bare.test").Named(name)).To(BeEmpty(), name)
		}
		Expect(l.ask(b, http.MethodGet, "bare.test", "/").Status).To(Equal(http.StatusFound))
		Expect(echo(l.open(b, "bare.test", "/", "")).Path).To(Equal("/"))
		Expect(calls("/session/end")).To(Equal(ends))
	})

	It("has no access token in the browser if the service does not need it", func() {
		b := l.loggedIn("anna", "small.test")
		Expect(hostCookies(b, "small.test").Named("BearerToken")).To(BeEmpty())
		Expect(echo(l.ask(b, http.MethodGet, "small.test", "/")).Path).To(Equal("/"))
	})

	It("is separate for each host of two services with one filter, and of a wildcard", func() {
		l.register("both", "one.test", "two.test", "x.wild.test", "y.wild.test")
		l.filter("both", "both", nil)
		for name, host := range map[string]string{"one": "one.test", "two": "two.test", "wild": "*.wild.test"} {
			l.serve(name, host, host)
			applied(l.api, http.MethodPost, "/service/"+name+"/filter/both")
		}
		b := l.browser()
		for i, host := range []string{"one.test", "two.test", "x.wild.test", "y.wild.test"} {
			l.awaitLogin(host)
			v := l.ask(b, http.MethodGet, host, "/")
			Expect(query(v).Get("redirect_uri")).To(Equal(l.at(host, "/callback")))
			Expect(l.open(b, host, "/", []string{"anna", "", "", ""}[i]).URL.Hostname()).To(Equal(host))
		}
		stranger := l.browser()
		for _, k := range hostCookies(b, "one.test") {
			k.Host = "two.test"
			stranger.Cookies = append(stranger.Cookies, k)
		}
		Expect(l.ask(stranger, http.MethodGet, "two.test", "/").Status).To(Equal(http.StatusFound))
	})

	It("authenticates the client in Authorization if that is configured", func() {
		l.clients = append(l.clients, testkit.OIDCClient{ID: "basic", Secret: "simple-secret", RedirectURIs: []string{l.at("basic.test", "/callback")}})
		Expect(idp.Change(limit(), testkit.OIDCSettings{Clients: l.clients})).To(Succeed())
		l.serve("basic", "basic.test", "basic.test")
		l.filter("basic", "basic", map[string]any{"client_secret": "simple-secret", "token_endpoint_auth_method": "client_secret_basic"})
		applied(l.api, http.MethodPost, "/service/basic/filter/basic")
		l.awaitLogin("basic.test")
		l.loggedIn("anna", "basic.test")
		l.loggedIn("anna", "shop.test")
		list, err := idp.Requests(limit())
		Expect(err).NotTo(HaveOccurred())
		var schemes []string
		for _, r := range list {
			if r.Path == "/token" {
				schemes = append(schemes, r.Scheme)
			}
		}
		Expect(schemes[len(schemes)-2:]).To(Equal([]string{"Basic", ""}))
	})

	It("is not started over plain HTTP if the service sends users to HTTPS", func() {
		a, err := l.api.Do(limit(), http.MethodPatch, "/service/small?wait=applied", "application/json", `{"https":"redirect"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		r := l.get("small.test:"+strconv.Itoa(l.port), "/deep?a=b")
		Expect(r.Status).To(Equal(http.StatusMovedPermanently))
		Expect(r.Header.Get("Location")).To(Equal(l.at("small.test", "/deep?a=b")))
		Expect(r.Header).NotTo(HaveKey("Set-Cookie"))
	})
})

var _ = Describe("A login without an upstream", func() {
	It("connects to the provider at its endpoints, and trusts the authorities of the system", func() {
		file := filepath.Join(GinkgoT().TempDir(), "authorities.pem")
		Expect(os.WriteFile(file, []byte(idp.Authority.PEM), 0o600)).To(Succeed())
		GinkgoT().Setenv("SSL_CERT_FILE", file)
		l := newLoginLab("--provider-allow", "127.0.0.0/8")
		l.protect("shop", "shop.test", map[string]any{"upstream": nil})
		Expect(echo(l.open(l.browser(), "shop.test", "/deep", "anna")).Path).To(Equal("/deep"))
	})
})
