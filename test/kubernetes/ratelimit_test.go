package kubernetes_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Rate limits of a GlobalConfig and a RouteFilter", func() {
	It("are counted by the stock engine for the Envoys of two replicas together, and change", func() {
		redis, err := testkit.StartRedis(limit(), GinkgoT().TempDir())
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(redis.Kill)
		xds := fmt.Sprintf("127.0.0.1:%d", freePort())
		engine, err := testkit.SpawnRatelimit(testkit.RatelimitOptions{XDSAddr: xds, RedisAddr: redis.Addr})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return engine.Kill() })

		p := newPlace(cluster)
		first := p.serve("--xds-addr", xds, "--ratelimit-address", engine.Addr)
		second := p.serve("--ratelimit-address", engine.Addr)
		Expect(engine.WaitReady(limit())).To(Succeed())
		first.envoy()
		second.envoy()
		p.service("web", backend("blue"))
		p.host("shop", "shop.example.com", "web")
		for _, g := range []gateway{first, second} {
			g.expect("shop.example.com", "200 blue")
		}
		// count sends requests to the two in turn, and returns how many were allowed.
		count := func(requests int) (passed int) {
			for i := range requests {
				switch answer := []gateway{first, second}[i%2].request("shop.example.com", "/"); answer {
				case "200 blue":
					passed++
				default:
					Expect(answer).To(Equal("429"))
				}
			}
			return passed
		}
		rates := func(perDay int) {
			p.apply(`
apiVersion: gateway.gatehouse.dev/v1beta1
kind: GlobalConfig
metadata: {name: rates}
spec:
  name: rates
  type: globalconfig_ratelimit
  config: '{"domain":"shop","descriptors":[{"key":"remote_address","rate_limit":{"unit":"day","requests_per_unit":%d}}]}'
`, perDay)
			Eventually(func() (string, error) {
				res, err := engine.Debug.Get(limit(), "/rlconfig")
				return res.Body, err
			}).Should(ContainSubstring(fmt.Sprintf("requests_per_unit=%d,", perDay)))
		}
		rates(7)
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1beta1
kind: RouteFilter
metadata: {name: limit}
spec:
  name: limit
  type: route_filter_ratelimit
  routeFilterConfig: {config: '{"descriptors":[{"remote_address":"client"}]}'}
`)
		p.kubectl("patch", "gatewayhost", "shop", "--type", "json", "--patch", `[{"op":"add","path":"/spec/routes/0/filters","value":[{"name":"limit"}]}]`)
		programmed := func(kind, name string) {
			GinkgoHelper()
			p.kubectl("wait", kind, name, "--for=condition=Programmed", "--timeout=60s")
		}
		programmed("gatewayhost", "shop")
		Expect(count(20)).To(Equal(7))

		By("raising the limit")
		rates(25) // requests over the limit count too
		Expect(count(20)).To(Equal(5))
		Expect(strings.TrimSpace(p.jsonPath("routefilter", "limit", `{.status.conditions[?(@.type=="Accepted")].status}`))).To(Equal("True"))
	})
})
