package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gwapi "sigs.k8s.io/gateway-api/apis/v1"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// route creates a route of a kind in namespace shop, for Gateway web.
func (c *cluster) route(kind, name, created, spec string) {
	GinkgoHelper()
	object := map[string]metav1.Object{
		"HTTPRoute": &gwapi.HTTPRoute{}, "GRPCRoute": &gwapi.GRPCRoute{}, "TCPRoute": &gwapi.TCPRoute{}, "TLSRoute": &gwapi.TLSRoute{},
	}[kind]
	text := "metadata: {name: %s, namespace: shop, creationTimestamp: %q}\nspec: {parentRefs: [{name: web}], %s}"
	Expect(yaml.UnmarshalStrict(fmt.Appendf(nil, text, name, created, spec), object)).To(Succeed())
	c.put(object)
}

// accepted returns why the first parent of KIND shop/NAME accepts it or not.
func accepted(step translate.Step, name string) string {
	GinkgoHelper()
	v := objectIn(step, name).API.(*translate.RouteResult).Parents[0].Conditions[0]
	return fmt.Sprintf("%t %s", v.True, v.Reason)
}

// links lists the upstreams and filters that routes got.
func links(step translate.Step) (list []string) {
	for _, line := range shown(step) {
		if strings.HasPrefix(line, "+") && (strings.Contains(line, "/upstream/") || strings.Contains(line, "/filter/")) && strings.Contains(line, "/route/") {
			list = append(list, line[strings.LastIndex(line, "--")+1:])
		}
	}
	return list
}

var _ = Describe("Routes of the Gateway API", func() {
	const early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	const other = "apiVersion: v1\nkind: Service\nmetadata: {name: other, namespace: shop}\nspec: {ports: [{port: 80}]}"

	It("answer 500 in the place of a backend with a filter that only a rule can have", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}")
		c.route("HTTPRoute", "shop", early, "rules: [{backendRefs: [{name: web, port: 80, filters: [{type: ExtensionRef, extensionRef: {group: gateway.gatehouse.dev, kind: RouteFilter, name: login}}]}]}]")
		Expect(links(c.step())).To(ConsistOf(HaveSuffix("/filter/invalid-backend_500")))
	})

	DescribeTable("let pages act as the user only if they say so:", func(credentials, want string) {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}")
		c.route("HTTPRoute", "pages", early, `rules: [{filters: [{type: CORS, cors: {allowOrigins: ["*"]`+credentials+`}}], backendRefs: [{name: web, port: 80}]}]`)
		f := find[*model.Filter](c.step(), model.FilterKey("shop.pages_rule-0-cors"))
		Expect(string(f.Config)).To(Equal(want))
	},
		Entry("not by default", "", `{"expose":null,"headers":null,"max_age":5,"methods":[],"origins":["*"]}`),
		Entry("not if they forbid it", ", allowCredentials: false", `{"expose":null,"headers":null,"max_age":5,"methods":[],"origins":["*"]}`),
		Entry("then also those of any origin", ", allowCredentials: true, exposeHeaders: ['*', x-total]",
			`{"any_origin_credentials":true,"credentials":true,"expose":["x-total"],"headers":null,"max_age":5,"methods":[],"origins":["*"]}`),
	)

	It("are closed without the RouteFilter that a rule names", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}")
		c.route("HTTPRoute", "shop", early, `rules: [{filters: [{type: ExtensionRef, extensionRef: {group: gateway.gatehouse.dev, kind: RouteFilter, name: keys}}], backendRefs: [{name: web, port: 80}]}]`)
		Expect(links(c.step())).To(ConsistOf(HaveSuffix("/filter/invalid-backend_500")))
	})

	It("of connections: the oldest gets the port", func() {
		c := gatewayCluster()
		c.apply(other)
		c.gateway("web", "{name: tcp, port: 9000, protocol: TCP}")
		c.route("TCPRoute", "a", late, "rules: [{backendRefs: [{name: web, port: 80}]}]")
		Expect(links(c.step())).To(ConsistOf(HaveSuffix("/upstream/shop.web.80")))
		c.route("TCPRoute", "b", early, "rules: [{backendRefs: [{name: other, port: 80}]}]")
		step := c.step()
		Expect(links(step)).To(ConsistOf(ContainSubstring("/upstream/shop.other.80")))
		Expect(shown(step)).To(ContainElement(And(HavePrefix("- "), HaveSuffix("/upstream/shop.web.80"))))
		Expect(accepted(step, "TCPRoute shop/b")).To(Equal("true Accepted"))
	})

	It("of connections leave hosts to those of requests, and take only those that a listener allows", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP, allowedRoutes: {kinds: [{kind: GRPCRoute}]}}", "{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}")
		const host = "hostnames: [a.example], "
		c.route("TLSRoute", "tls", early, host+"rules: [{backendRefs: [{name: web, port: 80}]}]")
		Expect(accepted(c.step(), "TLSRoute shop/tls")).To(Equal("true Accepted"))
		c.route("HTTPRoute", "http", late, host+"rules: [{backendRefs: [{name: web, port: 80}]}]")
		Expect(accepted(c.step(), "HTTPRoute shop/http")).To(Equal("false NotAllowedByListeners"))
		c.route("GRPCRoute", "grpc", late, host+"rules: [{backendRefs: [{name: web, port: 80}]}]")
		step := c.step()
		Expect(accepted(step, "GRPCRoute shop/grpc")).To(Equal("true Accepted"))
		Expect(accepted(step, "TLSRoute shop/tls")).To(Equal("false HostConflict"))
	})

	It("of connections have only hosts that their namespace may have, and ports only with all of them", func() {
		c := gatewayClusterOf(allowing(translate.HostNames{"shop": {"*.shop.example"}}, webService))
		c.gateway("web", "{name: tcp, port: 9000, protocol: TCP}", "{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}")
		const to = "rules: [{backendRefs: [{name: web, port: 80}]}]"
		c.route("TCPRoute", "tcp", early, to)
		c.route("TLSRoute", "own", early, "hostnames: [a.shop.example], "+to)
		c.route("TLSRoute", "foreign", early, "hostnames: [a.bank.example], "+to)
		step := c.step()
		Expect(accepted(step, "TCPRoute shop/tcp")).To(Equal("false HostNotAllowed"))
		Expect(accepted(step, "TLSRoute shop/own")).To(Equal("true Accepted"))
		Expect(accepted(step, "TLSRoute shop/foreign")).To(Equal("false HostNotAllowed"))
		Expect(links(step)).To(HaveLen(1))
	})

	It("of connections take nothing that a GatewayHost has, nor a port of the proxy, nor the host of a narrower listener", func() {
		c := &cluster{World: translate.New(proxies("gatehouse", "shop.web"), nil), secrets: map[translate.Ref]metav1.Object{}}
		c.apply(webService)
		gatewayClusterOf(c)
		c.apply(portHost("shop", "db", `fqdn: "*", mode: tcp, port: 9000`, "  proxy: shop.web", 3))
		c.gateway("web", "{name: tcp, port: 9000, protocol: TCP}", "{name: plain, port: 8080, protocol: TCP}",
			"{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}}",
			"{name: narrow, port: 443, protocol: TLS, hostname: a.example, tls: {mode: Passthrough}}")
		const to = "rules: [{backendRefs: [{name: web, port: 80}]}]"
		c.route("TCPRoute", "tcp", early, to)
		c.route("TLSRoute", "tls", early, "hostnames: [a.example], "+to)
		step := c.step()
		Expect(accepted(step, "TCPRoute shop/tcp")).To(Equal("false HostConflict"))
		var served []string
		for _, l := range objectIn(step, "Gateway shop/web").API.(*translate.GatewayResult).Listeners {
			served = append(served, fmt.Sprintf("%s %s", l.Name, l.Conditions[0].Reason))
		}
		Expect(served).To(Equal([]string{"tcp Accepted", "plain PortUnavailable", "tls Accepted", "narrow Accepted"}))
		c.gateway("web", "{name: tls, port: 443, protocol: TLS, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: Same}}}",
			"{name: narrow, port: 443, protocol: TLS, hostname: a.example, tls: {mode: Passthrough}, allowedRoutes: {namespaces: {from: Selector, selector: {matchLabels: {a: b}}}}}")
		Expect(accepted(c.step(), "TLSRoute shop/tls")).To(Equal("false NoMatchingListenerHostname"))
	})
})
