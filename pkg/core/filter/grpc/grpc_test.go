package grpc_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/grpc"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

func TestGRPC(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "grpc")
}

// test/policies shows that Envoy does the same.
var _ = Describe("gRPC", func() {
	// request passes f, with the value of its route.
	request := func(f seam.Filter, value ir.Filters, method, path, contentType string) seam.Request {
		GinkgoHelper()
		r, err := filtertest.Request(f, nil, value, method, "content-type: "+contentType)
		Expect(err).NotTo(HaveOccurred())
		r.Path = path
		return r
	}

	const (
		converted = "converts the request to gRPC, and the answer to gRPC-Web"
		left      = "leaves the request as it is: its Content-Type is not one of gRPC-Web"
	)

	DescribeTable("from gRPC-Web is recognized", func(contentType, becomes, want string) {
		f := grpc.Web()
		r := request(f, ir.Filters{"grpcWeb": true}, "POST", "/", contentType)
		Expect(f.Describe(r)).To(Equal(want))
		changed, err := f.Change(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Header("content-type")).To(Equal(becomes))
		Expect(r.Header("content-type")).To(Equal(contentType))
	},
		Entry(nil, "application/grpc-web", "application/grpc", converted),
		Entry(nil, "application/grpc-web-text+proto", "application/grpc", converted),
		Entry(nil, "application/grpc", "application/grpc", left),
		Entry(nil, "application/grpc-web+json", "application/grpc-web+json", left),
	)

	books := grpc.Transcoder{
		DescriptorSet: testkit.BooksSet(), Services: []string{"shop.Books"}, MaxRequestBytes: 1, MaxResponseBytes: 1,
	}
	passing := books
	passing.PassUnknownPaths = true

	DescribeTable("from JSON is a call", func(t grpc.Transcoder, path, query, kind, method, goesTo, message string) {
		f := grpc.JSON()
		r := request(f, ir.Filters{"grpcJSON": &t}, "GET", path, kind)
		r.Query = query
		Expect(f.Refuse(r)).To(BeNil())
		Expect(f.Describe(r)).To(Equal(message))
		changed, err := f.Change(r)
		Expect(err).NotTo(HaveOccurred())
		Expect(changed.Header(seam.Method)).To(Equal(method))
		Expect(changed.Path + changed.Query).To(Equal(goesTo))
		Expect(r.Header(seam.Method)).To(Equal("GET"))
	},
		Entry("for a path of a rule", books, "/shop/books/1", "?delay_ms=1", "", "POST", "/shop.Books/GetBook",
			"converts the request to the call /shop.Books/GetBook, and the answer to JSON"),
		Entry("not for gRPC", books, "/shop/books/1", "", "application/grpc+proto", "GET", "/shop/books/1",
			"leaves the request as it is: it is gRPC, or no http rule matches it"),
		Entry("not for another path that is passed on", passing, "/other", "?a=b", "", "GET", "/other?a=b",
			"leaves the request as it is: it is gRPC, or no http rule matches it"),
	)

	DescribeTable("from JSON is refused", func(t grpc.Transcoder, path, query string, status int, body, why string) {
		f := grpc.JSON()
		r := request(f, ir.Filters{"grpcJSON": &t}, "GET", path, "")
		r.Query = query
		refused, err := f.Refuse(r)
		Expect(err).NotTo(HaveOccurred())
		Expect([]any{refused.Status, refused.Body}).To(Equal([]any{status, body}))
		Expect(refused.Message).To(Equal("an http_filter_grpcjson cannot convert the request to a call: " + why))
	},
		Entry("if no rule has the path", books, "/other", "", 404,
			"Could not resolve /other to a method.", "no http rule has GET /other"),
		Entry("if a parameter is not a field", books, "/shop/books/1", "?x=1", 400,
			"", "query parameter x is not a field of shop.Query"),
		Entry("if a parameter is not a field and other paths are passed on", passing, "/shop/books/1", "?x=1", 400,
			"", "query parameter x is not a field of shop.Query"),
	)

	It("is made on no route that answers itself", func() {
		r := &ir.Route{Respond: &ir.Respond{Status: 204}}
		Expect(grpc.Web().Config.Route(r, nil, seam.Place{})).To(Succeed())
		Expect(grpc.Web().Route(r)).To(BeEmpty())
		Expect(r).To(Equal(&ir.Route{Respond: &ir.Respond{Status: 204}}))
	})
})
