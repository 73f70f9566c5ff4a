package explain_test

import (
	"net/netip"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
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

	DescribeTable("includes a limit of bodies", func(limit ir.BodyLimit, refused bool, headers ...string) {
		a := to(ir.Host{}, ir.Route{BodyLimit: &limit}, "/", headers...)
		Expect(said(a, "envoy.filters.http.buffer")).To(Equal("answers 413 to a body of more than 10 bytes, and holds other bodies until they are complete"))
		if !refused {
			Expect(a.Code).To(Equal("direct_response"))
			return
		}
		Expect(a.Code).To(Equal("body_too_large"))
		Expect(a.Status).To(Equal(413))
		Expect(a.Body).To(Equal("the body of the request is larger than is allowed here\n"))
		Expect(a.Message).To(Equal("the body has 11 bytes, and a route_filter_bodylimit allows 10"))
	},
		Entry("that is not exceeded", ir.BodyLimit{Bytes: 10}, false, "Content-Length: 10"),
		Entry("that is exceeded", ir.BodyLimit{Bytes: 10}, true, "Content-Length: 11"),
		Entry("with a body of unknown length", ir.BodyLimit{Bytes: 10}, false, "Transfer-Encoding: chunked"),
		Entry("with a compressed body", ir.BodyLimit{Bytes: 10}, true, "Content-Length: 11", "Content-Encoding: gzip"),
		Entry("with a body that is decompressed", ir.BodyLimit{Bytes: 10, Decompress: true}, false, "Content-Length: 11", "Content-Encoding: GZIP, br"),
		Entry("with a body that is not decompressed", ir.BodyLimit{Bytes: 10, Decompress: true}, true, "Content-Length: 11", "Content-Encoding: br, gzip"),
	)

	DescribeTable("includes a fault", func(fault ir.Fault, code, says string, headers ...string) {
		a := to(ir.Host{Fault: &ir.Fault{Abort: 500, Millionths: 1_000_000}}, ir.Route{Fault: &fault}, "/", headers...)
		Expect(a.Code).To(Equal(code))
		Expect(said(a, "envoy.filters.http.fault")).To(Equal(says))
		if code == "fault" {
			Expect(a.Status).To(Equal(503))
			Expect(a.Body).To(Equal("this request was failed on purpose, as a test\n"))
		}
	},
		Entry("for some requests", ir.Fault{Abort: 503, Delay: 1500 * time.Millisecond, Millionths: 500}, "direct_response",
			"for tests, delays the request by 1.5s with a chance of 0.05%, and fails it with 503 with a chance of 0.05%"),
		Entry("for all requests", ir.Fault{Abort: 503, Millionths: 1_000_000}, "fault", "for tests, fails it with 503 with a chance of 100%"),
		Entry("for requests with a header, which is missing", ir.Fault{Abort: 503, Millionths: 1_000_000, Header: "x-chaos"}, "direct_response", "does nothing to the request: it has no header x-chaos"),
		Entry("for requests with a header, which is present", ir.Fault{Abort: 503, Millionths: 1_000_000, Header: "x-chaos"}, "fault", "for tests, fails it with 503 with a chance of 100%", "X-Chaos: 1"),
		Entry("that only delays", ir.Fault{Delay: time.Second, Millionths: 1_000_000}, "direct_response", "for tests, delays the request by 1s with a chance of 100%"),
	)

	It("includes compression that the client selects", func() {
		c := &ir.Compress{Algorithms: []string{"gzip"}}
		a := to(ir.Host{Compress: c}, ir.Route{}, "/", "Accept-Encoding: gzip")
		Expect(said(a, "envoy.filters.http.compressor/gzip")).To(Equal("compresses the answer with gzip, if the client prefers it and the answer is a text of at least 1024 bytes"))
		Expect(said(a, "envoy.filters.http.compressor/br")).To(BeEmpty())
		Expect(said(to(ir.Host{Compress: c}, ir.Route{}, "/"), "envoy.filters.http.compressor/gzip")).To(Equal("leaves the answer as it is: the request has no Accept-Encoding"))
	})

	DescribeTable("includes maintenance: its service is closed", func(except, path string, status int, why string, headers ...string) {
		a := to(ir.Host{Maintenance: &ir.Maintenance{Status: 410, Body: "gone\n", ContentType: "text/plain", Except: []netip.Prefix{netip.MustParsePrefix(except)}}}, ir.Route{}, path, headers...)
		if status == 200 {
			Expect(a.Code).To(Equal("direct_response"))
			Expect(said(a, "envoy.filters.http.rbac/maintenance")).To(Equal("is closed for others, and allows this request: " + why))
			return
		}
		Expect(a.Code).To(Equal("maintenance"))
		Expect(a.Message).To(Equal("service shop is closed by a vh_filter_maintenance, from which neither the address 192.0.2.7 nor the path is exempt"))
		Expect(a.Body).To(Equal(why))
		Expect(a.Status).To(Equal(status))
	},
		Entry(nil, "192.0.2.0/30", "/", 410, "gone\n"),
		Entry("except for an address", "192.0.2.0/29", "/", 200, "the address 192.0.2.7 is in 192.0.2.0/29"),
		Entry("except for a challenge", "10.0.0.0/8", "/.well-known/acme-challenge/a-_9?a=b", 200, "the path /.well-known/acme-challenge/a-_9 stays open"),
		Entry("even for a path that only looks like a challenge", "10.0.0.0/8", "/.well-known/a/b.c", 410, "gone\n"),
		Entry("even for a path that leaves the directory", "10.0.0.0/8", "/.well-known/a/../../b", 410, "gone\n"),
		Entry("even for a name with an encoded slash", "10.0.0.0/8", "/.well-known/a%3b", 410, "gone\n"),
	)
})
