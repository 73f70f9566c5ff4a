//go:build cluster

package cluster

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The chart in mode kubernetes", Ordered, func() {
	const host = "echo.example"
	var r release

	BeforeAll(func() {
		// As users that no image knows, such as those of OpenShift.
		user := "runAsUser: 1000660000"
		r = release{namespace: namespace("privileged"), values: strings.Replace(ours, "\nenvoy: {", "\nenvoy: {"+user+", ", 1) +
			"controlPlane: {" + user + "}\nratelimit: {" + user + "}\nkubernetes: {allNamespaces: true}\n"}
		echo(r.namespace, 2)
		DeferCleanup(func() {
			_, _ = run("", "helm", "uninstall", "gatehouse", "--namespace", r.namespace, "--ignore-not-found", "--wait")
		})
	})

	It("gets from nothing to a request at the NodePort and at the node's port", func(ctx SpecContext) {
		r.upgrade()
		Expect(kubectl("get", "pods", "--namespace", r.namespace, "--selector", "app.kubernetes.io/component=ratelimit",
			"--output", "jsonpath={range .items[*]}{.status.containerStatuses[0].restartCount}{end}")).To(MatchRegexp("^0+$"), "Redis came first")
		for _, proxy := range []string{"gatehouse", "edge"} {
			apply(r.namespace, fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: echo-%s}
spec:
  proxy: %s
  virtualhost: {fqdn: %s}
  routes: [{conditions: [{prefix: /}], services: [{name: echo, port: 80}]}]
`, proxy, proxy, host))
		}
		answers(ctx, r.nodeAddr(), host)
		answers(ctx, nodeAddress+":"+hostPort, host)
	})

	It("passes helm test", func() {
		Expect(r.helm("test")).To(ContainSubstring("Phase:          Succeeded"))
	})

	It("has the permissions that the control plane needs", func(ctx SpecContext) {
		log := kubectl("logs", "--namespace", r.namespace, "--selector", "app.kubernetes.io/component=control-plane", "--tail=-1")
		Expect(log).NotTo(ContainSubstring("forbidden"))
	})

	It("loses no request of 500 a second during changes of versions and values, and their rollback", func() {
		r.underTraffic(host, func() {
			r.upgrade("--set", "images.controlPlane.tag=next", "--set", "images.envoy.tag=next", "--set", "envoy.maxConnections=40000")
			r.helm("rollback", "--wait", "--timeout", "4m")
			r.ready()
		})
	})

	It("loses no request when a control plane is killed and restarted", func() {
		r.underTraffic(host, func() {
			r.kill("control-plane")
		})
	})

	It("leaves nothing but the GatewayHosts", func() {
		r.helm("uninstall", "--wait")
		Eventually(r.everything).Should(Not(ContainSubstring("gatehouse")))
		Expect(kubectl("get", "secrets", "--namespace", r.namespace, "--output", "name")).To(BeEmpty())
		Expect(kubectl("get", "gatewayhosts", "--namespace", r.namespace, "--output", "name")).To(ContainSubstring("echo-edge"))
	})
})
