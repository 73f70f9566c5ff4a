package kubernetes_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// listener returns a condition of a listener of the Gateway, as "True Accepted".
func (e edge) listener(name, condition string) func() string {
	return func() string {
		return e.jsonPath("gateway", "web", fmt.Sprintf(
			`{range .status.listeners[?(@.name==%q)]}{range .conditions[?(@.type==%q)]}{.status} {.reason}{end}{end}`, name, condition))
	}
}

// attached returns the number of routes of each listener.
func (e edge) attached() string {
	return e.jsonPath("gateway", "web", "{range .status.listeners[*]}{.name}={.attachedRoutes} {end}")
}

// pair creates a Secret with a certificate for some names.
func (p place) pair(authority *testkit.Authority, secret string, names ...string) {
	GinkgoHelper()
	pair, err := authority.Issue(testkit.CertificateOptions{Names: names})
	Expect(err).NotTo(HaveOccurred())
	p.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\ntype: kubernetes.io/tls\nstringData: {tls.crt: %q, tls.key: %q}\n", secret, pair.Cert, pair.Key)
}

var _ = Describe("A Gateway", func() {
	It("serves each host by the listener with the narrowest name, over HTTP and HTTPS apart", func() {
		e := newEdge(nil)
		authority, err := testkit.NewAuthority("gateway")
		Expect(err).NotTo(HaveOccurred())
		e.pair(authority, "pair", "*.example", "example")
		for _, name := range []string{"blue", "green", "red"} {
			e.service(name, backend(name))
		}
		e.listeners(`  - {name: http, port: 80, protocol: HTTP}
  - {name: narrow, port: 80, protocol: HTTP, hostname: "*.narrow.example"}
  - {name: https, port: 443, protocol: HTTPS, hostname: "*.example", tls: {certificateRefs: [{name: pair}]}}
  - {name: tcp, port: 90, protocol: TCP}`)
		to := func(section, hosts, name string) string {
			return fmt.Sprintf("  parentRefs: [{name: web, sectionName: %s}]\n  hostnames: [%s]\n  rules: [{backendRefs: [{name: %s, port: 80}]}]", section, hosts, name)
		}
		e.route(e.place, "redirect", `  parentRefs: [{name: web, sectionName: http}]
  rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}]`)
		e.route(e.place, "app", to("https", "app.example", "blue"))
		e.route(e.place, "both", strings.Replace(to("", "both.example", "green"), ", sectionName: ", "", 1))
		e.route(e.place, "narrow", to("narrow", "a.narrow.example", "red"))
		secure := func(host string) string { return overTLS(authority, e.securePort, host) }

		By("one route for HTTP, others for HTTPS, of the same host: the usual redirect")
		Eventually(func() string { return e.ask("GET app.example /x", "location") }).Should(Equal("301 https://app.example/x"))
		Eventually(func() string { return secure("app.example") }).Should(Equal("200 "))
		Expect(e.ask("GET app.example / x-forwarded-proto:https", "location")).To(Equal("301 https://app.example/"), "clients cannot say that it is HTTPS")
		Expect(e.ask("GET elsewhere.test /", "location")).To(Equal("301 https://elsewhere.test/"))
		Eventually(func() string { return e.ask("GET both.example /") }).Should(Equal("200 green"))
		Eventually(func() string { return secure("both.example") }).Should(Equal("200 "))

		By("what the narrow listener does not serve, the wide one does not serve either")
		Eventually(func() string { return e.ask("GET a.narrow.example /") }).Should(Equal("200 red"))
		Expect(e.ask("GET b.narrow.example /")).To(Equal("404"))

		By("its status")
		Eventually(e.attached).Should(Equal("http=2 narrow=1 https=2 tcp=0 "))
		Eventually(e.condition("gateway", "web", "Programmed")).Should(HavePrefix("True Programmed"))
		Expect(e.condition("gateway", "web", "Accepted")()).To(HavePrefix("True Accepted"))
		Expect(e.listener("http", "Programmed")()).To(Equal("True Programmed"))
		Expect(e.listener("https", "ResolvedRefs")()).To(Equal("True ResolvedRefs"))
		Expect(e.listener("tcp", "Accepted")()).To(Equal("True Accepted"))

		By("deleting a route, and the Gateway")
		e.kubectl("delete", "httproute", "both")
		Eventually(func() string { return e.ask("GET both.example /", "location") }).Should(Equal("301 https://both.example/"))
		e.kubectl("delete", "gateways.gateway.networking.k8s.io", "web")
		Eventually(func() string { return e.ask("GET app.example /") }).Should(Equal("404"))
		Eventually(func() string { return e.jsonPath("httproute", "app", "{.status.parents}") }).Should(Equal("[]"))
	})

	It("gives a tenant nothing that the owner of the Gateway, of a Service or of a Secret did not give", func() {
		tenant, friend := newPlace(cluster), newPlace(cluster)
		e := newEdge([]place{tenant, friend}, "--kubernetes-host-names", "*=*.open.example,"+tenantHosts(tenant))
		friend.kubectl("label", "namespace", friend.namespace, "routes=yes")
		authority, err := testkit.NewAuthority("tenants")
		Expect(err).NotTo(HaveOccurred())
		tenant.pair(authority, "pair", "secret.open.example")
		for _, p := range []place{e.place, tenant, friend} {
			p.service("web", backend(p.namespace))
		}
		e.listeners(`  - {name: same, port: 80, protocol: HTTP, hostname: same.open.example}
  - {name: all, port: 80, protocol: HTTP, hostname: all.open.example, allowedRoutes: {namespaces: {from: All}}}
  - {name: wide, port: 80, protocol: HTTP, allowedRoutes: {namespaces: {from: All}}}
  - {name: some, port: 80, protocol: HTTP, hostname: some.open.example, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {routes: "yes"}}}}}
  - {name: stolen, port: 443, protocol: HTTPS, hostname: secret.open.example, tls: {certificateRefs: [{name: pair, namespace: ` + tenant.namespace + `}]}}`)
		rule := func(host string) string {
			return "  hostnames: [" + host + "]\n  rules: [{backendRefs: [{name: web, port: 80}]}]"
		}

		By("a listener takes the namespaces that it names, by place or by label")
		for _, p := range []place{tenant, friend} {
			for _, host := range []string{"same", "all", "some"} {
				if host == "all" && p.namespace == friend.namespace {
					continue // of two routes of one age, the name of the namespace would decide
				}
				e.route(p, host, fmt.Sprintf("  parentRefs: [{name: web, namespace: %s, sectionName: %s}]\n", e.namespace, host)+rule(host+".open.example"))
			}
		}
		Eventually(tenant.parent("all", "Accepted")).Should(Equal("True Accepted"))
		Eventually(tenant.parent("same", "Accepted")).Should(Equal("False NotAllowedByListeners"))
		Eventually(tenant.parent("some", "Accepted")).Should(Equal("False NotAllowedByListeners"))
		Eventually(friend.parent("some", "Accepted")).Should(Equal("True Accepted"))
		Eventually(func() string { return e.ask("GET all.open.example /") }).Should(Equal("200 " + tenant.namespace))
		Eventually(func() string { return e.ask("GET some.open.example /") }).Should(Equal("200 " + friend.namespace))
		Expect(e.ask("GET same.open.example /")).To(Equal("404"))
		friend.kubectl("label", "namespace", friend.namespace, "routes-")
		Eventually(friend.parent("some", "Accepted")).Should(Equal("False NotAllowedByListeners"))
		Eventually(func() string { return e.ask("GET some.open.example /") }).Should(Equal("404"))

		By("a newer route takes no request from an older one, and none has a host that its namespace may not have")
		Expect(e.ask("GET all.open.example /")).To(Equal("200 " + tenant.namespace))
		e.route(tenant, "foreign", rule("shop.closed.example"))
		e.route(tenant, "any", "  rules: [{backendRefs: [{name: web, port: 80}]}]\n  parentRefs: [{name: web, namespace: "+e.namespace+", sectionName: wide}]")
		e.route(friend, "foreign", rule("shop.closed.example"))
		Eventually(tenant.parent("foreign", "Accepted")).Should(Equal("True Accepted"), "it is the tenant's")
		Eventually(tenant.parent("any", "Accepted")).Should(Equal("False HostNotAllowed"))
		Eventually(friend.parent("foreign", "Accepted")).Should(Equal("False HostNotAllowed"))
		Eventually(func() string { return e.ask("GET shop.closed.example /") }).Should(Equal("200 " + tenant.namespace))
		Expect(e.ask("GET other.example /")).To(Equal("404"))

		By("a certificate of another namespace needs a ReferenceGrant")
		secure := func() string { return overTLS(authority, e.securePort, "secret.open.example") }
		Eventually(e.listener("stolen", "ResolvedRefs")).Should(Equal("False RefNotPermitted"))
		Expect(e.listener("stolen", "Programmed")()).To(Equal("False Invalid"))
		Expect(secure()).NotTo(HavePrefix("404"))
		tenant.apply("%s", apiGrant("HTTPRoute", e.place, "Secret"))
		Consistently(e.listener("stolen", "ResolvedRefs")).WithTimeout(testkit.Patience/20).Should(Equal("False RefNotPermitted"), "a grant for routes")
		tenant.apply("%s", apiGrant("Gateway", e.place, "Secret"))
		Eventually(secure).Should(Equal("404 "))
		Eventually(e.listener("stolen", "ResolvedRefs")).Should(Equal("True ResolvedRefs"))
		tenant.kubectl("delete", "referencegrants.gateway.networking.k8s.io", "grant")
		Eventually(secure).ShouldNot(HavePrefix("404"))

		By("a GatewayHost of the proxy keeps its host")
		e.apply("%s", strings.Replace(hostYAML("mine", "mine.open.example", "web"), "spec:\n", "spec:\n  proxy: "+e.namespace+".web\n", 1))
		Eventually(func() string { return e.ask("GET mine.open.example /") }).Should(Equal("200 " + e.namespace))
		e.route(tenant, "mine", rule("mine.open.example"))
		Eventually(tenant.parent("mine", "Accepted")).Should(Equal("False HostConflict"))
		Expect(e.ask("GET mine.open.example /")).To(Equal("200 " + e.namespace))
		e.kubectl("delete", "gatewayhost", "mine")
		Eventually(func() string { return e.ask("GET mine.open.example /") }).Should(Equal("200 " + tenant.namespace))
	})

	It("leaves to other controllers what is theirs, and writes a status once", func() {
		e := newEdge(nil)
		e.service("web", backend("blue"))
		e.listeners(anyHTTP)
		e.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: GatewayClass\nmetadata: {name: other}\nspec: {controllerName: other.example/controller}\n")
		e.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: Gateway\nmetadata: {name: theirs}\nspec: {gatewayClassName: other, listeners: [{name: http, port: 80, protocol: HTTP}]}\n")
		e.route(e.place, "shared", "  parentRefs: [{name: theirs}, {name: web}]\n  hostnames: [shared.example]\n  rules: [{backendRefs: [{name: web, port: 80}]}]")
		ours := func() string {
			return e.jsonPath("httproute", "shared", `{range .status.parents[*]}{.controllerName} {.parentRef.name} {end}`)
		}
		Eventually(ours).Should(Equal("gateway.gatehouse.dev/gatehouse web "))
		Expect(e.jsonPath("gateway", "theirs", "{.status.conditions[*].reason}")).To(Equal("Pending Pending"), "the defaults of the API")
		e.kubectl("patch", "httproute", "shared", "--subresource=status", "--type=json", "-p",
			`[{"op": "add", "path": "/status/parents/0", "value": {"controllerName": "other.example/controller", "parentRef": {"name": "theirs"}, "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}]`)
		Eventually(e.parent2("shared", "web", "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"))
		version := func() string { return e.jsonPath("httproute", "shared", "{.metadata.resourceVersion}") }
		before := version()
		e.route(e.place, "another", "  hostnames: [another.example]\n  rules: [{backendRefs: [{name: web, port: 80}]}]")
		Eventually(e.parent("another", "gateway.gatehouse.dev/Programmed")).Should(Equal("True Programmed"))
		Expect(version()).To(Equal(before), "nothing of it has changed")
		Expect(ours()).To(Equal("other.example/controller theirs gateway.gatehouse.dev/gatehouse web "))

		By("a route that leaves the Gateway")
		e.route(e.place, "shared", "  parentRefs: [{name: theirs}]\n  hostnames: [shared.example]\n  rules: [{backendRefs: [{name: web, port: 80}]}]")
		Eventually(ours).Should(Equal("other.example/controller theirs "))
		Eventually(func() string { return e.ask("GET shared.example /") }).Should(Equal("404"))
	})
})

// tenantHosts is what a tenant may have besides what is open to all.
func tenantHosts(p place) string {
	return p.namespace + "=*.open.example," + p.namespace + "=shop.closed.example"
}

// parent2 returns a condition of the parent of a route with a name.
func (p place) parent2(route, parent, condition string) func() string {
	return func() string {
		return p.jsonPath("httproute", route, fmt.Sprintf(
			`{range .status.parents[?(@.parentRef.name==%q)]}{range .conditions[?(@.type==%q)]}{.status} {.reason}{end}{end}`, parent, condition))
	}
}
