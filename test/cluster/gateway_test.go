//go:build cluster

package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// helm runs helm in a namespace.
func helm(namespace string, args ...string) string {
	GinkgoHelper()
	out, err := run("", "helm", append(args, "--namespace", namespace)...)
	Expect(err).NotTo(HaveOccurred())
	return out
}

// installed is the gateway of the chart in a new namespace, whose Envoys have a port of the node. It is removed at the end
// of the spec. values are such as "mode=rest".
type installed struct {
	ns string
	// http is the address of the Envoys, HOST:PORT.
	http string
}

func install(values ...string) installed {
	GinkgoHelper()
	g := installed{ns: namespace("restricted")}
	DeferCleanup(func() {
		_, _ = run("", "helm", "uninstall", "gatehouse", "--namespace", g.ns, "--ignore-not-found", "--wait")
	})
	helm(g.ns, append([]string{"install", "gatehouse", root + "/charts/gatehouse", "--wait", "--timeout", "4m"}, g.set(values...)...)...)
	g.http = net.JoinHostPort(nodeAddress, nodePort(g.ns, "gatehouse-envoy-gatehouse", "http"))
	return g
}

// set returns the arguments of helm for these values and those of all specs: the images of these specs, ports of the node,
// and no other namespace.
func (g installed) set(values ...string) []string {
	values = append([]string{
		"images.controlPlane.tag=local", "images.envoy.tag=local", "images.ratelimit.tag=local",
		"images.redis.repository=localhost/redis", "images.redis.tag=local", "redis.runAsUser=10003",
		"envoy.service.type=NodePort", "kubernetes.namespaces={" + g.ns + "}",
	}, values...)
	args := make([]string, 0, 2*len(values))
	for _, v := range values {
		args = append(args, "--set", v)
	}
	return args
}

// host creates a GatewayHost that sends the requests for shop.example.com to the Service echo, with these fields of its
// route.
func (g installed) host(fields string) {
	GinkgoHelper()
	apply(g.ns, `
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop}
spec:
  virtualhost: {fqdn: shop.example.com}
  routes:
  - conditions: [{prefix: /}]
    services: [{name: echo, port: 80}]
    `+fields+`
`)
}

// shop requests shop.example.com on its own connection, and returns the status and the path that the backend received.
func (g installed) shop(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.http+"/", http.NoBody)
	if err != nil {
		return "", err
	}
	req.Host = "shop.example.com"
	a, err := testkit.Send(req)
	return fmt.Sprint(a.Status, " ", strings.TrimSpace(a.Body)), err
}

// answers waits until the backend receives this path from every Envoy: the port of the node distributes connections over
// them.
func (g installed) answers(ctx context.Context, path string) {
	GinkgoHelper()
	Eventually(func() (string, error) { return g.shop(ctx) }).MustPassRepeatedly(20).Should(Equal("200 " + path))
}

// traffic sends 500 requests a second to shop.example.com until it is stopped.
func (g installed) traffic() *testkit.Traffic {
	traffic := testkit.StartTraffic(testkit.TrafficOptions{Addr: g.http, Host: "shop.example.com", Rate: 500})
	DeferCleanup(traffic.Stop)
	return traffic
}

// pods returns the names of the Pods with a label.
func (g installed) pods(label string) []string {
	GinkgoHelper()
	return strings.Fields(kubectl("get", "pods", "--namespace", g.ns, "--selector", label, "--output", "jsonpath={.items[*].metadata.name}"))
}

// noneFailed reports the result of the requests, none of which may have failed.
func noneFailed(r testkit.Report) {
	GinkgoHelper()
	AddReportEntry("requests", fmt.Sprint(r))
	Expect(r.Failures).To(BeEmpty(), r.String())
}
