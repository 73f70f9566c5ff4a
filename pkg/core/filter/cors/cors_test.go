package cors_test

import (
	"net/http"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/cors"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestCORS(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "cors")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-cors shows the messages.
var _ = Describe("vh_filter_cors", func() {
	f := cors.Filter()
	request := func(method string, lines ...string) seam.Request {
		GinkgoHelper()
		policy := &cors.Policy{Origins: []string{"https://a.test"}, OriginRegexes: []string{`https://[a-z]+\.b\.test`}}
		r, err := filtertest.Request(f, nil, ir.Filters{"cors": policy}, method, lines...)
		Expect(err).NotTo(HaveOccurred())
		r.Route.Action = &routev3.Route_Route{Route: &routev3.RouteAction{}}
		return r
	}
	header := func(name, value string) string { return name + ": " + value }
	asks := header("Access-Control-Request-Method", "PUT")

	DescribeTable("answers a preflight, or lets it pass", func(origin, method string, lines ...string) {
		refusal, err := f.Refuse(request(method, lines...))
		Expect(err).NotTo(HaveOccurred())
		if origin == "" {
			Expect(refusal).To(BeNil())
			return
		}
		Expect(refusal).To(Equal(&seam.Refusal{
			Code: "preflight", Status: 200, Step: "answer",
			Message: "a vh_filter_cors answers the preflight: it allows requests from pages of " + origin,
		}))
	},
		Entry(nil, "https://a.test", "OPTIONS", asks, header("Origin", "https://a.test")),
		Entry("of a page that the expression matches", "https://x.b.test", "OPTIONS", asks,
			header("Origin", "https://x.b.test")),
		Entry("of another page", "", "OPTIONS", asks, header("Origin", "https://evil.test")),
		Entry("with two Origin headers", "", "OPTIONS", asks,
			header("Origin", "https://a.test"), header("Origin", "https://a.test")),
		Entry("with another method", "", "GET", asks, header("Origin", "https://a.test")),
		Entry("without a requested method", "", "OPTIONS", header("Origin", "https://a.test")),
		Entry("without an Origin", "", "OPTIONS", asks),
	)

	It("answers no preflight where the gateway itself answers", func() {
		r := request("OPTIONS", asks, header("Origin", "https://a.test"))
		r.Route.Action = nil
		Expect(f.Refuse(r)).To(BeNil())
		Expect(f.Describe(r)).To(Equal("does nothing where a route answers by itself: " +
			"the headers of the answer say which pages may read it"))
	})

	DescribeTable("reports whether a page may read the answer", func(says string, lines ...string) {
		Expect(f.Describe(request(http.MethodGet, lines...))).To(Equal(says))
	},
		Entry(nil, "allows pages of https://a.test to read the answer", header("Origin", "https://a.test")),
		Entry("of another page", "does not allow pages of https://evil.test to read the answer",
			header("Origin", "https://evil.test")),
		Entry("without an Origin", "does nothing: the request has no Origin, so no page of another origin sends it"),
	)

	Describe("before a route", func() {
		// filter is for the pages of an origin.
		filter := func(origin string) *model.CORSFilter {
			return &model.CORSFilter{Origins: []model.Origin{{Exact: origin}}}
		}
		add := func(r *ir.Route, origin string) {
			GinkgoHelper()
			Expect(f.Config.Route(r, filter(origin), seam.Place{})).To(Succeed())
		}
		finish := func(r *ir.Route, origin string) []*ir.Route {
			GinkgoHelper()
			Expect(f.Config.Finish(r, filter(origin), seam.Place{})).To(Succeed())
			return r.Before
		}
		origin := func(r *ir.Route) ir.ValueMatch {
			for _, h := range r.Match.Headers {
				if h.Name == "origin" {
					return h
				}
			}
			return ir.ValueMatch{}
		}
		allowed := ir.ValueMatch{Name: "origin", Regex: `https://a\.test`}
		other := ir.ValueMatch{Name: "origin", Regex: `https://a\.test`, Invert: true}

		It("lets pages read what the gateway answers, and then refuses preflights of other pages", func() {
			r := &ir.Route{Name: "root", Forward: &ir.Forward{}}
			add(r, "https://a.test")
			refused, split := *r, *r
			refused.Forward, refused.Respond = nil, &ir.Respond{Status: 413}
			r.Before = []*ir.Route{&refused, &split}
			before := finish(r, "https://a.test")
			Expect(before).To(HaveLen(4))
			Expect(before[0].Respond).To(Equal(refused.Respond))
			Expect(before[0].Filters).To(HaveKey("readBy"))
			Expect(origin(before[0])).To(Equal(allowed))
			Expect(before[1]).To(BeIdenticalTo(&refused))
			Expect(before[2].Respond).To(Equal(&ir.Respond{Status: 204}))
			Expect(origin(before[2])).To(Equal(other))
			Expect(before[3]).To(BeIdenticalTo(&split))
		})

		It("answers preflights itself, and lets pages read, if the route answers", func() {
			r := &ir.Route{Name: "root", Respond: &ir.Respond{Status: 200}}
			add(r, "*")
			before := finish(r, "*")
			Expect(before).To(HaveLen(2))
			Expect(before[0].Preflight).To(BeTrue())
			Expect(before[0].Match.Methods).To(Equal([]string{"OPTIONS"}))
			Expect(before[1].Respond).To(Equal(r.Respond))
			Expect(before[1].Filters).To(HaveKey("readBy"))
		})
	})
})
