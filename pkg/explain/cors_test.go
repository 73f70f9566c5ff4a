package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// test/policies shows that Envoy does the same.
var _ = Describe("A request from a web page", func() {
	with := func(r *ir.Route, method string, lines ...string) explain.Answer {
		GinkgoHelper()
		r.Name, r.Match = "root", ir.Match{Path: "/", PathKind: "prefix"}
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*"}))
		request, errs := explain.NewRequest(method, "http://h/", lines)
		Expect(errs).To(BeEmpty())
		return must(explain.Explain(state(must(snapshot.NewHost(vh, []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(r))))}, snapshot.ObjectRef{}))), request))
	}
	blue := &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}}
	policy := &ir.CORS{Origins: []string{"https://a.test"}, OriginRegexes: []string{`https://[a-z]+\.b\.test`}}
	header := func(name, value string) string { return name + ": " + value }
	asks := header("Access-Control-Request-Method", "PUT")

	DescribeTable("is a preflight that is answered, or forwarded", func(origin, method string, lines ...string) {
		a := with(&ir.Route{Forward: blue, CORS: policy}, method, lines...)
		if origin == "" {
			Expect(a.Code).To(Equal(explain.NoCluster))
		} else {
			Expect(a.Code).To(Equal(explain.Preflight))
			Expect(a.Status).To(Equal(200))
			Expect(a.Message).To(Equal("a vh_filter_cors answers the preflight: it allows requests from pages of " + origin))
		}
	},
		Entry(nil, "https://a.test", "OPTIONS", asks, header("Origin", "https://a.test")),
		Entry("of a page that the expression matches", "https://x.b.test", "OPTIONS", asks, header("Origin", "https://x.b.test")),
		Entry("of another page", "", "OPTIONS", asks, header("Origin", "https://evil.test")),
		Entry("with two Origin headers", "", "OPTIONS", asks, header("Origin", "https://a.test"), header("Origin", "https://a.test")),
		Entry("with another method", "", "GET", asks, header("Origin", "https://a.test")),
		Entry("without a requested method", "", "OPTIONS", header("Origin", "https://a.test")),
		Entry("without an Origin", "", "OPTIONS", asks),
	)

	DescribeTable("may be read by the page, or not", func(r ir.Route, says string, lines ...string) {
		r.CORS = policy
		a := with(&r, "GET", lines...)
		Expect(a.Filters[0]).To(Equal(explain.Filter{Name: "envoy.filters.http.cors", Message: says}))
	},
		Entry(nil, ir.Route{Forward: blue}, "allows pages of https://a.test to read the answer", header("Origin", "https://a.test")),
		Entry("of another page", ir.Route{Forward: blue}, "does not allow pages of https://evil.test to read the answer", header("Origin", "https://evil.test")),
		Entry("without an Origin", ir.Route{Forward: blue}, "does nothing: the request has no Origin, so no page of another origin sends it"),
		Entry("answered by the route itself", ir.Route{Respond: &ir.Respond{Status: 503}}, "does nothing where a route answers by itself: the headers of the answer say which pages may read it", header("Origin", "https://a.test")),
	)

	DescribeTable("changes something, or is refused", func(passes bool, why, method string, lines ...string) {
		a := with(&ir.Route{Respond: &ir.Respond{Status: 503}, CSRF: &ir.CSRF{Hosts: []string{"a.test", "b.test:8443"}}}, method, lines...)
		if passes {
			Expect(a.Filters[0]).To(Equal(explain.Filter{Name: "envoy.filters.http.csrf", Message: "allows it: " + why}))
			return
		}
		Expect(a.Code).To(Equal("cross_site_refused"))
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("only pages of this host, and of those that it lists, may ask for changes here\n"))
		Expect(a.Message).To(Equal("an http_filter_csrf refuses it: " + why))
	},
		Entry(nil, true, "GET changes nothing", "GET", header("Origin", "https://evil.test")),
		Entry("from the host", true, "its Origin is of the host h itself", "POST", header("Origin", "http://h")),
		Entry("from the host, by Referer", true, "its Referer is of the host h itself", "PUT", header("Referer", "https://h/a?b")),
		Entry("from a listed host", true, "its Origin is of b.test:8443, which is listed", "PATCH", header("Origin", "https://b.test:8443")),
		Entry("from another port", false, "its Origin is of b.test, which is neither the host h nor listed", "DELETE", header("Origin", "https://b.test")),
		Entry("without an Origin", false, "neither Origin nor Referer names a host", "POST"),
		Entry("from a page without an origin", false, "neither Origin nor Referer names a host", "POST", header("Origin", "null"), header("Referer", "http://h/")),
		Entry("from a longer name", false, "its Origin is of a.test.evil.test, which is neither the host h nor listed", "POST", header("Origin", "https://a.test.evil.test")),
	)
})
