package attack_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// externalTry is the name to which a tenant's ExternalName Service leads, and why it is refused.
type externalTry struct{ target, why string }

func externalTries() []externalTry {
	return []externalTry{
		{"localhost", "is a loopback address"},
		{"169.254.169.254", "is a link-local address"},
		{"inner.other.svc.cluster.local", "may not be named from namespace tenant"},
		{"127-0-0-1.tenant.pod.cluster.local", "is a name in the cluster"},
		{"metadata.google.internal", "is the name of a cloud's metadata service"},
		{"127.0.0.1", "is a loopback address"},
		{"x.localhost", "is a loopback address"},
		{"2130706433", "is a loopback address"},
		{"0x7f000001", "is a loopback address"},
		{"100.100.100.200", "is the address of a cloud's metadata service"},
		{"192.0.0.192", "is the address of a cloud's metadata service"},
		{"10.1.2.3", "is an IP address, which may belong to another namespace"},
		{"inner", "is not a complete host name"},
		{"a.inner.other.svc.cluster.local", "is a name in the cluster"},
	}
}

var _ = Describe("An ExternalName Service of a tenant of Kubernetes", func() {
	It("leads neither to the gateway's machine, nor to metadata services, nor into other namespaces", func(ctx SpecContext) {
		k, err := testkit.StartKubernetes(ctx, GinkgoT().TempDir(), testkit.KubernetesOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() error { return k.End() })
		crds, err := filepath.Abs("../../charts/gatehouse/crds")
		Expect(err).NotTo(HaveOccurred())
		for _, args := range [][]string{{"apply", "--server-side", "-f", crds}, {"wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"}} {
			_, err = k.Kubectl(ctx, args...)
			Expect(err).NotTo(HaveOccurred())
		}
		for _, name := range []string{"tenant", "other"} {
			Expect(k.Namespace(ctx, name)).To(Succeed())
		}
		tries := some(5, externalTries())
		_, err = k.Apply(ctx, "apiVersion: v1\nkind: Service\nmetadata: {name: inner, namespace: other}\nspec: {ports: [{port: 80}]}\n"+externalYAML(tries, gw.blue.Port))
		Expect(err).NotTo(HaveOccurred())

		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		settings := filepath.Join(GinkgoT().TempDir(), "proxies.yaml")
		Expect(os.WriteFile(settings, fmt.Appendf(nil, "version: 1\nproxies:\n- name: gatehouse\n  http_port: %d\n  listen_ip: 127.0.0.1\n", port), 0o600)).To(Succeed())
		g, err := testkit.StartGatehouse(ctx, []string{"POD_NAMESPACE=tenant"}, "serve", "--mode", "kubernetes", "--kubeconfig", k.Kubeconfig,
			"--kubernetes-namespaces", "tenant,other", "--kubernetes-proxy-settings", settings, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(g.Kill)
		Expect(g.WaitReady(ctx)).To(Succeed())
		e, err := testkit.StartEnvoy(ctx, GinkgoT().TempDir(), "gatehouse", g.XDSAddr)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(e.Kill)

		base, before := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", port)}, gw.blue.Requests()
		for i, t := range tries {
			Eventually(func() (string, error) {
				return k.Kubectl(ctx, "-n", "tenant", "get", "gatewayhost", fmt.Sprint("try", i), "-o", "jsonpath={.status.conditions}")
			}).WithContext(ctx).Should(ContainSubstring(t.why), t.target)
			Eventually(func() (int, error) {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.URL+"/", http.NoBody)
				if err != nil {
					return 0, err
				}
				req.Host = fmt.Sprintf("try%d.example", i)
				a, err := base.Send(req)
				return a.Status, err
			}).WithContext(ctx).Should(Equal(http.StatusServiceUnavailable), t.target)
		}
		Expect(gw.blue.Requests()).To(Equal(before), "a backend on the gateway's machine")
	}, SpecTimeout(3*time.Minute))
})

// externalYAML has a Service and a GatewayHost for each of them, which lead to the port.
func externalYAML(tries []externalTry, port int) string {
	var b strings.Builder
	for i, t := range tries {
		at := port
		if strings.HasSuffix(t.target, ".svc.cluster.local") {
			at = 80
		}
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: Service
metadata: {name: try%[1]d, namespace: tenant}
spec: {type: ExternalName, externalName: %[2]q, ports: [{port: %[3]d}]}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: try%[1]d, namespace: tenant}
spec:
  virtualhost: {fqdn: try%[1]d.example}
  routes: [{conditions: [{prefix: /}], services: [{name: try%[1]d, port: %[3]d}]}]
`, i, t.target, at)
	}
	return b.String()
}
