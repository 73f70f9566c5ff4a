package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = DescribeTable("A rewrite of the host", func(config, field string) {
	Expect(refusedField(model.FilterHostRewrite, config)).To(Equal(field))
},
	Entry("has a host", `{"host":"a.test"}`, ""),
	Entry("has an address with a port", `{"host":"[2001:db8::1]:80"}`, ""),
	Entry("takes a header", `{"from_header":"X-Forwarded-Host"}`, ""),
	Entry("takes a part of the path", `{"from_path":{"regex":"/([a-z]+)/.*","substitution":"\\1.a.test"}}`, ""),
	Entry("makes no host of it", `{"from_path":{"regex":"/([a-z]+)/.*","substitution":"\\1@a"}}`, ".from_path.substitution"),
	Entry("cannot be read", `{"from_path":{"regex":"/(","substitution":"a"}}`, ".from_path.regex"),
	Entry("has a header of Envoy", `{"from_header":"x-envoy-original-host"}`, ".from_header"),
	Entry("has a header of the connection", `{"from_header":"te"}`, ".from_header"),
)

var _ = Describe("A rewrite of the host from a header", func() {
	It("lets clients choose it, and says so", func() {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterHostRewrite, Config: `{"from_header":"x-tenant"}`}).Parse().Spec.(*model.HostRewriteFilter)
		Expect(spec.Advice()).To(Equal([]string{"takes the Host from the header x-tenant, which any client can send: let it be one that a proxy in front of the gateway sets or removes"}))
		Expect((&model.HostRewriteFilter{Host: "a.test"}).Advice()).To(BeEmpty())
	})

	It("has one source", func() {
		f := &model.Filter{Name: "f", Type: model.FilterHostRewrite, Config: `{"host":"a.test","from_header":"x"}`}
		Expect(f.Validate()).To(HaveLen(1))
	})
})
