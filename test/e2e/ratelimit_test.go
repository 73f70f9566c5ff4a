package e2e_test

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// rates returns a globalconfig_ratelimit with one rule by client address. The end of a
// week during a spec is very unlikely.
func rates(requests int) string {
	return fmt.Sprintf(`{"domain":"edge","descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":%d}}]}`, requests)
}

var _ = Describe("A rate limit", func() {
	// limited runs a gateway whose route is limited by client address.
	limited := func(config string) gateway {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+config)
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit",
			`Filter_config={"descriptors":[{"remote_address":"client"}]}`)
		post(gw.api, "/proxy/gw/globalconfig/rates?wait=applied")
		post(gw.api, "/service/shop/route/root/filter/limit?wait=applied")
		return gw
	}
	// count sends requests from several clients at the same time and counts the
	// answers.
	count := func(gw gateway, clients, each int) map[string]int {
		var mu sync.Mutex
		var group sync.WaitGroup
		seen := map[string]int{}
		for range clients {
			group.Go(func() {
				for range each {
					a := gw.answers("shop.example", "/")
					mu.Lock()
					seen[a]++
					mu.Unlock()
				}
			})
		}
		group.Wait()
		return seen
	}

	DescribeTable("allows exactly this many requests", func(clients int) {
		gw := limited(rates(5))
		Expect(count(gw, clients, 128/clients)).To(Equal(map[string]int{"blue": 5, "429": 123}))
		a := gw.get("shop.example", "/")
		Expect(a.Header.Get("x-ratelimit-limit")).To(Equal("5, 5;w=604800"))
		Expect(a.Header.Get("x-ratelimit-remaining")).To(Equal("0"))
		Expect(a.Header.Get("retry-after")).To(MatchRegexp(`^[0-9]{1,6}$`), "seconds until the week is over")
		Expect(a.Header.Get("content-type")).To(Equal("text/plain"))
		Expect(a.Body).To(Equal("the limit for this route is reached\n"))
	},
		Entry("to 1 client", 1),
		Entry("to 64 clients at once", 64),
	)

	It("applies with a change from its answer on, and keeps its counts", func() {
		gw := limited(rates(5))
		Expect(count(gw, 1, 8)).To(Equal(map[string]int{"blue": 5, "429": 3}))
		patch := func(config string) {
			GinkgoHelper()
			a, err := gw.api.Do(limit(), http.MethodPatch, "/globalconfig/rates?wait=applied", "application/json", `{"config":`+config+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		}
		patch(rates(10)) // the 3 that were over count too
		Expect(count(gw, 1, 4)).To(Equal(map[string]int{"blue": 2, "429": 2}))
		patch(rates(1000))
		Expect(count(gw, 1, 4)).To(Equal(map[string]int{"blue": 4}))
	})

	It("is added, changed and removed without losing a request", func() {
		_, gw, _ := shop("--access-log", "off")
		traffic, stop := gw.traffic("shop.example", 1000)
		for i := range 5 {
			post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+rates(1_000_000+i))
			post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit",
				`Filter_config={"descriptors":[{"remote_address":"client"}]}`)
			post(gw.api, "/proxy/gw/globalconfig/rates")
			post(gw.api, "/service/shop/route/root/filter/limit?wait=applied")
			Expect(gw.get("shop.example", "/").Header.Get("x-ratelimit-limit")).To(HavePrefix(strconv.Itoa(1_000_000 + i)))
			Expect(served(traffic, "blue")).To(Equal("only blue"))
			remove(gw.api, "/service/shop/route/root/filter/limit")
			remove(gw.api, "/proxy/gw/globalconfig/rates")
			remove(gw.api, "/filter/limit")
			remove(gw.api, "/globalconfig/rates")
		}
		stop()
	})

	It("counts a client even if it makes up X-Forwarded-For", func() {
		gw := limited(rates(5))
		seen := map[string]int{}
		for i := range 10 {
			seen[gw.answers("shop.example", "/", fmt.Sprintf("X-Forwarded-For: 10.0.0.%d", i))]++
		}
		Expect(seen).To(Equal(map[string]int{"blue": 5, "429": 5}))
	})

	It("by path applies whatever the query, and however the path is written", func() {
		_, gw, _ := shop()
		post(gw.api, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit",
			`config={"domain":"edge","descriptors":[{"key":"path","rate_limit":{"unit":"week","requests_per_unit":2}}]}`)
		post(gw.api, "/filter", "Filter_name=limit", "Filter_type=route_filter_ratelimit", `Filter_config={"descriptors":[{"path":"each"}]}`)
		post(gw.api, "/service/shop/route/root/filter/limit?wait=applied")
		var answers []string
		for _, target := range []string{"/login", "/login?a=1", "/login?a=2", "/x/..//login", "/login#b", "/other?a=2"} {
			answers = append(answers, gw.answers("shop.example", target))
		}
		Expect(answers).To(Equal([]string{"blue", "blue", "429", "429", "429", "blue"}))
	})

	It("counts and never limits in shadow mode", func() {
		gw := limited(`{"domain":"edge","shadow":true,"descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":1}}]}`)
		Expect(count(gw, 1, 5)).To(Equal(map[string]int{"blue": 5}))
	})

	It("that the engine would refuse is refused before it is stored", func() {
		_, gw := standalone()
		a, err := gw.api.Post(limit(), "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit",
			`config={"domain":"edge","descriptors":[{"key":"a"},{"key":"a"}]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring("duplicate descriptor composite key"))
	})
})
