package explain_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("gRPC", func() {
	to := func(r ir.Route, method, path string, headers ...string) explain.Answer {
		GinkgoHelper()
		r.Name, r.Match = "root", ir.Match{Path: "/", PathKind: "prefix"}
		r.Forward = &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "books"}, Share: 1}}}
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*"}))
		route := must(snapshot.NewRoute(must(translate.Route(&r))))
		request, errs := explain.NewRequest(method, "http://h"+path, headers)
		Expect(errs).To(BeEmpty())
		request.Client = netip.MustParseAddr("192.0.2.7")
		return must(explain.Explain(state(must(snapshot.NewHost(vh, []*snapshot.Route{route}, snapshot.ObjectRef{}))), request))
	}
	const web, json = "envoy.filters.http.grpc_web", "envoy.filters.http.grpc_json_transcoder"

	DescribeTable("from gRPC-Web is recognized", func(kind, want string) {
		Expect(said(to(ir.Route{GRPCWeb: true}, "POST", "/", "Content-Type: "+kind), web)).To(Equal(want))
		Expect(said(to(ir.Route{}, "POST", "/", "Content-Type: "+kind), web)).To(BeEmpty())
	},
		Entry(nil, "application/grpc-web", "converts the request to gRPC, and the answer to gRPC-Web"),
		Entry(nil, "application/grpc-web-text+proto", "converts the request to gRPC, and the answer to gRPC-Web"),
		Entry(nil, "application/grpc", "leaves the request as it is: its Content-Type is not one of gRPC-Web"),
		Entry(nil, "application/grpc-web+json", "leaves the request as it is: its Content-Type is not one of gRPC-Web"),
	)

	books := ir.GRPCJSON{DescriptorSet: testkit.BooksSet(), Services: []string{"shop.Books"}, MaxRequestBytes: 1, MaxResponseBytes: 1}
	passing := books
	passing.PassUnknownPaths = true

	DescribeTable("from JSON is a call", func(g ir.GRPCJSON, path, goesTo, message string, headers ...string) {
		a := to(ir.Route{GRPCWeb: true, GRPCJSON: &g}, "GET", path, headers...)
		Expect(a.Code).To(Equal("no_cluster"), a.Message)
		Expect(a.Forward.Path).To(Equal(goesTo))
		Expect(said(a, json)).To(Equal(message))
	},
		Entry("for a path of a rule", books, "/shop/books/1?delay_ms=1", "/shop.Books/GetBook", "converts the request to the call /shop.Books/GetBook, and the answer to JSON"),
		Entry("not for gRPC", books, "/shop/books/1", "/shop/books/1", "leaves the request as it is: it is gRPC, or no http rule matches it", "Content-Type: application/grpc+proto"),
		Entry("not for gRPC-Web", books, "/shop/books/1", "/shop/books/1", "leaves the request as it is: it is gRPC, or no http rule matches it", "Content-Type: application/grpc-web"),
		Entry("not for another path that is passed on", passing, "/other?a=b", "/other?a=b", "leaves the request as it is: it is gRPC, or no http rule matches it"),
	)

	It("from JSON is a POST for the filters behind it", func() {
		a := to(ir.Route{GRPCJSON: &books}, "GET", "/shop/books/1")
		Expect(a.Request.Method).To(Equal("GET"))
		Expect(a.Request.Path).To(Equal("/shop/books/1"))
	})

	DescribeTable("from JSON is refused", func(g ir.GRPCJSON, path string, status int, body, message string) {
		a := to(ir.Route{GRPCJSON: &g}, "GET", path)
		Expect(a.Code).To(Equal("unknown_call"))
		Expect(a.Status).To(Equal(status))
		Expect(a.Body).To(Equal(body))
		Expect(a.Message).To(Equal("an http_filter_grpcjson converts the request to no call: " + message))
	},
		Entry("if no rule has the path", books, "/other", 404, "Could not resolve /other to a method.", "no http rule has GET /other"),
		Entry("if a parameter is not a field", books, "/shop/books/1?x=1", 400, "", "query parameter x is no field of shop.Query"),
		Entry("if a parameter is not a field and other paths are passed on", passing, "/shop/books/1?x=1", 400, "", "query parameter x is no field of shop.Query"),
	)
})
