package kubernetes_test

import (
	"encoding/json"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("Two Services of a route", func() {
	It("leave the share of the one that is unhealthy or has no endpoints to the other", func() {
		p := newPlace(cluster)
		g := p.serve()
		g.envoy()
		blue, green := backend("blue"), backend("green")
		p.service("blue", blue)
		p.service("green", green)
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop}
spec:
  virtualhost: {fqdn: shop.example}
  routes:
  - conditions: [{prefix: /}]
    services:
    - {name: blue, port: 80, healthCheck: {path: /healthz, intervalSeconds: 1}}
    - {name: green, port: 80, healthCheck: {path: /healthz, intervalSeconds: 1}}
`)
		// answers returns the different answers to 20 requests, sorted.
		answers := func() []string {
			var list []string
			for range 20 {
				list = append(list, g.request("shop.example", "/"))
			}
			slices.Sort(list)
			return slices.Compact(list)
		}
		Eventually(answers).Should(Equal([]string{"200 blue", "200 green"}), g.Stderr.String)
		// explained are the shares that explain predicts, by upstream.
		explained := func() map[string]float64 {
			a, err := g.API.Get(limit(), "/proxy/gatehouse/explain?url=http://shop.example/")
			Expect(err).NotTo(HaveOccurred())
			var answer struct {
				Data struct {
					List []explain.Answer `json:"core_db_explain"`
				}
			}
			Expect(json.Unmarshal([]byte(a.Body), &answer)).To(Succeed(), a.Body)
			Expect(answer.Data.List).To(HaveLen(1), a.Body)
			shares := map[string]float64{}
			for _, c := range answer.Data.List[0].Forward.Clusters {
				for _, e := range c.Endpoints {
					name, _, _ := strings.Cut(strings.TrimPrefix(e.Upstream, p.namespace+"."), ".")
					shares[name] = e.Percent
				}
			}
			return shares
		}
		Expect(explained()).To(Equal(map[string]float64{"blue": 50, "green": 50}))

		By("failing the health check of the only endpoint of green")
		green.SetHealthy(false)
		Eventually(answers).Should(Equal([]string{"200 blue"}))
		green.SetHealthy(true)
		Eventually(answers).Should(Equal([]string{"200 blue", "200 green"}))

		By("removing the only endpoint of blue")
		p.endpoints("blue")
		Eventually(answers).Should(Equal([]string{"200 green"}))
		Expect(explained()).To(Equal(map[string]float64{"green": 100}))

		By("leaving no healthy endpoint")
		green.SetHealthy(false)
		Eventually(answers).Should(Equal([]string{"503"}))
		p.endpoints("blue", blue)
		Eventually(answers).Should(Equal([]string{"200 blue"}))
	})
})
