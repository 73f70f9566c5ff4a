package kubernetes_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A port of a cluster", func() {
	It("is a GatewayHost of mode tcp: the oldest has it, and the API server refuses what cannot work", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		g := p.serve()
		g.envoy()
		at := g
		at.port = freePort()
		host := func(name, virtual string) string {
			return fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: %s}
spec:
  virtualhost: {%s}
  routes: [{services: [{name: web, port: 80, healthCheck: {type: tcp}}]}]
`, name, virtual)
		}
		p.apply("%s", host("db", fmt.Sprintf(`fqdn: "*", mode: tcp, port: %d`, at.port)))
		at.expect("any.example", "200 blue")
		Eventually(p.condition("gatewayhost", "db", "Programmed")).Should(HavePrefix("True"))
		p.apply("%s", host("second", fmt.Sprintf(`fqdn: "*", mode: tcp, port: %d`, at.port)))
		Eventually(p.condition("gatewayhost", "second", "Accepted")).Should(And(HavePrefix("False"), ContainSubstring("HostConflict")))
		for virtual, why := range map[string]string{
			`fqdn: "*", mode: tcp`:                "require a port",
			`fqdn: a.example, mode: tcp, port: 1`: "connections name no host",
			`fqdn: "*", mode: tls`:                "mode tls finds the host by the name",
			`fqdn: a.example, port: 1`:            "is for mode tcp, tls and udp",
		} {
			_, err := p.Apply(limit(), host("bad", virtual), "-n", p.namespace)
			Expect(err).To(MatchError(ContainSubstring(why)), virtual)
		}
		p.kubectl("delete", "gatewayhost", "db", "second")
		Eventually(func() string { return at.request("any.example", "/") }).Should(ContainSubstring("refused"))
	})
})
