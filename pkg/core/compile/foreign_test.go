package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The endpoints that tenants write", func() {
	It("are left out if they cannot be those of others, and the condition says why", func() {
		bad, good := model.Endpoint{Address: "168.63.129.16", Port: 80}, model.Endpoint{Address: "192.0.2.1", Port: 80}
		with := compile.Settings{Foreign: &egress.Foreign{}}
		a, condition := compile.Assignment("web", model.NewEndpoints(bad, good), with)
		Expect(condition).To(BeNil())
		Expect(a.Endpoints).To(HaveLen(1))
		Expect(a.Endpoints[0].Address).To(Equal("192.0.2.1"))
		a, condition = compile.Assignment("web", model.NewEndpoints(bad), with)
		Expect(a.Endpoints).To(BeEmpty())
		Expect(condition.Message).To(Equal("the address of an endpoint is the address of a cloud's metadata service (1): requests go to the other upstreams of its clusters, or are answered with 503"))
		a, condition = compile.Assignment("web", model.NewEndpoints(bad), compile.Settings{})
		Expect(condition).To(BeNil())
		Expect(a.Endpoints).To(HaveLen(1))
	})
})

var _ = Describe("The names that tenants write", func() {
	// closes compiles a route whose filter names an upstream, and returns why it is closed.
	closes := func(address, kind string, spec model.Spec, with compile.Settings) string {
		other := upstream("other")
		other.IP = address
		tree := routeWith("root", parsed("f", kind, spec))
		tree.Upstreams[0].IP = "web.example.com"
		tree.Named = map[model.Key]model.Object{other.Key(): other}
		r, condition := compile.Route(tree, with)
		if condition == nil {
			Expect(r.Respond).To(BeNil())
			return ""
		}
		Expect(r.Respond.Status).To(Equal(503))
		Expect(r.Asked).To(BeEmpty())
		return condition.Message
	}

	DescribeTable("lead nowhere inside by a filter either, but anywhere outside", func(kind string, spec model.Spec) {
		foreign := compile.Settings{Foreign: &egress.Foreign{}}
		Expect(closes("localhost", kind, spec, foreign)).To(ContainSubstring("upstream other has an address that "))
		Expect(closes("metadata.google.internal", kind, spec, foreign)).To(ContainSubstring("upstream other has an address that "))
		Expect(closes("auth.example.com", kind, spec, foreign)).To(BeEmpty())
		Expect(closes("localhost", kind, spec, compile.Settings{})).To(BeEmpty(), "by REST, operators write upstreams")
	},
		Entry("a mirror", model.FilterMirror, &model.MirrorFilter{Upstream: "other"}),
		Entry("an authorization server", model.FilterExtAuthz, &model.ExtAuthzFilter{Upstream: "other", Protocol: model.AskHTTP}),
		Entry("a share", model.FilterCanary, &model.CanaryFilter{Upstreams: []model.CanaryUpstream{{Name: "other", Weight: 1}}}),
	)
})
