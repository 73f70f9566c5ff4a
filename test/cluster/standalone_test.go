//go:build cluster

package cluster

import (
	"fmt"
	"net"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("The image of the whole gateway", func() {
	It("runs as a Pod at the level restricted, becomes ready, and forwards requests from a node's port to a Service", func(ctx SpecContext) {
		ns := namespace("restricted")
		echo(ns, 1)
		apply(ns, `
apiVersion: v1
kind: Pod
metadata: {name: gatehouse, labels: {app: gatehouse}}
spec:
  automountServiceAccountToken: false
  enableServiceLinks: false # else the Service's variables look like settings
  securityContext: {runAsNonRoot: true, fsGroup: 10001, seccompProfile: {type: RuntimeDefault}}
  containers:
  - name: gatehouse
    image: `+standaloneImage+`
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    env: [{name: GATEHOUSE_LISTEN_IP, value: 0.0.0.0}]
    ports: [{name: http, containerPort: 8080}]
    readinessProbe: {exec: {command: [gatehouse, ready]}, periodSeconds: 1, timeoutSeconds: 10}
    volumeMounts: [{name: data, mountPath: /var/lib/gatehouse}]
  volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: gatehouse}
spec:
  type: NodePort
  selector: {app: gatehouse}
  ports: [{name: http, port: 80, targetPort: http}]
`)
		kubectl("wait", "pod/gatehouse", "--namespace", ns, "--for=condition=Ready", "--timeout=3m")

		_, err := run(fmt.Sprintf(`
version: 1
upstreams: [{upstream_name: echo, upstream_ip: echo.%s.svc.cluster.local, upstream_port: 80}]
services: [{service_name: echo, fqdn: "*", routes: [{route_name: root, route_prefix: /, upstreams: [echo]}]}]
proxies: [{name: gw, listen_ip: 0.0.0.0, services: [echo]}]
`, ns), "kubectl", "exec", "--stdin", "--namespace", ns, "gatehouse", "--", "gatehouse", "apply", "-f", "-", "--wait")
		Expect(err).NotTo(HaveOccurred())
		pod := kubectl("get", "pods", "--namespace", ns, "--selector", "app=echo", "--output", "jsonpath={.items[*].metadata.name}")
		api := testkit.API{URL: "http://" + net.JoinHostPort(nodeAddress, nodePort(ns, "gatehouse", "http"))}
		Eventually(func() (testkit.Answer, error) { return api.Get(ctx, "/cart") }).Should(And(
			HaveField("Status", 200), HaveField("Body", "/cart\n"), HaveField("Header", HaveKeyWithValue(testkit.BackendHeader, []string{pod}))))
	})
})
