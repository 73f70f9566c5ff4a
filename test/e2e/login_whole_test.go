package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A whole login", Ordered, ContinueOnFailure, func() {
	var l *loginLab

	BeforeAll(func() {
		l = newLoginLab()
		l.protect("shop", "shop.test", map[string]any{
			"scopes": []string{"email"}, "claim_headers": map[string]string{"x-user": "email", "x-subject": "sub", "x-level": "level"},
		})
		addRoute(l.api, "shop", "public", "/public", `{"public":true}`, "blue")
		l.serve("open", "open.test", "open.test")
		l.protect("bank", "bank.test", map[string]any{"require": map[string]any{"groups": []string{"staff", "owners"}}, "forward_tokens": true})
	})

	It("sends a browser to the provider, with PKCE, and keeps the cookies of the flow on the callback path", func() {
		b := l.browser()
		v := l.ask(b, http.MethodGet, "shop.test", "/deep?a=b&c=d%20e")
		Expect(v.Status).To(Equal(http.StatusFound))
		to, err := v.Location()
		Expect(err).NotTo(HaveOccurred())
		Expect(to.Scheme + "://" + to.Host + to.Path).To(Equal(idp.Issuer + "/auth"))
		q := to.Query()
		Expect(q.Get("client_id")).To(Equal("shop"))
		Expect(q.Get("response_type")).To(Equal("code"))
		Expect(q.Get("redirect_uri")).To(Equal(l.at("shop.test", "/callback")))
		Expect(strings.Fields(q.Get("scope"))).To(ConsistOf("openid", "email"))
		Expect(q.Get("code_challenge_method")).To(Equal("S256"))
		challenge, err := base64.RawURLEncoding.DecodeString(q.Get("code_challenge"))
		Expect(err).NotTo(HaveOccurred())
		Expect(challenge).To(HaveLen(sha256.Size))
		Expect(q.Get("state")).NotTo(BeEmpty())

		cookies := set(v)
		Expect(cookies).To(HaveLen(4))
		for _, name := range []string{"OauthNonce", "OauthNonce.FLOW", "CodeVerifier", "CodeVerifier.FLOW"} {
			Expect(cookies).To(HaveKey(name))
			c := cookies[name]
			Expect([]any{c.Secure, c.HttpOnly, c.SameSite, c.Path, c.Domain, c.MaxAge}).To(Equal([]any{true, true, http.SameSiteLaxMode, "/callback", "", 600}), name)
		}
		By("so that no other request carries them, however many logins began")
		for range 3 {
			v = l.ask(b, http.MethodGet, "shop.test", "/")
			Expect(v.Sent).NotTo(HaveKey("Cookie"))
		}
	})

	It("returns a user to the requested URL, with claims for the upstream and without tokens", func() {
		b := l.browser()
		tokens := calls("/token")
		v := l.open(b, "shop.test", "/deep?a=b&c=d%20e", "anna")
		Expect(v.URL.String()).To(Equal(l.at("shop.test", "/deep?a=b&c=d%20e")))
		e := echo(v)
		Expect(e.Path).To(Equal("/deep?a=b&c=d%20e"))
		Expect(e.Headers.Values("X-User")).To(Equal([]string{"anna@shop.test"}))
		Expect(e.Headers.Values("X-Subject")).To(Equal([]string{"anna"}))
		Expect(e.Headers.Values("X-Level")).To(Equal([]string{"7"}))
		Expect(e.Headers).NotTo(HaveKey("Authorization"))
		Expect(calls("/token") - tokens).To(Equal(1))
		Expect(visits(b, l.httpsPort)).To(Equal([]string{"302 /deep", "302 /callback", "200 /deep"}))

		callback := b.Visits[len(b.Visits)-2]
		cookies := set(callback)
		for _, name := range []string{"OauthHMAC", "OauthExpires", "BearerToken", "IdToken"} {
			Expect(cookies).To(HaveKey(name))
			c := cookies[name]
			Expect([]any{c.Secure, c.HttpOnly, c.SameSite, c.Path, c.Domain}).To(Equal([]any{true, true, http.SameSiteLaxMode, "/", ""}), name)
			Expect(c.MaxAge).To(BeNumerically("~", 3600, 5), name)
			Expect(c.Value).NotTo(ContainSubstring("eyJ"), "%s is encrypted", name)
		}
		Expect(cookies).NotTo(HaveKey("RefreshToken"))
		By("with the cookies of the application, and no others, at the upstream")
		b.Cookies = append(b.Cookies, testkit.Cookie{Cookie: http.Cookie{Name: "cart", Value: "1", Path: "/"}, Host: "shop.test", HostOnly: true})
		e = echo(l.ask(b, http.MethodGet, "shop.test", "/next"))
		sent := strings.Join(e.Headers.Values("Cookie"), "; ")
		Expect(sent).To(ContainSubstring("cart=1"))
		Expect(sent).NotTo(Or(ContainSubstring("Token"), ContainSubstring("eyJ"), ContainSubstring("Oauth"), ContainSubstring("CodeVerifier")))
		By("for every method, and on every path")
		for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
			Expect(echo(l.ask(b, method, "shop.test", "/api", "X-Requested-With: XMLHttpRequest")).Method).To(Equal(method))
		}
		By("without calling the provider again")
		Expect(calls("/token") - tokens).To(Equal(1))
	})

	DescribeTable("returns 401, and starts no login, for a script or a program with", func(method string, header ...string) {
		before := l.blue.Requests()
		v := l.ask(l.browser(), method, "shop.test", "/api", header...)
		Expect(v.Status).To(Equal(http.StatusUnauthorized))
		Expect(v.Header).NotTo(HaveKey("Location"))
		Expect(v.Header).NotTo(HaveKey("Set-Cookie"))
		Expect(l.blue.Requests()).To(Equal(before))
	},
		Entry("XMLHttpRequest", "GET", "X-Requested-With: XMLHttpRequest"),
		Entry("in lower case", "GET", "X-Requested-With: xmlhttprequest"),
		Entry("fetch", "GET", "Sec-Fetch-Mode: cors"),
		Entry("fetch of its own origin", "GET", "Sec-Fetch-Mode: same-origin"),
		Entry("JSON", "GET", "Accept: application/json"),
		Entry("POST", "POST"),
		Entry("PUT", "PUT"),
		Entry("DELETE", "DELETE"),
		Entry("OPTIONS", "OPTIONS"),
		Entry("a websocket", "GET", "Sec-Fetch-Mode: websocket"),
	)

	It("returns 401 to a websocket upgrade, and allows one after a login", func() {
		upgrade := []string{"Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="}
		Expect(l.raw("shop.test", "/", upgrade...)).To(HavePrefix("HTTP/1.1 401"))
		b := l.loggedIn("anna", "shop.test")
		Expect(l.raw("shop.test", "/", append(upgrade, "Cookie: "+cookiesFor(b, "shop.test"))...)).To(HavePrefix("HTTP/1.1 101"))
	})

	It("does not affect another service, or a public route", func() {
		b := l.browser()
		Expect(echo(l.ask(b, http.MethodGet, "open.test", "/", "Cookie: IdToken=junk; OauthHMAC=junk", "Authorization: Bearer junk")).Headers).To(
			And(HaveKeyWithValue("Authorization", []string{"Bearer junk"}), HaveKeyWithValue("Cookie", []string{"IdToken=junk; OauthHMAC=junk"})))
		e := echo(l.ask(b, http.MethodGet, "shop.test", "/public", "Authorization: Bearer own"))
		Expect(e.Headers).To(HaveKeyWithValue("Authorization", []string{"Bearer own"}))
		Expect(echo(l.ask(b, http.MethodPost, "shop.test", "/public/form")).Method).To(Equal("POST"))
		Expect(b.Cookies).To(BeEmpty())
		By("even with the cookies of a login, which do not reach its upstream")
		e = echo(l.ask(l.loggedIn("anna", "shop.test"), http.MethodGet, "shop.test", "/public"))
		Expect(strings.Join(e.Headers.Values("Cookie"), "; ")).NotTo(ContainSubstring("eyJ"))
	})

	It("allows only users with the claims that the service requires, with their tokens if the service wants them", func() {
		b := l.browser()
		v := l.open(b, "bank.test", "/", "anna")
		e := echo(v)
		sent := strings.Join(e.Headers.Values("Cookie"), "; ")
		Expect(sent).To(And(ContainSubstring("BearerToken"), ContainSubstring("IdToken")))
		_, access, _ := strings.Cut(e.Headers.Get("Authorization"), "Bearer ")
		Expect(access).NotTo(BeEmpty())
		Expect(sent).To(ContainSubstring("=" + access))

		b = l.browser()
		before := l.blue.Requests()
		v = l.open(b, "bank.test", "/", "bert")
		Expect(v.Status).To(Equal(http.StatusForbidden))
		Expect(l.blue.Requests()).To(Equal(before))
		By("others can use a service that does not require the claim")
		Expect(echo(l.open(b, "shop.test", "/", "")).Headers.Get("X-User")).To(Equal("bert@shop.test"))
	})

	It("applies to each of two services separately, with one session at the provider", func() {
		b := l.loggedIn("anna", "shop.test")
		v := l.ask(b, http.MethodGet, "bank.test", "/")
		Expect(query(v).Get("client_id")).To(Equal("bank"))
		By("without a form")
		Expect(echo(l.open(b, "bank.test", "/", "")).Path).To(Equal("/"))
		By("neither's cookies are valid for the other")
		for _, c := range [][2]string{{"shop.test", "bank.test"}, {"bank.test", "shop.test"}} {
			stranger := l.browser()
			for _, k := range b.Cookies.Named("") {
				if k.Host == c[0] {
					k.Host = c[1]
					stranger.Cookies = append(stranger.Cookies, k)
				}
			}
			Expect(stranger.Cookies).NotTo(BeEmpty())
			Expect(l.ask(stranger, http.MethodGet, c[1], "/").Status).To(Equal(http.StatusFound))
		}
	})

	It("ends at the provider too", func() {
		b := l.loggedIn("anna", "shop.test")
		v := l.ask(b, http.MethodGet, "shop.test", "/logout")
		Expect(v.Status).To(Equal(http.StatusFound))
		to, err := v.Location()
		Expect(err).NotTo(HaveOccurred())
		Expect(to.Scheme + "://" + to.Host + to.Path).To(Equal(idp.Issuer + "/session/end"))
		Expect(to.Query().Get("post_logout_redirect_uri")).To(Equal(l.at("shop.test", "/")))
		Expect(to.Query().Get("id_token_hint")).To(HavePrefix("eyJ"))
		Expect(hostCookies(b, "shop.test")).To(BeEmpty())
		By("after a confirmation there")
		page, err := b.Follow(limit(), testkit.Request{URL: to.String(), Initiator: "shop.test"})
		Expect(err).NotTo(HaveOccurred())
		page, err = b.Submit(limit(), page, nil)
		Expect(err).NotTo(HaveOccurred())
		Expect(page.URL.Port()).To(Equal(strconv.Itoa(idp.Port)), "the way back leads to a new login, %s", page.URL)
		Expect(page.Body).To(ContainSubstring(`name="password"`))
	})
})

// hostCookies returns the cookies of one host.
func hostCookies(b *testkit.Browser, host string) testkit.Cookies {
	var list testkit.Cookies
	for _, k := range b.Cookies {
		if k.Host == host {
			list = append(list, k)
		}
	}
	return list
}

// cookiesFor returns the Cookie header for the page / of a host.
func cookiesFor(b *testkit.Browser, host string) string {
	var pairs []string
	for _, k := range hostCookies(b, host) {
		if k.Path == "/" {
			pairs = append(pairs, k.Name+"="+k.Value)
		}
	}
	return strings.Join(pairs, "; ")
}
