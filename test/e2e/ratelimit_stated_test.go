package e2e_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A filter that states its own limit", func() {
	// state creates a filter in the short form and attaches it to the route.
	state := func(gw gateway, name, config string) {
		GinkgoHelper()
		post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_ratelimit", "Filter_config="+config)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/"+name)
	}
	answers := func(gw gateway, requests int, headers ...string) (list []string) {
		GinkgoHelper()
		for range requests {
			list = append(list, gw.answers("shop.example", "/", headers...))
		}
		return list
	}

	It("limits each client without a global config, and a change applies from the answer on", func() {
		_, gw, _ := shop()
		state(gw, "each", `{"per":"client","limit":"2/week"}`)
		Expect(answers(gw, 3)).To(Equal([]string{"blue", "blue", "429"}))
		a := gw.get("shop.example", "/")
		Expect(a.Header.Get("x-ratelimit-limit")).To(Equal("2, 2;w=604800"))
		Expect(a.Header.Get("retry-after")).To(MatchRegexp(`^[0-9]{1,6}$`))
		Expect(a.Body).To(Equal("the limit for this route is reached\n"))

		By("keeping its counts under the new number: four were counted")
		changed, err := gw.api.Do(limit(), http.MethodPatch, "/filter/each?wait=applied", "application/json",
			`{"filter_config":{"per":"client","limit":"5/week"}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Status).To(Equal(http.StatusOK), changed.Body)
		Expect(answers(gw, 2)).To(Equal([]string{"blue", "429"}))

		By("reading back as it was written")
		read, err := gw.api.Get(limit(), "/filter/each")
		Expect(err).NotTo(HaveOccurred())
		Expect(read.Body).To(ContainSubstring(`"filter_config":{"per":"client","limit":"5/week"}`))

		By("disappearing with the filter")
		remove(gw.api, "/service/shop/route/root/filter/each?wait=applied")
		remove(gw.api, "/filter/each")
		Expect(answers(gw, 1)).To(Equal([]string{"blue"}))
	})

	It("limits by a header, and by address if it is missing", func() {
		_, gw, _ := shop()
		state(gw, "each", `{"per":"header:X-Api-Key","limit":"2/week"}`)
		Expect(answers(gw, 3, "x-api-key: ann")).To(Equal([]string{"blue", "blue", "429"}))
		Expect(answers(gw, 1, "x-api-key: ben")).To(Equal([]string{"blue"}))
		Expect(answers(gw, 3)).To(Equal([]string{"blue", "blue", "429"}))

		By("even if the value is empty, or reads like a rule of the engine")
		Expect(answers(gw, 3, "x-api-key: ")).To(Equal([]string{"blue", "blue", "429"}))
		Expect(answers(gw, 3, "x-api-key: without_header")).To(Equal([]string{"blue", "blue", "429"}))
	})

	It("counts a request once if it is attached to the service and to the route", func() {
		_, gw, _ := shop()
		state(gw, "each", `{"per":"client","limit":"4/week"}`)
		applied(gw.api, http.MethodPost, "/service/shop/filter/each")
		Expect(answers(gw, 5)).To(Equal([]string{"blue", "blue", "blue", "blue", "429"}))

		By("continuing if it remains on one of the two")
		remove(gw.api, "/service/shop/route/root/filter/each?wait=applied")
		Expect(answers(gw, 1)).To(Equal([]string{"429"}))
	})

	It("limits all clients together, next to a filter with rates of a global config and one that only counts", func() {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+rates(3))
		post(gw.api, "/filter", "Filter_name=full", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/full")
		state(gw, "shadow", `{"per":"client","limit":"0/week","shadow":true}`)
		state(gw, "together", `{"per":"all","limit":"4/week"}`)
		Expect(answers(gw, 4)).To(Equal([]string{"blue", "blue", "blue", "429"}), "the rates of the global config are asked first")
		Expect(gw.get("shop.example", "/").Header.Values("x-ratelimit-limit")).To(Equal([]string{"3, 3;w=604800"}))
		remove(gw.api, "/service/shop/route/root/filter/full?wait=applied")
		Expect(answers(gw, 2)).To(Equal([]string{"blue", "429"}), "three passed")

		By("reporting what was counted")
		counts, err := gw.api.Get(limit(), "/proxy/gw/ratelimit")
		Expect(err).NotTo(HaveOccurred())
		Expect(counts.Body).To(ContainSubstring(`"domain":"stated-by-filters"`))
		Expect(counts.Body).To(ContainSubstring(`"limit":"filter=together","hits":5`))
	})
})
