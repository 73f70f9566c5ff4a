package kubernetes_test

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// applyGatewayAPI installs the CRDs of the Gateway API, of the standard channel.
func applyGatewayAPI(k *testkit.Kubernetes) {
	GinkgoHelper()
	out, err := exec.CommandContext(limit(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/gateway-api").Output()
	Expect(err).NotTo(HaveOccurred())
	files, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(out)), "config/crd/standard/gateway.networking.k8s.io_*s.yaml"))
	Expect(err).NotTo(HaveOccurred())
	args := []string{"apply", "--server-side"}
	for _, f := range files {
		if !strings.Contains(f, "_vap_") {
			args = append(args, "-f", f)
		}
	}
	_, err = k.Kubectl(limit(), args...)
	Expect(err).NotTo(HaveOccurred())
	_, err = k.Kubectl(limit(), "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	Expect(err).NotTo(HaveOccurred())
}

// edge is a Gateway called web in a namespace of its own, with a control plane and an Envoy.
type edge struct {
	place
	gateway
	securePort int
}

// class creates the GatewayClass of the suite's control planes.
func (p place) class() {
	GinkgoHelper()
	p.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: gatehouse}\nspec: {controllerName: gateway.gatehouse.dev/gatehouse}\n")
}

// newEdge runs a control plane that reads these namespaces besides its own, and an Envoy of Gateway web.
func newEdge(more []place, args ...string) edge {
	GinkgoHelper()
	p := newPlace(cluster)
	p.class()
	e := edge{place: p, securePort: freePort()}
	port := freePort()
	namespaces := []string{p.namespace}
	for _, m := range more {
		namespaces = append(namespaces, m.namespace)
	}
	settings := fmt.Sprintf("version: 1\nproxies:\n- name: %s.web\n  http_port: %d\n  https_port: %d\n  listen_ip: 127.0.0.1\n", p.namespace, port, e.securePort)
	e.gateway = p.serve(append([]string{
		"--kubernetes-proxies", "gatehouse," + p.namespace + ".web", "--kubernetes-proxy-settings", file("proxies.yaml", settings),
		"--kubernetes-namespaces", strings.Join(namespaces, ","),
	}, args...)...)
	e.port = port
	envoyOf(p.namespace+".web", e.XDSAddr)
	return e
}

// listeners creates the Gateway with these listeners.
func (e edge) listeners(list string) {
	GinkgoHelper()
	e.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: web}\nspec:\n  gatewayClassName: gatehouse\n  listeners:\n%s\n", list)
}

// route creates an HTTPRoute with this spec, without parentRefs, in a namespace.
func (e edge) route(in place, name, spec string) {
	GinkgoHelper()
	e.routeOf("HTTPRoute", in, name, spec)
}

// routeOf creates a route of a kind.
func (e edge) routeOf(kind string, in place, name, spec string) {
	GinkgoHelper()
	if !strings.Contains(spec, "parentRefs:") {
		spec = fmt.Sprintf("  parentRefs: [{name: web, namespace: %s}]\n%s", e.namespace, spec)
	}
	in.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: %s\nmetadata: {name: %s}\nspec:\n%s\n", kind, name, spec)
}

// parent returns a condition of the first parent of an HTTPRoute, or of KIND/NAME, as "True Accepted".
func (p place) parent(route, condition string) func() string {
	kind, name, found := strings.Cut(route, "/")
	if !found {
		kind, name = "httproute", route
	}
	return func() string {
		return p.jsonPath(kind, name, fmt.Sprintf(`{range .status.parents[0].conditions[?(@.type==%q)]}{.status} {.reason}{end}`, condition))
	}
}

// now returns the time in the form of a creationTimestamp.
func (p place) now() string { return time.Now().UTC().Format(time.RFC3339) }

const anyHTTP = `  - {name: http, port: 80, protocol: HTTP}`

var _ = Describe("The Gateway API", func() {
	It("becomes what an Envoy does, and says so", func() {
		e := newEdge(nil)
		e.service("web", backend("blue"))
		e.listeners(anyHTTP)
		e.route(e.place, "shop", "  hostnames: [shop.example]\n  rules: [{backendRefs: [{name: web, port: 80}]}]")
		e.expect("shop.example", "200 blue")
		e.expect("other.example", "404")
		Eventually(e.parent("shop", "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"))
		Expect(e.parent("shop", "Accepted")()).To(Equal("True Accepted"))
		Expect(e.parent("shop", "ResolvedRefs")()).To(Equal("True ResolvedRefs"))
		Eventually(e.condition("gateway", "web", "Programmed")).Should(Equal("True Programmed (1): every connected Envoy has it"))
		Expect(e.condition("gateway", "web", "Accepted")()).To(HavePrefix("True Accepted (1)"))
		Eventually(func() string { // a status is written at most once a second
			return e.jsonPath("gateway", "web", "{.status.listeners[0].attachedRoutes} {.status.listeners[0].supportedKinds[*].kind}")
		}).Should(Equal("1 HTTPRoute GRPCRoute"))
	})
})
