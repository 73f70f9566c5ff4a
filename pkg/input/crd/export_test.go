package crd_test

import (
	"errors"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/crd"
)

// problemsOf returns the problems of an error of this package.
func problemsOf(err error) []string {
	GinkgoHelper()
	e, ok := errors.AsType[*crd.Error](err)
	Expect(ok).To(BeTrue(), "%v", err)
	return e.Problems
}

var _ = Describe("Export", func() {
	It("writes what a person would write", func() {
		text := exported(parse(`
version: 1
upstreams:
- {upstream_name: blue, upstream_ip: 192.0.2.10, upstream_port: 8080}
- {upstream_name: Green_1, upstream_ip: green.example.com, upstream_port: 443, upstream_protocol: tls, upstream_weight: 50}
services:
- service_name: shop
  fqdn: shop.example.com
  tags: [team-a]
  routes:
  - {route_name: root, route_prefix: /, upstreams: [blue, Green_1]}
  proxies: [edge]
proxies:
- name: edge
`), crd.ExportOptions{})
		parts := strings.Split(text, "---\n")
		Expect(parts).To(HaveLen(6))
		Expect(parts[1]).To(ContainSubstring("kind: ConfigMap"))
		Expect(parts[2]).To(MatchYAML(`
apiVersion: v1
kind: Service
metadata: {name: green-1-b5edfd2b, namespace: default, annotations: {gateway.gatehouse.dev/name: Green_1}}
spec: {type: ExternalName, externalName: green.example.com, ports: [{port: 443, protocol: TCP, targetPort: 443}]}
`))
		Expect(parts[3]).To(MatchYAML(`
apiVersion: v1
kind: Service
metadata: {name: blue, namespace: default}
spec: {clusterIP: None, ports: [{port: 8080, protocol: TCP, targetPort: 8080}]}
`))
		Expect(parts[4]).To(MatchYAML(`
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: blue
  namespace: default
  labels: {kubernetes.io/service-name: blue, endpointslice.kubernetes.io/managed-by: gateway.gatehouse.dev}
addressType: IPv4
endpoints: [{addresses: [192.0.2.10], conditions: {ready: true}}]
ports: [{name: "", port: 8080, protocol: TCP}]
`))
		Expect(parts[5]).To(MatchYAML(`
apiVersion: gateway.gatehouse.dev/v1
kind: GatewayHost
metadata: {name: shop, namespace: default, annotations: {gateway.gatehouse.dev/tags: team-a}}
spec:
  proxy: edge
  virtualhost: {fqdn: shop.example.com}
  routes:
  - name: root
    conditions: [{prefix: /}]
    services:
    - {name: green-1-b5edfd2b, port: 443, protocol: tls, weight: 50}
    - {name: blue, port: 8080}
`))
	})

	It("lists the Secrets to create, and how, and writes nothing secret", func() {
		doc := parse(`
version: 1
secrets:
- {secret_name: shop-tls, secret_type: tls}
- {secret_name: Clients}
- {secret_name: cookies, secret_value: "value text"}
filters:
- filter_name: login
  filter_type: http_filter_oidc
  filter_config: {client_id: gatehouse, client_secret: "client text", cookie_secret: cookies, redirect_uri: "https://a.example.com/callback", issuer: "https://idp.example.com"}
services:
- {service_name: shop, fqdn: a.example.com, secrets: [shop-tls], filters: [login], client_validation_cacertificate: Clients}
`)
		objects, todo, err := crd.Export(doc, crd.ExportOptions{Namespace: "shop"})
		Expect(err).NotTo(HaveOccurred())
		Expect(todo).To(Equal([]string{
			"kubectl create secret generic login.client-secret --namespace shop --from-file=value=FILE",
			"kubectl create secret generic clients-65a72565 --namespace shop --from-file=ca.crt=FILE",
			"kubectl create secret generic cookies --namespace shop --from-file=value=FILE",
			"kubectl create secret tls shop-tls --namespace shop --cert=FILE --key=FILE",
		}))
		Expect(objects.Secrets).To(BeEmpty())
		for _, text := range []string{"value text", "client text"} {
			Expect(exported(doc, crd.ExportOptions{Namespace: "shop"})).NotTo(ContainSubstring(text))
		}
		Expect(objects.Filters[0].Spec.RouteFilterConfig.Config).To(ContainSubstring(`"client_secret":{"secret":"login.client-secret"}`))
	})

	DescribeTable("refuses what Kubernetes cannot represent, and names it", func(document string, want ...string) {
		objects, _, err := crd.Export(parse("version: 1\n"+document), crd.ExportOptions{Values: true})
		Expect(objects).To(BeNil())
		Expect(problemsOf(err)).To(Equal(want))
	},
		Entry("the machine itself", "upstreams: [{upstream_name: blue, upstream_ip: 127.0.0.1, upstream_port: 80}]",
			"/upstream/blue: upstream_ip 127.0.0.1 is the machine itself, which in a cluster is the Pod of the gateway, and Kubernetes refuses it: write an address that its nodes reach, or a host name"),
		Entry("a shared key of tokens in its text", `filters: [{filter_name: f, filter_type: http_filter_jwt, filter_config: {issuer: us, hmac_key: a key of 32 bytes for the specs!}}]`,
			"/filter/f: a RouteFilter names a secret for hmac_key: put the key into a secret"),
		Entry("a link-local address", "upstreams: [{upstream_name: blue, upstream_ip: 'fe80::1', upstream_port: 80}]",
			"/upstream/blue: upstream_ip fe80::1 is an address that Kubernetes refuses for endpoints: write one that its nodes reach, or a host name"),
		Entry("a name that only the machine knows", "upstreams: [{upstream_name: blue, upstream_ip: localhost, upstream_port: 80}]",
			`/upstream/blue: upstream_ip "localhost" is a loopback address, and the control plane of a cluster refuses it: `+
				`change it, or name it in --upstream-allow, here and there`),
		Entry("a name of one label", "upstreams: [{upstream_name: blue, upstream_ip: Blue, upstream_port: 80}]",
			`/upstream/blue: upstream_ip "blue" is not a complete host name, and the control plane of a cluster refuses it: `+
				`change it, or name it in --upstream-allow, here and there`),
		Entry("a number that is an address", "upstreams: [{upstream_name: blue, upstream_ip: '0xa010203', upstream_port: 80}]",
			`/upstream/blue: upstream_ip "0xa010203" is an IP address, which may belong to another namespace: use a host name, or a Service with an EndpointSlice, `+
				`and the control plane of a cluster refuses it: change it, or name it in --upstream-allow, here and there`),
		Entry("a name of a Pod", "upstreams: [{upstream_name: blue, upstream_ip: 10-1-2-3.shop.pod.cluster.local, upstream_port: 80}]",
			`/upstream/blue: upstream_ip "10-1-2-3.shop.pod.cluster.local" is a name in the cluster: use the Service itself, and the control plane of a cluster refuses it: `+
				`change it, or name it in --upstream-allow, here and there`),
		Entry("the address of a metadata service", "upstreams: [{upstream_name: blue, upstream_ip: 100.100.100.200, upstream_port: 80}]",
			`/upstream/blue: upstream_ip "100.100.100.200" is the address of a cloud's metadata service, and the control plane of a cluster refuses it: `+
				`change it, or name it in --upstream-allow, here and there`),
		Entry("a host name with an underscore", "upstreams: [{upstream_name: blue, upstream_ip: a_b.example.com, upstream_port: 80}]",
			`/upstream/blue: upstream_ip "a_b.example.com" is not a host name that Kubernetes accepts: only letters, digits, hyphens and dots are possible`),
		Entry("references to missing objects", "services: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, upstreams: [blue]}], proxies: [gw]}]",
			`/service/shop names the proxy "gw", which the document does not have`, `/service/shop/route/root names the upstream "blue", which the document does not have`),
		Entry("an exemption from a filter that is not there", "services: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, route_config: {exempt: {service: [tokens]}}}]}]",
			`/service/shop/route/root is exempt from the filter "tokens", which the document does not have`),
		Entry("an exemption twice", "filters: [{filter_name: a, filter_type: grpcweb, filter_config: {}}]\nservices: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, route_config: {exempt: {service: [a, a]}}}]}]",
			"/service/shop/route/root is exempt from the filter a twice; write it once"),
		Entry("a list and a filter of one name", "lists: [{list_name: office, list_type: addresses, list_config: {addresses: []}}]\nfilters: [{filter_name: office, filter_type: grpcweb, filter_config: {}}]",
			"/list/office and /filter/office would both be a RouteFilter of this name in Kubernetes: rename one of them"),
		Entry("an automatic certificate", "services: [{service_name: shop, fqdn: shop.test, certificate: auto}]",
			"/service/shop has Certificate=auto: empty the field and name a Secret that cert-manager fills, which orders certificates in Kubernetes"),
		Entry("a secret that is sealed", "secrets: [{secret_name: key, secret_value: 'sealed:v1:abc'}]",
			"/secret/key: its contents are not in plain text in the document: give the key with --secret-key-file, or omit --secret-values"),
		Entry("a proxy with a reserved name", "proxies: [{name: -unattached-}]\nservices: [{service_name: shop, fqdn: '*', proxies: [-unattached-]}]",
			"/proxy/-unattached- has a name that means no proxy in Kubernetes: rename it"),
		Entry("a method that is too long", "services: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, route_config: {methods: [ABCDEFGHIJKLMNOPQRSTU]}}]}]",
			"/service/shop/route/root has the method ABCDEFGHIJKLMNOPQRSTU; those of a GatewayHost have at most 20 characters"),
		Entry("a method twice", "services: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, route_config: {methods: [GET, GET]}}]}]",
			"/service/shop/route/root has the method GET twice; write it once"),
		Entry("too many conditions", "services: [{service_name: shop, fqdn: '*', routes: [{route_name: root, route_prefix: /, route_config: {headers: ["+strings.Repeat("{name: a}, ", 17)+"]}}]}]",
			"/service/shop/route/root has 17 conditions on headers; a GatewayHost has at most 16"),
	)

	It("refuses a service with more routes than a GatewayHost can have", func() {
		var routes strings.Builder
		for i := range 1001 {
			fmt.Fprintf(&routes, "{route_name: r%d, route_prefix: /%d}, ", i, i)
		}
		_, _, err := crd.Export(parse("version: 1\nservices: [{service_name: shop, fqdn: '*', routes: ["+routes.String()+"]}]"), crd.ExportOptions{})
		Expect(problemsOf(err)).To(Equal([]string{"/service/shop has 1001 routes; a GatewayHost has at most 1000: move some to a service with another fqdn"}))
	})

	It("decrypts sealed values, or removes them", func() {
		sealed := func() string {
			return "version: 1\nsecrets: [{secret_name: key, secret_value: 'sealed:v1:abc'}]"
		}
		doc := parse(sealed())
		Expect(crd.Unseal(doc, func(text, place string) (string, error) { return text + " of " + place, nil })).To(Succeed())
		Expect(doc.Items[0].Object.(*model.Secret).Value).To(Equal("sealed:v1:abc of secret/key/value"))
		doc = parse(sealed())
		Expect(crd.Unseal(doc, nil)).To(Succeed())
		Expect(doc.Items[0].Object.(*model.Secret).Value).To(BeEmpty())
		doc = parse(sealed())
		Expect(crd.Unseal(doc, func(string, string) (string, error) { return "", errors.New("another key") })).To(MatchError("another key"))
	})
})
