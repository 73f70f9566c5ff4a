package explain_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("Rules about who may do what", func() {
	askFrom := func(from string, h ir.Host, r ir.Route, method, url string, headers ...string) explain.Answer {
		GinkgoHelper()
		h.Name, h.Domain = "shop", "*"
		r.Name, r.Match, r.Respond = "root", ir.Match{Path: "/", PathKind: "prefix"}, &ir.Respond{Status: 503}
		host := must(snapshot.NewHost(must(translate.VirtualHost(&h)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(&r))))}, snapshot.ObjectRef{}))
		request, errs := explain.NewRequest(method, "http://h"+url, headers)
		Expect(errs).To(BeEmpty())
		if from != "" {
			request.Client = netip.MustParseAddr(from)
		}
		return must(explain.Explain(state(host), request))
	}
	ask := func(h ir.Host, r ir.Route, method, url string, headers ...string) explain.Answer {
		GinkgoHelper()
		return askFrom("", h, r, method, url, headers...)
	}
	path := func(kind ir.PathKind, p string) []credential.AccessPath {
		return []credential.AccessPath{{Kind: kind, Path: p}}
	}
	everything := []credential.AccessRule{{}}

	DescribeTable("compare", func(a credential.Access, method, url string, passes bool) {
		got := ask(ir.Host{Filters: ir.Filters{"access": []*credential.Access{&a}}}, ir.Route{}, method, url)
		if passes {
			Expect(got.Code).To(Equal("direct_response"))
			return
		}
		Expect(got.Code).To(Equal("access_refused"))
		Expect(got.Status).To(Equal(403))
		Expect(got.Body).To(Equal("this is not allowed here\n"))
	},
		Entry("a method", credential.Access{Allow: []credential.AccessRule{{Methods: []string{"GET", "PUT"}}}}, "PUT", "/", true),
		Entry("another method", credential.Access{Allow: []credential.AccessRule{{Methods: []string{"GET", "PUT"}}}}, "POST", "/", false),
		Entry("a path", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/a?b", true),
		Entry("a path in another letter case", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/A", false),
		Entry("a path with an extra slash", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/a/", false),
		Entry("a segment", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathSegment, "/a")}}}, "GET", "/a/b", true),
		Entry("a path that only begins like the segment", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathSegment, "/a")}}}, "GET", "/ab", false),
		Entry("the segment that matches everything", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathSegment, "")}}}, "GET", "/ab", true),
		Entry("a segment with a parameter", credential.Access{Allow: []credential.AccessRule{{Paths: path(ir.PathSegment, "/a")}}}, "GET", "/a;b", false),
		Entry("a method and a path", credential.Access{Allow: []credential.AccessRule{{Methods: []string{"GET"}, Paths: path(ir.PathPrefix, "/a")}}}, "GET", "/b", false),
		Entry("a denied path", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/a", false),
		Entry("a denied path in another letter case", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/A", false),
		Entry("a denied path with an extra slash", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Paths: path(ir.PathExact, "/a")}}}, "GET", "/a/", false),
		Entry("a denied path with a parameter", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Paths: path(ir.PathSegment, "/a")}}}, "GET", "/a;b/c", false),
		Entry("a path next to a denied path", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Paths: path(ir.PathSegment, "/a")}}}, "GET", "/ab", true),
		Entry("a denied method elsewhere", credential.Access{Allow: everything, Deny: []credential.AccessRule{{Methods: []string{"GET"}, Paths: path(ir.PathPrefix, "/a")}}}, "GET", "/b", true),
	)

	DescribeTable("compare headers", func(denied bool, values []string, passes bool, headers ...string) {
		rules := []credential.AccessRule{{Headers: []credential.HeaderValues{{Name: "x-plan", Values: values}, {Name: "x-any"}}}}
		a := &credential.Access{Allow: rules}
		if denied {
			a = &credential.Access{Allow: everything, Deny: rules}
		}
		code := map[bool]string{true: "direct_response", false: "access_refused"}[passes]
		Expect(ask(ir.Host{Filters: ir.Filters{"access": []*credential.Access{a}}}, ir.Route{}, "GET", "/", append(headers, "X-Any: 1")...).Code).To(Equal(code))
		Expect(ask(ir.Host{Filters: ir.Filters{"access": []*credential.Access{a}}}, ir.Route{}, "GET", "/", headers...).Code).
			To(Equal(map[bool]string{true: "direct_response", false: "access_refused"}[denied]), "all headers of a rule must be there")
	},
		Entry("with the value", false, []string{"gold", "silver"}, true, "X-Plan: silver"),
		Entry("with another value", false, []string{"gold"}, false, "X-Plan: iron"),
		Entry("with a value in another letter case", false, []string{"gold"}, false, "X-Plan: Gold"),
		Entry("with several values", false, []string{"gold"}, false, "X-Plan: gold,iron"),
		Entry("that must only be there", false, nil, true, "X-Plan: iron"),
		Entry("that are missing", false, []string{"gold"}, false),
		Entry("that are denied", true, []string{"gold"}, false, "X-Plan: gold"),
		Entry("that are denied in another letter case", true, []string{"gold"}, false, "X-Plan: Gold"),
		Entry("that are denied among others", true, []string{"go.d"}, false, "X-Plan: iron , GO.D ,x"),
		Entry("that only look like denied ones", true, []string{"go.d"}, true, "X-Plan: gold"),
		Entry("that contain a denied one", true, []string{"gold"}, true, "X-Plan: marigold"),
	)

	DescribeTable("compare addresses", func(from string, passes bool) {
		ranges := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::7/128")}
		code := map[bool]string{true: "direct_response", false: "access_refused"}
		allowed := []*credential.Access{{Allow: []credential.AccessRule{{Addresses: ranges}}}}
		Expect(askFrom(from, ir.Host{Filters: ir.Filters{"access": allowed}}, ir.Route{}, "GET", "/").Code).To(Equal(code[passes]))
		denied := []*credential.Access{{Allow: everything, Deny: []credential.AccessRule{{Addresses: ranges}}}}
		Expect(askFrom(from, ir.Host{Filters: ir.Filters{"access": denied}}, ir.Route{}, "GET", "/").Code).To(Equal(code[!passes]))
	},
		Entry("in the first range", "192.0.2.9", true), Entry("in the second", "2001:db8::7", true), Entry("beside it", "192.0.3.9", false),
		Entry("in another form", "::ffff:192.0.2.9", true), Entry("in IPv6", "2001:db8::8", false),
	)

	It("apply to the claims of a token, and to nothing else in a request", func() {
		tokens := &credential.Tokens{Check: &credential.TokenCheck{Name: "filter/api/0", Header: "authorization", Prefix: "Bearer "}}
		rules := []*credential.Access{{Allow: []credential.AccessRule{{Claims: []credential.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin"}}}}}}}
		bearer := func(role string) string { return "Authorization: Bearer " + tokenSaying(map[string]any{"role": role}) }
		Expect(ask(ir.Host{Filters: ir.Filters{"tokens": tokens, "access": rules}}, ir.Route{}, "GET", "/", bearer("admin")).Code).To(Equal("direct_response"))
		Expect(ask(ir.Host{Filters: ir.Filters{"tokens": tokens, "access": rules}}, ir.Route{}, "GET", "/", bearer("user")).Code).To(Equal("access_refused"))
		Expect(ask(ir.Host{Filters: ir.Filters{"access": rules}}, ir.Route{}, "GET", "/", bearer("admin")).Code).To(Equal("access_refused"), "nobody verifies it")
		Expect(ask(ir.Host{Filters: ir.Filters{"tokens": tokens, "access": rules}}, ir.Route{Public: true}, "GET", "/", bearer("admin")).Code).To(Equal("access_refused"), "nor on a public route")
	})

	It("require all claims of a rule", func() {
		tokens := &credential.Tokens{Check: &credential.TokenCheck{Name: "filter/api/0", Header: "authorization", Prefix: "Bearer "}}
		both := []credential.AccessRule{{Claims: []credential.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin"}}, {Claim: []string{"team"}, Values: []string{"shop"}}}}}
		bearer := func(role, team string) string {
			return "Authorization: Bearer " + tokenSaying(map[string]any{"role": role, "team": team})
		}
		allowed := ir.Host{Filters: ir.Filters{"tokens": tokens, "access": []*credential.Access{{Allow: both}}}}
		denied := ir.Host{Filters: ir.Filters{"tokens": tokens, "access": []*credential.Access{{Allow: everything, Deny: both}}}}
		for _, c := range []struct {
			role, team string
			all        bool
		}{{"admin", "shop", true}, {"admin", "it", false}, {"user", "shop", false}} {
			passes := map[bool]string{true: "direct_response", false: "access_refused"}
			Expect(ask(allowed, ir.Route{}, "GET", "/", bearer(c.role, c.team)).Code).To(Equal(passes[c.all]), "%v", c)
			Expect(ask(denied, ir.Route{}, "GET", "/", bearer(c.role, c.team)).Code).To(Equal(passes[!c.all]), "%v", c)
		}
	})

	It("refuse a method override in a header if they depend on methods", func() {
		methods, paths := []*credential.Access{{Allow: []credential.AccessRule{{Methods: []string{"GET"}}}}}, []*credential.Access{{Allow: everything}}
		denied := []*credential.Access{{Allow: everything, Deny: []credential.AccessRule{{Methods: []string{"PUT"}}}}}
		for _, name := range []string{"X-HTTP-Method-Override", "X-Http-Method", "X-Method-Override"} {
			Expect(ask(ir.Host{Filters: ir.Filters{"access": methods}}, ir.Route{}, "GET", "/", name+": PUT").Code).To(Equal("access_refused"), name)
			Expect(ask(ir.Host{Filters: ir.Filters{"access": denied}}, ir.Route{}, "GET", "/", name+": PUT").Code).To(Equal("access_refused"), name)
			Expect(ask(ir.Host{Filters: ir.Filters{"access": paths}}, ir.Route{}, "GET", "/", name+": PUT").Code).To(Equal("direct_response"), name)
		}
	})

	It("must all hold, except on a redirect to HTTPS", func() {
		get, put := &credential.Access{Allow: []credential.AccessRule{{Methods: []string{"GET"}}}}, &credential.Access{Allow: []credential.AccessRule{{Methods: []string{"PUT"}}}}
		Expect(ask(ir.Host{}, ir.Route{Filters: ir.Filters{"access": []*credential.Access{get, put}}}, "GET", "/").Code).To(Equal("access_refused"))
		Expect(ask(ir.Host{Filters: ir.Filters{"access": []*credential.Access{put}}}, ir.Route{Unruled: true}, "GET", "/").Code).To(Equal("direct_response"))
	})
})
