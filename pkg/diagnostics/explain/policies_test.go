package explain_test

import (
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/compress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/fault"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("An explanation of what shapes traffic", func() {
	// to explains a request to a host and a route that answers 200 itself.
	to := func(h ir.Host, r ir.Route, path string, headers ...string) explain.Answer {
		GinkgoHelper()
		h.Name, h.Domain = "shop", "*"
		r.Name, r.Match, r.Respond = "root", ir.Match{Path: "/", PathKind: "prefix"}, &ir.Respond{Status: 200}
		vh := must(translate.VirtualHost(&h))
		route := must(snapshot.NewRoute(must(translate.Route(&r))))
		request, errs := explain.NewRequest("POST", "http://h"+path, headers)
		Expect(errs).To(BeEmpty())
		request.Client = netip.MustParseAddr("192.0.2.7")
		return must(explain.Explain(state(must(snapshot.NewHost(vh, []*snapshot.Route{route}, snapshot.ObjectRef{}))), request))
	}

	DescribeTable("includes a fault", func(does fault.Fault, code, says string, headers ...string) {
		a := to(ir.Host{Filters: ir.Filters{"fault": &fault.Fault{Abort: 500, Millionths: 1_000_000}}}, ir.Route{Filters: ir.Filters{"fault": &does}}, "/", headers...)
		Expect(a.Code).To(Equal(code))
		Expect(said(a, "envoy.filters.http.fault")).To(Equal(says))
		if code == "fault" {
			Expect(a.Status).To(Equal(503))
			Expect(a.Body).To(Equal("this request was failed on purpose, as a test\n"))
		}
	},
		Entry("for some requests", fault.Fault{Abort: 503, Delay: 1500 * time.Millisecond, Millionths: 500}, "direct_response",
			"for tests, delays the request by 1.5s with a chance of 0.05%, and fails it with 503 with a chance of 0.05%"),
		Entry("for all requests", fault.Fault{Abort: 503, Millionths: 1_000_000}, "fault", "for tests, fails it with 503 with a chance of 100%"),
		Entry("for requests with a header, which is missing", fault.Fault{Abort: 503, Millionths: 1_000_000, Header: "x-chaos"}, "direct_response", "does nothing to the request: it has no header x-chaos"),
		Entry("for requests with a header, which is present", fault.Fault{Abort: 503, Millionths: 1_000_000, Header: "x-chaos"}, "fault", "for tests, fails it with 503 with a chance of 100%", "X-Chaos: 1"),
		Entry("that only delays", fault.Fault{Delay: time.Second, Millionths: 1_000_000}, "direct_response", "for tests, delays the request by 1s with a chance of 100%"),
	)

	It("includes compression that the client selects", func() {
		c := &compress.Compression{Algorithms: []string{"gzip"}}
		a := to(ir.Host{Filters: ir.Filters{"compress": c}}, ir.Route{}, "/", "Accept-Encoding: gzip")
		Expect(said(a, "envoy.filters.http.compressor/gzip")).To(Equal("compresses the answer with gzip, if the client prefers it and the answer is a text of at least 1024 bytes"))
		Expect(said(a, "envoy.filters.http.compressor/br")).To(BeEmpty())
		Expect(said(to(ir.Host{Filters: ir.Filters{"compress": c}}, ir.Route{}, "/"), "envoy.filters.http.compressor/gzip")).To(Equal("leaves the answer as it is: the request has no Accept-Encoding"))
	})
})
