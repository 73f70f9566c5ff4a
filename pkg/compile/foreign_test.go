package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
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
		Expect(condition.Message).To(Equal("the address of an endpoint is the address of a cloud's metadata service (1): requests are answered with 503"))
		a, condition = compile.Assignment("web", model.NewEndpoints(bad), compile.Settings{})
		Expect(condition).To(BeNil())
		Expect(a.Endpoints).To(HaveLen(1))
	})
})
