package document_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

var _ = Describe("an absent field", func() {
	standalone := document.ApplyOptions{NewProxy: func(name string) *model.Proxy {
		p := model.NewProxy()
		if name == "gw" {
			p.HTTPPort, p.HTTPSPort, p.ListenIP, p.TrustedHops = 23080, 8443, "127.0.0.1", 1
		}
		return p
	}}
	const gw = "version: 1\nproxies:\n- name: gw\n"

	It("takes the caller's value for a new proxy, and the stored value for an existing one", func() {
		c := configOf("version: 1\n")
		c.applied(gw, standalone)
		made := "  http_port: 23080\n  https_port: 8443\n  listen_ip: 127.0.0.1\n  trusted_hops: 1\n"
		Expect(c.dump(document.WriteOptions{})).To(ContainSubstring(made))
		Expect(c.applied(gw, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 1}))
		Expect(c.applied(gw+"  listen_ip: 0.0.0.0\n", standalone)).To(Equal(document.Result{Updated: 1}))
		Expect(c.applied(gw, standalone)).To(Equal(document.Result{Unchanged: 1}))
		Expect(get[*model.Proxy](c, model.ProxyKey("gw")).ListenIP).To(Equal("0.0.0.0"))
		c.applied("version: 1\nproxies:\n- name: other\n", standalone)
		Expect(get[*model.Proxy](c, model.ProxyKey("other")).HTTPPort).To(Equal(8080))
	})

	It("of a proxy must fit the other fields once they are known", func() {
		c := configOf("version: 1\n")
		By("a port equal to the default of the other port fits")
		c.applied("version: 1\nproxies:\n- name: a\n  http_port: 8443\n  https_port: 9443\n- name: b\n  https_port: 8080\n  http_port: 80\n", document.ApplyOptions{})
		Expect(c.applied("version: 1\nproxies:\n- name: a\n  http_port: 8443\n- name: b\n  https_port: 8080\n", document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 2}))
		_, _, err := c.apply("version: 1\nproxies:\n- name: a\n  http_port: 9443\n", document.ApplyOptions{})
		Expect(err).To(MatchError(ContainSubstring(`line 3: proxies["a"]: the fields conflict with the absent ones, which keep the values of the proxy`)))
		unfit, ok := errors.AsType[*model.Error](err)
		Expect(ok).To(BeTrue())
		Expect(unfit.Fields).To(Equal([]model.FieldError{{Field: `line 3: proxies["a"].https_port`, Message: "must differ from Http_port"}}))
		_, _, err = c.apply("version: 1\nproxies:\n- name: new\n  https_port: 8080\n", document.ApplyOptions{})
		Expect(model.IsKind(err, model.Invalid)).To(BeTrue())
		_, err = document.Parse([]byte("version: 1\nproxies:\n- name: a\n  https_port: 80\n  http_port: 80\n"), "")
		Expect(err).To(HaveOccurred())
	})

	It("of another kind is reset to its default, with a warning if that changes something", func() {
		full := "version: 1\nupstreams:\n- upstream_name: blue\n  upstream_ip: 10.0.0.1\n  upstream_port: 80\n"
		c := configOf(full + "  upstream_weight: 50\n  upstream_hc_path: /up\n  tags: [shop]\nfilters:\n- filter_name: f\n" +
			"  filter_type: route_filter_ratelimit\n  filter_config: {descriptors: [{remote_address: client}]}\n")
		Expect(c.applied(full, document.ApplyOptions{})).To(Equal(document.Result{Updated: 1, Warnings: []string{
			`line 3: upstreams["blue"]: upstream_weight, upstream_hc_path, tags are not in the document and set to their defaults`,
		}}))
		Expect(c.applied(full, document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 1}))
		By("no warning if the document sets the default explicitly")
		c.applied(full+"  upstream_weight: 50\n", document.ApplyOptions{})
		Expect(c.applied(full+"  upstream_weight: 100\n", document.ApplyOptions{}).Warnings).To(BeEmpty())
		By("a secret keeps its contents if the document has none")
		c.applied("version: 1\nsecrets:\n- {secret_name: s, secret_value: hidden}\n", document.ApplyOptions{})
		Expect(c.applied("version: 1\nsecrets:\n- {secret_name: s}\n", document.ApplyOptions{})).To(Equal(document.Result{Unchanged: 1}))
	})
})
