package e2e_test

import (
	"fmt"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// ratesOf returns rates of a domain.
func ratesOf(domain string, requests int, more string) string {
	return fmt.Sprintf(`{"domain":%q%s,"descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":%d}}]}`,
		domain, more, requests)
}

var _ = Describe("A filter that names a domain", func() {
	addRates := func(gw gateway, name, config string) {
		GinkgoHelper()
		post(gw.api, "/globalconfig", "globalconfig_name="+name, "globalconfig_type=globalconfig_ratelimit", "config="+config)
	}
	// addFilter creates a filter by client address in a domain; empty means the default
	// domain.
	addFilter := func(gw gateway, name, domain string) {
		GinkgoHelper()
		if domain != "" {
			domain = fmt.Sprintf(`"domain":%q,`, domain)
		}
		post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_ratelimit",
			`Filter_config={`+domain+`"descriptors":{"descriptors":[{"remote_address":"client"}]}}`)
	}
	statuses := func(gw gateway, path string, requests int) (list []int) {
		GinkgoHelper()
		for range requests {
			list = append(list, gw.get("shop.example", path).Status)
		}
		return list
	}

	It("counts there, and in the default domain, on one route and on two", func() {
		_, gw, _ := shop()
		addRates(gw, "a-edge", ratesOf("edge", 5, ""))
		addRates(gw, "b-api", ratesOf("a b/ü", 3, `,"status":503`))
		addRates(gw, "c-api", ratesOf("a b/ü", 1, ""))
		addRoute(gw.api, "shop", "api", "/api", "", "blue")
		addFilter(gw, "edge", "")
		addFilter(gw, "api", "a b/ü")
		applied(gw.api, http.MethodPost, "/service/shop/filter/edge")
		applied(gw.api, http.MethodPost, "/service/shop/route/api/filter/api")

		By("using the first domain by name")
		Expect(gw.get("shop.example", "/api").Header.Values("x-ratelimit-limit")).To(ConsistOf("5, 5;w=604800", "3, 3;w=604800"))
		Expect(statuses(gw, "/api", 4)).To(Equal([]int{200, 200, 503, 503}))
		a := gw.get("shop.example", "/api")
		Expect(a.Status).To(Equal(429), "the 6th request of this client; the default domain is asked first")
		Expect(a.Header.Get("retry-after")).To(Equal(a.Header.Get("x-ratelimit-reset")))
		Expect(a.Header.Values("x-ratelimit-limit")).To(Equal([]string{"5, 5;w=604800"}))
		Expect(a.Body).To(Equal("the limit for this route is reached\n"))
		Expect(statuses(gw, "/", 1)).To(Equal([]int{429}), "only the default domain holds here")
	})

	It("answers with the headers, the status and the time of the domain that stopped the request", func() {
		_, gw, _ := shop()
		addRates(gw, "a-edge", ratesOf("edge", 100, `,"headers":false`))
		addRates(gw, "b-api", ratesOf("api", 2, `,"status":403`))
		addRates(gw, "c-quiet", ratesOf("quiet", 1, `,"headers":false`))
		for _, name := range []string{"", "api", "quiet"} {
			addFilter(gw, "by-"+name, name)
		}
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/by-")
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/by-api")
		Expect(statuses(gw, "/", 2)).To(Equal([]int{200, 200}))
		a := gw.get("shop.example", "/")
		Expect(a.Status).To(Equal(403))
		Expect(a.Header.Values("x-ratelimit-limit")).To(Equal([]string{"2, 2;w=604800"}))
		Expect(a.Header.Get("retry-after")).To(MatchRegexp(`^[0-9]{1,6}$`))
		Expect(a.Body).To(Equal("the limit for this route is reached\n"))

		By("without a time if the domain sends no headers")
		remove(gw.api, "/service/shop/route/root/filter/by-api?wait=applied")
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/by-quiet")
		Expect(statuses(gw, "/", 1)).To(Equal([]int{200}))
		a = gw.get("shop.example", "/")
		Expect(a.Status).To(Equal(429))
		Expect(a.Header).NotTo(HaveKey("X-Ratelimit-Limit"))
		Expect(a.Header).NotTo(HaveKey("Retry-After"))
	})

	It("limits on the proxy that has the domain, and not on another", func() {
		g, gw, _ := shop()
		other := gateway{gw.api, freePort()}
		addProxy(gw.api, "other", other.port, "shop")
		envoyFor("other", g.XDSAddr)
		other.expect("shop.example", "/", "blue")
		addRates(gw, "edge", ratesOf("edge", 1000, ""))
		addRates(gw, "api", ratesOf("api", 2, ""))
		post(gw.api, "/proxy/gw/globalconfig/api?wait=applied")
		addFilter(gw, "api", "api")
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/api")
		Expect(statuses(gw, "/", 3)).To(Equal([]int{200, 200, 429}))
		Expect(statuses(other, "/", 3)).To(Equal([]int{200, 200, 200}))
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")).To(ContainSubstring("meets remote_address: 2 each week"))
		Expect(read(gw.api, "/proxy/other/explain?url=http://shop.example/")).To(ContainSubstring("no rates of domain api apply to the proxy"))

		By("limiting there too once it has the domain")
		applied(gw.api, http.MethodPost, "/proxy/other/globalconfig/api")
		Eventually(func() int { return other.get("shop.example", "/").Status }).Should(Equal(429))
	})

	It("that limits nothing is reported by the write and the status, until it does", func() {
		_, gw, _ := shop()
		warning := func(a testkit.Answer) string { return a.Header.Get("Gatehouse-Warning") }
		addFilter(gw, "limit", "ap")
		a := post(gw.api, "/service/shop/route/root/filter/limit")
		Expect(warning(a)).To(Equal("/service/shop/route/root/filter/limit limits nothing: no globalconfig_ratelimit applies (proxy gw)"))
		codes := func() []string { return holding(gw.api, "/filter/limit") }
		Eventually(codes).Should(ContainElement("NoRates"))

		a = post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", `config={"domain":"api","descriptors":[{"key":"path"}]}`)
		Expect(warning(a)).To(HaveSuffix(`no globalconfig_ratelimit of domain "ap" applies; the nearest is "api" (proxy gw)`))
		Eventually(codes).Should(ContainElement("UnknownDomain"))
		Expect(read(gw.api, "/proxy/gw/status")).To(ContainSubstring(`{"path":"/service/shop/route/root/filter/limit","code":"UnknownDomain"`))

		patch := func(path, body string) testkit.Answer {
			GinkgoHelper()
			a, err := gw.api.Do(limit(), http.MethodPatch, path, "application/json", body)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			return a
		}
		a = patch("/filter/limit", `{"filter_config":{"domain":"api","descriptors":[{"remote_address":"client"}]}}`)
		Expect(warning(a)).To(HaveSuffix(`descriptor remote_address meets no rate of domain "api", which has no rates (proxy gw)`))
		Eventually(codes).Should(ContainElement("NoMatchingRate"))
		Expect(codes()).NotTo(ContainElement("UnknownDomain"))

		a = patch("/globalconfig/rates", `{"config":`+ratesOf("api", 1, "")+`}`)
		Expect(warning(a)).To(BeEmpty())
		Eventually(codes).Should(Equal([]string{"Accepted", "Programmed"}))
		Expect(statuses(gw, "/", 2)).To(Equal([]int{200, 429}))

		remove(gw.api, "/service/shop/route/root/upstream/blue")
		Eventually(codes).Should(ContainElement("NotForwarded"))
	})
})
