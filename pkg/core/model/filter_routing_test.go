package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A rewrite of the host", func(config, field string) {
	Expect(refusedField(model.FilterHostRewrite, config)).To(Equal(field))
},
	Entry("has a host", `{"host":"a.test"}`, ""),
	Entry("has an address with a port", `{"host":"[2001:db8::1]:80"}`, ""),
	Entry("uses a header", `{"from_header":"X-Forwarded-Host"}`, ""),
	Entry("uses a part of the path", `{"from_path":{"regex":"/([a-z]+)/.*","substitution":"\\1.a.test"}}`, ""),
	Entry("cannot result in a host", `{"from_path":{"regex":"/([a-z]+)/.*","substitution":"\\1@a"}}`, ".from_path.substitution"),
	Entry("has an invalid expression", `{"from_path":{"regex":"/(","substitution":"a"}}`, ".from_path.regex"),
	Entry("uses a header of Envoy", `{"from_header":"x-envoy-original-host"}`, ".from_header"),
	Entry("uses a hop-by-hop header", `{"from_header":"te"}`, ".from_header"),
)

var _ = Describe("A rewrite of the host from a header", func() {
	It("lets clients choose it, and warns about that", func() {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterHostRewrite, Config: `{"from_header":"x-tenant"}`}).Parse().Spec.(*model.HostRewriteFilter)
		Expect(spec.Advice()).To(Equal([]string{"takes the Host from the header x-tenant, which any client can send: use a header that a proxy in front of the gateway sets or removes"}))
		Expect((&model.HostRewriteFilter{Host: "a.test"}).Advice()).To(BeEmpty())
	})

	It("has only one source", func() {
		f := &model.Filter{Name: "f", Type: model.FilterHostRewrite, Config: `{"host":"a.test","from_header":"x"}`}
		Expect(f.Validate()).To(HaveLen(1))
	})
})

var _ = DescribeTable("A canary", func(config, field string, used ...model.Key) {
	Expect(refusedField(model.FilterCanary, config)).To(Equal(field))
	if field == "" {
		Expect((&model.Filter{Name: "f", Type: model.FilterCanary, Config: model.JSON(config)}).Names()).To(Equal(used))
	}
},
	Entry("has two upstreams", `{"upstreams":[{"name":"a","weight":1},{"name":"b"}]}`, "", model.UpstreamKey("a"), model.UpstreamKey("b")),
	Entry("has no upstreams", `{}`, ".upstreams"),
	Entry("has an upstream without a name", `{"upstreams":[{"weight":1}]}`, ".upstreams[0].name"),
	Entry("has no weight", `{"upstreams":[{"name":"a"}]}`, ".upstreams"),
	Entry("has a hop-by-hop header", `{"upstreams":[{"name":"a","weight":1}],"header":{"name":"TE","value":"a"}}`, ".header.name"),
)

var _ = Describe("A mirror", func() {
	spec := func(config string) *model.MirrorFilter {
		f, _ := (&model.Filter{Name: "f", Type: model.FilterMirror, Config: model.JSON(config)}).Parse().Spec.(*model.MirrorFilter)
		return f
	}

	It("gets everything except credentials by default", func() {
		f := spec(`{"upstream":"green"}`)
		Expect(f.Strips()).To(BeTrue())
		Expect(f.Millionths()).To(Equal(1_000_000))
		Expect(f.Advice()).To(BeEmpty())
		f = spec(`{"upstream":"green","percent":0.29,"strip_credentials":false}`)
		Expect(f.Strips()).To(BeFalse())
		Expect(f.Millionths()).To(Equal(2900))
		Expect(f.Advice()).To(Equal([]string{"sends the passwords, tokens and cookies of clients to upstream green too (strip_credentials is false)"}))
	})
})

var _ = DescribeTable("An affinity", func(config, field string, advised bool) {
	Expect(refusedField(model.FilterAffinity, config)).To(Equal(field))
	spec, _ := (&model.Filter{Name: "f", Type: model.FilterAffinity, Config: model.JSON(config)}).Parse().Spec.(*model.AffinityFilter)
	Expect(spec.Advice() != nil).To(Equal(advised))
},
	Entry("uses the defaults", `{}`, "", false),
	Entry("uses a header", `{"header":"x-user"}`, "", false),
	Entry("is exact", `{"mode":"exact"}`, "", true),
	Entry("uses a hop-by-hop header", `{"header":"upgrade"}`, ".header", false),
	Entry("uses a header and has a cookie", `{"header":"x","cookie":"a"}`, ".cookie", false),
)
