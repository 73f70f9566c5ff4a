package errorpage_test

import (
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/errorpage"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestErrorPage(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "errorpage")
}

func pages(list ...model.ErrorPage) ir.Filters {
	GinkgoHelper()
	var r ir.Route
	Expect(errorpage.Filter().Config.Route(&r, &model.ErrorPageFilter{Pages: list}, seam.Place{})).To(Succeed())
	return r.Filters
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-errorpage shows the messages.
var _ = DescribeTable("route_filter_errorpage says what it does",
	func(method, accept string, status int, want seam.Replacement) {
		all := pages(
			model.ErrorPage{Statuses: []string{"404"}, HTML: "<p>{status}", JSON: `{"s":{status}}`},
			model.ErrorPage{Statuses: []string{"500-599"}, Text: "busy {status}", JSON: "{status}", Status: 503},
		)
		r, err := filtertest.Request(errorpage.Filter(), all, nil, method, "Accept: "+accept)
		Expect(err).NotTo(HaveOccurred())
		Expect(errorpage.Filter().Replace(r, status)).To(Equal(want))
		Expect(errorpage.Filter().Describe(r)).To(Equal("replaces the answer if its status is 404, 500-599"))
	},
	Entry("a form that is asked for", "GET", "application/json", 404,
		seam.Replacement{Status: 404, Body: `{"s":404}`, Message: "replaces the answer 404: the client gets 404 with a page (json)"}),
	Entry("JSON of problems", "GET", "application/problem+json", 404,
		seam.Replacement{Status: 404, Body: `{"s":404}`, Message: "replaces the answer 404: the client gets 404 with a page (json)"}),
	Entry("a form that is not there", "GET", "*/*", 404,
		seam.Replacement{Status: 404, Body: "<p>404", Message: "replaces the answer 404: the client gets 404 with a page (html)"}),
	Entry("a browser where there is no HTML", "GET", "text/html, application/json", 500,
		seam.Replacement{Status: 503, Body: "busy 503", Message: "replaces the answer 500: the client gets 503 with a page (text)"}),
	Entry("a HEAD", "HEAD", "*/*", 599,
		seam.Replacement{Status: 503, Message: "replaces the answer 599: the client gets 503 with a page (text)"}),
	Entry("a status without a page", "GET", "*/*", 403, seam.Replacement{}),
)

var _ = It("A route's pages replace its service's", func() {
	host, route := pages(model.ErrorPage{Statuses: []string{"404"}, Text: "a"}), pages(model.ErrorPage{Statuses: []string{"500"}, Text: "b"})
	r, err := filtertest.Request(errorpage.Filter(), host, route, "GET")
	Expect(err).NotTo(HaveOccurred())
	Expect(errorpage.Filter().Describe(r)).To(Equal("replaces the answer if its status is 500"))
	Expect(errorpage.Filter().Replace(r, 404)).To(Equal(seam.Replacement{}))
})
