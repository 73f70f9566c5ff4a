package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The bounds of a direct response", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterDirectResponse, config)).To(Equal(faults))
},
	Entry("with the last status before redirects", `{"status":299}`),
	Entry("with the first redirect", `{"status":300}`, ".status 300 redirects; use a filter of type route_filter_redirect"),
	Entry("with the last redirect", `{"status":399}`, ".status 399 redirects; use a filter of type route_filter_redirect"),
	Entry("with the first error", `{"status":400}`),
	Entry("with the last status", `{"status":599}`),
	Entry("with a status above it", `{"status":600}`, ".status must be between 200 and 599"),
	Entry("with an interim status", `{"status":199}`, ".status must be between 200 and 599"),
	Entry("without content", `{"status":204}`),
	Entry("with content that has none", `{"status":204,"body":"a"}`, ".body must be empty: an answer with status 204 has none"),
	Entry("with content after a reset", `{"status":205,"body":"a"}`, ".body must be empty: an answer with status 205 has none"),
	Entry("with a content type that is no media type", `{"content_type":"html"}`, `.content_type "html" is not a media type such as text/html; charset=utf-8`),
	Entry("with a content type that cannot be read", `{"content_type":"text/html; charset"}`, `.content_type "text/html; charset" is not a media type such as text/html; charset=utf-8`),
	Entry("with a content type that no header has", `{"content_type":"text/html "}`, `.content_type "text/html " is not a media type such as text/html; charset=utf-8`),
	Entry("with the maximum number of headers", `{"headers":`+headersOf(50)+`}`),
	Entry("with one header too many", `{"headers":`+headersOf(51)+`}`, ".headers sets 51 headers; at most 50 are allowed"),
	Entry("with a second header that is wrong", `{"headers":{"a":"b","te":"x"}}`, `.headers.te "te" belongs to the connection and cannot be changed`),
)
