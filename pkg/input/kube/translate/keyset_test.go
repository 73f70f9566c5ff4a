package translate_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A key set", func() {
	const (
		hash  = "{SHA}qUqP5cyxm6YcTAhz05Hph5gvu9M=" // of test
		other = "{SHA}C+7Hteo/D9vJXQ3UfzxbwnXaijM=" // of foo
	)
	keys := filter("keys", "http_filter_apikey", `{"keys":"partners"}`)
	guarded := hostOf("  filters: [{name: keys}]\n  routes: [{services: [{name: web, port: 80}]}]")

	It("is the Secret that a RouteFilter names, with the hashes of its keys", func() {
		c := newCluster(webService, guarded, keys)
		c.put(secret("shop/partners", "mobile", hash+"\n", "web", other))
		step := c.step()
		Expect(problems(step, "RouteFilter shop/keys")).To(BeEmpty())
		Expect(find[*model.KeySet](step, model.KeySetKey("shop.partners")).Name).To(Equal("shop.partners"))
		Expect(find[*model.APIKey](step, model.APIKeyKey("shop.partners", "mobile"))).To(Equal(&model.APIKey{KeySet: "shop.partners", Name: "mobile", Hash: hash}))
		Expect(string(find[*model.Filter](step, model.FilterKey("shop.keys")).Config)).To(Equal(`{"keys":"shop.partners"}`))
		By("revoking a key")
		c.put(secret("shop/partners", "web", other))
		Expect(shown(c.step())).To(Equal([]string{"- /keyset/shop.partners/key/mobile"}))
		By("naming the set no longer")
		c.remove("GatewayHost shop/web")
		c.remove("RouteFilter shop/keys")
		Expect(shown(c.step())).To(ContainElements("- /keyset/shop.partners/key/web", "- /keyset/shop.partners"))
	})

	DescribeTable("closes what requires it", func(entry, text, problem string) {
		c := newCluster(webService, guarded, keys)
		if entry != "" {
			c.put(secret("shop/partners", "good", hash, entry, text))
		}
		step := c.step()
		Expect(problems(step, "RouteFilter shop/keys")).To(Equal([]string{"spec.routeFilterConfig.config " + problem}))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
	},
		Entry("if there is no such Secret", "", "", "RefNotFound: Secret shop/partners does not exist"),
		Entry("if an entry is a key and not its hash", "mobile", "c2hvcC5wYXJ0bmVycy9tb2JpbGU6dGVzdA==",
			"Invalid: Secret shop/partners is no key set: its entry mobile must be {SHA} and the base64 of the SHA-1 of a key's secret"),
	)
})
