package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A filter that calls an authorization server", func() {
	parse := func(config string) *model.ParsedFilter {
		return (&model.Filter{Name: "f", Type: model.FilterExtAuthz, Config: model.JSON(config)}).Parse()
	}

	It("calls it over HTTP, for one second, and denies if it is unavailable", func() {
		f := parse(`{"upstream":"auth"}`)
		Expect(f.Fault).NotTo(HaveOccurred())
		Expect(f.Spec).To(Equal(&model.ExtAuthzFilter{Upstream: "auth", Protocol: "http", Timeout: 1_000_000_000, OnError: "deny"}))
		Expect(f.Names()).To(Equal([]model.Key{model.UpstreamKey("auth")}))
	})

	It("accepts no path for gRPC", func() {
		Expect(parse(`{"upstream":"auth","protocol":"grpc","path":"/a"}`).Fault).To(MatchError(ContainSubstring("requires protocol http")))
		Expect(parse(`{"upstream":"auth","protocol":"grpc","path_prefix":"/a"}`).Fault).To(MatchError(ContainSubstring("requires protocol http")))
	})

	It("warns about what is allowed unchecked, and what the server never receives", func() {
		f := parse(`{"upstream":"auth","on_error":"allow","upstream_headers":["authorization","x-user"]}`)
		Expect(f.Spec.(*model.ExtAuthzFilter).Advice()).To(Equal([]string{
			"has on_error allow: while upstream auth is unavailable, too slow, or answers with 5xx, every request is allowed without a check",
			"has authorization in upstream_headers: the gateway removes it from requests first, so the authorization server never sees the client's value",
		}))
	})
})

var _ = DescribeTable("The configuration of an authorization server", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterExtAuthz, `{"upstream":"auth",`+config+`}`)).To(Equal(faults))
},
	Entry("with the shortest timeout", `"timeout":"1ms"`),
	Entry("with no time", `"timeout":"0s"`, ".timeout 0s is not between 1ms and 1m"),
	Entry("with the longest timeout", `"timeout":"1m"`),
	Entry("with a longer timeout", `"timeout":"61s"`, ".timeout 1m1s is not between 1ms and 1m"),
	Entry("with the longest path", `"path":"/`+strings.Repeat("a", 1023)+`"`),
	Entry("with a longer path", `"path":"/`+strings.Repeat("a", 1024)+`"`, `.path "/`+strings.Repeat("a", 1024)+`" is not a path such as /check`),
	Entry("with a path that is not in ASCII", `"path":"/ä"`, `.path "/ä" is not a path such as /check`),
	Entry("with the maximum number of headers from it", `"upstream_headers":`+names("x", 50)),
	Entry("with one header from it too many", `"upstream_headers":`+names("x", 51), ".upstream_headers has 51 headers; at most 50 are allowed"),
	Entry("with the maximum number of headers for it", `"request_headers":`+names("x", 50)),
	Entry("with one header for it too many", `"request_headers":`+names("x", 51), ".request_headers has 51 headers; at most 50 are allowed"),
	Entry("with a header for it of 255 characters", `"request_headers":["`+strings.Repeat("x", 255)+`"]`),
	Entry("with a header for it of 256 characters", `"request_headers":["`+strings.Repeat("x", 256)+`"]`, ".request_headers has more than 255 characters"),
	Entry("with the path as a header for it", `"request_headers":[":path"]`, `.request_headers ":path" need not be named; the server always receives method, path and host`),
	Entry("with a header for it that is no token", `"request_headers":["x-a","x b"]`, `.request_headers "x b" is not an HTTP token`),
)

var _ = It("An authorization server warns about each header that it never receives, and about nothing else", func() {
	Expect(adviceOf(model.FilterExtAuthz, `{"upstream":"auth","upstream_headers":["x-user","Cookie"]}`)).To(Equal([]string{
		"has Cookie in upstream_headers: the gateway removes it from requests first, so the authorization server never sees the client's value",
	}))
})
