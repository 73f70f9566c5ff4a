package e2e_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The first rate limit of a proxy, and the removal of the last", func() {
	const route = "/service/shop/route/limited"

	It("change no listener, and close no connection", func() {
		s, _ := secure("--access-log", "off")
		s.serve("shop", "shop.test", "shop.test")
		addRoute(s.api, "shop", "limited", "/limited", "", "blue")
		Eventually(func() int { return s.answersTo("shop.test") }).Should(Equal(http.StatusOK))
		change := func(method, path string, fields ...string) {
			GinkgoHelper()
			applied(s.api, method, path, fields...)
		}
		addFilter := func(name, config string) {
			GinkgoHelper()
			post(s.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_ratelimit", "Filter_config="+config)
		}
		answers := func(requests int) (list []string) {
			GinkgoHelper()
			for range requests {
				a := s.get("shop.test", "/limited")
				list = append(list, strings.TrimSpace(a.Header.Get("retry-after")+" "+a.Header.Get("x-ratelimit-limit")))
				if a.Status == http.StatusOK {
					list[len(list)-1] = "passed " + a.Header.Get("x-ratelimit-limit")
				}
			}
			return list
		}
		free := []string{"passed "}
		week := MatchRegexp(`^[0-9]{1,6} 1, 1;w=604800$`)

		open := s.openOnes("shop.test")
		before := listenerChanges(adminOf(s.Gatehouse))
		expectSame := func() {
			GinkgoHelper()
			open.expectOpen()
			Expect(listenerChanges(adminOf(s.Gatehouse))).To(Equal(before))
		}

		By("with a filter that states its own limit")
		addFilter("stated", `{"per":"client","limit":"1/week"}`)
		change(http.MethodPost, route+"/filter/stated")
		Expect(answers(2)).To(HaveExactElements(Equal("passed 1, 1;w=604800"), week))
		expectSame()
		change(http.MethodDelete, route+"/filter/stated")
		Expect(answers(2)).To(Equal(append(free, free...)))
		expectSame()

		By("with a filter and a global config, whichever comes first")
		addFilter("counted", `{"descriptors":[{"remote_address":"client"}]}`)
		change(http.MethodPost, route+"/filter/counted")
		Expect(answers(2)).To(Equal(append(free, free...)))
		change(http.MethodPost, "/globalconfig", "globalconfig_name=rates", "globalconfig_type=globalconfig_ratelimit", "config="+rates(1))
		Expect(answers(2)).To(HaveExactElements(Equal("passed 1, 1;w=604800"), week))
		expectSame()

		By("with other answers")
		change(http.MethodPatch, "/globalconfig/rates", `config={"domain":"edge","status":403,"headers":false,"on_error":"deny","descriptors":[{"key":"remote_address","rate_limit":{"unit":"week","requests_per_unit":1}}]}`)
		refused := s.get("shop.test", "/limited")
		Expect(refused.Status).To(Equal(http.StatusForbidden))
		Expect(refused.Body).To(Equal("the limit for this route is reached\n"))
		Expect(refused.Header).NotTo(HaveKey("Retry-After"))
		expectSame()

		By("and without them")
		change(http.MethodDelete, "/globalconfig/rates")
		Expect(answers(2)).To(Equal(append(free, free...)))
		change(http.MethodDelete, route+"/filter/counted")
		Expect(answers(1)).To(Equal(free))
		expectSame()
	})
})
