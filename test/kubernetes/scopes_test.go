package kubernetes_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// answers waits until the paths of a host answer like this.
func (g gateway) answers(host string, want map[string]string) {
	GinkgoHelper()
	Eventually(func() map[string]string {
		have := map[string]string{}
		for path := range want {
			have[path] = g.request(host, path)
		}
		return have
	}).Should(Equal(want), g.Stderr.String)
}

// nobody is a configuration of a vh_filter_ipaccess that lets no client of the specs in.
const nobody = `{"allow":["192.0.2.0/24"]}`

var _ = Describe("An exempt route of a GatewayHost", func() {
	It("does not have the filters of its host that it names, and has all others", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.filter("office", "vh_filter_ipaccess", nobody)
		p.filter("vpn", "vh_filter_ipaccess", nobody)
		host := func(exempt string) {
			GinkgoHelper()
			p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: web}
spec:
  virtualhost: {fqdn: shop.example}
  filters: [{name: office}]
  routes:
  - services: [{name: web, port: 80}]
  - {conditions: [{prefix: /health}], exempt: {host: [%s]}, services: [{name: web, port: 80}]}
  - {conditions: [{prefix: /vpn}], exempt: {host: [office, vpn]}, filters: [{name: vpn}], services: [{name: web, port: 80}]}
`, exempt)
		}
		g := p.serve()
		g.envoy()
		host("office")
		g.answers("shop.example", map[string]string{"/": "403", "/health": "200 blue", "/vpn": "403"})
		Eventually(p.row("gatewayhost", "web")).Should(Equal("web shop.example gatehouse True Programmed"))
		By("naming another filter")
		host("vpn")
		g.answers("shop.example", map[string]string{"/": "403", "/health": "403", "/vpn": "403"})
	})
})

// proxyFilter creates a GlobalConfig of a filter's type.
func (p place) proxyFilter(name, kind, config, more string) {
	GinkgoHelper()
	p.apply("apiVersion: gateway.gatehouse.dev/v1\nkind: GlobalConfig\nmetadata: {name: %s}\nspec: {type: %s, config: %q%s}\n", name, kind, config, more)
}

var _ = Describe("A filter of a proxy of a cluster", func() {
	It("applies to all hosts but those that its GlobalConfig exempts, whatever their namespaces write", func() {
		operators, shop := newPlace(cluster), newPlace(cluster)
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+operators.namespace)
		g.envoy()
		shop.service("web", backend("blue"))
		shop.host("web", "shop.example", "web")
		shop.host("later", "other.example", "web")
		g.expect("shop.example", "200 blue")

		operators.proxyFilter("office", "vh_filter_ipaccess", nobody, "")
		g.expect("shop.example", "403")
		g.expect("other.example", "403")
		Eventually(operators.row("globalconfig", "office")).Should(HaveSuffix(" True Programmed"))
		answer, err := g.API.Get(limit(), "/proxy/gatehouse/explain?url=http://shop.example/")
		Expect(err).NotTo(HaveOccurred())
		Expect(answer.Body).To(ContainSubstring("/proxy/gatehouse/filter/" + operators.namespace + ".office_proxy"))

		By("what a namespace can write about it")
		filterName := operators.namespace + ".office_proxy"
		shop.filter("office", "vh_filter_ipaccess", `{"allow":["0.0.0.0/0","::/0"]}`)
		shop.filter("open", "vh_filter_rbac", `{"allow":[{"methods":["GET"]}]}`)
		for name, spec := range map[string]string{
			"exempt":  "filters: [{name: office}], routes: [{exempt: {host: [office, office_proxy, " + filterName + "]}, services: [{name: web, port: 80}]}]",
			"public":  "public: true, filters: [{name: open}], routes: [{public: true, services: [{name: web, port: 80}]}]",
			"replace": "filters: [{name: office}], routes: [{filters: [{name: office}], services: [{name: web, port: 80}]}]",
		} {
			shop.apply("apiVersion: gateway.gatehouse.dev/v1\nkind: GatewayHost\nmetadata: {name: %s}\nspec: {virtualhost: {fqdn: %s.example}, %s}\n", name, name, spec)
			Eventually(shop.row("gatewayhost", name)).Should(Equal(name + " " + name + ".example gatehouse True Programmed"))
			g.expect(name+".example", "403")
		}
		for _, spec := range []string{
			"routes: [{exempt: {proxy: [" + filterName + "]}, services: [{name: web, port: 80}]}]", "exempt: [" + filterName + "]", "exemptFilters: [" + filterName + "]",
		} {
			_, err := shop.Apply(limit(), "apiVersion: gateway.gatehouse.dev/v1\nkind: GatewayHost\nmetadata: {name: bad}\nspec: {virtualhost: {fqdn: bad.example}, "+spec+"}\n", "-n", shop.namespace)
			Expect(err).To(MatchError(ContainSubstring("unknown field")), spec)
		}

		By("exempting a host, and a route of another one")
		shop.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: later}
spec:
  virtualhost: {fqdn: other.example}
  routes: [{services: [{name: web, port: 80}]}, {name: health, conditions: [{prefix: /health}], services: [{name: web, port: 80}]}]
`)
		operators.proxyFilter("office", "vh_filter_ipaccess", nobody,
			fmt.Sprintf(", exempt: [{namespace: %[1]s, name: web}, {namespace: %[1]s, name: later, routes: [health]}]", shop.namespace))
		g.expect("shop.example", "200 blue")
		g.answers("other.example", map[string]string{"/": "403", "/health": "200 blue"})

		By("a mistake in it")
		operators.proxyFilter("office", "vh_filter_ipaccess", "{", "")
		Eventually(operators.condition("globalconfig", "office", "Accepted")).Should(ContainSubstring("spec.config: is not JSON"))
		g.expect("shop.example", "403")
		g.expect("other.example", "403")

		By("deleting it")
		operators.kubectl("delete", "globalconfig", "office")
		g.expect("shop.example", "200 blue")
		g.expect("exempt.example", "200 blue")
	})
})

var _ = Describe("A list of a cluster", func() {
	It("is a RouteFilter that filters of its namespace name; another namespace has none of it", func() {
		operators, shop := newPlace(cluster), newPlace(cluster)
		g := shop.serve("--kubernetes-namespaces", shop.namespace+","+operators.namespace)
		g.envoy()
		for _, p := range []place{operators, shop} {
			p.service("web", backend("blue"))
			p.filter("office", "vh_filter_ipaccess", `{"allow_lists":["offices"]}`)
			p.apply("apiVersion: gateway.gatehouse.dev/v1\nkind: GatewayHost\nmetadata: {name: web}\nspec: {virtualhost: {fqdn: %s.example}, filters: [{name: office}], routes: [{services: [{name: web, port: 80}]}]}\n", p.namespace)
		}
		here, there := shop.namespace+".example", operators.namespace+".example"
		operators.filter("offices", "list_addresses", `{"addresses":["127.0.0.0/8"]}`)
		g.expect(there, "200 blue")
		g.expect(here, "503")
		Eventually(shop.condition("routefilter", "office", "ResolvedRefs")).Should(ContainSubstring("RouteFilter " + shop.namespace + "/offices does not exist"))
		Eventually(operators.row("routefilter", "offices")).Should(HavePrefix("offices list_addresses True True Programmed"))

		By("naming that of the other namespace")
		shop.filter("office", "vh_filter_ipaccess", fmt.Sprintf(`{"allow_lists":["%s.offices"]}`, operators.namespace))
		Eventually(shop.condition("routefilter", "office", "ResolvedRefs")).Should(ContainSubstring("RouteFilter " + shop.namespace + "/" + operators.namespace + ".offices does not exist"))
		g.expect(here, "503")

		By("a list of the same name with all addresses")
		shop.filter("office", "vh_filter_ipaccess", `{"allow_lists":["offices"]}`)
		shop.filter("offices", "list_addresses", `{"addresses":["0.0.0.0/0"]}`)
		g.expect(here, "200 blue")
		operators.filter("offices", "list_addresses", `{"addresses":["192.0.2.0/24"]}`)
		g.expect(there, "403")
		Expect(g.request(here, "/")).To(Equal("200 blue"))
		Eventually(g.explained("url=http://" + there + "/&address=127.0.0.1")).Should(ContainSubstring("list " + operators.namespace + ".offices_addresses"))

		By("deleting it")
		shop.kubectl("delete", "routefilter", "offices")
		g.expect(here, "503")
		Expect(g.request(there, "/")).To(Equal("403"))
	})
})
