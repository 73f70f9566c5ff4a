package e2e_test

import (
	"encoding/base64"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A limit by identity", func() {
	// engines are a gateway that counts itself, and one with the stock engine.
	engines := []TableEntry{
		Entry("in the same process", func() gateway { _, gw, _ := shop(); return gw }),
		Entry("in the stock engine", func() gateway { return stockLab(rates(1000)).gw }),
	}
	asked := func(gw gateway, requests int, headers ...string) (list []string) {
		GinkgoHelper()
		for range requests {
			list = append(list, gw.answers("shop.example", "/", headers...))
		}
		return list
	}
	attach := func(gw gateway, place, name, kind, config string) {
		GinkgoHelper()
		post(gw.api, "/filter", "Filter_name="+name, "Filter_type="+kind, "Filter_config="+config)
		applied(gw.api, http.MethodPost, place+"/filter/"+name)
	}
	const service, route = "/service/shop", "/service/shop/route/root"

	DescribeTable("counts each user of a token", func(start func() gateway) {
		gw := start()
		issuer := testkit.NewTokenIssuer("https://issuer.test", "one")
		bearer := func(claims map[string]any) string { return "Authorization: Bearer " + issuer.Token(claims) }
		attach(gw, route, "each", "route_filter_ratelimit", `{"per":"claim:user","limit":"2/week"}`)
		By("nobody, while nothing verifies the identity")
		Expect(asked(gw, 3, bearer(map[string]any{"user": "ann"}))).To(Equal([]string{"blue", "blue", "blue"}))
		attach(gw, service, "tokens", "http_filter_jwt", `{"issuer":"https://issuer.test","jwks":`+issuer.JWKS()+`}`)
		By("whichever of the tokens it is")
		Expect(asked(gw, 2, bearer(map[string]any{"user": "ann"}))).To(Equal([]string{"blue", "blue"}))
		Expect(asked(gw, 2, bearer(map[string]any{"user": "ann", "jti": "2"}), "X-User: ben")).To(Equal([]string{"429", "429"}))
		Expect(asked(gw, 3, bearer(map[string]any{"user": "ben"}))).To(Equal([]string{"blue", "blue", "429"}))
		By("and nobody whose token does not have it as text, or who has none")
		for _, user := range []any{7, true, nil, []string{"ann"}, map[string]any{"ann": "ann"}, ""} {
			Expect(asked(gw, 3, bearer(map[string]any{"user": user}))).To(Equal([]string{"blue", "blue", "blue"}))
		}
		Expect(asked(gw, 1)).To(Equal([]string{"401"}))

		By("even if the token is required by the route")
		remove(gw.api, service+"/filter/tokens?wait=applied")
		applied(gw.api, http.MethodPost, route+"/filter/tokens")
		Expect(asked(gw, 1, bearer(map[string]any{"user": "ben"}))).To(Equal([]string{"429"}))
		Expect(asked(gw, 1, bearer(map[string]any{"user": "cleo"}))).To(Equal([]string{"blue"}))
	}, engines)

	DescribeTable("counts each client of an API key", func(start func() gateway) {
		gw := start()
		post(gw.api, "/keyset", "Keyset_name=partners")
		key := func(name string) string {
			return "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("partners/"+name+":secret of "+name))
		}
		for _, name := range []string{"mobile", "web"} {
			post(gw.api, "/keyset/partners/key", "Key_name="+name, "Key_hash="+model.HashKey([]byte("secret of "+name)))
		}
		attach(gw, route, "each", "route_filter_ratelimit", `{"per":"api_client","limit":"2/week"}`)
		By("nobody, while nothing requires a key")
		Expect(asked(gw, 3, key("mobile"))).To(Equal([]string{"blue", "blue", "blue"}))
		attach(gw, service, "keys", "http_filter_apikey", `{"keys":"partners"}`)
		By("by its key, whatever other identity it claims")
		Expect(asked(gw, 2, key("mobile"))).To(Equal([]string{"blue", "blue"}))
		Expect(asked(gw, 2, key("mobile"), "X-Client: partners/web")).To(Equal([]string{"429", "429"}))
		Expect(asked(gw, 3, key("web"))).To(Equal([]string{"blue", "blue", "429"}))
		By("and nobody whose key is invalid")
		Expect(asked(gw, 3, "X-Api-Key: x")).To(Equal([]string{"401", "401", "401"}))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/&header=X-Api-Key:"+key("web")[len("X-Api-Key: "):])).To(ContainSubstring("api_client=partners/web"))
	}, engines)

	DescribeTable("counts each consumer, whatever credential it shows", func(start func() gateway) {
		gw := start()
		post(gw.api, "/keyset", "Keyset_name=partners")
		key := func(name string) string {
			return "X-Api-Key: " + base64.StdEncoding.EncodeToString([]byte("partners/"+name+":secret of "+name))
		}
		for _, name := range []string{"mobile", "web", "other", "free"} {
			post(gw.api, "/keyset/partners/key", "Key_name="+name, "Key_hash="+model.HashKey([]byte("secret of "+name)))
		}
		post(gw.api, "/consumer", "Consumer_name=acme", `Consumer_credentials={"keys":["partners/mobile","partners/web"]}`)
		post(gw.api, "/consumer", "Consumer_name=globex", `Consumer_credentials={"keys":["partners/other"]}`)
		attach(gw, service, "keys", "http_filter_apikey", `{"keys":"partners"}`)
		attach(gw, route, "each", "route_filter_ratelimit", `{"per":"consumer","limit":"2/week"}`)
		By("nobody, while nothing finds consumers")
		Expect(asked(gw, 3, key("mobile"))).To(Equal([]string{"blue", "blue", "blue"}))
		attach(gw, service, "known", "http_filter_consumer", `{"required":false}`)
		By("with both keys together, whatever name it claims")
		Expect(asked(gw, 1, key("mobile"))).To(Equal([]string{"blue"}))
		Expect(asked(gw, 2, key("web"), "X-Consumer-Name: globex")).To(Equal([]string{"blue", "429"}))
		Expect(asked(gw, 3, key("other"))).To(Equal([]string{"blue", "blue", "429"}))
		By("and nobody who is no consumer")
		Expect(asked(gw, 3, key("free"))).To(Equal([]string{"blue", "blue", "blue"}))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/&header=X-Api-Key:"+key("web")[len("X-Api-Key: "):])).To(ContainSubstring("consumer=acme"))
	}, engines)
})
