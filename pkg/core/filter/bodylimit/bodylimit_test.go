package bodylimit_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/bodylimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

func TestBodyLimit(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "bodylimit")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-bodylimit shows the messages.
var _ = Describe("A limit of bodies", func() {
	DescribeTable("refuses a body by its length", func(limit bodylimit.Limit, refused bool, lines ...string) {
		f := bodylimit.Filter()
		r, err := filtertest.Request(f, nil, ir.Filters{"bodyLimit": &limit}, http.MethodPost, lines...)
		Expect(err).NotTo(HaveOccurred())
		if limit.Decompress {
			unpacking, err := filtertest.Request(bodylimit.Decompressor(), nil, ir.Filters{"bodyLimit": &limit}, http.MethodPost)
			Expect(err).NotTo(HaveOccurred())
			for name, config := range unpacking.Route.GetTypedPerFilterConfig() {
				r.Route.TypedPerFilterConfig[name] = config
			}
		}
		Expect(f.Describe(r)).To(Equal("answers 413 to a body of more than 10 bytes, " +
			"and holds other bodies until they are complete"))
		refusal, err := f.Refuse(r)
		Expect(err).NotTo(HaveOccurred())
		if !refused {
			Expect(refusal).To(BeNil())
			return
		}
		Expect(refusal).To(Equal(&seam.Refusal{
			Code: "body_too_large", Message: "the body has 11 bytes, and a route_filter_bodylimit allows 10",
			Details: "request_payload_too_large", Status: 413, Body: "Payload Too Large",
		}))
	},
		Entry("that is not exceeded", bodylimit.Limit{Bytes: 10}, false, "Content-Length: 10"),
		Entry("that is exceeded", bodylimit.Limit{Bytes: 10}, true, "Content-Length: 11"),
		Entry("with a body of unknown length", bodylimit.Limit{Bytes: 10}, false, "Transfer-Encoding: chunked"),
		Entry("with a compressed body", bodylimit.Limit{Bytes: 10}, true, "Content-Length: 11", "Content-Encoding: gzip"),
		Entry("with a body that is decompressed", bodylimit.Limit{Bytes: 10, Decompress: true}, false,
			"Content-Length: 11", "Content-Encoding: GZIP, br"),
		Entry("with a body that is not decompressed", bodylimit.Limit{Bytes: 10, Decompress: true}, true,
			"Content-Length: 11", "Content-Encoding: br, gzip"),
	)

	It("reports whether the body is decompressed", func() {
		says := func(lines ...string) string {
			GinkgoHelper()
			f := bodylimit.Decompressor()
			limit := ir.Filters{"bodyLimit": &bodylimit.Limit{Bytes: 10, Decompress: true}}
			r, err := filtertest.Request(f, nil, limit, http.MethodPost, lines...)
			Expect(err).NotTo(HaveOccurred())
			text, err := f.Describe(r)
			Expect(err).NotTo(HaveOccurred())
			return text
		}
		Expect(says("Content-Encoding: gzip")).To(Equal("decompresses the body from gzip, before the limit counts its bytes"))
		Expect(says()).To(Equal("leaves the body as it is: it has no Content-Encoding that begins with gzip"))
	})
})
