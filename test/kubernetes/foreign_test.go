package kubernetes_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// external creates an ExternalName Service.
func (p place) external(name, target string, port int) {
	GinkgoHelper()
	p.apply("apiVersion: v1\nkind: Service\nmetadata: {name: %s}\nspec: {type: ExternalName, externalName: %q, ports: [{port: %d}]}\n", name, target, port)
}

// leadTo creates a GatewayHost whose only route leads to the port of a Service.
func (p place) leadTo(name string, port int) {
	GinkgoHelper()
	p.apply("%s", strings.Replace(hostYAML(name, name+".example", name), "port: 80", fmt.Sprintf("port: %d", port), 1))
}

var _ = Describe("The addresses that a tenant writes", func() {
	It("lead neither to the gateway's machine, nor to metadata services, nor into other namespaces", func() {
		secret, err := testkit.StartBackend("secret", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(secret.Close)
		p, other := newPlace(cluster), newPlace(cluster)
		p.service("web", backend("blue"))
		p.host("web", "web.example", "web")
		other.service("inner", backend("inner"))
		g := p.serve("--kubernetes-namespaces", p.namespace+","+other.namespace)
		g.envoy()
		g.expect("web.example", "200 blue")

		rows := []struct{ name, target, reason string }{
			{"localhost", "localhost", "is a loopback address"}, {"below", "x.localhost", "is a loopback address"},
			{"loopback", "127.0.0.1", "is a loopback address"}, {"number", "2130706433", "is a loopback address"}, {"hex", "0x7f000001", "is a loopback address"},
			{"metadata", "169.254.169.254", "is a link-local address"}, {"alibaba", "100.100.100.200", "is the address of a cloud's metadata service"},
			{"google", "metadata.google.internal", "is the name of a cloud's metadata service"},
			{"own", ownAddress(), "is an IP address, which may belong to another namespace"},
			{"short", "inner", "is not a complete host name"},
			{"pod", "127-0-0-1." + p.namespace + ".pod.cluster.local", "is a name in the cluster"},
			{"member", "a.inner." + other.namespace + ".svc.cluster.local", "is a name in the cluster"},
		}
		for _, r := range rows {
			p.external(r.name, r.target, secret.Port)
			p.leadTo(r.name, secret.Port)
		}
		p.external("foreign", "inner."+other.namespace+".svc.cluster.local", 80)
		p.leadTo("foreign", 80)
		p.external("chain", "foreign."+p.namespace+".svc.cluster.local", 80)
		p.leadTo("chain", 80)
		for _, r := range rows {
			g.expect(r.name+".example", "503")
			Eventually(p.condition("gatewayhost", r.name, "Accepted")).Should(
				And(HavePrefix("False Quarantined (1): spec.routes[0]: "), ContainSubstring("whose address "+r.reason)), r.name)
		}
		Eventually(p.condition("gatewayhost", "foreign", "ResolvedRefs")).Should(
			HavePrefix("False RefNotPermitted (1): spec.routes[0].services[0].name: Service " + other.namespace + "/inner may not be named from namespace " + p.namespace))
		g.expect("foreign.example", "503")
		Eventually(p.condition("gatewayhost", "chain", "Accepted")).Should(ContainSubstring("is an ExternalName Service too"))
		g.expect("chain.example", "503")
		Expect(g.request("web.example", "/")).To(Equal("200 blue"))

		By("permitting one of them")
		other.grant("inner", "GatewayHost", p, "{kind: Service, name: inner}")
		g.expect("foreign.example", "200 inner")
		Expect(g.request("chain.example", "/")).To(Equal("503"))
	})

	It("are not those of the gateway itself in an EndpointSlice", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.service("api")
		p.service("cloud", &testkit.Backend{IP: "168.63.129.16", Port: 80})
		for _, name := range []string{"web", "api", "cloud"} {
			p.host(name, name+".example", name)
		}
		apiPort := freePort()
		g := p.serve("--api-addr", fmt.Sprintf("%s:%d", ownAddress(), apiPort), "--api-admin-token-file", file("token", strings.Repeat("0123456789abcdef", 4)))
		g.envoy()
		g.expect("web.example", "200 blue")
		p.endpoints("api", &testkit.Backend{IP: ownAddress(), Port: apiPort})
		for name, why := range map[string]string{"api": "is that of Gatehouse's own API", "cloud": "is the address of a cloud's metadata service"} {
			Eventually(p.condition("gatewayhost", name, "Programmed")).Should(ContainSubstring("the address of an endpoint "+why), name)
			g.expect(name+".example", "503")
		}
	})
})
