package v1_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// host is a GatewayHost with this spec, in YAML flow style.
func host(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: bad, namespace: default}, spec: " + spec + "}"
}

// route is a host with this route, and backend one with this service.
func route(r string) string   { return host("{virtualhost: {fqdn: a.example.com}, routes: [" + r + "]}") }
func backend(b string) string { return route("{services: [" + b + "]}") }

// virtualHost is a host with this virtualhost.
func virtualHost(v string) string { return host("{virtualhost: " + v + "}") }

// quoted lists words as Kubernetes does.
func quoted(words []string) string { return `"` + strings.Join(words, `", "`) + `"` }

func consumer(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1, kind: Consumer, metadata: {name: bad, namespace: default}, spec: " + spec + "}"
}

// onProxies lists the types of filters that a proxy may have.
func onProxies() (list []string) {
	for _, name := range model.ConfigTypes(model.KindFilter) {
		if (&model.Filter{Type: name}).FitsOn(model.KindProxy) {
			list = append(list, name)
		}
	}
	return list
}

func filter(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1beta1, kind: RouteFilter, metadata: {name: bad, namespace: default}, spec: " + spec + "}"
}

func globalConfig(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1, kind: GlobalConfig, metadata: {name: bad, namespace: default}, spec: " + spec + "}"
}

func grant(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1, kind: ReferenceGrant, metadata: {name: bad, namespace: default}, spec: " + spec + "}"
}

const (
	badHost     = ": must be a host name such as shop.example.com, *.example.com or *, without a scheme, port or path"
	badDuration = ": must be a time with a unit, such as 1.5s, 200ms or 1h30m, and at most 24h"
	badPort     = ": must be the number of a port, 1 to 65535, or the name of a port of the Service"
	badPath     = "spec.routes[0].conditions: Invalid value: all conditions must hold, so only one of them can have a path; write a route for each path"
	noTLS       = "spec.routes[0].services[0].tls: Invalid value: needs a protocol over TLS: write protocol: tls or protocol: h2"
	oneKind     = ": Invalid value: takes only one of exact, prefix and regex"
)

var _ = DescribeTable("A mistake is refused by the API server", func(ctx context.Context, object string, want ...string) {
	Expect(refused(ctx, object)).To(ConsistOf(want))
},
	Entry("no virtualhost", host("{}"), "spec.virtualhost: Required value"),
	Entry("no host", virtualHost("{}"), "spec.virtualhost.fqdn: Required value"),
	Entry("a URL", virtualHost(`{fqdn: "https://shop.example.com"}`), `spec.virtualhost.fqdn: Invalid value: "https://shop.example.com"`+badHost),
	Entry("a host with a port", virtualHost(`{fqdn: "shop.example.com:8080"}`), `spec.virtualhost.fqdn: Invalid value: "shop.example.com:8080"`+badHost),
	Entry("a wildcard in the middle", virtualHost(`{fqdn: "shop.*.com"}`), `spec.virtualhost.fqdn: Invalid value: "shop.*.com"`+badHost),
	Entry("a wildcard without a name", virtualHost(`{fqdn: "*."}`), `spec.virtualhost.fqdn: Invalid value: "*."`+badHost),
	Entry("a label that begins with a hyphen", virtualHost(`{fqdn: -a.example.com}`), `spec.virtualhost.fqdn: Invalid value: "-a.example.com"`+badHost),
	Entry("a label that is too long", virtualHost(`{fqdn: `+strings.Repeat("a", 64)+`.com}`), `spec.virtualhost.fqdn: Invalid value: "`+strings.Repeat("a", 64)+`.com"`+badHost),
	Entry("a final dot", virtualHost(`{fqdn: example.com.}`), `spec.virtualhost.fqdn: Invalid value: "example.com."`+badHost),
	Entry("a redirect without a certificate", virtualHost("{fqdn: a.example.com, tls: {https: redirect}}"),
		"spec.virtualhost.tls.https: Invalid value: redirect and only need a certificate: name its Secret in secretName, or write external: true if a load balancer in front of the gateway has it"),
	Entry("HTTPS only without a certificate", virtualHost("{fqdn: a.example.com, tls: {https: only, external: false}}"),
		"spec.virtualhost.tls.https: Invalid value: redirect and only need a certificate: name its Secret in secretName, or write external: true if a load balancer in front of the gateway has it"),
	Entry("an unknown value for HTTPS", virtualHost("{fqdn: a.example.com, tls: {secretName: a, https: always}}"),
		`spec.virtualhost.tls.https: Unsupported value: "always": supported values: "both", "redirect", "only"`),
	Entry("client certificates without a certificate", virtualHost("{fqdn: a.example.com, tls: {clientCASecret: {name: ca}}}"),
		"spec.virtualhost.tls.clientCASecret: Invalid value: clients present a certificate only to a host that has one itself: name its Secret in secretName"),
	Entry("client certificates for any host", virtualHost(`{fqdn: "*", tls: {secretName: a, clientCASecret: {name: ca}}}`),
		"spec.virtualhost.tls.clientCASecret: Invalid value: the gateway requests client certificates by the host name that clients connect to: set fqdn to that name instead of *"),
	Entry("a Secret namespace without a Secret name", virtualHost("{fqdn: a.example.com, tls: {secretNamespace: b}}"),
		"spec.virtualhost.tls.secretNamespace: Invalid value: is the namespace of secretName, which is missing"),
	Entry("eleven years of HSTS", virtualHost("{fqdn: a.example.com, tls: {secretName: a, hstsSeconds: 346896000}}"),
		"spec.virtualhost.tls.hstsSeconds: Invalid value: 346896000: spec.virtualhost.tls.hstsSeconds in body should be less than or equal to 315360000"),
	Entry("HSTS of subdomains without its time", virtualHost("{fqdn: a.example.com, tls: {secretName: a, hstsSubdomains: true}}"),
		"spec.virtualhost.tls.hstsSubdomains: Invalid value: requires hstsSeconds: without it the header is not sent"),
	Entry("a filter twice on a host", host("{virtualhost: {fqdn: a.example.com}, filters: [{name: a}, {name: a}]}"), `spec.filters[1]: Duplicate value: {"name":"a"}`),
	Entry("a filter twice on a route", route("{filters: [{name: a}, {name: a}]}"), `spec.routes[0].filters[1]: Duplicate value: {"name":"a"}`),
	Entry("an exemption from nothing", route("{exempt: {}}"), "spec.routes[0].exempt.host: Required value"),
	Entry("an empty list of exemptions", route("{exempt: {host: []}}"), "spec.routes[0].exempt.host: Invalid value: 0: spec.routes[0].exempt.host in body should have at least 1 items"),
	Entry("an exemption twice", route("{exempt: {host: [a, a]}}"), `spec.routes[0].exempt.host[1]: Duplicate value: "a"`),
	Entry("an exemption without a name", route(`{exempt: {host: [""]}}`), "spec.routes[0].exempt.host[0]: Invalid value: \"\": spec.routes[0].exempt.host[0] in body should be at least 1 chars long"),
	Entry("an invalid proxy name", host(`{proxy: "a b", virtualhost: {fqdn: a.example.com}}`),
		`spec.proxy: Invalid value: "a b": spec.proxy in body should match '^[A-Za-z0-9._-]*$'`),
	Entry("a route name that cannot be part of a URL", route("{name: a/b}"),
		`spec.routes[0].name: Invalid value: "a/b": spec.routes[0].name in body should match '^([A-Za-z0-9._-]*[A-Za-z0-9_-][A-Za-z0-9._-]*|[.]{3,})$'`),
	Entry("two paths in a condition", route("{conditions: [{prefix: /a, exact: /b}]}"), "spec.routes[0].conditions[0]: Invalid value: takes only one of prefix, segment, exact, template and regex"),
	Entry("two conditions with a path", route("{conditions: [{prefix: /a}, {segment: /b}]}"), badPath),
	Entry("two conditions with methods", route("{conditions: [{methods: [GET]}, {methods: [PUT]}]}"),
		"spec.routes[0].conditions: Invalid value: all conditions must hold, so only one of them can have methods; list all methods there"),
	Entry("a prefix without a slash", route("{conditions: [{prefix: shop}]}"), `spec.routes[0].conditions[0].prefix: Invalid value: "shop": must start with /`),
	Entry("a path with a query", route(`{conditions: [{exact: "/a?b"}]}`),
		`spec.routes[0].conditions[0].exact: Invalid value: "/a?b": spec.routes[0].conditions[0].exact in body should match '^[^?#\s]*$'`),
	Entry("a regex without a slash", route("{conditions: [{regex: a.*}]}"), `spec.routes[0].conditions[0].regex: Invalid value: "a.*": must start with /`),
	Entry("a regex that is too long", route("{conditions: [{regex: /"+strings.Repeat("a", 1024)+"}]}"),
		"spec.routes[0].conditions[0].regex: Too long: may not be more than 1024 bytes"),
	Entry("an invalid HTTP method", route("{conditions: [{methods: [GET POST]}]}"), `spec.routes[0].conditions[0].methods[0]: Invalid value: "GET POST": must be an HTTP method such as GET`),
	Entry("a method twice", route("{conditions: [{methods: [GET, GET]}]}"), `spec.routes[0].conditions[0].methods[1]: Duplicate value: "GET"`),
	Entry("two values for a header", route("{conditions: [{headers: [{name: a, exact: b, regex: c}]}]}"), "spec.routes[0].conditions[0].headers[0]"+oneKind),
	Entry("two values for a parameter", route("{conditions: [{query: [{name: a, exact: b, prefix: c}]}]}"), "spec.routes[0].conditions[0].query[0]"+oneKind),
	Entry("a prefix to replace where there is none", route("{conditions: [{regex: /a}], rewrite: {prefix: /b}}"),
		"spec.routes[0].rewrite: Invalid value: there is no prefix to replace where a condition has a regex; use rewrite.regex and rewrite.substitution"),
	Entry("a prefix to replace where there is a template", route("{conditions: [{template: '/a/{id}'}], rewrite: {prefix: /b}}"),
		"spec.routes[0].rewrite: Invalid value: there is no prefix to replace where a condition has a template; use rewrite.template"),
	Entry("a template to rewrite where there is none", route("{conditions: [{prefix: /a}], rewrite: {template: /b}}"),
		"spec.routes[0].rewrite.template: Invalid value: requires a condition with a template, whose variables it takes"),
	Entry("two conditions with a path, one a template", route("{conditions: [{prefix: /a}, {template: '/{id}'}]}"), badPath),
	Entry("a template without a slash", route("{conditions: [{template: 'a/{id}'}]}"), `spec.routes[0].conditions[0].template: Invalid value: "a/{id}": must start with /`),
	Entry("two rewrites", route("{rewrite: {prefix: /b, regex: a}}"), "spec.routes[0].rewrite: Invalid value: takes only one of prefix, regex and template"),
	Entry("a substitution without a regex", route("{rewrite: {substitution: a}}"), "spec.routes[0].rewrite.substitution: Invalid value: requires regex"),
	Entry("a time without a unit", route(`{timeouts: {request: "15"}}`), `spec.routes[0].timeouts.request: Invalid value: "15"`+badDuration),
	Entry("a time that is too long", route("{timeouts: {idle: 24h1ms}}"), `spec.routes[0].timeouts.idle: Invalid value: "24h1ms"`+badDuration),
	Entry("a negative time", route("{retries: {attempts: 1, perTry: -1s}}"), `spec.routes[0].retries.perTry: Invalid value: "-1s"`+badDuration),
	Entry("retries without a number", route("{retries: {}}"), "spec.routes[0].retries.attempts: Required value"),
	Entry("retries on an unknown condition", route("{retries: {attempts: 1, retryOn: [never]}}"),
		`spec.routes[0].retries.retryOn[0]: Unsupported value: "never": supported values: "5xx", "gateway-error", "reset", "reset-before-request", "connect-failure", "envoy-ratelimited", "retriable-4xx", "refused-stream", "http3-post-connect-failure"`),
	Entry("no port", backend("{name: a}"), "spec.routes[0].services[0].port: Required value"),
	Entry("a port that is too high", backend("{name: a, port: 65536}"), "spec.routes[0].services[0].port: Invalid value: 65536"+badPort),
	Entry("a port in quotes", backend(`{name: a, port: "80"}`), `spec.routes[0].services[0].port: Invalid value: "80"`+badPort),
	Entry("a weight below zero", backend("{name: a, port: 80, weight: -1}"),
		"spec.routes[0].services[0].weight: Invalid value: -1: spec.routes[0].services[0].weight in body should be greater than or equal to 0"),
	Entry("an unknown protocol", backend("{name: a, port: 80, protocol: https}"),
		`spec.routes[0].services[0].protocol: Unsupported value: "https": supported values: "http", "h2c", "tls", "h2"`),
	Entry("an unknown strategy", backend("{name: a, port: 80, strategy: sticky}"),
		`spec.routes[0].services[0].strategy: Unsupported value: "sticky": supported values: "round_robin", "least_request", "random", "ring_hash", "maglev"`),
	Entry("TLS without a protocol over TLS", backend("{name: a, port: 80, protocol: h2c, tls: {insecure: true}}"), noTLS),
	Entry("every certificate, and an authority as well", backend("{name: a, port: 80, protocol: tls, tls: {insecure: true, caSecret: {name: ca}}}"),
		"spec.routes[0].services[0].tls.insecure: Invalid value: cannot be combined with caSecret: one of them accepts every certificate"),
	Entry("a health check without a slash", backend("{name: a, port: 80, healthCheck: {path: health}}"),
		`spec.routes[0].services[0].healthCheck.path: Invalid value: "health": must start with /`),
	Entry("a health check with an interval of zero", backend("{name: a, port: 80, healthCheck: {intervalSeconds: 0}}"),
		"spec.routes[0].services[0].healthCheck.intervalSeconds: Invalid value: 0: spec.routes[0].services[0].healthCheck.intervalSeconds in body should be greater than or equal to 1"),
	Entry("a percentage above 100", backend("{name: a, port: 80, panicThresholdPercent: 101}"),
		"spec.routes[0].services[0].panicThresholdPercent: Invalid value: 101: spec.routes[0].services[0].panicThresholdPercent in body should be less than or equal to 100"),
	Entry("too many routes", host("{virtualhost: {fqdn: a.example.com}, routes: ["+strings.Repeat("{}, ", 1001)+"]}"), "spec.routes: Too many: 1001: must have at most 1000 items"),
	Entry("a filter of an unknown type", filter(`{type: route_filter_cors, routeFilterConfig: {config: "{}"}}`),
		`spec.type: Unsupported value: "route_filter_cors": supported values: `+quoted(append(model.WrittenTypes(model.KindFilter), "list_addresses", "list_headers"))),
	Entry("a filter without a configuration", filter("{type: route_filter_headers, routeFilterConfig: {}}"), "spec.routeFilterConfig.config: Required value"),
	Entry("a filter whose configuration is an object, not text", filter("{type: route_filter_headers, routeFilterConfig: {config: {}}}"),
		`spec.routeFilterConfig.config: Invalid value: "object": spec.routeFilterConfig.config in body must be of type string: "object"`),
	Entry("a global config of an unknown type", globalConfig(`{type: globalconfig_unknown, config: "{}"}`),
		`spec.type: Unsupported value: "globalconfig_unknown": supported values: `+quoted(append(model.WrittenTypes(model.KindGlobalConfig), onProxies()...))),
	Entry("a filter that cannot be on a proxy", globalConfig(`{type: http_filter_oidc, config: "{}"}`),
		`spec.type: Unsupported value: "http_filter_oidc": supported values: `+quoted(append(model.WrittenTypes(model.KindGlobalConfig), onProxies()...))),
	Entry("an exemption from a global config", globalConfig(`{type: globalconfig_ratelimit, config: "{}", exempt: [{namespace: a, name: b}]}`),
		"spec.exempt: Invalid value: is for the types of filters"),
	Entry("an exemption of nothing", globalConfig(`{type: vh_filter_rbac, config: "{}", exempt: []}`),
		"spec.exempt: Invalid value: 0: spec.exempt in body should have at least 1 items"),
	Entry("an exemption without names", globalConfig(`{type: vh_filter_rbac, config: "{}", exempt: [{routes: [a, a]}]}`),
		"spec.exempt[0].namespace: Required value", "spec.exempt[0].name: Required value", `spec.exempt[0].routes[1]: Duplicate value: "a"`),
	Entry("an exemption of no route", globalConfig(`{type: vh_filter_rbac, config: "{}", exempt: [{namespace: a, name: b, routes: [""]}]}`),
		`spec.exempt[0].routes[0]: Invalid value: "": spec.exempt[0].routes[0] in body should be at least 1 chars long`),
	Entry("a global config without a configuration", globalConfig("{type: globalconfig_oauth}"), "spec.config: Required value"),
	Entry("a key without its names", consumer("{keys: [{}]}"), "spec.keys[0].secretName: Required value", "spec.keys[0].key: Required value"),
	Entry("a key in a path", consumer("{keys: [{secretName: a, key: b/c}]}"), `spec.keys[0].key: Invalid value: "b/c": spec.keys[0].key in body should match '^[A-Za-z0-9._-]+$'`),
	Entry("a user without its names", consumer("{users: [{}]}"), "spec.users[0].filter: Required value", "spec.users[0].user: Required value"),
	Entry("a group of another namespace", consumer(`{groups: ["gold@shop"]}`), `spec.groups[0]: Invalid value: "gold@shop": spec.groups[0] in body should match '^[A-Za-z0-9._:/-]+$'`),
	Entry("a group twice", consumer("{groups: [a, a]}"), `spec.groups[1]: Duplicate value: "a"`),
	Entry("too many groups", consumer("{groups: [a1, a2, a3, a4, a5, a6, a7, a8, a9, b1, b2, b3, b4, b5, b6, b7, b8]}"), "spec.groups: Too many: 17: must have at most 16 items"),
	Entry("too many credentials", consumer("{keys: ["+strings.Repeat("{secretName: a, key: b}, ", 26)+"], users: ["+strings.Repeat("{filter: a, user: b}, ", 25)+"]}"),
		"spec.keys: Invalid value: a consumer has at most 50 credentials: keys and users together"),
	Entry("a grant for nobody", grant("{from: [], to: [{kind: Secret}]}"), "spec.from: Invalid value: 0: spec.from in body should have at least 1 items"),
	Entry("a grant for a Pod", grant("{from: [{kind: Pod, namespace: a}], to: [{kind: ConfigMap}]}"),
		`spec.from[0].kind: Unsupported value: "Pod": supported values: "GatewayHost", "RouteFilter", "GlobalConfig"`,
		`spec.to[0].kind: Unsupported value: "ConfigMap": supported values: "Secret", "Service"`),
	Entry("a grant for every namespace", grant("{from: [{kind: GatewayHost}], to: [{kind: Secret}]}"), "spec.from[0].namespace: Required value"),
)

var _ = Describe("A field that does not exist", func() {
	It("is refused by kubectl and never dropped silently", func(ctx context.Context) {
		_, err := api.Apply(ctx, backend("{name: a, port: 80, wieght: 1}"), "--dry-run=server")
		Expect(err).To(MatchError(ContainSubstring(`strict decoding error: unknown field "spec.routes[0].services[0].wieght"`)))
	}, NodeTimeout(time.Minute))
})
