//go:build cluster

package cluster

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// getFrom requests / of a host from an address.
func getFrom(ctx SpecContext, addr, host string) (testkit.Answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/", http.NoBody)
	if err != nil {
		return testkit.Answer{}, err
	}
	req.Host = host
	return testkit.Send(req)
}

// In mode rest, everything that the chart does with the cluster; chart_kubernetes_test.go
// has what differs between the modes.
var _ = Describe("The chart in mode rest", Ordered, func() {
	const host = "echo.example"
	var r release

	BeforeAll(func() {
		// The ports of the node need it; test/chart has everything else under restricted.
		r = release{namespace: namespace("privileged"), values: ours + "mode: rest\nrest: {database: {existingSecret: postgres}, secretKey: {keep: false}}\n"}
		echo(r.namespace, 2)
		addPostgres(r.namespace)
		DeferCleanup(func() {
			_, _ = run("", "helm", "uninstall", "gatehouse", "--namespace", r.namespace, "--ignore-not-found", "--wait")
		})
	})

	// configure adds a host to both proxies.
	configure := func(host string) {
		GinkgoHelper()
		name := strings.ReplaceAll(host, ".", "-")
		_, err := run(fmt.Sprintf(`
version: 1
upstreams: [{upstream_name: echo, upstream_ip: echo.%s.svc, upstream_port: 80}]
services: [{service_name: %s, fqdn: %s, proxies: [gatehouse, edge], routes: [{route_name: root, route_prefix: /, upstreams: [echo]}]}]
proxies: [{name: gatehouse}, {name: edge}]
`, r.namespace, name, host), "kubectl", "exec", "--stdin", "--namespace", r.namespace, "deployment/gatehouse-control-plane", "--",
			"gatehouse", "apply", "-f", "-", "--token-file", "/etc/gatehouse/api/token")
		Expect(err).NotTo(HaveOccurred())
	}

	It("gets from nothing to a request at the NodePort and at the node's port", func(ctx SpecContext) {
		r.upgrade()
		configure(host)
		answers(ctx, r.nodeAddr(), host)
		answers(ctx, nodeAddress+":"+hostPort, host)
	})

	It("passes helm test, which also sends a request through an Envoy", func() {
		r.values += "test: {url: http://gatehouse-envoy-gatehouse/}\n"
		r.upgrade()
		Expect(r.helm("test")).To(ContainSubstring("Phase:          Succeeded"))
	})

	It("loses no request of 500 a second during changes of versions and values, and their rollback", func() {
		r.underTraffic(host, func() {
			By("another version of the programs, and other values")
			r.upgrade("--set", "images.controlPlane.tag=next", "--set", "images.envoy.tag=next", "--set", "envoy.maxConnections=40000", "--set", "controlPlane.logLevel=debug")
			Expect(r.image("deployment/gatehouse-envoy-gatehouse")).To(Equal("gatehouse:next"))
			By("the rollback")
			r.helm("rollback", "--wait", "--timeout", "4m")
			r.ready()
		})
		Expect(r.image("deployment/gatehouse-control-plane")).To(Equal("gatehouse-control-plane:local"))
	})

	It("keeps certificates, token and keys meanwhile", func() {
		authority := func(secret string) string {
			return kubectl("get", "secret", secret, "--namespace", r.namespace, "--output", "jsonpath={.data.ca\\.crt}")
		}
		Expect(authority("gatehouse-ca")).NotTo(BeEmpty())
		Expect(authority("gatehouse-envoy-edge-tls")).To(Equal(authority("gatehouse-ca")))
		Expect(kubectl("get", "jobs", "--namespace", r.namespace, "--output", "name")).NotTo(ContainSubstring("gatehouse-secrets-1\n"), "the Job of the first revision")
	})

	It("loses no request when control plane, engine and Redis are killed, and recovers from the loss of any pod", func(ctx SpecContext) {
		r.underTraffic(host, func() {
			for _, component := range []string{"control-plane", "ratelimit", "redis"} {
				r.kill(component)
			}
		})
		r.kill("envoy", "gateway.gatehouse.dev/proxy=gatehouse")
		r.kill("envoy", "gateway.gatehouse.dev/proxy=edge")
		answers(ctx, r.nodeAddr(), host)
		answers(ctx, nodeAddress+":"+hostPort, host)
	})

	It("issues certificates of a new authority, without a restart of Envoys and control planes", func(ctx SpecContext) {
		running := func(components string) string {
			return kubectl("get", "pods", "--namespace", r.namespace, "--selector", "app.kubernetes.io/component in ("+components+")",
				"--output", "jsonpath={range .items[*]}{.metadata.name} {.status.containerStatuses[0].restartCount}{'\\n'}{end}")
		}
		before, engines := running("envoy, control-plane"), running("ratelimit")
		kubectl("patch", "secret", "gatehouse-ca", "--namespace", r.namespace, "--patch", `{"data": null}`)
		kubectl("create", "job", "renew-now", "--from=cronjob/gatehouse-renew", "--namespace", r.namespace)
		kubectl("wait", "job/renew-now", "--for=condition=Complete", "--namespace", r.namespace, "--timeout=2m")
		// Without its pod, which the next command would still meet.
		kubectl("delete", "job/renew-now", "--namespace", r.namespace, "--cascade=foreground")
		// A kubelet checks the Secrets of a pod when the pod changes, otherwise once a
		// minute.
		kubectl("annotate", "pods", "--namespace", r.namespace, "--all", "spec=renewed")
		text, err := base64.StdEncoding.DecodeString(kubectl("get", "secret", "gatehouse-ca", "--namespace", r.namespace, "--output", `jsonpath={.data.ca\.crt}`))
		Expect(err).NotTo(HaveOccurred())
		block, _ := pem.Decode(text)
		authority, err := x509.ParseCertificate(block.Bytes)
		Expect(err).NotTo(HaveOccurred())
		r.renewed(authority)
		By("a change that reaches all Envoys")
		configure("renewed.example")
		answers(ctx, r.nodeAddr(), "renewed.example")
		answers(ctx, nodeAddress+":"+hostPort, "renewed.example")
		Expect(running("envoy, control-plane")).To(Equal(before))
		By("an engine that restarts with its new certificate")
		Eventually(running).WithArguments("ratelimit").ShouldNot(Equal(engines))
		r.ready()
	})

	It("delays the drain of a node until another Envoy is ready", func() {
		DeferCleanup(func() { kubectl("uncordon", "node1") })
		envoys := "app.kubernetes.io/component=envoy,gateway.gatehouse.dev/proxy=gatehouse"
		out, err := run("", "kubectl", "drain", "node1", "--ignore-daemonsets", "--delete-emptydir-data", "--timeout", "20s", "--pod-selector", envoys)
		Expect(err).To(MatchError(ContainSubstring("Cannot evict pod as it would violate the pod's disruption budget")), out)
		// One was evicted, and there is no other node for its replacement.
		Expect(kubectl("get", "pods", "--namespace", r.namespace, "--selector", envoys, "--field-selector", "status.phase=Running", "--output", "name")).NotTo(BeEmpty())
		kubectl("uncordon", "node1")
		r.ready()
	})

	It("leaves nothing behind", func() {
		before := r.everything()
		Expect(before).To(ContainSubstring("deployment.apps/gatehouse-control-plane"))
		r.helm("uninstall", "--wait")
		Eventually(r.everything).Should(Not(ContainSubstring("gatehouse")))
		Expect(kubectl("get", "secrets", "--namespace", r.namespace, "--output", "name")).To(Equal("secret/postgres"))
	})
})
