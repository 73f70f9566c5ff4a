package translate_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
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
		Expect(find[*model.Service](step, model.ServiceKey("shop.web"))).To(Equal(&model.Service{Name: "shop.web", FQDN: "shop.example.com", HTTPS: "both", Mode: "http"}))
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

	It("is removed with everything that it became", func() {
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

// hostOf returns a GatewayHost shop/web for shop.example.com with these lines in its
// spec.
func hostOf(spec string) string {
	host := "  virtualhost: {fqdn: shop.example.com}\n"
	if strings.Contains(spec, "  virtualhost:") {
		host = ""
	}
	return `
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: web, namespace: shop, creationTimestamp: "2026-01-01T00:00:00Z"}
spec:
` + host + spec
}

// routeOf returns a GatewayHost with a route / and these lines, whose Service is web.
func routeOf(lines string) string {
	return hostOf(`
  routes:
  - {conditions: [{prefix: /}], services: [{name: web, port: 80}]}
  - ` + lines + `
    services: [{name: web, port: 80}]`)
}

var _ = DescribeTable("A route becomes", func(lines string, want model.Route) {
	c := newCluster(routeOf(lines), webService)
	step := c.step()
	Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
	want.Service = "shop.web"
	Expect(find[*model.Route](step, model.RouteKey("shop.web", want.Name))).To(Equal(&want))
	find[*model.RouteUpstream](step, model.RouteUpstreamKey("shop.web", want.Name, "shop.web.80"))
},
	Entry("a string prefix", `conditions: [{prefix: /cart}]`, model.Route{Name: "cart", Prefix: "/cart"}),
	Entry("whole segments", `conditions: [{segment: /cart}]`, model.Route{Name: "cart-18b7db3f", Prefix: "/cart", Config: model.RouteConfig{Match: "segment"}}),
	Entry("an exact path", `conditions: [{exact: /cart}]`, model.Route{Name: "cart-5599c7be", Prefix: "/cart", Config: model.RouteConfig{Match: "exact"}}),
	Entry("a regular expression", `conditions: [{regex: "/cart/[0-9]+"}]`, model.Route{Name: "cart--0-9-744f829f", Prefix: "/cart/[0-9]+", Config: model.RouteConfig{Match: "regex"}}),
	Entry("a template", `conditions: [{template: "/users/{id}"}]
    rewrite: {template: "/people/{id}"}`, model.Route{Name: "users--id-011037d6", Prefix: "/users/{id}", Config: model.RouteConfig{
		Match: "template", Rewrite: &model.Rewrite{Template: "/people/{id}"},
	}}),
	Entry("a route for all paths", `name: posts
    conditions: [{methods: [POST, PUT]}]`, model.Route{Name: "posts", Prefix: "/", Config: model.RouteConfig{Methods: []string{"POST", "PUT"}}}),
	Entry("all conditions together", `name: all
    conditions:
    - {prefix: /a, headers: [{name: x-a, exact: "1"}, {name: x-b, prefix: p, invert: true}]}
    - {methods: [GET], query: [{name: q, regex: "[a-z]"}]}
    - {headers: [{name: x-c}], query: [{name: r, prefix: z}]}`,
		model.Route{Name: "all", Prefix: "/a", Config: model.RouteConfig{
			Methods: []string{"GET"},
			Headers: []model.ValueMatch{{Name: "x-a", Exact: new("1")}, {Name: "x-b", Prefix: new("p"), Invert: true}, {Name: "x-c"}},
			Query:   []model.ValueMatch{{Name: "q", Regex: new("[a-z]")}, {Name: "r", Prefix: new("z")}},
		}}),
	Entry("everything that a route can do to its requests", `name: all
    conditions: [{prefix: /a}]
    rewrite: {prefix: /b, host: backend}
    timeouts: {request: 1.5s, idle: 1m}
    retries: {attempts: 2, retryOn: [5xx, reset], perTry: 1s, backoff: 10ms, maxBackoff: 20ms}
    websocket: false
    public: true
    tags: [b, a]`,
		model.Route{Name: "all", Prefix: "/a", Tags: model.Tags{"a", "b"}, Config: model.RouteConfig{
			Rewrite: &model.Rewrite{Prefix: "/b", Host: "backend"}, Timeouts: &model.Timeouts{Request: model.Duration(1500 * time.Millisecond), Idle: model.Duration(time.Minute)},
			Retries: &model.Retries{
				Attempts: 2, On: []string{"5xx", "reset"}, PerTry: model.Duration(time.Second),
				Backoff: model.Duration(10 * time.Millisecond), MaxBackoff: model.Duration(20 * time.Millisecond),
			},
			Websocket: new(false), Public: true,
		}}),
	Entry("a rewrite by an expression", `name: all
    conditions: [{prefix: /a}]
    rewrite: {regex: "^/a/(.*)", substitution: '/\1'}`,
		model.Route{Name: "all", Prefix: "/a", Config: model.RouteConfig{Rewrite: &model.Rewrite{Regex: "^/a/(.*)", Substitution: `/\1`}}}),
)

var _ = DescribeTable("A route that cannot work as specified is a fixed 503 and leaves the others alone:", func(lines, problem string) {
	step := newCluster(routeOf(lines), webService, webSlice).step()
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{problem}))
	Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> shop.web.80", "gatehouse shop.example.com /a -> 503"}))
},
	Entry("an invalid rewrite", `conditions: [{prefix: /a}]
    rewrite: {regex: "("}`,
		"spec.routes[1].rewrite.regex Invalid: \"(\" is not a regular expression in RE2 syntax: missing closing ): `(`"),
	Entry("an invalid timeout", `conditions: [{prefix: /a}]
    timeouts: {request: 25h}`, "spec.routes[1].timeouts.request Invalid: 25h0m0s is not between 0s and 24h"),
	Entry("an invalid duration", `conditions: [{prefix: /a}]
    timeouts: {idle: soon}`, `spec.routes[1].timeouts.idle Invalid: "soon" is not a duration such as 1.5s`),
	Entry("an invalid retry interval", `conditions: [{prefix: /a}]
    retries: {attempts: 1, backoff: 1s, maxBackoff: 10ms}`, "spec.routes[1].retries.maxBackoff Invalid: 10ms is below the backoff of 1s"),
	Entry("an invalid retry condition", `conditions: [{prefix: /a}]
    retries: {attempts: 1, retryOn: [never]}`, `spec.routes[1].retries.retryOn[0] Invalid: "never" is not one of 5xx, gateway-error, reset, reset-before-request, connect-failure, envoy-ratelimited, retriable-4xx, refused-stream, http3-post-connect-failure`),
	Entry("an invalid tag", `conditions: [{prefix: /a}]
    tags: ["a b"]`, `spec.routes[1].tags Invalid: "a b" is not a word of 1 to 63 characters of A-Z a-z 0-9 . _ : / -`),
	Entry("a RouteFilter that does not exist", `conditions: [{prefix: /a}]
    filters: [{name: limit}]`, "spec.routes[1].filters[0].name RefNotFound: RouteFilter shop/limit does not exist"),
)

var _ = DescribeTable("A host whose requests cannot be routed reliably is a fixed 503:", func(spec, problem string) {
	step := newCluster(hostOf(spec), webService, webSlice).step()
	Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{problem}))
	Expect(served(step)).To(Equal([]string{"gatehouse shop.example.com / -> 503"}))
},
	Entry("an invalid expression", `  routes: [{services: [{name: web, port: 80}]}, {conditions: [{methods: [GET]}, {regex: "/["}]}]`,
		"spec.routes[1].conditions[1].regex Invalid: \"/[\" is not a regular expression in RE2 syntax: missing closing ]: `[`"),
	Entry("an invalid path", `  routes: [{conditions: [{prefix: "/a?b"}]}]`,
		`spec.routes[0].conditions[0].prefix Invalid: "/a?b" must be a path without query (?) and fragment (#)`),
	Entry("two paths", `  routes: [{conditions: [{prefix: /a}, {exact: /b}]}]`,
		"spec.routes[0].conditions[1].exact Invalid: all conditions must hold, so only one of them can have a path, and spec.routes[0].conditions[0].prefix has one; write a route for each path"),
	Entry("methods twice", `  routes: [{conditions: [{methods: [GET]}, {methods: [PUT]}]}]`,
		"spec.routes[0].conditions[1].methods Invalid: all conditions must hold, so only one of them can have methods, and spec.routes[0].conditions[0].methods has some; list all methods there"),
	Entry("an invalid method", `  routes: [{conditions: [{methods: ["GET IT"]}]}]`, `spec.routes[0].conditions[0].methods[0] Invalid: "GET IT" is not an HTTP token`),
	Entry("an invalid header", `  routes: [{conditions: [{headers: [{name: a}]}, {headers: [{name: b}, {name: c, exact: x, prefix: y}]}]}]`,
		"spec.routes[0].conditions[1].headers[1] Invalid: takes only one of exact, prefix and regex"),
	Entry("an invalid parameter", `  routes: [{conditions: [{query: [{name: a, regex: "("}]}]}]`,
		"spec.routes[0].conditions[0].query[0].regex Invalid: \"(\" is not a regular expression in RE2 syntax: missing closing ): `(`"),
	Entry("a route name twice", `  routes: [{name: a, conditions: [{prefix: /a}]}, {name: a}]`, `spec.routes[1].name Invalid: "a" is also the name of another route of the host`),
	Entry("a RouteFilter that does not exist", `  filters: [{name: login}]
  routes: [{services: [{name: web, port: 80}]}]`, "spec.filters[0].name RefNotFound: RouteFilter shop/login does not exist"),
	Entry("invalid HTTPS settings", `  routes: [{services: [{name: web, port: 80}]}]
  virtualhost: {fqdn: shop.example.com, tls: {https: never}}`, `spec.virtualhost.tls.https Invalid: "never" is not one of both, redirect, only`),
)

var _ = Describe("Routes without a name", func() {
	It("are named after their conditions, and keep the name when other routes come and go", func() {
		names := func(step translate.Step) (list []string) {
			for _, made := range objectIn(step, "GatewayHost shop/web").Made {
				if made.Key.Kind == model.KindRoute {
					list = append(list, made.Path+" "+made.Key.Name())
				}
			}
			return list
		}
		c := newCluster(hostOf(`
  routes:
  - conditions: [{prefix: /}]
  - conditions: [{prefix: /a/b}]
  - conditions: [{prefix: /a-b}]
  - conditions: [{prefix: /a, headers: [{name: x}]}]
  - conditions: [{prefix: /a, headers: [{name: x}]}]
  - name: a-b`))
		first := names(c.step())
		Expect(first).To(Equal([]string{
			"spec.routes[0] root", "spec.routes[1] a-b-9df90784", "spec.routes[2] a-b-da16257f", "spec.routes[3] a-d2f3bde1", "spec.routes[4] a-d2f3bde1-2", "spec.routes[5] a-b",
		}))
		c.apply(hostOf(`
  routes:
  - name: a-b
  - conditions: [{prefix: /new}]
  - conditions: [{prefix: /a/b}]`))
		Expect(names(c.step())).To(Equal([]string{"spec.routes[0] a-b", "spec.routes[1] new", "spec.routes[2] a-b-9df90784"}))
	})
})

var _ = Describe("An exempt route", func() {
	const exempt = "  filters: [{name: limit}]\n  routes: [{services: [{name: web, port: 80}]}, {name: open, conditions: [{prefix: /open}], exempt: {host: [%s]}, services: [{name: web, port: 80}]}]"
	exemptOf := func(name string) *model.Exempt {
		step := newCluster(webService, webSlice, filter("limit", "vh_filter_ipaccess", `{"allow":["192.0.2.0/24"]}`), hostOf(fmt.Sprintf(exempt, name))).step()
		Expect(problems(step, "GatewayHost shop/web")).To(BeEmpty())
		return find[*model.Route](step, model.RouteKey("shop.web", "open")).Config.Exempt
	}

	It("names filters of its host by the names of RouteFilters", func() {
		Expect(exemptOf("limit")).To(Equal(&model.Exempt{Service: []string{"shop.limit"}}))
	})

	It("names no filter of another namespace, nor of a proxy", func() {
		Expect(exemptOf("operators.limit")).To(Equal(&model.Exempt{Service: []string{"shop.operators.limit"}}))
		Expect(exemptOf("operators.limit_proxy")).To(Equal(&model.Exempt{Service: []string{"shop.operators.limit_proxy"}}))
	})

	It("closes if the name cannot be one, and the path in the message is that of the GatewayHost", func() {
		step := newCluster(webService, webSlice, filter("limit", "vh_filter_ipaccess", `{"allow":["192.0.2.0/24"]}`), hostOf(fmt.Sprintf(exempt, `"a/b"`))).step()
		Expect(problems(step, "GatewayHost shop/web")).To(HaveExactElements(HavePrefix("spec.routes[1].exempt.host[0] Invalid: ")))
		Expect(served(step)).To(ContainElement("gatehouse shop.example.com /open -> 503"))
	})
})
