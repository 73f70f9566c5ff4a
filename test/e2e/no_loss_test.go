package e2e_test

import (
	"fmt"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A change of the configuration", func() {
	DescribeTable("loses no request while a route moves between two upstreams 50 times", func(fields ...string) {
		_, gw := standalone("--access-log", "off")
		// Two names and three backends: a name that is used again means another backend
		// than the last time.
		names := []string{"blue", "green"}
		backends := []*testkit.Backend{backend("one"), backend("two"), backend("three")}
		add := func(move int) (upstream string, b *testkit.Backend) {
			upstream, b = names[move%2], backends[move%3]
			post(gw.api, "/upstream", append([]string{
				"Upstream_name=" + upstream, "Upstream_ip=127.0.0.1", "Upstream_port=" + strconv.Itoa(b.Port),
			}, fields...)...)
			return upstream, b
		}
		old, b := add(0)
		addService(gw.api, "shop", "*", old)
		addProxy(gw.api, "gw", gw.port, "shop")
		gw.expect("shop.example", "/", b.Name)

		traffic, stop := gw.traffic("shop.example", 1000)
		const link = "/service/shop/route/root/upstream/"
		for move := 1; move <= 50; move++ {
			upstream, b := add(move)
			post(gw.api, link+upstream)
			remove(gw.api, link+old)
			remove(gw.api, "/upstream/"+old)
			old = upstream
			// Half of the moves follow each other before Envoy has the last one; half
			// wait until all traffic has moved.
			if move%2 == 0 {
				Eventually(func() string { return served(traffic, b.Name) }).Should(Equal("only " + b.Name))
			}
		}
		stop()
	},
		Entry("that are ready immediately"),
		Entry("that must first pass a health check", "Upstream_hc_path="+testkit.HealthPath),
	)

	// Each document gives shop.example to another service, which has a new upstream that has to be found healthy first. The
	// service that had it is deleted, or gets the other host name.
	DescribeTable("loses no request while a host name moves between services 20 times", func(swap bool) {
		_, gw := standalone("--access-log", "off")
		https := freePort()
		put := func(move int) (wanted string) {
			GinkgoHelper()
			var upstreams, services []any
			var names []string
			for i, fqdn := range []string{"shop.example", "news.example"} {
				name := fmt.Sprintf("s%d", move+i)
				if swap {
					name = fmt.Sprintf("s%d", (move+i)%2)
				}
				b := backend(fmt.Sprintf("b%d-%d", move, i))
				upstreams = append(upstreams, map[string]any{
					"upstream_name": b.Name, "upstream_ip": b.IP, "upstream_port": b.Port, "upstream_hc_path": testkit.HealthPath,
				})
				services = append(services, map[string]any{
					"service_name": name, "fqdn": fqdn,
					"routes": []any{map[string]any{"route_name": "root", "route_prefix": "/", "upstreams": []string{b.Name}}},
				})
				names = append(names, name)
			}
			putConfig(gw.api, map[string]any{"version": 1, "upstreams": upstreams, "services": services, "proxies": []any{
				map[string]any{"name": "gw", "http_port": gw.port, "https_port": https, "listen_ip": "127.0.0.1", "services": names},
			}}, "?prune=true")
			return fmt.Sprintf("b%d-0", move)
		}
		gw.expect("shop.example", "/", put(0))
		shop, stop := gw.traffic("shop.example", 300)
		_, stopNews := gw.traffic("news.example", 300)
		for move := 1; move <= 20; move++ {
			wanted := put(move)
			if move%2 == 0 {
				Eventually(func() string { return served(shop, wanted) }).Should(Equal("only " + wanted))
			}
		}
		stop()
		stopNews()
	},
		Entry("of which one is deleted", false),
		Entry("that swap their names", true),
	)

	It("moves the gateway's port on a restart with another --http-port", func() {
		dir := GinkgoT().TempDir()
		b := backend("blue")
		first, second := freePort(), freePort()
		g := start(nil, standaloneArgs(dir, first)...)
		addUpstream(g.API, b)
		addService(g.API, "shop", "*", "blue")
		post(g.API, "/proxy", "Name=gw")
		post(g.API, "/proxy/gw/service/shop")
		gateway{g.API, first}.expect("shop.example", "/", "blue")
		Expect(g.Stop(limit())).To(BeZero())

		g = start(nil, standaloneArgs(dir, second)...)
		gateway{g.API, second}.expect("shop.example", "/", "blue")
		Expect(gateway{g.API, first}.answers("shop.example", "/")).To(ContainSubstring("connection refused"))
		Expect(read(g.API, "/proxy/gw")).To(ContainSubstring(fmt.Sprintf(`"http_port":%d,`, second)))
	})
})

// served reports whether one backend answered everything between two looks at the
// traffic.
func served(t *testkit.Traffic, backend string) string {
	const enough = 20
	before := t.Report()
	var after testkit.Report
	Eventually(func() int {
		after = t.Report()
		return after.Requests - before.Requests
	}).Should(BeNumerically(">=", enough))
	for name, n := range after.Backends {
		if name != backend && n > before.Backends[name] {
			return "also " + name
		}
	}
	return "only " + backend
}
