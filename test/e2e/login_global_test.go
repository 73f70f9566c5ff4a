package e2e_test

import (
	"encoding/json"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// everywhere creates a globalconfig_oauth with the fields of the specification, and
// these.
func (l *loginLab) everywhere(name, client string, fields map[string]any) {
	GinkgoHelper()
	login := map[string]any{
		"provider":  map[string]any{"issuer": idp.Issuer, "authorization_endpoint": idp.Issuer + "/auth", "token_endpoint": idp.Issuer + "/token"},
		"client_id": client, "client_secret": "client", "hmac_secret": "cookies", "client_secret_namespace": "any", "hmac_secret_namespace": "any",
		"scopes": []string{"email"}, "redirect_url": "%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback", "redirect_path_matcher": "/callback",
		"default_signout_path": "/signout",
	}
	for field, value := range fields {
		login[field] = value
	}
	config := map[string]any{"openid_connect": login}
	if _, named := fields["upstream"]; !named {
		config["external_oauth_service"] = map[string]any{"name": "localhost", "namespace": "any", "port": idp.Port, "protocol": "tls"}
	}
	text, err := json.Marshal(config)
	Expect(err).NotTo(HaveOccurred())
	post(l.api, "/globalconfig", "globalconfig_name="+name, "globalconfig_type=globalconfig_oauth", "config="+string(text))
}

var _ = Describe("The login of a proxy", func() {
	It("applies to each service except public ones and those with a login of their own", func() {
		l := newLoginLab()
		for _, name := range []string{"one", "two", "open"} {
			l.serve(name, name+".test", name+".test")
		}
		l.register("sso", "one.test", "two.test")
		l.protect("own", "own.test", nil)
		addRoute(l.api, "two", "public", "/public", `{"public":true}`, "blue")
		post(l.api, "/secret", "Secret_name=client", "Secret_value="+oddSecret)
		applied(l.api, http.MethodPatch, "/service/open", "Public=true")
		l.everywhere("sso", "sso", map[string]any{"upstream": "idp", "claim_headers": map[string]string{"x-user": "email"}, "require": map[string]any{"groups": []string{"staff"}}})
		applied(l.api, http.MethodPost, "/proxy/gw/globalconfig/sso")
		l.awaitLogin("one.test")
		l.awaitLogin("two.test")

		b := l.browser()
		v := l.open(b, "one.test", "/deep?a=b", "anna")
		Expect(v.URL.String()).To(Equal(l.at("one.test", "/deep?a=b")))
		Expect(echo(v).Headers.Get("X-User")).To(Equal("anna@shop.test"))
		By("with one session at the provider, and one here for each host")
		v = l.ask(b, http.MethodGet, "two.test", "/")
		Expect(query(v).Get("client_id")).To(Equal("sso"))
		Expect(echo(l.open(b, "two.test", "/", "")).Headers.Get("X-User")).To(Equal("anna@shop.test"))
		Expect(echo(l.ask(l.browser(), http.MethodGet, "two.test", "/public")).Headers).NotTo(HaveKey("X-User"))
		Expect(l.ask(l.browser(), http.MethodGet, "two.test", "/", "X-Requested-With: XMLHttpRequest").Status).To(Equal(http.StatusUnauthorized))
		By("no access without the claim")
		Expect(l.open(l.browser(), "one.test", "/", "bert").Status).To(Equal(http.StatusForbidden))
		By("the public service requires no login, and the one with its own filter has its own")
		Expect(echo(l.ask(l.browser(), http.MethodGet, "open.test", "/")).Path).To(Equal("/"))
		v = l.ask(b, http.MethodGet, "own.test", "/")
		Expect(query(v).Get("client_id")).To(Equal("own"))
		Expect(echo(l.open(b, "own.test", "/", "")).Headers).NotTo(HaveKey("X-User"))
		By("until a user signs out of one of them")
		v = l.ask(b, http.MethodGet, "one.test", "/signout")
		to, err := v.Location()
		Expect(err).NotTo(HaveOccurred())
		Expect(to.Port()).To(Equal(strconv.Itoa(idp.Port)))
		Expect(hostCookies(b, "one.test").Named("IdToken")).To(BeEmpty())
		By("detached from the proxy, it applies to all; deleted, it is gone")
		remove(l.api, "/proxy/gw/globalconfig/sso?wait=applied")
		Expect(query(l.ask(l.browser(), http.MethodGet, "one.test", "/")).Get("client_id")).To(Equal("sso"))
		remove(l.api, "/globalconfig/sso?wait=applied")
		Expect(echo(l.ask(l.browser(), http.MethodGet, "one.test", "/")).Path).To(Equal("/"))
		Expect(query(l.ask(l.browser(), http.MethodGet, "own.test", "/")).Get("client_id")).To(Equal("own"))
	})
})
