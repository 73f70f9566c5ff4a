package translate_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

const (
	webHost = `
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: web, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z", generation: 1}
spec:
  virtualhost: {fqdn: shop.example.com}
  routes:
  - conditions: [{prefix: /}]
    services: [{name: web, port: 80}]`
	webService = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  ports: [{name: http, port: 80, protocol: TCP, targetPort: 8080}]`
	webSlice = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.244.0.5], conditions: {ready: true, serving: true}, zone: a}
- {addresses: [10.244.0.6], conditions: {ready: false, serving: true, terminating: true}, zone: b}
- {addresses: [10.244.0.7], conditions: {ready: false, serving: false}}`
)

var _ = Describe("A GatewayHost", func() {
	It("becomes a service, its routes, and the upstreams of its Services", func() {
		c := newCluster(webHost, webService, webSlice)
		step := c.step()
		Expect(shown(step)).To(Equal([]string{
			"+ /upstream/shop.web.80",
			"+ /service/shop.web",
			"+ /service/shop.web/route/root",
			"+ /proxy/edge",
			"+ /proxy/gatehouse",
			"+ /service/shop.web/route/root/upstream/shop.web.80",
			"+ /proxy/gatehouse/service/shop.web",
		}))
		upstream := model.NewUpstream()
		upstream.Name, upstream.IP, upstream.Port = "shop.web.80", "web.shop.svc", 80
		Expect(find[*model.Upstream](step, model.UpstreamKey("shop.web.80"))).To(Equal(upstream))
		Expect(find[*model.Service](step, model.ServiceKey("shop.web"))).To(Equal(&model.Service{Name: "shop.web", FQDN: "shop.example.com", HTTPS: "both"}))
		Expect(find[*model.Route](step, model.RouteKey("shop.web", "root"))).To(Equal(&model.Route{Service: "shop.web", Name: "root", Prefix: "/"}))
		Expect(step.Endpoints).To(HaveLen(1))
		Expect(step.Endpoints[model.UpstreamKey("shop.web.80")].All()).To(Equal([]model.Endpoint{
			{Address: "10.244.0.5", Port: 8080, Zone: "a"},
			{Address: "10.244.0.6", Port: 8080, Zone: "b", Draining: true},
		}))
		Expect(*objectIn(step, "GatewayHost shop/web")).To(Equal(translate.Object{
			Generation: 1, Proxies: []string{"gatehouse"},
			Made: []translate.Made{
				{Key: model.ServiceKey("shop.web")},
				{Key: model.ProxyServiceKey("gatehouse", "shop.web")},
				{Key: model.UpstreamKey("shop.web.80"), Path: "spec.routes[0].services[0].name"},
				{Key: model.RouteKey("shop.web", "root"), Path: "spec.routes[0]"},
				{Key: model.RouteUpstreamKey("shop.web", "root", "shop.web.80"), Path: "spec.routes[0].services[0]"},
			},
		}))
		Expect(c.step().IsEmpty()).To(BeTrue())
	})

	It("goes with everything that it became", func() {
		c := newCluster(webHost, webService, webSlice)
		c.step()
		c.remove("GatewayHost shop/web")
		step := c.step()
		Expect(shown(step)).To(Equal([]string{
			"- /proxy/gatehouse/service/shop.web",
			"- /service/shop.web/route/root/upstream/shop.web.80",
			"- /service/shop.web/route/root",
			"- /service/shop.web",
			"- /upstream/shop.web.80",
		}))
		Expect(step.Endpoints).To(Equal(map[model.Key]*model.Endpoints{model.UpstreamKey("shop.web.80"): nil}))
		Expect(step.Objects).To(HaveLen(1))
		Expect(step.Objects).To(HaveKeyWithValue(translate.Ref{Kind: "GatewayHost", Namespace: "shop", Name: "web"}, BeNil()))
	})
})
