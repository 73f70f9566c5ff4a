package csrf_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/csrf"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestCSRF(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "csrf")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-csrf shows the messages.
var _ = Describe("http_filter_csrf", func() {
	add := func(r *ir.Route, origins ...string) {
		GinkgoHelper()
		Expect(csrf.Filter().Config.Route(r, &model.CSRFFilter{Origins: origins}, seam.Place{})).To(Succeed())
	}

	It("combines what a service and a route allow, and leaves copies of the route as they were", func() {
		var first ir.Route
		add(&first, "https://b.test:8443", "https://a.test")
		second := first
		add(&second, "https://c.test", "http://a.test")
		Expect(first.Filters).To(Equal(ir.Filters{"csrf": &csrf.Policy{Hosts: []string{"a.test", "b.test:8443"}}}))
		Expect(second.Filters).To(Equal(ir.Filters{"csrf": &csrf.Policy{Hosts: []string{"a.test"}}}))
	})

	DescribeTable("allows a request, or refuses it", func(passes bool, why, method string, lines ...string) {
		f := csrf.Filter()
		policy := ir.Filters{"csrf": &csrf.Policy{Hosts: []string{"a.test", "b.test:8443"}}}
		r, err := filtertest.Request(f, nil, policy, method, lines...)
		Expect(err).NotTo(HaveOccurred())
		refusal, err := f.Refuse(r)
		Expect(err).NotTo(HaveOccurred())
		if passes {
			Expect(refusal).To(BeNil())
			Expect(f.Describe(r)).To(Equal("allows it: " + why))
			return
		}
		Expect(refusal).To(Equal(&seam.Refusal{
			Code: "cross_site_refused", Message: "an http_filter_csrf refuses it: " + why,
			Details: "csrf_origin_mismatch", Status: 403, Body: "Invalid origin",
		}))
	},
		Entry(nil, true, "GET changes nothing", "GET", "Origin: https://evil.test"),
		Entry("from the host", true, "its Origin is of the host h itself", "POST", "Origin: http://h"),
		Entry("from the host, by Referer", true, "its Referer is of the host h itself", "PUT", "Referer: https://h/a?b"),
		Entry("from a listed host", true, "its Origin is of b.test:8443, which is listed",
			"PATCH", "Origin: https://b.test:8443"),
		Entry("from another port", false, "its Origin is of b.test, which is neither the host h nor listed",
			"DELETE", "Origin: https://b.test"),
		Entry("without an Origin", false, "neither Origin nor Referer names a host", "POST"),
		Entry("from a page without an origin", false, "neither Origin nor Referer names a host",
			"POST", "Origin: null", "Referer: http://h/"),
		Entry("from a longer name", false, "its Origin is of a.test.evil.test, which is neither the host h nor listed",
			"POST", "Origin: https://a.test.evil.test"),
	)
})
