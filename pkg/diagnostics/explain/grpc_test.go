package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/grpc"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("gRPC of JSON", func() {
	const json = "envoy.filters.http.grpc_json_transcoder"
	blue := endpointOf("blue")
	route := func() *ir.Route {
		books := &grpc.Transcoder{
			DescriptorSet: testkit.BooksSet(), Services: []string{"shop.Books"}, MaxRequestBytes: 1, MaxResponseBytes: 1,
		}
		return &ir.Route{Forward: &ir.Forward{
			Clusters: []ir.WeightedCluster{{Cluster: blue, Share: 1}},
			Filters:  ir.Filters{"grpcWeb": true, "grpcJSON": books},
		}}
	}

	It("is a call for the router, and not for what comes before", func() {
		a := ask(forwardingState(&ir.Host{}, route(), blue), "http://shop.test/shop/books/1?delay_ms=1")
		Expect(a.Request.Method).To(Equal("GET"))
		Expect(a.Request.Path).To(Equal("/shop/books/1"))
		Expect(a.Forward.Path).To(Equal("/shop.Books/GetBook"))
		Expect(a.Message).To(ContainSubstring("POST shop.test/shop.Books/GetBook goes to blue"))
		Expect(said(a, json)).To(Equal("converts the request to the call /shop.Books/GetBook, and the answer to JSON"))
	})

	It("is not made of gRPC-Web", func() {
		have := forwardingState(&ir.Host{}, route(), blue)
		a := ask(have, "http://shop.test/shop/books/1", "content-type: application/grpc-web")
		Expect(a.Forward.Path).To(Equal("/shop/books/1"))
		Expect(said(a, json)).To(Equal("leaves the request as it is: it is gRPC, or no http rule matches it"))
	})

	It("is refused if there is no call", func() {
		a := ask(forwardingState(&ir.Host{}, route(), blue), "http://shop.test/other")
		Expect(a.Code).To(Equal("unknown_call"))
		Expect(a.Status).To(Equal(404))
		Expect(a.Body).To(Equal("Could not resolve /other to a method."))
	})
})
