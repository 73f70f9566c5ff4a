package explain_test

import (
	"encoding/base64"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// test/policies shows that Envoy does the same.
var _ = Describe("The filter that requires one of several credentials", func() {
	const empty = "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="
	keys, users := &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}, &credential.BasicAuth{Users: []credential.User{{Name: "ann", Hash: empty}}}
	tokens := &credential.Tokens{
		Check:   &credential.TokenCheck{Name: "filter/either/0", Issuer: "https://us.test", Header: "x-token", Optional: true},
		Require: []credential.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin"}}, {Claim: []string{"team"}, Values: []string{"shop"}}},
	}
	with := func(anyOf *credential.AnyOf, headers ...string) explain.Answer {
		GinkgoHelper()
		route := &ir.Route{Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503}}
		h := &ir.Host{Name: "shop", Domain: "*", Routes: []*ir.Route{route}, Filters: ir.Filters{"anyOf": anyOf}}
		have := state(must(snapshot.NewHost(must(translate.VirtualHost(h)), []*snapshot.Route{must(snapshot.NewRoute(must(translate.Route(route))))}, snapshot.ObjectRef{})))
		for _, e := range must(translate.ListenerResources(ir.Listener{AnyKeys: []ir.APIKey{{Client: "a/x", Hash: empty}, {Client: "b/x", Hash: empty}}})).Extensions {
			have.Extensions = append(have.Extensions, must(snapshot.NewExtension(e)))
		}
		return ask(have, "http://h/", headers...)
	}
	coded := func(before, text string) string { return before + base64.StdEncoding.EncodeToString([]byte(text)) }
	key := func(text string) string { return coded("X-Api-Key: ", text) }
	basic := func(text string) string { return coded("Authorization: Basic ", text) }
	token := func(role, team string) string {
		return "X-Token: " + tokenSaying(map[string]any{"role": role, "team": team})
	}

	DescribeTable("accepts each, and refuses what is wrong", func(code string, status int, body string, headers ...string) {
		a := with(&credential.AnyOf{Keys: keys, BasicAuth: users, Tokens: tokens}, headers...)
		Expect([]any{a.Code, a.Status, a.Body}).To(Equal([]any{code, status, body}))
	},
		Entry("a key", "direct_response", 503, "", key("a/x:")),
		Entry("a password", "direct_response", 503, "", basic("ann:")),
		Entry("a token", "direct_response", 503, "", token("admin", "shop")),
		Entry("nothing", "no_credential", 401, "a credential that is accepted here is required\n"),
		Entry("a key that nobody knows", "key_required", 401, "a valid API key is required\n", key("a/y:")),
		Entry("a key that nobody knows, beside a password", "key_required", 401, "a valid API key is required\n", key("a/y:"), basic("ann:")),
		Entry("a key of another set", "no_credential", 401, "a credential that is accepted here is required\n", key("b/x:")),
		Entry("a wrong password", "password_required", 401, "a valid user name and password are required\n", basic("ann:b")),
		Entry("a wrong password, beside a token", "password_required", 401, "a valid user name and password are required\n", basic("ann:b"), token("admin", "shop")),
		Entry("credentials of another scheme", "no_credential", 401, "a credential that is accepted here is required\n", "Authorization: Digest a"),
		Entry("a token without the first claim", "no_credential", 401, "a credential that is accepted here is required\n", token("user", "shop")),
		Entry("a token without the second claim", "no_credential", 401, "a credential that is accepted here is required\n", token("admin", "it")),
	)

	It("accepts a token with what its issuer's must have, of several", func() {
		several := &credential.Tokens{
			Check: &credential.TokenCheck{Name: "filter/either/0", Issuer: "us", Header: "x-token", Optional: true}, Scopes: []string{"read"},
			Others: []*credential.Tokens{{Check: &credential.TokenCheck{Name: "filter/either/0/1", Issuer: "them", Header: "x-token", Optional: true}, Require: []credential.ClaimMatch{{Claim: []string{"role"}, Values: []string{"admin"}}}}},
		}
		code := func(claims map[string]any) string {
			return with(&credential.AnyOf{BasicAuth: users, Tokens: several}, "X-Token: "+tokenSaying(claims)).Code
		}
		Expect(code(map[string]any{"iss": "us", "scope": "read"})).To(Equal("direct_response"))
		Expect(code(map[string]any{"iss": "us", "role": "admin"})).To(Equal("no_credential"))
		Expect(code(map[string]any{"iss": "them", "role": "admin"})).To(Equal("direct_response"))
		Expect(code(map[string]any{"iss": "them", "scope": "read"})).To(Equal("no_credential"))
	})

	It("ignores credentials that it does not list", func() {
		Expect(with(&credential.AnyOf{BasicAuth: users, Tokens: tokens}, key("a/x:")).Code).To(Equal("no_credential"))
		Expect(with(&credential.AnyOf{Keys: keys, Tokens: tokens}, basic("ann:")).Code).To(Equal("no_credential"))
		Expect(with(&credential.AnyOf{Keys: keys, BasicAuth: users}, token("admin", "shop")).Code).To(Equal("no_credential"))
	})

	It("says what it finds", func() {
		a := with(&credential.AnyOf{Keys: keys, BasicAuth: users}, key("a/x:"))
		Expect(said(a, "envoy.filters.http.basic_auth/any_key")).To(Equal("takes the API key as that of a/x"))
		Expect(said(a, "envoy.filters.http.basic_auth/any")).To(Equal("finds no user with that password, and requires none"))
		Expect(said(a, "envoy.filters.http.rbac/any")).To(Equal("allows requests whose client one of the filters before it has identified"))
		a = with(&credential.AnyOf{Keys: keys, BasicAuth: users}, basic("ann:"))
		Expect(said(a, "envoy.filters.http.basic_auth/any_key")).To(Equal("finds no known API key, and requires none"))
		Expect(said(a, "envoy.filters.http.basic_auth/any")).To(Equal("takes the request as one of ann"))
	})
})
