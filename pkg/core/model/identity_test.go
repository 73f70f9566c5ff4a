package model_test

import (
	"errors"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The headers with which filters say who a client is", func() {
	claims := []model.ClaimHeader{{Claim: "sub", Header: "X-User"}, {Claim: "id", Header: "x-key"}, {Claim: "t", Header: "x-token"}}
	either := func(f *model.AnyOfFilter) model.Spec { return f }

	DescribeTable("are", func(specs []model.Spec, want ...string) {
		var filters []*model.ParsedFilter
		for _, spec := range specs {
			filters = append(filters, &model.ParsedFilter{Spec: spec})
		}
		Expect(model.IdentityHeaders(nil, filters)).To(HaveExactElements(want))
	},
		Entry("those of claims", []model.Spec{&model.JWTFilter{TokenIssuer: model.TokenIssuer{ClaimHeaders: claims}}}, "x-key", "x-token", "x-user"),
		Entry("those of a login", []model.Spec{&model.OIDCFilter{LoginOptions: model.LoginOptions{ClaimHeaders: map[string]string{"X-Mail": "email"}}}}, "x-mail"),
		Entry("that of a key", []model.Spec{&model.APIKeyFilter{Header: "x-key"}}, "x-client"),
		Entry("that of a password", []model.Spec{&model.BasicAuthFilter{}}, "x-client"),
		Entry("those of each issuer", []model.Spec{&model.JWTFilter{OtherIssuers: []model.TokenIssuer{{}, {ClaimHeaders: claims}}}}, "x-key", "x-token", "x-user"),
		Entry("those of each of several credentials", []model.Spec{either(&model.AnyOfFilter{JWT: &model.JWTFilter{TokenIssuer: model.TokenIssuer{ClaimHeaders: claims}}, APIKey: &model.APIKeyFilter{Header: "x-key"}})}, "x-client", "x-token", "x-user"),
		Entry("that of a password among several", []model.Spec{either(&model.AnyOfFilter{BasicAuth: &model.BasicAuthFilter{}})}, "x-client"),
		Entry("those of an authorization server, but not credentials", []model.Spec{&model.ExtAuthzFilter{UpstreamHeaders: []string{"X-User", "Authorization", "COOKIE"}}}, "x-user"),
		Entry("those of a processor and a script", []model.Spec{&model.ExtProcFilter{UpstreamHeaders: []string{"X-A"}}, &model.LuaFilter{UpstreamHeaders: []string{"x-b"}}}, "x-a", "x-b"),
		Entry("none from which another filter reads a key or a token", []model.Spec{
			&model.JWTFilter{TokenIssuer: model.TokenIssuer{ClaimHeaders: claims}}, &model.APIKeyFilter{Header: "x-key"}, &model.JWTFilter{From: &model.TokenSource{Header: "X-Token"}},
		}, "x-client", "x-user"),
		Entry("none that is one of several places of a key", []model.Spec{
			&model.JWTFilter{TokenIssuer: model.TokenIssuer{ClaimHeaders: claims}}, &model.APIKeyFilter{From: []model.KeySource{{Query: "a"}, {Header: "x-user"}}},
		}, "x-client", "x-key", "x-token"),
		Entry("none of others", []model.Spec{&model.HeadersFilter{}, nil}),
	)

	It("are none of a filter that cannot be read", func() {
		Expect(model.IdentityHeaders([]*model.ParsedFilter{{Spec: &model.LuaFilter{UpstreamHeaders: []string{":path"}}, Fault: errors.New("bad")}})).To(BeEmpty())
	})
})
