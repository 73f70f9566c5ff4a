package kubernetes_test

import (
	"fmt"
	"net"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// strictEnvoy runs an Envoy that refuses testkit.LargeExpression.
func (g gateway) strictEnvoy() {
	GinkgoHelper()
	e, err := testkit.StartStrictEnvoy(limit(), GinkgoT().TempDir(), "gatehouse", g.XDSAddr)
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(e.Kill)
}

// blackHole returns a backend that accepts connections, and never answers.
func blackHole() *testkit.Backend {
	GinkgoHelper()
	l, err := net.Listen("tcp", net.JoinHostPort(ownAddress(), "0"))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(l.Close)
	addr := l.Addr().(*net.TCPAddr)
	return &testkit.Backend{IP: addr.IP.String(), Port: addr.Port}
}

const loginYAML = `
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: %s}
spec:
  type: http_filter_oidc
  routeFilterConfig:
    config: |
      {"client_id": "shop", "client_secret": "client", "cookie_secret": "cookie", "redirect_uri": "https://login.example/callback",
       "authorization_endpoint": "https://idp.example.com/authorize", "token_endpoint": "https://idp.example.com/token"}
`

var _ = Describe("The conditions of an object that cannot be served as written", func() {
	It("are Quarantined with the field, what is closed answers 503, and the others are served", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.kubectl("create", "secret", "generic", "client", "--from-literal=value=the secret of the client")
		p.kubectl("create", "secret", "generic", "cookie", "--from-literal=value=0123456789abcdef0123456789abcdef")
		p.apply(loginYAML, "first")
		p.apply(loginYAML, "second")
		p.host("good", "good.example", "web")
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: login}
spec:
  virtualhost: {fqdn: login.example}
  filters: [{name: first}, {name: second}]
  routes: [{services: [{name: web, port: 80}]}]
---
apiVersion: v1
kind: Service
metadata: {name: payments}
spec: {type: ExternalName, externalName: payments.example.net, ports: [{port: 443}]}
---
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: pay}
spec:
  virtualhost: {fqdn: pay.example}
  routes:
  - services: [{name: web, port: 80}]
  - conditions: [{segment: /pay}]
    services: [{name: payments, port: 443}]
`)
		g := p.serve("--upstream-deny", "payments.example.net")
		g.envoy()

		By("a host whose filter cannot be enforced")
		g.expect("login.example", "503")
		Eventually(p.row("gatewayhost", "login")).Should(Equal("login login.example gatehouse False Quarantined"))
		Expect(p.condition("gatewayhost", "login", "Accepted")()).To(Equal("False Quarantined (1): spec.filters[1].name: filter " + p.namespace + ".second cannot be enforced: " +
			"the service has another http_filter_oidc too, and only one login can apply. The service answers 503 and lets nobody in"))

		By("a route whose backend is forbidden")
		g.expect("pay.example", "200 blue")
		Expect(g.request("pay.example", "/pay")).To(Equal("503"))
		Eventually(p.row("gatewayhost", "pay")).Should(Equal("pay pay.example gatehouse False Quarantined"))
		Expect(p.condition("gatewayhost", "pay", "Accepted")()).To(MatchRegexp(`^False Quarantined \(1\): spec\.routes\[1\]: .*payments\.443, whose address --upstream-allow or --upstream-deny rules out`))

		Expect(g.request("good.example", "/")).To(Equal("200 blue"))
		Eventually(p.row("gatewayhost", "good")).Should(Equal("good good.example gatehouse True Programmed"))

		By("fixing them")
		p.kubectl("patch", "gatewayhost", "login", "--type", "json", "--patch", `[{"op":"remove","path":"/spec/filters/1"}]`)
		p.kubectl("patch", "gatewayhost", "pay", "--type", "json", "--patch", `[{"op":"remove","path":"/spec/routes/1"}]`)
		g.expect("login.example", "302")
		Eventually(p.row("gatewayhost", "login")).Should(Equal("login login.example gatehouse True Programmed"))
		Eventually(p.row("gatewayhost", "pay")).Should(Equal("pay pay.example gatehouse True Programmed"))
	})

	It("are Refused in the words of the Envoy that refuses it, and the others are updated", func() {
		p := newPlace(cluster)
		p.service("web", backend("blue"))
		p.host("good", "good.example", "web")
		p.host("bad", "bad.example", "web")
		strict, other := p.serve(), p.serve()
		strict.strictEnvoy()
		other.envoy()
		strict.expect("bad.example", "200 blue")
		for _, name := range []string{"good", "bad"} {
			Eventually(p.row("gatewayhost", name)).Should(Equal(name + " " + name + ".example gatehouse True Programmed"))
		}

		large := func(name, fqdn string) {
			p.apply("%s", strings.Replace(hostYAML(name, fqdn, "web"), "routes: [",
				fmt.Sprintf("routes: [{conditions: [{regex: %q}], services: [{name: web, port: 80}]}, ", testkit.LargeExpression), 1))
		}
		large("bad", "bad.example")
		large("new", "new.example")
		p.host("good", "better.example", "web")
		refused := func(generation int) string {
			return fmt.Sprintf(`^False Refused \(%d\): the Envoy at 127\.0\.0\.1:\d+ \(replica %s\) refused it: .*program size`, generation, regexp.QuoteMeta(strict.replica()))
		}
		Eventually(p.condition("gatewayhost", "bad", "Programmed")).Should(MatchRegexp(refused(2)))
		Eventually(p.condition("gatewayhost", "new", "Programmed")).Should(MatchRegexp(refused(1)))
		Expect(p.row("gatewayhost", "new")()).To(Equal("new new.example gatehouse False Refused"))
		Expect(p.condition("gatewayhost", "new", "Accepted")()).To(HavePrefix("True Accepted (1)"))
		Eventually(p.envoys("gatewayhost", "new")).Should(Equal("1"))
		other.expect("new.example", "200 blue")
		strict.expect("new.example", "503")
		Expect(strict.request("bad.example", "/")).To(Equal("200 blue"), "it was served before, and is served so")
		strict.expect("better.example", "200 blue")
		Eventually(p.condition("gatewayhost", "good", "Programmed")).Should(Equal("True Programmed (2): every connected Envoy has it"))
		Expect(p.envoys("gatewayhost", "good")()).To(Equal("2"))

		By("fixing them")
		p.host("bad", "bad.example", "web")
		p.host("new", "new.example", "web")
		strict.expect("new.example", "200 blue")
		Eventually(p.condition("gatewayhost", "bad", "Programmed")).Should(Equal("True Programmed (3): every connected Envoy has it"))
		Eventually(p.condition("gatewayhost", "new", "Programmed")).Should(Equal("True Programmed (2): every connected Envoy has it"))
	})

	It("are Waiting with what an Envoy waits for, and Programmed when the Envoy has it", func() {
		p := newPlace(cluster)
		blue := backend("blue")
		p.service("web", blue)
		p.host("shop", "shop.example", "web")
		g := p.serve("--cluster-wait", "1h")
		g.envoy()
		Eventually(p.row("gatewayhost", "shop")).Should(Equal("shop shop.example gatehouse True Programmed"))

		By("a Service whose only endpoint does not answer its first health check")
		p.service("slow", blackHole())
		p.apply(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop}
spec:
  virtualhost: {fqdn: shop.example}
  routes: [{services: [{name: slow, port: 80, healthCheck: {path: /healthz, timeoutSeconds: 3600, intervalSeconds: 3600}}]}]
`)
		p.host("other", "other.example", "web")
		Eventually(p.condition("gatewayhost", "shop", "Programmed")).Should(MatchRegexp(
			`^False Waiting \(2\): the Envoy at 127\.0\.0\.1:\d+ \(replica .*\) waits for %s\.slow\.80\.[0-9a-f]+$`, p.namespace))
		Expect(p.envoys("gatewayhost", "shop")()).To(Equal("0"))
		Expect(g.request("shop.example", "/")).To(Equal("200 blue"), "it is served as it was")
		Eventually(p.row("gatewayhost", "other")).Should(Equal("other other.example gatehouse True Programmed"))
		g.expect("other.example", "200 blue")

		By("another endpoint instead")
		p.endpoints("slow", backend("green"))
		g.expect("shop.example", "200 green")
		Eventually(p.condition("gatewayhost", "shop", "Programmed")).Should(Equal("True Programmed (2): every connected Envoy has it"))
		Expect(p.envoys("gatewayhost", "shop")()).To(Equal("1"))
	})
})
