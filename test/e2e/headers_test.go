package e2e_test

import (
	"net/http"
	"regexp"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A filter that changes headers", func() {
	headers := func(gw gateway, name, config string) {
		GinkgoHelper()
		post(gw.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_headers", "Filter_config="+config)
	}
	// listeners are the counters of an Envoy that move with any change of a
	// listener.
	listeners := func(g *testkit.Gatehouse) []string {
		GinkgoHelper()
		stats := read(adminOf(g), "/stats?filter=^listener_manager[.]listener_(added|modified|removed|in_place_updated|create)")
		return regexp.MustCompile(`(?m)^listener_manager.*$`).FindAllString(stats, -1)
	}

	It("sets, adds and removes them, of requests and answers, on a service and a route", func() {
		g, gw, _ := shop()
		before := listeners(g)
		Expect(before).To(ContainElement("listener_manager.listener_added: 1"))
		headers(gw, "team", `{"request":{"set":{"X-Team":"shop","x-share":"100%"},"add":{"x-tag":"service"},"remove":["x-debug"]},
			"response":{"set":{"x-frame-options":"DENY"},"add":{"x-by":"service"},"remove":["X-Backend-Version"]}}`)
		applied(gw.api, http.MethodPost, "/service/shop/filter/team")
		a := gw.get("shop.example", "/", "x-team: other", "x-tag: client", "x-debug: 1")
		Expect(a.Status).To(Equal(http.StatusOK))
		Expect(a.Echo.Headers.Values("X-Team")).To(Equal([]string{"shop"}))
		Expect(a.Echo.Headers.Values("X-Share")).To(Equal([]string{"100%"}))
		Expect(a.Echo.Headers.Values("X-Tag")).To(Equal([]string{"client", "service"}))
		Expect(a.Echo.Headers).NotTo(HaveKey("X-Debug"))
		Expect(a.Header.Values("X-Frame-Options")).To(Equal([]string{"DENY"}))
		Expect(a.Header.Values("X-By")).To(Equal([]string{"service"}))

		By("with the route's changes after those of the service")
		headers(gw, "cart", `{"request":{"set":{"x-team":"cart"},"add":{"x-tag":"route"},"remove":["x-share"]},"response":{"set":{"x-frame-options":"SAMEORIGIN"}}}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/root/filter/cart")
		a = gw.get("shop.example", "/", "x-tag: client")
		Expect(a.Echo.Headers.Values("X-Team")).To(Equal([]string{"cart"}))
		Expect(a.Echo.Headers.Values("X-Tag")).To(Equal([]string{"client", "service", "route"}))
		Expect(a.Echo.Headers).NotTo(HaveKey("X-Share"))
		Expect(a.Header.Values("X-Frame-Options")).To(Equal([]string{"SAMEORIGIN"}))
		Expect(a.Header.Values("X-By")).To(Equal([]string{"service"}))

		By("telling it")
		Expect(read(gw.api, "/proxy/gw/explain?url=http://shop.example/")).To(ContainSubstring(
			"changes headers: of the request removes x-debug, sets x-share, sets x-team, adds x-tag, removes x-share, sets x-team, adds x-tag; " +
				"of the answer removes x-backend-version, sets x-frame-options, adds x-by, sets x-frame-options"))

		By("as changed, and no longer once detached")
		changed, err := gw.api.Do(limit(), http.MethodPatch, "/filter/cart?wait=applied", "application/json", `{"filter_config":{"response":{"remove":["x-backend"]}}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Status).To(Equal(http.StatusOK), changed.Body)
		a = gw.get("shop.example", "/")
		Expect(a.Header).NotTo(HaveKey("X-Backend"))
		remove(gw.api, "/service/shop/route/root/filter/cart?wait=applied")
		remove(gw.api, "/service/shop/filter/team?wait=applied")
		a = gw.get("shop.example", "/", "x-debug: 1")
		Expect(a.Echo.Headers.Values("X-Debug")).To(Equal([]string{"1"}))
		Expect(a.Echo.Headers).NotTo(HaveKey("X-Team"))
		Expect(a.Header).NotTo(HaveKey("X-Frame-Options"))
		Expect(listeners(g)).To(Equal(before), "no listener has changed with it")
	})

	It("changes those of what the gateway answers itself", func() {
		_, gw, _ := shop()
		addRoute(gw.api, "shop", "empty", "/empty", "")
		headers(gw, "frame", `{"response":{"set":{"x-frame-options":"DENY"}}}`)
		applied(gw.api, http.MethodPost, "/service/shop/route/empty/filter/frame")
		gw.expect("shop.example", "/empty", "503")
		a := gw.get("shop.example", "/empty")
		Expect(a.Status).To(Equal(http.StatusServiceUnavailable))
		Expect(a.Header.Values("X-Frame-Options")).To(Equal([]string{"DENY"}))
		Expect(gw.get("shop.example", "/").Header).NotTo(HaveKey("X-Frame-Options"))
	})
})
