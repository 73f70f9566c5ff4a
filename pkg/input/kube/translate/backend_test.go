package translate_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// serviceOf returns the Service shop/web with these lines in its spec.
func serviceOf(spec string) string {
	return "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec:\n  " + spec
}

// sliceOf returns an EndpointSlice of the Service shop/web.
func sliceOf(name, addressType, ports, endpoints string) string {
	return "apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: " + name + ", namespace: shop, labels: {kubernetes.io/service-name: web}}\n" +
		"addressType: " + addressType + "\nports: " + ports + "\nendpoints: " + endpoints
}

// upstreamsOf returns the upstreams that a step stores, sorted by name.
func upstreamsOf(step translate.Step) (list []*model.Upstream) {
	for _, op := range step.Ops {
		if u, ok := op.Object.(*model.Upstream); ok {
			list = append(list, u)
		}
	}
	return list
}

var _ = DescribeTable("The protocol of a Service is", func(port, backend, want string) {
	c := newCluster(serviceOf("ports: [{port: 80, "+port+"}]"), hostOf("  routes: [{services: [{name: web, port: 80, "+backend+"}]}]"))
	list := upstreamsOf(c.step())
	Expect(list).To(HaveLen(1))
	Expect(list[0].Protocol).To(Equal(want))
},
	Entry("http by default", "", "", "http"),
	Entry("http", "appProtocol: http", "", "http"),
	Entry("http for WebSocket without TLS", "appProtocol: kubernetes.io/ws", "", "http"),
	Entry("tls for WebSocket over TLS", "appProtocol: kubernetes.io/wss", "", "tls"),
	Entry("h2c for HTTP/2 without TLS", "appProtocol: kubernetes.io/h2c", "", "h2c"),
	Entry("h2c for gRPC", "appProtocol: GRPC", "", "h2c"),
	Entry("tls for https", "appProtocol: https", "", "tls"),
	Entry("h2 for h2", "appProtocol: h2", "", "h2"),
	Entry("http for an unknown protocol", "appProtocol: example.com/odd", "", "http"),
	Entry("the protocol that the host specifies", "appProtocol: https", "protocol: h2c", "h2c"),
)

var _ = DescribeTable("The endpoints of a Service are", func(service, port string, slices []string, want ...model.Endpoint) {
	c := newCluster(append(slices, serviceOf(service), hostOf("  routes: [{services: [{name: web, port: "+port+"}]}]"))...)
	step := c.step()
	Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
	list := upstreamsOf(step)
	Expect(list).To(HaveLen(1))
	Expect(step.Endpoints).To(HaveLen(1))
	found := step.Endpoints[list[0].Key()]
	Expect(found).NotTo(BeNil())
	Expect(found.All()).To(HaveExactElements(want))
},
	Entry("all endpoints of all its slices", "ports: [{name: http, port: 80}]", "80",
		[]string{
			sliceOf("a", "IPv4", "[{name: http, port: 8080}]", "[{addresses: [10.0.0.1]}]"),
			sliceOf("b", "IPv4", "[{name: http, port: 8081}]", "[{addresses: [10.0.0.1]}, {addresses: [10.0.0.2]}]"),
		},
		model.Endpoint{Address: "10.0.0.1", Port: 8080}, model.Endpoint{Address: "10.0.0.1", Port: 8081}, model.Endpoint{Address: "10.0.0.2", Port: 8081}),
	Entry("listed once", "ports: [{port: 80}]", "80",
		[]string{
			sliceOf("a", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}}]"),
			sliceOf("b", "IPv4", `[{name: "", port: 8080}]`, "[{addresses: [10.0.0.1], conditions: {ready: true}}]"),
		},
		model.Endpoint{Address: "10.0.0.1", Port: 8080}),
	Entry("those of the named port", "ports: [{name: http, port: 80}, {name: admin, port: 81}]", "admin",
		[]string{sliceOf("a", "IPv4", "[{name: http, port: 8080}, {name: admin, port: 9090}]", "[{addresses: [10.0.0.1]}]")},
		model.Endpoint{Address: "10.0.0.1", Port: 9090}),
	Entry("those of the first address family", "{ipFamilies: [IPv6, IPv4], ports: [{port: 80}]}", "80",
		[]string{
			sliceOf("a", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.1]}]"),
			sliceOf("b", "IPv6", "[{port: 8080}]", `[{addresses: ["fd00::1"]}]`),
		},
		model.Endpoint{Address: "fd00::1", Port: 8080}),
	Entry("those of the other family if the first has none", "{ipFamilies: [IPv4, IPv6], ports: [{port: 80}]}", "80",
		[]string{
			sliceOf("a", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.1], conditions: {ready: false}}]"),
			sliceOf("b", "IPv6", "[{port: 8080}]", `[{addresses: ["fd00::1"]}]`),
		},
		model.Endpoint{Address: "fd00::1", Port: 8080}),
	Entry("none from a slice of names", "ports: [{port: 80}]", "80",
		[]string{sliceOf("a", "FQDN", "[{port: 8080}]", "[{addresses: [backend.example]}]")}),
	Entry("none of another protocol", "ports: [{port: 53, protocol: UDP, name: dns}, {port: 53, name: http}]", "53",
		[]string{sliceOf("a", "IPv4", "[{name: dns, port: 53, protocol: UDP}, {name: http, port: 8053}]", "[{addresses: [10.0.0.1]}]")},
		model.Endpoint{Address: "10.0.0.1", Port: 8053}),
	Entry("marked as draining if they serve while terminating", "ports: [{port: 80}]", "80",
		[]string{sliceOf("a", "IPv4", "[{port: 8080}]", `[{addresses: [10.0.0.1], conditions: {ready: false, serving: true, terminating: true}, zone: x},
  {addresses: [10.0.0.2], conditions: {ready: false, serving: false, terminating: true}}, {addresses: [10.0.0.3], conditions: {ready: false}}, {addresses: [10.0.0.4], conditions: {}}]`)},
		model.Endpoint{Address: "10.0.0.1", Port: 8080, Draining: true, Zone: "x"}, model.Endpoint{Address: "10.0.0.4", Port: 8080}),
	Entry("those of a slice without a port number", "ports: [{port: 80, targetPort: 8080}]", "80",
		[]string{sliceOf("a", "IPv4", "[{}]", "[{addresses: [10.0.0.1]}]")}, model.Endpoint{Address: "10.0.0.1", Port: 8080}),
	Entry("none without a slice", "ports: [{port: 80}]", "80", nil),
	Entry("those of a headless Service", "{clusterIP: None, ports: [{port: 80}]}", "80",
		[]string{sliceOf("a", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.1]}]")}, model.Endpoint{Address: "10.0.0.1", Port: 8080}),
	Entry("those of a LoadBalancer", "{type: LoadBalancer, ports: [{port: 80, nodePort: 30080}]}", "80",
		[]string{sliceOf("a", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.1]}]")}, model.Endpoint{Address: "10.0.0.1", Port: 8080}),
)

var _ = Describe("The endpoints of an upstream", func() {
	It("change without a change of the upstream", func() {
		c := newCluster(webHost, webService, webSlice)
		c.step()
		c.apply(strings.Replace(webSlice, "10.244.0.5", "10.244.0.9", 1))
		step := c.step()
		Expect(step.Ops).To(BeEmpty())
		Expect(step.Objects).To(BeEmpty())
		Expect(step.Endpoints).To(HaveLen(1))
		Expect(step.Endpoints[model.UpstreamKey("shop.web.80")].All()[1].Address).To(Equal("10.244.0.9"))
		By("nothing changes in what is read")
		c.apply(strings.Replace(webSlice, "10.244.0.5", "10.244.0.9", 1))
		Expect(c.step().IsEmpty()).To(BeTrue())
	})

	It("move with a slice to another Service", func() {
		c := newCluster(webHost, webService, webSlice)
		c.step()
		c.apply(strings.Replace(webSlice, "service-name: web", "service-name: other", 1))
		Expect(c.step().Endpoints[model.UpstreamKey("shop.web.80")].All()).To(BeEmpty())
		c.apply(webSlice)
		Expect(c.step().Endpoints[model.UpstreamKey("shop.web.80")].All()).To(HaveLen(2))
		c.remove("EndpointSlice shop/web-1")
		Expect(c.step().Endpoints[model.UpstreamKey("shop.web.80")].All()).To(BeEmpty())
	})

	It("can be taken before the Secrets that an object needs are read, and are taken once", func() {
		c := newCluster(webHost, webService, webSlice)
		c.step()
		c.apply(strings.Replace(webSlice, "10.244.0.5", "10.244.0.9", 1))
		c.apply(strings.NewReplacer("name: web", "name: late", "shop.example.com", "late.example.com, tls: {secretName: late}").Replace(webHost))
		Expect(c.Settle()).To(HaveLen(1), "one Secret is lacking")
		Expect(c.TakeEndpoints()[model.UpstreamKey("shop.web.80")].All()[1].Address).To(Equal("10.244.0.9"))
		Expect(c.TakeEndpoints()).To(BeEmpty())
		Expect(c.step().Endpoints).To(BeEmpty())
	})

	It("disappear with an ExternalName Service, and come back", func() {
		c := newCluster(webHost, webService, webSlice)
		c.step()
		c.apply(serviceOf("{type: ExternalName, externalName: backend.example, ports: [{port: 80}]}"))
		step := c.step()
		Expect(shown(step)).To(Equal([]string{"+ /upstream/shop.web.80"}))
		Expect(find[*model.Upstream](step, model.UpstreamKey("shop.web.80")).IP).To(Equal("backend.example."), "which no search domain extends")
		Expect(step.Endpoints).To(HaveKeyWithValue(model.UpstreamKey("shop.web.80"), BeNil()))
		c.apply(webService)
		step = c.step()
		Expect(shown(step)).To(Equal([]string{"+ /upstream/shop.web.80"}))
		Expect(step.Endpoints[model.UpstreamKey("shop.web.80")].All()).To(HaveLen(2))
	})
})

var _ = DescribeTable("A Service that a route cannot use", func(service, backend, problem string) {
	documents := []string{hostOf(`  routes:
  - {name: other, conditions: [{prefix: /other}], services: [{name: other, port: 80}]}
  - {name: this, services: [` + backend + `]}`), strings.Replace(webService, "name: web", "name: other", 1)}
	if service != "" {
		documents = append(documents, service)
	}
	step := newCluster(documents...).step()
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{problem}))
	Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503", "gatehouse shop.example.com /other -> shop.other.80"}))
},
	Entry("does not exist", "", "{name: web, port: 80}", "spec.routes[1].services[0].name RefNotFound: Service shop/web does not exist"),
	Entry("lacks the port", serviceOf("ports: [{name: http, port: 80}, {port: 81}, {port: 82, protocol: UDP}]"), "{name: web, port: 82}",
		"spec.routes[1].services[0].port RefNotFound: Service shop/web has no TCP port 82; it has 80 (http), 81"),
	Entry("lacks the named port", serviceOf("{type: ExternalName, externalName: a.example}"), "{name: web, port: http}",
		"spec.routes[1].services[0].port RefNotFound: Service shop/web has no TCP port"),
	Entry("is in another namespace", "", "{name: web, namespace: team-b, port: 80}",
		"spec.routes[1].services[0].name RefNotPermitted: Service team-b/web may not be named from namespace shop: a ReferenceGrant in namespace team-b must allow it (from kind GatewayHost of namespace shop, to kind Service)"),
	Entry("has a name that is not a valid host", serviceOf("{type: ExternalName, externalName: -a-, ports: [{port: 80}]}"), "{name: web, port: 80}",
		`spec.routes[1].services[0].name Invalid: "-a-." is not an IPv4 address, an IPv6 address or a DNS name`),
	Entry("needs verification without TLS", webService, "{name: web, port: 80, tls: {subjectName: web.example}}",
		"spec.routes[1].services[0].tls.subjectName Invalid: needs TLS: protocol tls or h2"),
	Entry("has an authority that does not exist", webService, "{name: web, port: 80, protocol: tls, tls: {caSecret: {name: ca}}}",
		"spec.routes[1].services[0].tls.caSecret RefNotFound: Secret shop/ca does not exist"),
	Entry("needs a client certificate from another namespace", webService, "{name: web, port: 80, protocol: tls, tls: {clientSecret: {name: pair, namespace: team-b}}}",
		"spec.routes[1].services[0].tls.clientSecret RefNotPermitted: Secret team-b/pair may not be named from namespace shop: a ReferenceGrant in namespace team-b must allow it (from kind GatewayHost of namespace shop, to kind Secret)"),
	Entry("has an invalid weight", webService, "{name: web, port: 80, weight: 1000001}", "spec.routes[1].services[0].weight Invalid: 1000001 is not between 0 and 1000000"),
)

var _ = Describe("An ExternalName Service that names a Service of the cluster", func() {
	const foreign = "apiVersion: v1\nkind: Service\nmetadata: {name: inner, namespace: team-b}\nspec: "
	alias := func(target string) string {
		return serviceOf("{type: ExternalName, externalName: " + target + ", ports: [{name: http, port: 80}]}")
	}
	const permits = `
apiVersion: gateway.gatehouse.dev/v1
kind: ReferenceGrant
metadata: {name: shop, namespace: team-b}
spec: {from: [{kind: GatewayHost, namespace: shop}], to: [{kind: Service, name: inner}]}`
	slice := strings.NewReplacer("namespace: shop", "namespace: team-b", "service-name: web", "service-name: inner").Replace(
		sliceOf("inner-1", "IPv4", "[{port: 8080}]", "[{addresses: [10.0.0.9]}]"))

	It("leads to its endpoints if a ReferenceGrant permits it", func() {
		c := newCluster(webHost, alias("inner.team-b.svc.cluster.local"), foreign+"{ports: [{port: 80}]}", slice)
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{
			"spec.routes[0].services[0].name RefNotPermitted: Service team-b/inner may not be named from namespace shop: " +
				"a ReferenceGrant in namespace team-b must allow it (from kind GatewayHost of namespace shop, to kind Service)",
		}))
		Expect(upstreamsOf(step)).To(BeEmpty())
		c.apply(permits)
		step = c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		Expect(step.Endpoints[model.UpstreamKey("team-b.inner.80")].All()).To(HaveExactElements(model.Endpoint{Address: "10.0.0.9", Port: 8080}))
		c.remove("Service team-b/inner")
		Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{"spec.routes[0].services[0].name RefNotFound: Service team-b/inner does not exist"}))
	})

	DescribeTable("cannot be used", func(target, other, problem string) {
		c := newCluster(webHost, alias(target), other, permits)
		if problem != "" {
			Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{problem}))
		}
	},
		Entry("if that one is ExternalName too", "inner.team-b.svc", foreign+"{type: ExternalName, externalName: a.example}",
			"spec.routes[0].services[0].name Invalid: Service shop/web names Service team-b/inner, which is an ExternalName Service too: name what that one names"),
		Entry("if it is itself", "web.shop.svc.cluster.local.", "apiVersion: v1\nkind: Secret\nmetadata: {name: none}",
			"spec.routes[0].services[0].name Invalid: Service shop/web names Service shop/web, which is an ExternalName Service too: name what that one names"),
		Entry("if that one lacks the port", "inner.team-b.svc", foreign+"{ports: [{port: 81}]}",
			"spec.routes[0].services[0].port RefNotFound: Service team-b/inner has no TCP port 80; it has 81"),
	)

	It("is recognized in the domain of the cluster", func() {
		c := newCluster()
		c.ClusterDomain = "corp.example"
		c.apply(webHost, alias("inner.team-b.svc.corp.example"))
		Expect(problems(c.step(), "GatewayHost shop/web")).To(ConsistOf(ContainSubstring("RefNotPermitted: Service team-b/inner")))
	})
})

var _ = Describe("A separate upstream", func() {
	It("is created for the fields of a Service in a route that are settings", func() {
		c := newCluster(serviceOf("ports: [{name: http, port: 80}]"), hostOf(`
  routes:
  - services:
    - name: web
      port: http
      protocol: h2
      strategy: least_request
      priority: 1
      zone: a
      zoneMinCount: 2
      slowStartSeconds: 16
      dns: {mode: logical, family: all, refreshSeconds: 17}
      proxyProtocol: v2
      tls: {subjectName: web.example, insecure: true}
      healthCheck: {path: /healthz, host: hc, intervalSeconds: 7, timeoutSeconds: 3, unhealthyThreshold: 4, healthyThreshold: 5}
      connection: {connectTimeoutSeconds: 1, idleTimeoutSeconds: 0, keepaliveIntervalSeconds: 8}
      limits: {maxConnections: 11, maxPending: 12, maxRequests: 13, maxRetries: 0, retryBudgetPercent: 14, retryBudgetMinCount: 15}
      outlier: {threshold: 0, ejectionSeconds: 9}
      panicThresholdPercent: 50`))
		step := c.step()
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		list := upstreamsOf(step)
		Expect(list).To(HaveLen(1))
		Expect(list[0].Name).To(MatchRegexp(`^shop\.web\.80\.[0-9a-f]{16}$`))
		want := &model.Upstream{
			Name: list[0].Name, IP: "web.shop.svc", Port: 80, Weight: 100, Priority: 1, Zone: "a", ZoneMinCount: 2, SlowStartSeconds: 16,
			DNS: "logical", DNSFamily: "all", DNSRefreshSeconds: 17, ProxyProtocol: "v2", HCType: "http", HCPath: "/healthz", HCHost: "hc", HCIntervalSeconds: 7, HCTimeoutSeconds: 3,
			HCUnhealthyThresholdCount: 4, HCHealthyThresholdCount: 5, Strategy: "least_request", Protocol: "h2", ValidationSubjectName: "web.example", TLSInsecure: true,
			ConnectTimeoutSeconds: 1, IdleTimeoutSeconds: 0, KeepaliveIntervalSeconds: 8, MaxConnections: 11, MaxPending: 12, MaxRequests: 13, MaxRetries: 0,
			RetryBudgetPercent: 14, RetryBudgetMinCount: 15,
			OutlierThresholdCount: 0, OutlierEjectionSeconds: 9, PanicThresholdPercent: 50,
		}
		Expect(list[0]).To(Equal(want))
	})

	It("is shared by Services with the same settings, and not with others", func() {
		c := newCluster(webService, hostOf(`
  routes:
  - {name: a, conditions: [{prefix: /a}], services: [{name: web, port: 80, strategy: random}]}
  - {name: b, conditions: [{prefix: /b}], services: [{name: web, port: http, strategy: random}]}
  - {name: c, conditions: [{prefix: /c}], services: [{name: web, port: 80, strategy: maglev}]}
  - {name: d, conditions: [{prefix: /d}], services: [{name: web, port: 80, strategy: round_robin, weight: 100}]}`))
		Expect(upstreamsOf(c.step())).To(HaveExactElements(
			HaveField("Name", "shop.web.80"), HaveField("Strategy", Or(Equal("random"), Equal("maglev"))), HaveField("Strategy", Or(Equal("random"), Equal("maglev")))))
	})

	It("is verified by the name of the Service, because its endpoints are addresses", func() {
		step := newCluster(serviceOf("ports: [{port: 443, appProtocol: https}]"), hostOf("  routes: [{services: [{name: web, port: 443}]}]")).step()
		Expect(upstreamsOf(step)).To(HaveExactElements(And(HaveField("Name", "shop.web.443"), HaveField("ValidationSubjectName", "web.shop.svc"))))
	})

	It("keeps its name when its weight changes, so that nothing else changes", func() {
		route := func(weights ...string) string {
			return hostOf("  routes: [{name: r, services: [{name: web, port: 80, weight: " + weights[0] + "}, {name: next, port: 80, weight: " + weights[1] + "}]}]")
		}
		c := newCluster(webService, strings.Replace(webService, "name: web", "name: next", 1), route("90", "10"))
		step := c.step()
		Expect(upstreamsOf(step)).To(ConsistOf(
			And(HaveField("Name", HavePrefix("shop.web.80.")), HaveField("Weight", 90)), And(HaveField("Name", HavePrefix("shop.next.80.")), HaveField("Weight", 10))))
		c.apply(route("50", "50"))
		step = c.step()
		Expect(step.Ops).To(HaveExactElements(HaveField("Object", BeAssignableToTypeOf(&model.Upstream{})), HaveField("Object", BeAssignableToTypeOf(&model.Upstream{}))))
		Expect(step.Endpoints).To(BeEmpty())
	})

	It("is created for each time that a route names a Service", func() {
		c := newCluster(webService, hostOf("  routes: [{name: r, services: [{name: web, port: 80}, {name: web, port: 80, weight: 50}, {name: web, port: 80}]}]"))
		Expect(upstreamsOf(c.step())).To(ConsistOf(HaveField("Weight", 100), HaveField("Weight", 50), HaveField("Weight", 100)))
	})

	It("leaves its share to the others if its Service is missing", func() {
		step := newCluster(webService, hostOf("  routes: [{services: [{name: web, port: 80}, {name: gone, port: 80}]}]")).step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{"spec.routes[0].services[1].name RefNotFound: Service shop/gone does not exist"}))
		Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80"}))
	})
})
