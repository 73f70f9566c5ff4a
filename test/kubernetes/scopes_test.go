package kubernetes_test

import (
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
