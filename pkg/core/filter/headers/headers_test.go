package headers_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/headers"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestHeaders(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "headers")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-headers shows the messages.
var _ = Describe("The filter that changes headers", func() {
	values := func(c headers.Changes) ir.Filters { return ir.Filters{"headers": &c} }
	set := func(name, value string) ir.HeaderChange {
		return ir.HeaderChange{Action: ir.HeaderSet, Name: name, Value: value}
	}
	add := func(name, value string) ir.HeaderChange {
		return ir.HeaderChange{Action: ir.HeaderAdd, Name: name, Value: value}
	}
	remove := func(name string) ir.HeaderChange { return ir.HeaderChange{Action: ir.HeaderRemove, Name: name} }
	f := headers.Filter()

	It("reports what it changes, for the service and for the route", func() {
		r, err := filtertest.Request(f, values(headers.Changes{
			Request:  []ir.HeaderChange{remove("x-debug"), set("x-team", "shop")},
			Response: []ir.HeaderChange{remove("x-powered-by")},
		}), values(headers.Changes{Request: []ir.HeaderChange{add("x-team", "cart")}}), http.MethodGet)
		Expect(err).NotTo(HaveOccurred())
		Expect(f.Describe(r)).To(Equal("changes headers: of the request removes x-debug, sets x-team, adds x-team; " +
			"of the answer removes x-powered-by"))
	})

	It("changes them for the service before the route, and leaves those of the request as they were", func() {
		r, err := filtertest.Request(f, values(headers.Changes{Request: []ir.HeaderChange{set("x-a", "100%")}}),
			values(headers.Changes{Request: []ir.HeaderChange{add("x-a", "b"), remove("x-b")}}), http.MethodGet,
			"X-A: a", "X-B: b")
		Expect(err).NotTo(HaveOccurred())
		changed, err := f.Change(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Headers).To(HaveKeyWithValue("x-a", []string{"100%", "b"}))
		Expect(changed.Headers).NotTo(HaveKey("x-b"))
		Expect(r.Headers).To(HaveKeyWithValue("x-a", []string{"a"}))
	})

	DescribeTable("uses the value of a template", func(template, want string, before ...ir.HeaderChange) {
		change := ir.HeaderChange{Action: ir.HeaderSet, Name: "x-tenant", Value: template, Template: true}
		r, err := filtertest.Request(f, values(headers.Changes{Request: append(before, change)}), nil, http.MethodGet,
			"X-Tenant: client", "X-A: alice", "X-A: bob", "X-Empty: ")
		Expect(err).NotTo(HaveOccurred())
		changed, err := f.Change(r)
		Expect(err).NotTo(HaveOccurred())
		if want == "" {
			Expect(changed.Headers).NotTo(HaveKey("x-tenant"))
		} else {
			Expect(changed.Headers).To(HaveKeyWithValue("x-tenant", []string{want}))
		}
	},
		Entry("of a header, the first", "%REQ(X-A):1024%.test", "alice.test"),
		Entry("of a header, cut", "%REQ(x-a):2%", "al"),
		Entry("of the header that stands in", "%REQ(x-b?x-a):1024%", "alice"),
		Entry("not of one that stands in for an empty one", "a%REQ(x-empty?x-a):1024%", "a"),
		Entry("of a header that changed before", "%REQ(x-a):1024%", "carol", set("x-a", "carol")),
		Entry("of a header that was added to", "%REQ(x-b):1024%", "b", add("x-b", "b"), add("x-b", "c")),
		Entry("none, so the client's stays", "%REQ(x-b):1024%", "client"),
		Entry("none, after a removal", "%REQ(x-b):1024%", "", remove("x-tenant")),
		Entry("of the client's address", "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%.test", "192.0.2.7.test"),
		Entry("with a percent sign", "%%REQ(x-a)%%", "%REQ(x-a)%"),
		Entry("that only Envoy knows", "%PROTOCOL%.test", "%PROTOCOL%.test"),
	)
})
