package e2e_test

import (
	"net/http"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// orderWith changes what is in the global config beside the directory.
func (s ordering) orderWith(config string) {
	GinkgoHelper()
	applied(s.api, http.MethodPatch, "/globalconfig/authority",
		`config={"directory":"`+s.pebble.Directory+`","terms_agreed":true,"ca_certificate":"directory"`+config+`}`)
}

var _ = Describe("An authority", func() {
	It("that binds accounts says in its words what is wrong with the external account", func() {
		key := "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W"
		s := order(testkit.PebbleOptions{ExternalAccounts: map[string]string{"kid-1": key}}, "")
		failing := func(words, advice string) {
			GinkgoHelper()
			Eventually(stateOf(s.api, "shop.test"), orderTime).Should(HavePrefix("failing: " + words))
			Expect(certificatesOf(s.api)["shop.test"].Advice).To(ContainSubstring(advice))
			condition := read(s.api, "/service/shop")
			Expect(condition).To(ContainSubstring(words))
			Expect(condition).NotTo(ContainSubstring(key[:16]))
		}
		automatic(s.api, "shop", "shop.test")
		failing("externalAccountRequired: ", "the authority wants external_account")
		By("a name that it does not know")
		s.orderWith(`,"external_account":{"key_id":"kid-2","hmac_key":"` + key + `"}`)
		Expect(renew(s.api, "shop.test").Status).To(Equal(200))
		failing("unauthorized: the field 'kid' references a key that is not known", "correct external_account")
		By("another key")
		s.orderWith(`,"external_account":{"key_id":"kid-1","hmac_key":"AAAA` + key[4:] + `"}`)
		Expect(renew(s.api, "shop.test").Status).To(Equal(200))
		failing("unauthorized: external account binding JWS verification error", "correct external_account")
		By("the right one")
		s.orderWith(`,"external_account":{"key_id":"kid-1","hmac_key":"` + key + `"}`)
		Expect(renew(s.api, "shop.test").Status).To(Equal(200))
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		for _, text := range []string{read(s.api, "/globalconfig/authority"), s.Stderr.String(), read(s.api, "/config?secrets=sealed")} {
			Expect(text).NotTo(ContainSubstring(key[:16]))
		}
	})

	It("may forget everything and change its roots", func() {
		s := order(testkit.PebbleOptions{}, "")
		automatic(s.api, "shop", "shop.test")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		first := certificatesOf(s.api)["shop.test"].Serial
		Expect(s.pebble.Restart(limit())).To(Succeed())

		By("the authority of its directory is not known")
		Expect(renew(s.api, "shop.test").Status).To(Equal(200))
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(ContainSubstring("certificate signed by unknown authority"))
		Expect(s.serialOf("shop.test")).To(Equal(first), "it is served all along")
		By("it is; the account and the certificate to replace are not known there")
		applied(s.api, http.MethodPatch, "/secret/directory", "Secret_cert="+url.QueryEscape(s.pebble.Authority.PEM))
		s.authority = rootOf(s.pebble)
		Eventually(func() string {
			if stateOf(s.api, "shop.test")() != "issued" {
				renew(s.api, "shop.test") // the account first, and then the order
			}
			return s.serialOf("shop.test")
		}, orderTime, "500ms").Should(MatchRegexp("^[0-9a-f]+$"), "of the new root")
		Expect(s.serialOf("shop.test")).NotTo(Equal(first))
	})
})

var _ = Describe("A limit of an authority", func() {
	It("holds for the replica that takes over", func() {
		i, port := newInstallation(), freePort()
		p := pebbleWith(testkit.PebbleOptions{HTTPPort: port})
		one := i.replica("--provider-allow", "127.0.0.1")
		addUpstream(one.API, backend("blue"))
		addProxy(one.API, "gw", port)
		orderFrom(one.API, p, "")
		p.Answer(once(testkit.PebbleNewOrder, func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Retry-After", "3600")
			p.Problem(w, http.StatusTooManyRequests, "rateLimited", "too many certificates for limited.test")
			return true
		}))
		envoy := envoyFor("gw", one.XDSAddr)
		automatic(one.API, "a", "a.limited.test")
		Eventually(stateOf(one.API, "a.limited.test"), orderTime).Should(HavePrefix("failing: rateLimited: "))
		two := i.replica("--provider-allow", "127.0.0.1")
		Expect(envoy.Kill()).To(Succeed())
		envoyFor("gw", two.XDSAddr)
		_, err := one.Stop(limit())
		Expect(err).NotTo(HaveOccurred())
		automatic(two.API, "b", "b.limited.test")
		automatic(two.API, "c", "c.test")
		Eventually(stateOf(two.API, "c.test"), orderTime).Should(Equal("issued"))
		Eventually(stateOf(two.API, "b.limited.test")).Should(HavePrefix("waiting: the authority limits orders for limited.test until "))
		Expect(p.Count(testkit.PebbleNewOrder)).To(Equal(2))
	})
})
