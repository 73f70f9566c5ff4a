package translate_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// gatewayFor creates Gateway shop/web, which takes the ListenerSets of some namespaces.
func (c *cluster) gatewayFor(namespaces string, listeners ...string) {
	GinkgoHelper()
	c.apply(fmt.Sprintf("kind: Gateway\nmetadata: {name: web, namespace: shop}\nspec: {gatewayClassName: gatehouse, allowedListeners: {namespaces: {%s}}, listeners: [%s]}",
		namespaces, strings.Join(listeners, ", ")))
}

// set creates a ListenerSet for Gateway shop/web that is some days old.
func (c *cluster) set(namespace, name string, days int, listeners ...string) {
	GinkgoHelper()
	c.apply(fmt.Sprintf("kind: ListenerSet\nmetadata: {name: %s, namespace: %s, creationTimestamp: \"2026-01-%02dT00:00:00Z\"}\nspec: {parentRef: {name: web, namespace: shop}, listeners: [%s]}",
		name, namespace, 30-days, strings.Join(listeners, ", ")))
}

// setIn says what a step made of a ListenerSet: Accepted, and that of each listener with its number of routes.
func setIn(step translate.Step, name string) string {
	GinkgoHelper()
	r := objectIn(step, "ListenerSet "+name).API.(*translate.SetResult)
	said := []string{fmt.Sprintf("%t %s", r.Conditions[0].True, r.Conditions[0].Reason)}
	for _, l := range r.Listeners {
		said = append(said, fmt.Sprintf("%s %s %d", l.Name, l.Conditions[0].Reason, l.Attached))
	}
	return strings.Join(said, ", ")
}

// secretsIn lists the certificates that a step gives to hosts.
func secretsIn(step translate.Step) (list []string) {
	for _, op := range step.Ops {
		if s, ok := op.Object.(*model.ServiceSecret); ok {
			list = append(list, s.Service+" "+s.Secret)
		}
	}
	slices.Sort(list)
	return list
}

var _ = Describe("A ListenerSet", func() {
	const http, all = "{name: http, port: 80, protocol: HTTP, hostname: shop.example}", "from: All"
	const app = "{name: http, port: 80, protocol: HTTP, hostname: app.example, allowedRoutes: {namespaces: {from: All}}}"
	const named = "kind: HTTPRoute\nmetadata: {name: %s, namespace: %s}\nspec: {parentRefs: [{%s}], rules: [{backendRefs: [{name: web, namespace: shop, port: 80}]}]}"
	toSet := func(c *cluster, name, namespace, parent string) { c.apply(fmt.Sprintf(named, name, namespace, parent)) }
	const ofSet = "kind: ListenerSet, name: own, namespace: team"
	https := func(port int, host, at string) string {
		return fmt.Sprintf("{name: https, port: %d, protocol: HTTPS, hostname: %q, tls: {certificateRefs: [{name: pair%s}]}}", port, host, at)
	}

	DescribeTable("needs a Gateway that allows its namespace", func(namespaces, want string) {
		c := gatewayCluster()
		c.gatewayFor(namespaces, http)
		c.put(&metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: "team", Labels: map[string]string{"a": "b"}}})
		c.set("team", "own", 1, app)
		step := c.step()
		Expect(setIn(step, "team/own")).To(HavePrefix(want))
		Expect(objectIn(step, "Gateway shop/web").API.(*translate.GatewayResult).Sets).To(Equal(map[bool]int32{true: 1}[strings.HasPrefix(want, "true")]))
		c.gatewayFor("from: None", http)
		if strings.HasPrefix(want, "true") {
			Expect(setIn(c.step(), "team/own")).To(Equal("false NotAllowed"))
		}
	},
		Entry("by default none", "", "false NotAllowed"),
		Entry("its own", "from: Same", "false NotAllowed"),
		Entry("all", all, "true Accepted, http Accepted"),
		Entry("by labels", "from: Selector, selector: {matchLabels: {a: b}}", "true Accepted, http Accepted"),
		Entry("by other labels", "from: Selector, selector: {matchLabels: {a: c}}", "false NotAllowed"),
	)

	It("reads no Secret before its Gateway allows it", func() {
		c := gatewayCluster()
		c.gatewayFor("from: None", http)
		c.set("team", "own", 1, https(443, "app.example", ""))
		c.step()
		Expect(c.UsedSecrets()).To(BeEmpty())
		c.gatewayFor(all, http)
		c.step()
		Expect(c.UsedSecrets()).To(Equal([]translate.Ref{{Kind: "Secret", Namespace: "team", Name: "pair"}}))
	})

	It("has its own routes, and the Gateway's have none of its listeners", func() {
		c := gatewayCluster()
		c.gatewayFor(all, http)
		c.set("team", "own", 1, app, "{name: same, port: 80, protocol: HTTP, hostname: same.example}")
		toSet(c, "set", "shop", ofSet)
		toSet(c, "team", "team", ofSet)
		toSet(c, "gateway", "shop", "name: web")
		toSet(c, "absent", "shop", "name: web, sectionName: same")
		toSet(c, "foreign", "shop", ofSet+", sectionName: same")
		step := c.step()
		Expect(setIn(step, "team/own")).To(Equal("true Accepted, http Accepted 2, same Accepted 1"))
		Expect(objectIn(step, "Gateway shop/web").API.(*translate.GatewayResult).Listeners[0].Attached).To(BeEquivalentTo(1))
		Expect(accepted(step, "HTTPRoute shop/absent")).To(Equal("false NoMatchingParent"))
		Expect(accepted(step, "HTTPRoute shop/foreign")).To(Equal("false NotAllowedByListeners"))
		c.remove("ListenerSet team/own")
		step = c.step()
		Expect(objectIn(step, "HTTPRoute shop/set").Ignored).To(BeTrue())
	})

	It("takes nothing that the Gateway or an older one has", func() {
		c := gatewayCluster()
		c.gatewayFor(all, http, "{name: tcp, port: 18080, protocol: TCP}")
		c.set("team", "a", 1, app, "{name: first, port: 80, protocol: HTTP, hostname: first.example}")
		c.set("team", "b", 2, "{name: tcp, port: 80, protocol: TCP}", "{name: shop, port: 80, protocol: HTTP, hostname: Shop.example}", app,
			"{name: moved, port: 8080, protocol: HTTP}", "{name: udp, port: 80, protocol: UDP}")
		step := c.step()
		Expect(setIn(step, "team/b")).To(Equal("true Accepted, tcp ProtocolConflict 0, shop HostnameConflict 0, http Accepted 0, moved PortUnavailable 0, udp Accepted 0"))
		Expect(setIn(step, "team/a")).To(Equal("true Accepted, http HostnameConflict 0, first Accepted 0"))
		Expect(reasons(step)).To(Equal([]string{"http Accepted", "tcp Accepted"}))
		c.remove("ListenerSet team/b")
		Expect(setIn(c.step(), "team/a")).To(Equal("true Accepted, http Accepted 0, first Accepted 0"))
	})

	It("changes no port of the Envoys that another listener has", func() {
		c := gatewayCluster()
		c.gatewayFor(all, "{name: http, port: 81, protocol: HTTP}")
		c.httpRoute("own", "{name: web}", "a.example", 1)
		c.set("team", "a", 2, "{name: https, port: 8443, protocol: HTTPS, hostname: a.example, tls: {certificateRefs: [{name: pair}]}}")
		c.put(secret("team/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		proxy, _ := portsOf(c.step())
		Expect(proxy).To(Equal(model.Ports{{Port: 8080}, {Port: 18443, HTTPS: true}}))
		c.set("team", "b", 1, https(443, "b.example", ""), "{name: usual, port: 80, protocol: HTTP}", "{name: same, port: 18443, protocol: TCP}")
		step := c.step()
		Expect(setIn(step, "team/b")).To(Equal("true Accepted, https Accepted 0, usual Accepted 0, same PortUnavailable 0"))
		proxy, _ = portsOf(step)
		Expect(proxy).To(Equal(model.Ports{{Port: 80}, {Port: 8080}, {Port: 8443, HTTPS: true}, {Port: 18443, HTTPS: true}}))
	})

	It("has certificates of its own namespace, and gives none to the hosts of another's port", func() {
		c := gatewayCluster()
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.put(secret("team/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.gatewayFor(all, https(443, "*.example", ""))
		c.set("team", "a", 3, https(9443, "app.example", ""))
		c.set("team", "b", 2, https(443, "app.example", ""))
		c.set("team", "c", 1, https(443, "bad.example", ", namespace: shop"))
		step := c.step()
		Expect(setIn(step, "team/a")).To(Equal("false ListenersNotValid, https HostnameConflict 0"))
		Expect(setIn(step, "team/b")).To(Equal("true Accepted, https Accepted 0"))
		Expect(setIn(step, "team/c")).To(Equal("false ListenersNotValid, https Accepted 0"))
		resolved := objectIn(step, "ListenerSet team/c").API.(*translate.SetResult).Listeners[0].Conditions[2]
		Expect(resolved.Reason).To(Equal("RefNotPermitted"))
		Expect(secretsIn(step)).To(ConsistOf(HaveSuffix(".example shop.pair"), HaveSuffix("app.example team.pair")))
		c.put(&gwapi.ReferenceGrant{ObjectMeta: metav1.ObjectMeta{Name: "sets", Namespace: "shop"}, Spec: gwapi.ReferenceGrantSpec{
			From: []gwapi.ReferenceGrantFrom{{Group: gwapi.GroupName, Kind: "ListenerSet", Namespace: "team"}}, To: []gwapi.ReferenceGrantTo{{Kind: "Secret"}},
		}})
		Expect(setIn(c.step(), "team/c")).To(Equal("true Accepted, https Accepted 0"))
	})

	It("takes no host of a TLSRoute of another namespace", func() {
		c := gatewayCluster()
		c.gatewayFor(all, "{name: tls, port: 443, protocol: TLS, hostname: \"*.example\", tls: {mode: Passthrough}}")
		c.route("TLSRoute", "tls", "2026-01-01T00:00:00Z", "hostnames: [app.example], rules: [{backendRefs: [{name: web, port: 80}]}]")
		c.set("team", "own", 1, app, "{name: test, port: 80, protocol: HTTP, hostname: app.test}")
		step := c.step()
		Expect(accepted(step, "TLSRoute shop/tls")).To(Equal("true Accepted"))
		Expect(setIn(step, "team/own")).To(Equal("true Accepted, http HostnameConflict 0, test Accepted 0"))
	})

	It("has only hosts that its namespace may have", func() {
		c := gatewayClusterOf(allowing(translate.HostNames{"*": {"*"}, "team": {"*.team.example"}}, webService))
		c.gatewayFor(all, http)
		c.set("team", "own", 1, app, "{name: any, port: 80, protocol: HTTP}", "{name: team, port: 80, protocol: HTTP, hostname: a.team.example}")
		Expect(setIn(c.step(), "team/own")).To(Equal("true Accepted, http HostNotAllowed 0, any HostNotAllowed 0, team Accepted 0"))
	})

	It("is bounded with all others of the Gateway", func() {
		c := gatewayCluster()
		c.gatewayFor(all, http)
		many := func(name string, days, n, port int) {
			var list []string
			for i := range n {
				list = append(list, fmt.Sprintf("{name: l%d, port: %d, protocol: HTTP, hostname: %s-%[1]d.example}", i, port+i*min(port-80, 1), name))
			}
			c.set("team", name, days, list...)
		}
		many("ports", 20, 100, 10000)
		step := c.step()
		Expect(setIn(step, "team/ports")).To(And(ContainSubstring("l98 Accepted"), HaveSuffix("l99 PortUnavailable 0")))
		many("hosts", 19, 158, 80)
		Expect(setIn(c.step(), "team/hosts")).To(And(ContainSubstring("l155 Accepted"), HaveSuffix("l156 TooManyListeners 0, l157 TooManyListeners 0")))
		c.remove("ListenerSet team/ports")
		c.remove("ListenerSet team/hosts")
		for i := range 65 {
			many(fmt.Sprintf("s%02d", i), 1, 1, 80)
		}
		step = c.step()
		Expect(setIn(step, "team/s63")).To(Equal("true Accepted, l0 Accepted 0"))
		Expect(setIn(step, "team/s64")).To(Equal("false TooManyListenerSets"))
	})
})
