package kubernetes_test

import (
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A replica that is killed under traffic", func() {
	It("costs no request: its Envoy continues with the other one, and no condition is wrong", func() {
		p := newPlace(cluster)
		blue := backend("blue")
		p.service("web", blue)
		p.host("shop", "shop.example", "web")
		port := freePort()
		settings := proxySettings(port, freePort())
		left := p.serveIn("control-plane-0", "--kubernetes-proxy-settings", settings)
		killed := p.serveIn("control-plane-1", "--kubernetes-proxy-settings", settings)
		left.port = port
		balancer, err := testkit.StartBalancer(left.XDSAddr, killed.XDSAddr)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(balancer.Close)
		list := []*testkit.Envoy{envoyOf("gatehouse", balancer.Addr), envoyOf("gatehouse", balancer.Addr)} // on one port; the kernel distributes the connections
		for _, g := range []gateway{left, killed} {
			Eventually(func() []map[string]any { return g.Records("envoy connected") }).Should(HaveLen(1))
		}
		Eventually(p.envoys("gatewayhost", "shop")).Should(Equal("2"))
		Eventually(p.row("gatewayhost", "shop")).Should(Equal("shop shop.example gatehouse True Programmed"))
		conditions := func() string {
			return p.jsonPath("gatewayhost", "shop", "{.status.conditions}")
		}
		were := conditions()
		// asWas returns the result of another call, and checks that the conditions of an unchanged host
		// stay as they were.
		asWas := func(call func() string) func() string {
			return func() string {
				Expect(conditions()).To(Equal(were))
				Expect(p.envoys("gatewayhost", "shop")()).To(BeElementOf("1", "2"))
				return call()
			}
		}
		traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: fmt.Sprintf("127.0.0.1:%d", port), Host: "shop.example", Rate: 200, Fresh: true})
		DeferCleanup(traffic.Stop)

		name := killed.replica()
		Expect(killed.Kill()).To(Succeed())
		Eventually(func() []map[string]any { return left.Records("envoy connected") }).Should(HaveLen(2))

		By("a host that is created meanwhile: both Envoys have it, and its conditions do not say so while a replica is not heard from")
		p.host("new", "new.example", "web")
		for _, e := range list {
			Eventually(func() (string, error) {
				a, err := e.Admin.Get(limit(), "/config_dump?resource=dynamic_route_configs")
				return a.Body, err
			}).Should(ContainSubstring("new.example"))
		}
		Eventually(asWas(p.condition("gatewayhost", "new", "Programmed"))).Should(MatchRegexp(
			`^Unknown ReplicaUnheard \(1\): replica %s is not heard: the state of its Envoys is unknown$`, regexp.QuoteMeta(name)))

		By("its container restarts in its Pod")
		again := killed.again()
		Eventually(asWas(p.condition("gatewayhost", "new", "Programmed"))).Should(Equal("True Programmed (1): every connected Envoy has it"))
		for _, name := range []string{"new", "shop"} {
			Eventually(p.envoys("gatewayhost", name)).Should(Equal("2"))
		}
		Expect(again.Records("envoy connected")).To(BeEmpty())
		for range 20 {
			Expect(left.request("new.example", "/")).To(Equal("200 blue"))
		}
		report := traffic.Stop()
		Expect(report.Failures).To(BeEmpty(), report.String())
		Expect(report.Backends).To(HaveKeyWithValue("blue", report.Requests))
		Expect(strings.Count(left.Stderr.String(), `"level":"ERROR"`)).To(BeZero(), left.Stderr.String())
	})
})
