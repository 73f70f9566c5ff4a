package crd_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
)

// inCluster are objects as people write them for a cluster.
const inCluster = `
apiVersion: v1
kind: List
items:
- apiVersion: gateway.gatehouse.dev/v1
  kind: GatewayHost
  metadata: {name: shop, namespace: shop, uid: 1-2-3, resourceVersion: "7", managedFields: []}
  spec:
    virtualhost: {fqdn: shop.example.com, tls: {secretName: shop-tls}}
    routes:
    - conditions: [{prefix: /api}, {methods: [GET]}, {headers: [{name: x-canary}]}]
      services:
      - {name: api, port: http, weight: 10}
      - {name: api, port: http, strategy: random}
    - services: [{name: far, port: 443, protocol: tls}]
      filters: [{name: limit}]
  status: {proxy: gatehouse, envoys: 2, conditions: []}
- apiVersion: gateway.gatehouse.dev/v1beta1
  kind: RouteFilter
  metadata: {name: limit, namespace: shop}
  spec: {name: limit, type: route_filter_ratelimit, routeFilterConfig: {config: '{"per": "client", "limit": "5/minute"}'}}
- apiVersion: v1
  kind: Service
  metadata: {name: api, namespace: shop}
  spec: {selector: {app: api}, ports: [{name: http, port: 80, targetPort: 8080, appProtocol: kubernetes.io/h2c}]}
- apiVersion: v1
  kind: Service
  metadata: {name: far, namespace: shop}
  spec: {type: ExternalName, externalName: far.example.com}
- apiVersion: gateway.gatehouse.dev/v1
  kind: GlobalConfig
  metadata: {name: login, namespace: shop}
  spec:
    type: globalconfig_oauth
    config: |
      {"openid_connect": {"provider": {"issuer": "https://idp.example.com"}, "client_id": "a", "client_secret": "client", "hmac_secret": "hmac",
       "redirect_url": "/callback", "redirect_path_matcher": "/callback"},
       "external_oauth_service": {"name": "far", "namespace": "shop", "port": 443, "protocol": "tls"}}
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: api, namespace: shop}, spec: {}}
- {apiVersion: v1, kind: Secret, type: kubernetes.io/service-account-token, metadata: {name: token, namespace: shop}, data: {token: YQ==}}
- {apiVersion: v1, kind: Secret, metadata: {name: hmac, namespace: shop}, data: {anything: YWJj}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: kube-root-ca.crt, namespace: shop}, data: {ca.crt: a}}
`

var _ = Describe("Import", func() {
	It("reads what people write for a cluster, and reports what differs from there", func() {
		objects, skipped, err := crd.Read(strings.NewReader(inCluster))
		Expect(err).NotTo(HaveOccurred())
		Expect(skipped).To(Equal([]string{"Deployment"}))
		doc, warnings, err := crd.Import(objects, crd.ImportOptions{Values: true})
		Expect(err).NotTo(HaveOccurred())
		Expect(warnings).To(ConsistOf(
			`Secret shop/client is not among the objects: the secret "client" has no content`,
			`Secret shop/shop-tls is not among the objects: the secret "shop-tls" has no content`,
			"Service shop/api has no address outside the cluster: the upstream is api.shop.svc, which only a gateway in it reaches",
		))
		Expect(encode(doc)).To(MatchYAML(`
version: 1
upstreams:
- {upstream_name: api, upstream_ip: api.shop.svc, upstream_port: 80, upstream_protocol: h2c, upstream_weight: 10}
- {upstream_name: api-2, upstream_ip: api.shop.svc, upstream_port: 80, upstream_protocol: h2c, upstream_strategy: random}
- {upstream_name: far, upstream_ip: far.example.com, upstream_port: 443, upstream_protocol: tls}
secrets:
- {secret_name: client}
- {secret_name: hmac, secret_type: generic, secret_value: abc}
- {secret_name: shop-tls}
filters:
- {filter_name: limit, filter_type: route_filter_ratelimit, filter_config: {per: client, limit: 5/minute}}
globalconfigs:
- globalconfig_name: login
  globalconfig_type: globalconfig_oauth
  config:
    openid_connect:
      provider: {issuer: "https://idp.example.com"}
      client_id: a
      client_secret: client
      hmac_secret: hmac
      redirect_url: /callback
      redirect_path_matcher: /callback
    external_oauth_service: {name: far.example.com, namespace: shop, port: 443, protocol: tls}
services:
- service_name: shop
  fqdn: shop.example.com
  filters: []
  secrets: [shop-tls]
  routes:
  - route_name: route-0
    route_prefix: /api
    route_config: {methods: [GET], headers: [{name: x-canary}]}
    upstreams: [api, api-2]
    filters: []
  - {route_name: route-1, route_prefix: /, upstreams: [far], filters: [limit]}
proxies:
- name: gatehouse
  http_port: 8080
  https_port: 8443
  listen_ip: 0.0.0.0
  trusted_hops: 0
  escaped_slashes: redirect
  underscore_headers: reject
  tls_min_version: "1.2"
  http3: false
  alt_svc_port: 0
  services: [shop]
  filters: []
  globalconfigs: []
`))
	})

	It("puts the namespace before each name if there is more than one", func() {
		text, _ := imported(`
{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: shop, namespace: a}, spec: {proxy: edge, virtualhost: {fqdn: a.example.com}}}
---
{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: shop, namespace: b}, spec: {proxy: edge, virtualhost: {fqdn: b.example.com}}}
`, crd.ImportOptions{})
		Expect(text).To(And(ContainSubstring("service_name: a.shop"), ContainSubstring("service_name: b.shop"), ContainSubstring("- name: edge\n")))
	})

	It("keeps what was changed in the cluster", func() {
		objects := exported(parse(`
version: 1
upstreams: [{upstream_name: Idp_1, upstream_ip: idp.example.com, upstream_port: 443}]
secrets: [{secret_name: Cookies_1}, {secret_name: client}]
filters:
- filter_name: login
  filter_type: http_filter_oidc
  filter_config: {client_id: a, client_secret: {secret: client}, cookie_secret: Cookies_1, redirect_uri: "https://a.example.com/callback", issuer: "https://idp.example.com", upstream: Idp_1}
`), crd.ExportOptions{})
		Expect(objects).To(ContainSubstring(`"client_id":"a","client_secret":{"secret":"client"},"cookie_secret":"cookies-1-`))
		text, _ := imported(strings.Replace(objects, `config: '{"client_id":"a"`, `config: '{"client_id":"b"`, 1), crd.ImportOptions{})
		Expect(text).To(And(ContainSubstring("client_id: b\n"), ContainSubstring("cookie_secret: Cookies_1\n"), ContainSubstring("upstream: Idp_1\n")))
	})

	DescribeTable("refuses what does not form a configuration", func(object string, want ...string) {
		objects, _, err := crd.Read(strings.NewReader(object))
		Expect(err).NotTo(HaveOccurred())
		doc, _, err := crd.Import(objects, crd.ImportOptions{})
		Expect(doc).To(BeNil())
		Expect(problemsOf(err)).To(Equal(want))
	},
		Entry("a missing Service", host("{virtualhost: {fqdn: a.example.com}, routes: [{services: [{name: blue, port: 80}]}]}"),
			"GatewayHost bad: spec.routes[0].services[0]: the Service default/blue is not among the objects"),
		Entry("a missing port", host("{virtualhost: {fqdn: a.example.com}, routes: [{services: [{name: blue, port: 80}]}]}")+
			"\n---\n{apiVersion: v1, kind: Service, metadata: {name: blue}, spec: {ports: [{port: 81}]}}",
			"GatewayHost bad: spec.routes[0].services[0]: the Service default/blue has no port 80"),
		Entry("a route with two paths", host("{virtualhost: {fqdn: a.example.com}, routes: [{conditions: [{prefix: /a}, {exact: /b}], timeouts: {idle: soon}}]}"),
			"GatewayHost bad: spec.routes[0].conditions[1].exact: all conditions must hold, so only one of them can have a path, "+
				"and spec.routes[0].conditions[0].prefix has one; write a route for each path",
			`GatewayHost bad: spec.routes[0].timeouts.idle: "soon" is not a duration such as 1.5s`),
		Entry("a missing filter", host("{virtualhost: {fqdn: a.example.com}, filters: [{name: limit}]}"),
			"GatewayHost bad: the RouteFilter default/limit is not among the objects"),
		Entry("two different hosts for one service", host("{virtualhost: {fqdn: a.example.com}, proxy: a}")+"\n---\n"+host("{virtualhost: {fqdn: a.example.com}, proxy: b, public: true}"),
			`GatewayHost bad: another GatewayHost is the service "bad" too, and differs: GatewayHosts with different proxy names may differ in spec.proxy only`,
			"GatewayHost bad: another object is /service/bad too, and differs"),
		Entry("a configuration that is not JSON", "{apiVersion: gateway.gatehouse.dev/v1, kind: RouteFilter, metadata: {name: bad}, spec: {type: route_filter_headers, routeFilterConfig: {config: '{'}}}",
			"RouteFilter bad: the configuration is not JSON: unexpected end of JSON input"),
	)

	It("warns about proxy names if some objects name no proxy", func() {
		one := func(name, proxy string) string {
			return fmt.Sprintf("---\n{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: %s}, spec: {virtualhost: {fqdn: %s.example.com}%s}}\n", name, name, proxy)
		}
		warnings := func(text string) []string {
			in, _, err := crd.Read(strings.NewReader(text))
			Expect(err).NotTo(HaveOccurred())
			_, warnings, err := crd.Import(in, crd.ImportOptions{})
			Expect(err).NotTo(HaveOccurred())
			return warnings
		}
		Expect(warnings(one("a", "") + one("b", ", proxy: inner") + one("c", ", proxy: edge"))).To(Equal([]string{
			`different proxy names: objects that name none belong to "gatehouse" (--proxy names another), the others to edge, inner`,
		}))
		Expect(warnings(one("a", "") + one("b", ""))).To(BeEmpty())
		Expect(warnings(one("a", ", proxy: inner") + one("b", ", proxy: edge"))).To(BeEmpty())
	})

	It("refuses an unknown field", func() {
		_, _, err := crd.Read(strings.NewReader(host("{virtualhost: {fqdn: a.example.com, sni: a}}")))
		Expect(err).To(MatchError(ContainSubstring(`reading document 1: error unmarshaling JSON: while decoding JSON: json: unknown field "sni"`)))
		for _, text := range []string{"hello", "[a]", "7"} {
			_, _, err = crd.Read(strings.NewReader(text))
			Expect(err).To(MatchError("reading document 1: is not an object of Kubernetes, which has an apiVersion and a kind"))
		}
		_, _, err = crd.Read(strings.NewReader("{kind: List, items: [{kind: Pod}, {a: b}]}"))
		Expect(err).To(MatchError("reading document 1: items[1]: has no kind: it is not an object of Kubernetes"))
		_, _, err = crd.Read(strings.NewReader("a: b"))
		Expect(err).To(MatchError("reading document 1: has no kind: it is not an object of Kubernetes"))
	})
})

// host returns a GatewayHost with this spec.
func host(spec string) string {
	return "{apiVersion: gateway.gatehouse.dev/v1, kind: GatewayHost, metadata: {name: bad}, spec: " + spec + "}"
}

var _ = Describe("Import", func() {
	It("refuses the settings of a Service that no document may have", func() {
		objects, _, err := crd.Read(strings.NewReader(`
apiVersion: v1
kind: Service
metadata: {name: provider, namespace: idp, annotations: {gateway.gatehouse.dev/upstream: '{"tls":{"caSecret":{"name":"ca"}}}'}}
spec: {type: ExternalName, externalName: login.example.com, ports: [{port: 443}]}
---
{apiVersion: v1, kind: Secret, metadata: {name: ca, namespace: idp}, data: {}}
`))
		Expect(err).NotTo(HaveOccurred())
		_, _, err = crd.Import(objects, crd.ImportOptions{})
		Expect(problemsOf(err)).To(ConsistOf(`upstreams["provider"].upstream_validation_cacertificate: needs TLS: Upstream_protocol tls or h2`))
	})
})
