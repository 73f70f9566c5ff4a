package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The configuration of a processor", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterExtProc, `{"upstream":"p",`+config+`}`)).To(Equal(faults))
},
	Entry("that gets only the headers of answers", `"request_headers":false,"response_headers":true`),
	Entry("that gets only the bodies of requests", `"request_headers":false,"request_body":"buffered"`),
	Entry("that gets only the bodies of answers", `"request_headers":false,"response_body":"streamed"`),
	Entry("that gets headers by default", `"on_error":"deny"`),
	Entry("that says so", `"request_headers":true`),
	Entry("that gets nothing", `"request_headers":false`, " sends nothing to the processor; set at least one of request_headers, response_headers, request_body and response_body"),
	Entry("with bodies of answers in another way", `"response_body":"all"`, `.response_body "all" is not one of none, buffered, streamed`),
	Entry("that sets a header of the gateway", `"upstream_headers":["x-user","x-envoy-a"]`, `.upstream_headers "x-envoy-a" is set by the gateway and cannot be changed`),
	Entry("that sets the maximum number of headers", `"upstream_headers":`+names("x", 50)),
	Entry("that sets one header too many", `"upstream_headers":`+names("x", 51), ".upstream_headers has 51 headers; at most 50 are allowed"),
)

var _ = It("A processor that may fail open causes a warning", func() {
	Expect(adviceOf(model.FilterExtProc, `{"upstream":"p"}`)).To(BeEmpty())
	Expect(adviceOf(model.FilterExtProc, `{"upstream":"p","on_error":"allow"}`)).To(Equal([]string{
		"has on_error allow: while upstream p is unavailable, too slow, or ends its call with an error, every request and answer passes unchanged",
	}))
})
