package kubernetes_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// filter creates a RouteFilter.
func (p place) filter(name, kind, config string) {
	GinkgoHelper()
	p.apply("apiVersion: gateway.gatehouse.dev/v1\nkind: RouteFilter\nmetadata: {name: %s}\nspec: {type: %s, routeFilterConfig: {config: %q}}\n",
		name, kind, config)
}

var _ = Describe("A RouteFilter that a rule of an HTTPRoute names", func() {
	It("applies to the rule, and closes it while it is missing or cannot be used", func() {
		other := newPlace(cluster)
		e := newEdge([]place{other})
		e.service("web", backend("blue"))
		e.listeners(anyHTTP)
		const by = "group: gateway.gatehouse.dev, kind: RouteFilter"
		e.route(e.place, "shop", `
  hostnames: [shop.example]
  rules:
  - matches: [{path: {value: /guarded}}]
    filters: [{type: ExtensionRef, extensionRef: {`+by+`, name: keys}}, {type: RequestHeaderModifier, requestHeaderModifier: {set: [{name: x-a, value: "1"}]}}]
    backendRefs: [{name: web, port: 80}]
  - {backendRefs: [{name: web, port: 80}]}`)
		other.filter("keys", "http_filter_basicauth", `{"users": [{"name": "eve", "password": "of another namespace"}]}`)
		e.expect("shop.example", "200 blue")
		Expect(e.ask("GET shop.example /guarded")).To(Equal("500"))
		Eventually(e.parent("shop", "ResolvedRefs")).Should(Equal("False RefNotFound"))
		Expect(e.parent("shop", "Accepted")()).To(Equal("True Accepted"))

		e.filter("keys", "http_filter_basicauth", `{"users": [{"name": "ann", "password": "correct horse"}]}`)
		Eventually(func() string { return e.ask("GET shop.example /guarded") }).Should(Equal("401"))
		Eventually(e.parent("shop", "ResolvedRefs")).Should(Equal("True ResolvedRefs"))
		Eventually(e.condition("routefilter", "keys", "Programmed")).Should(HavePrefix("True Programmed"))
		const ann, eve = " Authorization:Basic%20YW5uOmNvcnJlY3QgaG9yc2U=", " Authorization:Basic%20ZXZlOm9mIGFub3RoZXIgbmFtZXNwYWNl"
		Expect(e.ask("GET shop.example /guarded"+ann, "x-a")).To(Equal("200 blue x-a=1"))
		Expect(e.ask("GET shop.example /guarded" + eve)).To(Equal("401"))
		Expect(e.ask("GET shop.example /")).To(Equal("200 blue"))

		e.filter("keys", "http_filter_basicauth", `{"users": 1}`)
		Eventually(func() string { return e.ask("GET shop.example /guarded" + ann) }).Should(Equal("500"))
		Eventually(e.parent("shop", "ResolvedRefs")).Should(Equal("False Invalid"))
		e.filter("keys", "http_filter_oidc", `{}`)
		e.kubectl("delete", "routefilter", "keys")
		Eventually(e.parent("shop", "ResolvedRefs")).Should(Equal("False RefNotFound"))
		Expect(e.ask("GET shop.example /guarded" + ann)).To(Equal("500"))
		Expect(e.ask("GET shop.example /")).To(Equal("200 blue"))
	})
})
