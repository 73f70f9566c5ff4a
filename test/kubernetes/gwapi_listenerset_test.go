package kubernetes_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// set creates a ListenerSet for the Gateway.
func (e edge) set(in place, name, listeners string) {
	GinkgoHelper()
	in.apply("apiVersion: gateway.networking.k8s.io/v1\nkind: ListenerSet\nmetadata: {name: %s}\nspec:\n  parentRef: {name: web, namespace: %s}\n  listeners:\n%s\n", name, e.namespace, listeners)
}

// entry returns a condition of a listener of a ListenerSet, as "True Accepted".
func (p place) entry(set, name, condition string) func() string {
	return func() string {
		return p.jsonPath("listenerset", set, fmt.Sprintf(
			`{range .status.listeners[?(@.name==%q)]}{range .conditions[?(@.type==%q)]}{.status} {.reason}{end}{end}`, name, condition))
	}
}

var _ = Describe("A ListenerSet", func() {
	It("adds listeners to a Gateway of another namespace, and changes none of its own", func() {
		team := newPlace(cluster)
		e := newEdge([]place{team})
		authority, err := testkit.NewAuthority("gateway")
		Expect(err).NotTo(HaveOccurred())
		e.pair(authority, "pair", "shop.example")
		team.pair(authority, "pair", "app.example")
		e.service("web", backend("blue"))
		team.service("web", backend("green"))
		const own = `  - {name: http, port: 80, protocol: HTTP, hostname: shop.example}
  - {name: https, port: 443, protocol: HTTPS, hostname: shop.example, tls: {certificateRefs: [{name: pair}]}}`
		e.listeners(own)
		e.set(team, "own", `  - {name: http, port: 80, protocol: HTTP, hostname: app.example}
  - {name: https, port: 443, protocol: HTTPS, hostname: app.example, tls: {certificateRefs: [{name: pair}]}}
  - {name: other, port: 443, protocol: HTTPS, hostname: other.example, tls: {certificateRefs: [{name: pair, namespace: `+e.namespace+`}]}}
  - {name: taken, port: 80, protocol: HTTP, hostname: shop.example}
  - {name: tcp, port: 443, protocol: TCP}`)
		const rules = "  rules: [{backendRefs: [{name: web, port: 80}]}]"
		e.route(e.place, "shop", rules)
		e.route(team, "app", "  parentRefs: [{kind: ListenerSet, name: own}]\n"+rules)
		e.route(team, "taken", "  parentRefs: [{kind: ListenerSet, name: own, sectionName: taken}]\n"+rules)
		e.route(e.place, "foreign", fmt.Sprintf("  parentRefs: [{kind: ListenerSet, name: own, namespace: %s}]\n%s", team.namespace, rules))
		secure := func(host string) func() string {
			return func() string { return overTLS(authority, e.securePort, host) }
		}

		By("which must allow it")
		e.expect("shop.example", "200 blue")
		Eventually(team.condition("listenerset", "own", "Accepted")).Should(HavePrefix("False NotAllowed"))
		Expect(team.condition("listenerset", "own", "Programmed")()).To(HavePrefix("False NotAllowed"))
		Eventually(team.parent("app", "Accepted")).Should(Equal("False NoMatchingParent"))
		Expect(e.ask("GET app.example /")).To(Equal("404"))
		e.listeners(own + "\n  allowedListeners: {namespaces: {from: All}}")
		e.expect("app.example", "200 green")
		Eventually(secure("app.example")).Should(Equal("200 "))
		Expect(e.ask("GET shop.example /")).To(Equal("200 blue"))
		Eventually(secure("shop.example")).Should(Equal("200 "))
		Expect(secure("other.example")()).NotTo(HavePrefix("200"))

		By("its status")
		Eventually(team.condition("listenerset", "own", "Accepted")).Should(HavePrefix("True Accepted"))
		Eventually(team.condition("listenerset", "own", "Programmed")).Should(HavePrefix("True Programmed"))
		Eventually(func() string {
			return team.jsonPath("listenerset", "own", "{range .status.listeners[*]}{.name}={.attachedRoutes} {end}")
		}).Should(Equal("http=1 https=1 other=1 taken=2 tcp=0 "))
		Expect(team.entry("own", "https", "Programmed")()).To(Equal("True Programmed"))
		Expect(team.entry("own", "other", "ResolvedRefs")()).To(Equal("False RefNotPermitted"))
		Expect(team.entry("own", "taken", "Conflicted")()).To(Equal("True HostnameConflict"))
		Expect(team.entry("own", "taken", "Programmed")()).To(Equal("False HostnameConflict"))
		Expect(team.entry("own", "tcp", "Accepted")()).To(Equal("False ProtocolConflict"))
		Eventually(func() string { return e.jsonPath("gateway", "web", "{.status.attachedListenerSets}") }).Should(Equal("1"))
		Eventually(e.attached).Should(Equal("http=1 https=1 "))
		Eventually(team.parent("app", "Accepted")).Should(Equal("True Accepted"))
		Eventually(team.parent("taken", "Accepted")).Should(Equal("False NoMatchingParent"))
		Eventually(e.parent("foreign", "Accepted")).Should(Equal("False NotAllowedByListeners"))

		By("deleting it")
		team.kubectl("delete", "listenerset", "own")
		e.expect("app.example", "404")
		Eventually(func() string { return team.jsonPath("httproute", "app", "{.status.parents}") }).Should(Equal("[]"))
		Eventually(func() string { return e.jsonPath("gateway", "web", "{.status.attachedListenerSets}") }).Should(Equal("0"))
		Expect(e.ask("GET shop.example /")).To(Equal("200 blue"))
	})
})
