//go:build upgrade

package upgrade

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An update of a cluster from the version before", func() {
	It("loses no request when the CRDs are replaced and then the program, and leads back", func() {
		k, err := testkit.StartKubernetes(limit(), GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return k.End() })
		kubectl := func(args ...string) {
			GinkgoHelper()
			_, err := k.Kubectl(limit(), args...)
			Expect(err).NotTo(HaveOccurred())
		}
		crds := func(dir string) {
			GinkgoHelper()
			kubectl("apply", "--server-side", "-f", dir)
			kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=30s")
		}
		crds("../../bin/previous/crds")
		apply := func(objects string) {
			GinkgoHelper()
			_, err := k.Apply(limit(), objects, "-n", "default")
			Expect(err).NotTo(HaveOccurred())
		}
		ip, err := testkit.OwnAddress()
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"blue", "green"} {
			b := backend(name, testkit.BackendOptions{IP: ip})
			apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: %s}
spec: {ports: [{name: http, port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %s-1, labels: {kubernetes.io/service-name: %s}}
addressType: IPv4
ports: [{name: http, port: %d}]
endpoints: [{addresses: [%s], conditions: {ready: true}}]
`, name, name, name, b.Port, b.IP))
		}
		gw := gateway(freePort())
		settings := filepath.Join(GinkgoT().TempDir(), "proxies.yaml")
		Expect(os.WriteFile(settings, fmt.Appendf(nil, "version: 1\nproxies:\n- {name: gatehouse, http_port: %d, https_port: %d, listen_ip: 127.0.0.1}\n", gw, freePort()), 0o600)).To(Succeed())
		serve := []string{
			"serve", "--mode", "kubernetes", "--kubeconfig", k.Kubeconfig, "--kubernetes-namespaces", "default", "--kubernetes-proxy-settings", settings,
			"--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:" + strconv.Itoa(freePort()),
		}
		leads := func(to string) {
			GinkgoHelper()
			apply(fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: office}
spec: {name: office, type: vh_filter_ipaccess, routeFilterConfig: {config: '{"allow": ["127.0.0.0/8"]}'}}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop}
spec:
  virtualhost: {fqdn: shop.example}
  routes:
  - conditions: [{prefix: /}]
    filters: [{name: office}]
    services: [{name: %s, port: 80}]
`, to))
			gw.expect(to, "/")
		}
		g := previous.start(serve...)
		envoy("gatehouse", g.XDSAddr)
		leads("blue")
		stopTraffic := gw.traffic()

		By("the CRDs of this version, and the program of the one before")
		crds("../../charts/gatehouse/crds")
		leads("green")

		By("the update")
		stop(g)
		g = current.start(serve...)
		leads("blue")
		leads("green")

		By("the way back")
		stop(g)
		previous.start(serve...)
		leads("blue")
		leads("green")
		stopTraffic()
	})
})
