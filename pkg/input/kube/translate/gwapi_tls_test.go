package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// policy creates a BackendTLSPolicy of a namespace for Service web.
func (c *cluster) policy(namespace, name, created, spec string) {
	GinkgoHelper()
	c.apply(fmt.Sprintf("kind: BackendTLSPolicy\nmetadata: {name: %s, namespace: %s, creationTimestamp: %q}\nspec: {targetRefs: [{group: \"\", kind: Service, name: web}], %s}", name, namespace, created, spec))
}

// policyOf returns the conditions of a policy, and its ancestors.
func policyOf(step translate.Step, name string) string {
	GinkgoHelper()
	r := objectIn(step, "BackendTLSPolicy "+name).API.(*translate.PolicyResult)
	said := []string{}
	for _, v := range r.Conditions {
		said = append(said, fmt.Sprintf("%t %s", v.True, v.Reason))
	}
	for _, a := range r.Ancestors {
		said = append(said, fmt.Sprintf("%s/%s", *a.Namespace, a.Name))
	}
	return strings.Join(said, ", ")
}

var _ = Describe("A BackendTLSPolicy", func() {
	const early, late = "2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"
	const system = "validation: {wellKnownCACertificates: System, hostname: Web.example}"
	const authority = `validation: {hostname: web.example, caCertificateRefs: [{group: "", kind: ConfigMap, name: ca}]}`
	withRoute := func() *cluster {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}")
		c.httpRoute("shop", "{name: web}", "", 1)
		return c
	}
	upstream := func(step translate.Step) *model.Upstream {
		GinkgoHelper()
		list := upstreamsOf(step)
		Expect(list).To(HaveLen(1))
		return list[0]
	}
	configMap := func(namespace, text string) string {
		return fmt.Sprintf("kind: ConfigMap\nmetadata: {name: ca, namespace: %s}\ndata: {%s}", namespace, text)
	}

	It("makes connections to its Service secure, and no other's", func() {
		c := withRoute()
		c.policy("other", "web", early, "validation: {wellKnownCACertificates: System, hostname: other.example}")
		Expect(upstream(c.step()).Protocol).To(Equal("http"))
		c.policy("shop", "own", early, system)
		step := c.step()
		u := upstream(step)
		Expect([]string{u.Protocol, u.ValidationSubjectName, u.ValidationCACertificate}).To(Equal([]string{"tls", "web.example", ""}))
		Expect(policyOf(step, "shop/own")).To(Equal("true Accepted, true ResolvedRefs, shop/web"))
		c.remove("BackendTLSPolicy shop/own")
		Expect(upstream(c.step()).Protocol).To(Equal("http"))
	})

	It("has authorities of its own namespace only, and without one its Service gets nothing", func() {
		c := withRoute()
		c.apply(configMap("other", fmt.Sprintf("ca.crt: %q", pems.authority)))
		c.policy("shop", "own", early, authority)
		step := c.step()
		Expect(links(step)).To(ConsistOf(HaveSuffix("/filter/invalid-backend_500")))
		Expect(policyOf(step, "shop/own")).To(Equal("false NoValidCACertificate, false InvalidCACertificateRef, shop/web"))
		c.apply(configMap("shop", fmt.Sprintf("tls.crt: %q", pems.authority)))
		Expect(shown(c.step())).To(BeEmpty())
		c.apply(configMap("shop", fmt.Sprintf("ca.crt: %q", pems.authority)))
		step = c.step()
		Expect(upstream(step).ValidationCACertificate).To(Equal("shop.own_backend-ca"))
		Expect(find[*model.Secret](step, model.SecretKey("shop.own_backend-ca")).Cert).To(Equal(strings.TrimSpace(pems.authority) + "\n"))
		Expect(policyOf(step, "shop/own")).To(Equal("true Accepted, true ResolvedRefs, shop/web"))
	})

	It("is that of the oldest, and the others are in conflict with it", func() {
		c := withRoute()
		c.policy("shop", "a", late, system)
		c.policy("shop", "b", early, "validation: {wellKnownCACertificates: System, hostname: first.example}")
		step := c.step()
		Expect(upstream(step).ValidationSubjectName).To(Equal("first.example"))
		Expect(policyOf(step, "shop/a")).To(Equal("false Conflicted, true ResolvedRefs, shop/web"))
		c.policy("shop", "b", early, `options: {a: b}, `+system)
		step = c.step()
		Expect(links(step)).To(ContainElement(HaveSuffix("/filter/invalid-backend_500")), "the one that counts cannot be used")
		c.remove("BackendTLSPolicy shop/b")
		step = c.step()
		Expect(upstream(step).ValidationSubjectName).To(Equal("web.example"))
		Expect(policyOf(step, "shop/a")).To(Equal("true Accepted, true ResolvedRefs, shop/web"))
	})

	DescribeTable("gives its Service nothing with", func(spec, want string) {
		c := withRoute()
		c.apply(configMap("shop", fmt.Sprintf("ca.crt: %q", pems.authority)))
		c.policy("shop", "own", early, spec)
		step := c.step()
		Expect(links(step)).To(ConsistOf(HaveSuffix("/filter/invalid-backend_500")))
		Expect(policyOf(step, "shop/own")).To(Equal(want + ", shop/web"))
	},
		Entry("a name that is two", "validation: {wellKnownCACertificates: System, hostname: web.example, subjectAltNames: [{type: URI, uri: \"spiffe://a.example/shop,evil.example\"}]}",
			"false Invalid, true ResolvedRefs"),
		Entry("a wildcard", "validation: {wellKnownCACertificates: System, hostname: web.example, subjectAltNames: [{type: Hostname, hostname: \"*.example\"}]}",
			"false Invalid, true ResolvedRefs"),
		Entry("a name that Envoys cannot verify", "validation: {wellKnownCACertificates: System, hostname: a..b}", "false Invalid, true ResolvedRefs"),
		Entry("options", "options: {a: b}, "+system, "false Invalid, true ResolvedRefs"),
		Entry("other authorities", "validation: {wellKnownCACertificates: Other, hostname: web.example}", "false Invalid, true ResolvedRefs"),
		Entry("authorities of another kind", `validation: {hostname: web.example, caCertificateRefs: [{group: "", kind: Service, name: ca}]}`, "false NoValidCACertificate, false InvalidKind"),
		Entry("authorities of another group", `validation: {hostname: web.example, caCertificateRefs: [{group: a.example, kind: ConfigMap, name: ca}]}`, "false NoValidCACertificate, false InvalidKind"),
	)

	It("of a port comes before one of all ports, whatever their age", func() {
		c := withRoute()
		c.apply("apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\nspec: {ports: [{port: 80, name: plain}]}")
		c.policy("shop", "all", early, system)
		c.apply(fmt.Sprintf("kind: BackendTLSPolicy\nmetadata: {name: port, namespace: shop, creationTimestamp: %q}\nspec: {targetRefs: [{group: \"\", kind: Service, name: web, sectionName: plain}], "+
			"validation: {wellKnownCACertificates: System, hostname: port.example}}", late))
		Expect(upstream(c.step()).ValidationSubjectName).To(Equal("port.example"))
		c.remove("BackendTLSPolicy shop/port")
		Expect(upstream(c.step()).ValidationSubjectName).To(Equal("web.example"))
	})

	It("is one for GRPCRoutes, too, whose requests are HTTP/2", func() {
		c := gatewayCluster()
		c.gateway("web", "{name: http, port: 80, protocol: HTTP}")
		c.route("GRPCRoute", "calls", early, "rules: [{backendRefs: [{name: web, port: 80}]}]")
		Expect(upstream(c.step()).Protocol).To(Equal("h2c"))
		c.policy("shop", "own", early, system)
		u := upstream(c.step())
		Expect([]string{u.Protocol, u.ValidationSubjectName}).To(Equal([]string{"h2", "web.example"}))
	})
})
