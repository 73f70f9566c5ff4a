package translate_test

import (
	"slices"
	"strings"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("Refusals", func() {
	// matches is what Envoy does with the few kinds of filters here. Each expression is true.
	var matches func(f *accesslogv3.AccessLogFilter, status uint32, headers map[string]string) bool
	matches = func(f *accesslogv3.AccessLogFilter, status uint32, headers map[string]string) bool {
		one := func(f *accesslogv3.AccessLogFilter) bool { return matches(f, status, headers) }
		none := func(f *accesslogv3.AccessLogFilter) bool { return !one(f) }
		h := f.GetHeaderFilter().GetHeader()
		value, there := headers[h.GetName()]
		text := h.GetStringMatch()
		switch {
		case f.GetAndFilter() != nil:
			return !slices.ContainsFunc(f.GetAndFilter().GetFilters(), none)
		case f.GetOrFilter() != nil:
			return slices.ContainsFunc(f.GetOrFilter().GetFilters(), one)
		case f.GetStatusCodeFilter() != nil:
			return status <= f.GetStatusCodeFilter().GetComparison().GetValue().GetDefaultValue()
		case h == nil:
			return true
		case !there && !h.GetTreatMissingHeaderAsEmpty():
			return false
		case text.GetExact() != "":
			return value == text.GetExact()
		case text.GetPrefix() != "":
			return strings.HasPrefix(value, text.GetPrefix())
		case text.GetContains() != "":
			return strings.Contains(value, text.GetContains()) != h.GetInvertMatch()
		}
		return false
	}
	// chosen is the first mapper that matches.
	chosen := func(list []*hcmv3.ResponseMapper, status uint32, headers map[string]string) *hcmv3.ResponseMapper {
		GinkgoHelper()
		at := slices.IndexFunc(list, func(m *hcmv3.ResponseMapper) bool { return matches(m.GetFilter(), status, headers) })
		Expect(at).To(BeNumerically(">=", 0))
		return list[at]
	}
	mappers := func() []*hcmv3.ResponseMapper {
		m, err := seam.Reply(0, "true", 403, "don't <ask>\n")
		Expect(err).NotTo(HaveOccurred())
		m.HeadersToAdd = append(m.HeadersToAdd, seam.SetHeader("retry-after", "1"))
		own, err := seam.Reply(0, "true", 0, "own\n")
		Expect(err).NotTo(HaveOccurred())
		own.Filter = seam.StatusAtMost(0)
		return translate.Negotiated([]*hcmv3.ResponseMapper{m}, own, translate.PageOf(ir.Listener{}))
	}

	DescribeTable("have the form that the client accepts", func(accept, contentType, form string) {
		headers := map[string]string{"accept": accept, "content-type": contentType}
		if accept == "" {
			delete(headers, "accept")
		}
		m := chosen(mappers(), 403, headers)
		Expect(m.GetStatusCode().GetValue()).To(BeEquivalentTo(403))
		Expect(m.GetHeadersToAdd()[0].GetHeader().GetKey()).To(Equal("retry-after"))
		Expect(m.GetBodyFormatOverride().GetContentType()).To(Equal(form))
	},
		Entry("of a browser", "text/html,*/*;q=0.8", "", "text/html; charset=utf-8"),
		Entry("of axios", "application/json, text/plain, */*", "", "application/problem+json"),
		Entry("of a client for problems", "application/problem+json", "", "application/problem+json"),
		Entry("of curl", "*/*", "", ""),
		Entry("of a client that says nothing", "", "", ""),
		Entry("of another JSON", "application/geo+json", "", ""),
		Entry("of gRPC", "", "application/grpc", ""),
		Entry("of gRPC that accepts pages", "text/html", "application/grpc+proto", ""),
		Entry("of gRPC-Web that accepts JSON", "application/json", "application/grpc-web", ""),
		Entry("of a form that a browser sends", "text/html", "application/x-www-form-urlencoded", "text/html; charset=utf-8"),
	)

	It("escape their text in a page, and show a request ID only without markup", func() {
		m := chosen(mappers(), 403, map[string]string{"accept": "text/html"})
		Expect(m.GetBody().GetInlineString()).To(Equal("don&#39;t &lt;ask&gt;"))
		Expect(m.GetBodyFormatOverride().GetTextFormatSource().GetInlineString()).To(Equal(
			"%METADATA(LISTENER:gatehouse:page:0)%%RESPONSE_CODE%%METADATA(LISTENER:gatehouse:page:1)%%RESPONSE_CODE%" +
				"%METADATA(LISTENER:gatehouse:page:2)%%LOCAL_REPLY_BODY%%METADATA(LISTENER:gatehouse:page:3)%" +
				"%CEL(request.headers['x-request-id'].matches('^[0-9A-Za-z._:/+=-]+$') ? request.headers['x-request-id'] : 'none')%" +
				"%METADATA(LISTENER:gatehouse:page:4)%"))
	})

	It("leave the text to Envoy in JSON", func() {
		m := chosen(mappers(), 403, map[string]string{"accept": "application/json"})
		Expect(m.GetBody().GetInlineString()).To(Equal("don't <ask>"))
		Expect(m.GetBodyFormatOverride().GetJsonFormat().AsMap()).To(Equal(map[string]any{
			"title": "%LOCAL_REPLY_BODY%", "status": "%RESPONSE_CODE%", "request_id": "%REQ(X-REQUEST-ID):64%",
		}))
	})

	It("do not change other responses", func() {
		m := chosen(mappers(), 307, map[string]string{"accept": "text/html"})
		Expect(m.GetBody()).To(BeNil())
		Expect(m.GetBodyFormatOverride()).To(BeNil())
	})
})
