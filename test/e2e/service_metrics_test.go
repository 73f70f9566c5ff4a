package e2e_test

import (
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// countedGateway is a control plane, and an Envoy that keeps unused series for a chosen time.
type countedGateway struct {
	gateway
	envoy *testkit.Envoy
}

// startCounted starts it with services that blue answers, and mark, which is for settle.
func startCounted(keep string, services ...string) countedGateway {
	GinkgoHelper()
	g, port := serve("--access-log", "off"), freePort()
	blue := backend("blue")
	addUpstream(g.API, blue)
	post(g.API, "/upstream", "Upstream_name=gone", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(freePort()))
	services = append(services, "mark")
	for _, s := range services {
		addService(g.API, s, s+".example", "blue")
	}
	addProxy(g.API, "gw", port, services...)
	bootstrap, err := testkit.PrintBootstrap(limit(), "gw", g.XDSAddr, "--admin-addr", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	const kept = "stats_eviction_interval: 1800s"
	Expect(bootstrap).To(ContainSubstring(kept))
	envoy, err := testkit.RunEnvoy(limit(), GinkgoT().TempDir(),
		strings.Replace(bootstrap, kept, "stats_flush_interval: 1s\nstats_eviction_interval: "+keep, 1))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(envoy.Kill)
	c := countedGateway{gateway{g.API, port}, envoy}
	c.expect(services[0]+".example", "/", "blue")
	return c
}

// count sets what is counted.
func (c countedGateway) count(config string) {
	GinkgoHelper()
	a, err := c.api.Do(limit(), http.MethodPut, "/globalconfig/metrics?wait=applied&timeout=30s", "application/json",
		`{"globalconfig_type":"globalconfig_metrics","config":`+config+`}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(BeElementOf(http.StatusOK, http.StatusCreated), a.Body)
}

// series are those of services, without buckets and sums: "service_duration_milliseconds_count shop 2xx", with the
// values of the labels that are not empty.
func (c countedGateway) series() map[string]float64 {
	GinkgoHelper()
	found := map[string]float64{}
	for _, m := range regexp.MustCompile(`(?m)^envoy_gatehouse_(\w+)\{([^}]*)\} (.*)$`).FindAllStringSubmatch(
		read(c.envoy.Admin, "/stats/prometheus?filter=^gatehouse[.]"), -1,
	) {
		if strings.HasSuffix(m[1], "_bucket") || strings.HasSuffix(m[1], "_sum") {
			continue
		}
		name := m[1]
		for _, label := range regexp.MustCompile(`="([^"]+)"`).FindAllStringSubmatch(m[2], -1) {
			name += " " + label[1]
		}
		n, err := strconv.ParseFloat(m[3], 64)
		Expect(err).NotTo(HaveOccurred())
		found[name] = n
	}
	return found
}

// await waits until a series of the service mark has requests. What is counted is the new one in all threads of the
// Envoy then, since histograms are a second late; and so all earlier requests are in the series that it returns.
func (c countedGateway) await(name string) map[string]float64 {
	GinkgoHelper()
	Eventually(func() map[string]float64 {
		c.ask("mark.example", "/", http.StatusOK, 1)
		return c.series()
	}).Should(HaveKeyWithValue(name, BeNumerically(">", 0)))
	return c.others()
}

// others are the series without those of mark.
func (c countedGateway) others() map[string]float64 {
	GinkgoHelper()
	found := c.series()
	maps.DeleteFunc(found, func(name string, _ float64) bool { return strings.Contains(name, " mark") })
	return found
}

// ask sends requests that must have a status.
func (c countedGateway) ask(host, path string, status, times int) {
	GinkgoHelper()
	for range times {
		Expect(c.get(host, path).Status).To(Equal(status), host+path)
	}
}

var _ = Describe("The metrics of services", func() {
	const requests, routes = "service_duration_milliseconds_count ", "route_duration_milliseconds_count "

	It("count requests by service, class of status and what refused them, with bytes, retries and routes if these are wanted", func() {
		c := startCounted("1800s", "shop", "blog")
		addRoute(c.api, "shop", "gone", "/gone", "", "gone")
		addRoute(c.api, "shop", "cart", "/cart", "", "blue")
		post(c.api, "/filter", "Filter_name=nobody", "Filter_type=vh_filter_ipaccess", `Filter_config={"deny":["0.0.0.0/0"]}`)
		post(c.api, "/service/blog/filter/nobody?wait=applied&timeout=30s")
		c.expect("blog.example", "/", "403")
		Expect(c.series()).To(BeEmpty(), "nothing is counted by default")

		c.count(`{}`)
		Expect(c.await(requests + "mark 2xx")).To(BeEmpty())
		c.ask("shop.example", "/", 200, 7)
		c.ask("shop.example", "/?status=500", 500, 2)
		c.ask("shop.example", "/?status=404", 404, 1)
		c.ask("shop.example", "/gone", 503, 4)
		c.ask("blog.example", "/", 403, 5)
		c.ask("other.example", "/", 404, 6)
		plain := map[string]float64{
			requests + "shop 2xx":              7,
			requests + "shop 5xx":              6,
			requests + "shop 4xx":              1,
			requests + "blog 4xx":              5,
			requests + "4xx":                   6,
			"refusals shop upstream_failed":    4,
			"refusals blog vh_filter_ipaccess": 5,
			"refusals no_route":                6,
		}
		Eventually(c.others).Should(Equal(plain))
		Expect(read(c.envoy.Admin, "/stats/prometheus?filter=^gatehouse[.]")).To(ContainSubstring(
			`envoy_gatehouse_service_duration_milliseconds_bucket{service="shop",status="2xx",le="30000"} 7`))

		By("with everything, and what is counted stays")
		c.count(`{"routes":true,"bytes":true,"retries":true}`)
		Expect(c.await(routes + "mark root 2xx")).To(Equal(plain))
		c.ask("shop.example", "/?bytes=1000", 200, 3)
		c.ask("shop.example", "/cart", 200, 2)
		c.ask("shop.example", "/gone", 503, 1)
		c.ask("blog.example", "/nothing", 403, 1)
		Eventually(c.others).Should(And(
			HaveKeyWithValue(requests+"shop 2xx", float64(12)),
			HaveKeyWithValue(requests+"shop 5xx", float64(7)),
			HaveKeyWithValue(routes+"shop root 2xx", float64(3)),
			HaveKeyWithValue(routes+"shop cart 2xx", float64(2)),
			HaveKeyWithValue(routes+"shop gone 5xx", float64(1)),
			HaveKeyWithValue(routes+"blog root 4xx", float64(1)),
			HaveKeyWithValue("retried_requests shop", float64(1)),
			Not(HaveKey("retried_requests blog")),
			HaveKeyWithValue("request_bytes shop", float64(0)),
			HaveKeyWithValue("response_bytes shop", BeNumerically(">", 3000)),
		))

		By("of a lean proxy too")
		a, err := c.api.Do(limit(), http.MethodPut, "/globalconfig/globals?wait=applied&timeout=30s", "application/json",
			`{"globalconfig_type":"globalconfig_globals","config":{"lean":true}}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		Eventually(func() map[string]float64 {
			c.ask("shop.example", "/cart?status=500", 500, 1)
			return c.others()
		}).Should(HaveKeyWithValue(routes+"shop cart 5xx", BeNumerically(">", 0)))

		By("and no more")
		remove(c.api, "/globalconfig/metrics?wait=applied&timeout=30s")
		Eventually(func() bool {
			before := c.series()
			c.ask("shop.example", "/?status=404", 404, 1)
			c.ask("nowhere.example", "/", 404, 1)
			return maps.Equal(c.series(), before)
		}).Should(BeTrue())
	})

	It("have no labels but names of the configuration, whatever clients and upstreams say", func() {
		c := startCounted("1800s", "shop")
		c.count(`{"routes":true}`)
		c.await(routes + "mark root 2xx")
		for i := range 20 {
			Expect(c.get(fmt.Sprintf("h%d.example", i), fmt.Sprintf("/p%d", i), "X-Request-Id: a", "User-Agent: a").Status).To(Equal(404))
			Expect(c.get("shop.example", fmt.Sprintf("/p%d?status=%d", i, 700+i)).Status).To(Equal(700 + i))
		}
		Eventually(c.others).Should(Equal(map[string]float64{
			requests + "4xx": 20, routes + "4xx": 20, "refusals no_route": 20,
			requests + "shop 7xx": 20, routes + "shop root 7xx": 20,
		}))
	})

	It("forget a service that is deleted, and count a new one from its first request", func() {
		c := startCounted("2s", "shop", "blog")
		c.count(`{"routes":true}`)
		asks := func(names ...string) func() map[string]float64 {
			return func() map[string]float64 {
				for _, name := range names {
					c.get(name+".example", "/")
				}
				return c.series()
			}
		}
		Eventually(asks("shop", "blog")).Should(And(HaveKey(requests+"shop 2xx"), HaveKey(routes+"blog root 2xx")))
		remove(c.api, "/proxy/gw/service/blog")
		remove(c.api, "/service/blog")
		addService(c.api, "news", "news.example", "blue")
		post(c.api, "/proxy/gw/service/news?wait=applied&timeout=30s")
		Eventually(asks("shop", "news")).Should(And(HaveKey(requests+"shop 2xx"), HaveKey(requests+"news 2xx"),
			Not(HaveKey(requests+"blog 2xx")), Not(HaveKey(routes+"blog root 2xx"))))
	})

	It("have a bound each, so routes take no room from services, and room is free again when series are not used", func() {
		c := startCounted("3s", "shop", "last")
		for i := range 12 {
			addRoute(c.api, "shop", fmt.Sprintf("r%d", i), fmt.Sprintf("/r%d", i), "", "blue")
		}
		c.count(`{"routes":true,"max_series":5}`)
		c.await(routes + "mark root 2xx")
		found := func(prefix string) (names []string) {
			for name := range c.series() {
				if strings.HasPrefix(name, prefix) {
					names = append(names, name)
				}
			}
			return names
		}
		Eventually(func() []string {
			for i := range 12 {
				c.ask("shop.example", fmt.Sprintf("/r%d", i), 200, 1)
			}
			c.ask("last.example", "/", 200, 1)
			return found(routes)
		}).Should(HaveLen(5))
		Expect(found(requests)).To(ContainElements(requests+"shop 2xx", requests+"last 2xx"))
		Expect(read(c.envoy.Admin, "/stats/prometheus")).To(MatchRegexp(`(?m)^envoy_server_stats_overflow_histogram\{.*\} [1-9]`))

		Eventually(func() []string {
			c.ask("shop.example", "/r11", 200, 1)
			return found(routes)
		}).Should(ConsistOf(routes + "shop r11 2xx"))
	})
})
