package translate_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

const dnsService = `
apiVersion: v1
kind: Service
metadata: {name: dns, namespace: shop}
spec:
  ports: [{name: dns-tcp, port: 53, protocol: TCP, targetPort: 5353}, {name: dns, port: 53, protocol: UDP, targetPort: 5353}]`

const dnsSlice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: dns-1, namespace: shop, labels: {kubernetes.io/service-name: dns}}
addressType: IPv4
ports: [{name: dns-tcp, port: 5353, protocol: TCP}, {name: dns, port: 5354, protocol: UDP}]
endpoints: [{addresses: [10.244.0.9], conditions: {ready: true, serving: true}}]`

// portHost is a GatewayHost with these fields in its virtualhost and spec.
func portHost(namespace, name, virtual, more string, age int) string {
	return fmt.Sprintf(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: %s, namespace: %s, creationTimestamp: "2026-01-0%dT00:00:00Z"}
spec:
  virtualhost: {%s}
%s`, name, namespace, age, virtual, more)
}

var _ = Describe("A GatewayHost of mode tcp, tls or udp", func() {
	routes := func(service string) string { return `  routes: [{services: [{name: ` + service + `, port: 53}]}]` }

	It("becomes a service with its port, and TCP and UDP ports of a Service are upstreams of their own", func() {
		step := newCluster(dnsService, dnsSlice,
			portHost("shop", "udp", `fqdn: "*", mode: udp, port: 53`, routes("dns"), 1),
			portHost("shop", "tcp", `fqdn: "*", mode: tcp, port: 53`, routes("dns"), 1),
			portHost("shop", "tls", `fqdn: dns.example.com, mode: tls`, routes("dns"), 1)).step()
		for _, name := range []string{"udp", "tcp", "tls"} {
			Expect(problems(step, "GatewayHost shop/"+name)).To(BeEmpty())
		}
		udp := find[*model.Service](step, model.ServiceKey("shop.udp"))
		Expect([]any{udp.Mode, udp.Port, udp.FQDN}).To(Equal([]any{"udp", 53, "*"}))
		Expect(find[*model.Service](step, model.ServiceKey("shop.tls")).Mode).To(Equal("tls"))
		find[*model.RouteUpstream](step, model.RouteUpstreamKey("shop.udp", "root", "shop.dns.53.udp"))
		find[*model.RouteUpstream](step, model.RouteUpstreamKey("shop.tcp", "root", "shop.dns.53"))
		Expect(step.Endpoints[model.UpstreamKey("shop.dns.53")].All()).To(Equal([]model.Endpoint{{Address: "10.244.0.9", Port: 5353}}))
		Expect(step.Endpoints[model.UpstreamKey("shop.dns.53.udp")].All()).To(Equal([]model.Endpoint{{Address: "10.244.0.9", Port: 5354}}))
	})

	It("has its port if no older one has it, in whatever namespace", func() {
		c := newCluster(
			portHost("shop", "new", `fqdn: "*", mode: tcp, port: 5432`, "", 3),
			portHost("team", "old", `fqdn: "*", mode: tcp, port: 5432`, "", 1),
			portHost("team", "udp", `fqdn: "*", mode: udp, port: 5432`, "", 4),
			portHost("shop", "http", `fqdn: a.example.com`, "", 3),
			portHost("team", "thief", `fqdn: A.example.com, mode: tls`, "", 4),
			portHost("team", "own", `fqdn: a.example.com, mode: tls, port: 993`, "", 4),
			portHost("team", "taken", `fqdn: "*", mode: tcp, port: 8080`, "", 4))
		step := c.step()
		Expect(problems(step, "GatewayHost shop/new")).To(Equal([]string{
			"spec.virtualhost.port HostConflict: GatewayHost team/old has the TCP port 5432 on proxy gatehouse and is older; this one is left out",
		}))
		Expect(problems(step, "GatewayHost team/thief")).To(Equal([]string{
			"spec.virtualhost.fqdn HostConflict: GatewayHost shop/http has the host A.example.com on proxy gatehouse and is older; this one is left out",
		}))
		Expect(problems(step, "GatewayHost team/taken")).To(Equal([]string{
			"spec.virtualhost.port HostConflict: it wants port 8080, which is the Http_port of proxy gatehouse; this one is left out",
		}))
		for _, name := range []string{"team/old", "team/udp", "team/own", "shop/http"} {
			Expect(problems(step, "GatewayHost "+name)).To(BeEmpty(), name)
		}
		c.remove("GatewayHost team/old")
		Expect(problems(c.step(), "GatewayHost shop/new")).To(BeEmpty(), "the port is free")
	})

	It("is not for a namespace that may have some hosts only", func() {
		step := allowing(translate.HostNames{"shop": {"*.example.com"}}, portHost("shop", "db", `fqdn: "*", mode: tcp, port: 5432`, "", 1)).step()
		Expect(problems(step, "GatewayHost shop/db")).To(HaveLen(1))
		Expect(problems(step, "GatewayHost shop/db")[0]).To(HavePrefix("spec.virtualhost.fqdn HostNotAllowed: "))
	})

	DescribeTable("is closed with what is about requests:", func(virtual, more, problem string) {
		step := newCluster(dnsService, `
apiVersion: gateway.gatehouse.dev/v1
kind: RouteFilter
metadata: {name: late, namespace: shop}
spec: {type: vh_filter_maintenance, routeFilterConfig: {config: "{}"}}`, portHost("shop", "db", virtual, more, 1)).step()
		Expect(problems(step, "GatewayHost shop/db")).To(Equal([]string{problem}))
		Expect(find[*model.Route](step, model.RouteKey("shop.db", "unavailable")).Prefix).To(Equal("/"))
	},
		Entry("two routes", `fqdn: "*", mode: tcp, port: 1`, `  routes: [{}, {name: b}]`,
			"spec.routes[1] Invalid: a host of mode tcp has one route: connections take one way"),
		Entry("a path", `fqdn: "*", mode: tcp, port: 1`, `  routes: [{conditions: [{prefix: /a}]}]`,
			`spec.routes[0].conditions[0].prefix Invalid: must be "/": connections have no path`),
		Entry("a filter", `fqdn: "*", mode: tcp, port: 1`, "  filters: [{name: late}]\n  routes: [{}]",
			"spec.filters[0].name Invalid: is of type vh_filter_maintenance, which is about requests: a host of mode tcp can have filters of type vh_filter_ipaccess"),
		Entry("encryption that the client has already", `fqdn: a.example.com, mode: tls`, `  routes: [{services: [{name: dns, port: 53, protocol: tls}]}]`,
			"spec.routes[0].services[0].protocol Invalid: a host of mode tls passes on what it gets: write http"),
	)
})
