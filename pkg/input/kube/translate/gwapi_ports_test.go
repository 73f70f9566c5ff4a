package translate_test

import (
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// portsOf lists the ports of the proxy that a step makes, and of its routes by the backend that they have.
func portsOf(step translate.Step) (proxy model.Ports, routes []string) {
	for _, op := range step.Ops {
		switch o := op.Object.(type) {
		case *model.Proxy:
			proxy = o.Ports
		case *model.Route:
			name, _, _ := strings.Cut(o.Name[strings.Index(o.Name, "shop--")+6:], "--")
			routes = append(routes, fmt.Sprint(name, o.Config.Ports))
		}
	}
	slices.Sort(routes)
	return proxy, routes
}

func reasons(step translate.Step) (list []string) {
	for _, l := range objectIn(step, "Gateway shop/web").API.(*translate.GatewayResult).Listeners {
		list = append(list, fmt.Sprintf("%s %s", l.Name, l.Conditions[0].Reason))
	}
	return list
}

var _ = Describe("The listeners of a Gateway", func() {
	const early, to = "2026-01-01T00:00:00Z", "hostnames: [a.example], rules: [{backendRefs: [{name: web, port: 80}]}]"

	It("have a port of the Envoys that depends on no other one", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: first, port: 81, protocol: HTTP}", "{name: usual, port: 80, protocol: HTTP}", "{name: same, port: 8080, protocol: HTTP}",
			"{name: https, port: 8443, protocol: HTTPS, tls: {certificateRefs: [{name: none}]}}",
			"{name: tcp, port: 18080, protocol: TCP}", "{name: high, port: 60000, protocol: HTTP}")
		step := c.step()
		proxy, _ := portsOf(step)
		Expect(proxy).To(Equal(model.Ports{{Port: 81}, {Port: 8080}, {Port: 8443, HTTPS: true}, {Port: 60000}}))
		Expect(reasons(step)).To(Equal([]string{"first Accepted", "usual Accepted", "same PortUnavailable", "https Accepted", "tcp Accepted", "high Accepted"}))
		gateway := model.Proxy{Name: "gw", HTTPPort: 8080, HTTPSPort: 8443, Ports: proxy}
		Expect(gateway.PortRefusal(&model.Service{Mode: model.ModeTCP, Port: 81})).To(ContainSubstring("wants port 81, at which proxy gw takes requests"))
	})

	It("limit their routes to their ports, unless these have all", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: one, port: 80, protocol: HTTP}", "{name: two, port: 81, protocol: HTTP}", "{name: three, port: 82, protocol: HTTP}")
		c.httpRoute("all", "{name: web}", "a.example", 1)
		c.httpRoute("one", "{name: web, port: 80}", "a.example", 1)
		c.httpRoute("two", "{name: web, port: 81}, {name: web, sectionName: three}", "a.example", 1)
		_, routes := portsOf(c.step())
		Expect(routes).To(Equal([]string{"all[]", "one[8080]", "two[81 82]"}))
	})

	It("that are refused are no port, and a route is not served at their port", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: one, port: 80, protocol: HTTP}", "{name: same, port: 80, protocol: HTTP}", "{name: two, port: 81, protocol: HTTP}")
		c.httpRoute("shop", "{name: web}", "a.example", 1)
		step := c.step()
		Expect(reasons(step)).To(Equal([]string{"one HostnameConflict", "same HostnameConflict", "two Accepted"}))
		proxy, routes := portsOf(step)
		Expect(proxy).To(Equal(model.Ports{{Port: 81}}))
		Expect(routes).To(Equal([]string{"shop[81]"}), "the Envoys have 8080, too")
	})

	It("for HTTPS only have routes that plain HTTP does not reach", func() {
		c := gatewayCluster()
		c.put(secret("shop/pair", "tls.crt", pems.cert, "tls.key", pems.key))
		c.gateway("web", "{name: https, port: 443, protocol: HTTPS, tls: {certificateRefs: [{name: pair}]}}")
		c.httpRoute("shop", "{name: web}", "a.example", 1)
		var schemes []string
		for _, op := range c.step().Ops {
			if r, ok := op.Object.(*model.Route); ok {
				for _, h := range r.Config.Headers {
					schemes = append(schemes, h.Name+" "+*h.Exact)
				}
			}
		}
		Expect(schemes).To(Equal([]string{"x-forwarded-proto https"}))
	})

	DescribeTable("serve nothing if the Gateway asks for", func(spec, want string) {
		c := gatewayCluster()
		c.apply("kind: Gateway\nmetadata: {name: web, namespace: shop}\nspec: {gatewayClassName: gatehouse, listeners: [{name: http, port: 80, protocol: HTTP}], " + spec + "}")
		c.httpRoute("shop", "{name: web}", "a.example", 1)
		step := c.step()
		v := objectIn(step, "Gateway shop/web").API.(*translate.GatewayResult).Conditions[0]
		Expect(fmt.Sprint(v.True, " ", v.Reason)).To(Equal("false " + want))
		Expect(links(step)).To(BeEmpty())
	},
		Entry("certificates of clients", `tls: {frontend: {default: {validation: {caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}}}}`, "Invalid"),
		Entry("parameters", "infrastructure: {parametersRef: {group: a.example, kind: Limits, name: few}}", "InvalidParameters"),
		Entry("an address", "addresses: [{value: 192.0.2.1}]", "UnsupportedAddress"),
	)

	It("are ports of a proxy of the installation that has the name of the Gateway", func() {
		c := gatewayCluster()
		c.SetProxies(proxies("shop.web"))
		c.gateway("web", "{name: one, port: 80, protocol: HTTP}", "{name: two, port: 81, protocol: HTTP}")
		step := c.step()
		proxy, _ := portsOf(step)
		Expect(proxy).To(Equal(model.Ports{{Port: 81}, {Port: 8080}}))
		Expect(objectIn(step, "Gateway shop/web").Made).To(ContainElement(translate.Made{Key: model.ProxyKey("shop.web")}), "what Envoys refuse of it is the Gateway's")
	})

	It("of mode Terminate pass nothing on without their certificate", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: tls, port: 443, protocol: TLS, tls: {mode: Terminate, certificateRefs: [{name: none}]}}")
		c.route("TLSRoute", "tls", early, to)
		step := c.step()
		Expect(accepted(step, "TLSRoute shop/tls")).To(HavePrefix("false"))
		Expect(links(step)).To(BeEmpty())
	})

	It("redirect to their port, if it is not the usual one", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: one, port: 80, protocol: HTTP}", "{name: two, port: 81, protocol: HTTP}")
		c.route("HTTPRoute", "away", early, "rules: [{filters: [{type: RequestRedirect, requestRedirect: {hostname: b.example}}]}]")
		step := c.step()
		configs := map[string]string{}
		for _, op := range step.Ops {
			if f, ok := op.Object.(*model.Filter); ok {
				configs[f.Name] = string(f.Config)
			}
		}
		Expect(configs).To(Equal(map[string]string{
			"shop.away_rule-0-redirect":    `{"code":302,"host":"b.example"}`,
			"shop.away_rule-0-redirect-81": `{"code":302,"host":"b.example","port":81}`,
		}))
		_, routes := portsOf(step)
		Expect(routes).To(Equal([]string{"away[8080]", "away[81]"}))
	})
})
