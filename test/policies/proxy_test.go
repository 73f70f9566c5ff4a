package policies_test

import (
	"fmt"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// statusOf returns the status of a request from an address.
func (w *world) statusOf(host, path, from string, header ...string) func() int {
	return func() int { return w.send(request{host: host, path: path, from: from, header: header}).status }
}

var _ = Describe("A filter of a proxy", func() {
	var w *world
	filter := func(name, kind, config string) {
		GinkgoHelper()
		w.post("/filter", "Filter_name="+name, "Filter_type="+kind, "Filter_config="+config)
	}

	It("that combines cannot be weakened by what is on a service or route, and reaches every host", func() {
		w = newWorld(ipAccess())
		before := w.listeners()
		filter("wide", "vh_filter_ipaccess", `{"allow":["127.0.0.2"]}`)
		filter("everybody", "vh_filter_ipaccess", `{"allow":["0.0.0.0/0"]}`)
		w.attach("/proxy/gw/filter/wide", "/service/shop/filter/everybody", "/service/shop/route/root/filter/everybody")
		w.post("/service/shop/route?wait=applied", "Route_Name=public", "Route_prefix=/public", `Route_config={"public":true}`)
		w.post("/service/shop/route/public/upstream/blue?wait=applied")
		Expect(w.statusOf("shop.test", "/shop", "127.0.0.1")()).To(Equal(403))
		Expect(w.statusOf("shop.test", "/public", "127.0.0.1")()).To(Equal(403))
		Expect(w.statusOf("shop.test", "/shop", "127.0.0.2")()).To(Equal(200))
		Expect(w.statusOf("shop.test", "/public", "127.0.0.2")()).To(Equal(200))

		By("a service that is attached later, and is for many hosts")
		w.post("/service", "Service_Name=late", "fqdn=*.late.test")
		w.post("/service/late/route", "Route_Name=root", "Route_prefix=/")
		w.post("/service/late/route/root/upstream/blue")
		w.post("/proxy/gw/service/late?wait=applied")
		Eventually(w.statusOf("a.late.test", "/", "127.0.0.2")).Should(Equal(200))
		Expect(w.statusOf("a.late.test", "/", "127.0.0.1")()).To(Equal(403))
		Expect(w.statusOf("else.test", "/", "127.0.0.1")()).To(Equal(404), "a host that no service has")

		By("an exempt service, for which an absent filter is a warning")
		a, err := w.api.Do(limit(), http.MethodPatch, "/service/late?wait=applied", "application/json", `{"Exempt_filters":["wide","gone"]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(200), a.Body)
		Expect(a.Header.Values("Gatehouse-Warning")).To(ContainElement(ContainSubstring("gone")), "%v %s", a.Header, a.Body)
		Eventually(w.statusOf("a.late.test", "/", "127.0.0.1")).Should(Equal(200))
		Expect(w.statusOf("shop.test", "/shop", "127.0.0.1")()).To(Equal(403))

		By("the filter is in use until it is detached")
		a, err = w.api.Delete(limit(), "/filter/wide")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict))
		Expect(a.Body).To(ContainSubstring(`"referenced_by":["/proxy/gw"]`))
		var proxies []struct{ Name string }
		w.read("/filter/wide/proxy", "core_db_proxy", &proxies)
		Expect(proxies).To(HaveLen(1))
		w.detach("/proxy/gw/filter/wide")
		Eventually(w.statusOf("shop.test", "/shop", "127.0.0.1")).Should(Equal(200))
		Expect(w.listeners()).To(Equal(before))
	})

	It("that replaces is replaced by that of a service, and that by the one of a route; credentials replace each other", func() {
		w = newWorld(cors())
		for _, from := range []string{"proxy", "service", "route"} {
			filter(from, "vh_filter_cors", `{"origins":["https://`+from+`.test"]}`)
		}
		allowed := func(path string) (list []string) {
			for _, from := range []string{"proxy", "service", "route"} {
				if w.send(request{path: path, header: []string{"Origin: https://" + from + ".test"}}).header.Get("Access-Control-Allow-Origin") != "" {
					list = append(list, from)
				}
			}
			return list
		}
		w.post("/service/shop/route", "Route_Name=other", "Route_prefix=/other")
		w.post("/service/shop/route/other/upstream/blue?wait=applied")
		w.attach("/proxy/gw/filter/proxy")
		Expect([]any{allowed("/shop"), allowed("/other")}).To(Equal([]any{[]string{"proxy"}, []string{"proxy"}}))
		w.attach("/service/shop/filter/service")
		Expect([]any{allowed("/shop"), allowed("/other")}).To(Equal([]any{[]string{"service"}, []string{"service"}}))
		w.attach("/service/shop/route/root/filter/route")
		Expect([]any{allowed("/shop"), allowed("/other")}).To(Equal([]any{[]string{"route"}, []string{"service"}}))
		w.detach("/service/shop/filter/service")
		Expect([]any{allowed("/shop"), allowed("/other")}).To(Equal([]any{[]string{"route"}, []string{"proxy"}}))
	})

	It("that a filter of the service replaces applies to a route that is exempt from that one, and explain says so", func() {
		w = newWorld(cors())
		filter("outer", "cors", `{"origins":["https://outer.test"]}`)
		filter("inner", "cors", `{"origins":["https://inner.test"]}`)
		w.post("/service/shop/route", "Route_Name=other", "Route_prefix=/other")
		w.attach("/service/shop/route/other/upstream/blue", "/proxy/gw/filter/outer", "/service/shop/filter/inner")
		allows := func(path, from string) string {
			return w.send(request{path: path, header: []string{"Origin: https://" + from + ".test"}}).header.Get("Access-Control-Allow-Origin")
		}
		origin := func(path string) []string {
			var list []struct {
				Filters []struct {
					Name string
					From []string
				}
			}
			w.read("/proxy/gw/explain?url=http://shop.test"+path, "core_db_explain", &list)
			for _, f := range list[0].Filters {
				if f.Name == "envoy.filters.http.cors" {
					return f.From
				}
			}
			return nil
		}
		w.exempt(`"service":["inner"]`)
		Eventually(func() string { return allows("/shop", "outer") }).Should(Equal("https://outer.test"))
		Expect([]string{allows("/shop", "inner"), allows("/other", "inner"), allows("/other", "outer")}).To(Equal([]string{"", "https://inner.test", ""}))
		Expect(origin("/shop")).To(Equal([]string{"/proxy/gw/filter/outer"}))
		Expect(origin("/other")).To(Equal([]string{"/service/shop/filter/inner"}))
		w.exempt(`"service":["inner"],"proxy":["outer"]`)
		Eventually(func() string { return allows("/shop", "outer") }).Should(BeEmpty())
		Expect(origin("/shop")).To(BeEmpty())
		w.exempt("")
		Eventually(func() string { return allows("/shop", "inner") }).Should(Equal("https://inner.test"))
	})

	It("changes under load without a wrong answer and without a change of a listener", func() {
		w = newWorld(ipAccess())
		before := w.listeners()
		filter("wide", "vh_filter_ipaccess", `{"deny":["127.0.0.1"]}`)
		var times phases
		times.begin("200")
		traffic := testkit.StartTraffic(testkit.TrafficOptions{
			Addr: fmt.Sprintf("127.0.0.1:%d", w.port), Host: "shop.test", Path: "/shop", Method: "GET", Rate: 500,
			Judge: func(e testkit.Exchange) error {
				if said := strconv.Itoa(e.Status); !times.allows(said, e.Sent, e.Done) {
					return fmt.Errorf("says %q: %s", said, e.Body)
				}
				return nil
			},
		})
		DeferCleanup(traffic.Stop)
		for range 5 {
			times.begin("200", "403")
			w.attach("/proxy/gw/filter/wide")
			Eventually(w.statusOf("shop.test", "/shop", "127.0.0.1")).Should(Equal(403))
			times.begin("403")
			Consistently(w.statusOf("shop.test", "/shop", "127.0.0.1"), "100ms").Should(Equal(403))
			times.begin("200", "403")
			w.detach("/proxy/gw/filter/wide")
			Eventually(w.statusOf("shop.test", "/shop", "127.0.0.1")).Should(Equal(200))
			times.begin("200")
		}
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty())
		Expect(w.listeners()).To(Equal(before))
	})
})
