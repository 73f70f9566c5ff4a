package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
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
