package explain_test

import (
	"encoding/base64"
	"encoding/json"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// tokenSaying is an unsigned token.
func tokenSaying(claims map[string]any) string {
	GinkgoHelper()
	text, err := json.Marshal(claims)
	Expect(err).NotTo(HaveOccurred())
	return "e30." + base64.RawURLEncoding.EncodeToString(text) + ".c2ln"
}

var _ = Describe("The check of tokens", func() {
	ask := func(ofHost, ofRoute *credential.Tokens, public bool, url string, headers ...string) explain.Answer {
		GinkgoHelper()
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*", Filters: ir.Filters{"tokens": ofHost}}))
		r := must(snapshot.NewRoute(must(translate.Route(&ir.Route{
			Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503}, Public: public,
			Filters: ir.Filters{"tokens": ofRoute},
		}))))
		request, errs := explain.NewRequest("", "http://h"+url, headers)
		Expect(errs).To(BeEmpty())
		return must(explain.Explain(state(must(snapshot.NewHost(vh, []*snapshot.Route{r}, snapshot.ObjectRef{}))), request))
	}
	in := func(c credential.TokenCheck, require ...credential.ClaimMatch) *credential.Tokens {
		c.Name = "filter/api/0"
		return &credential.Tokens{Check: &c, Require: require}
	}
	bearer := in(credential.TokenCheck{Header: "authorization", Prefix: "Bearer "}, credential.ClaimMatch{Claim: []string{"realm", "roles"}, Values: []string{"staff", "admins"}})
	roles := func(value any) string { return tokenSaying(map[string]any{"realm": map[string]any{"roles": value}}) }

	DescribeTable("compares claims", func(value any, code string) {
		Expect(ask(bearer, nil, false, "/", "Authorization: Bearer "+roles(value)).Code).To(Equal(code))
	},
		Entry("a text", "staff", "direct_response"),
		Entry("a list", []string{"users", "admins"}, "direct_response"),
		Entry("another text", "staff2", "claim_refused"),
		Entry("another list", []string{"users"}, "claim_refused"),
		Entry("an object", map[string]any{"staff": "staff"}, "claim_refused"),
		Entry("nothing", nil, "claim_refused"),
	)

	DescribeTable("looks for the token in the configured place, and nowhere else", func(place *credential.Tokens, url string, headers []string, code string) {
		Expect(ask(nil, place, false, url, headers...).Code).To(Equal(code))
	},
		Entry("a cookie", in(credential.TokenCheck{Cookie: "session"}), "/", []string{"Cookie: a=b; session=" + roles("x")}, "direct_response"),
		Entry("no cookie", in(credential.TokenCheck{Cookie: "session"}), "/?session="+roles("x"), []string{"session: " + roles("x")}, "token_refused"),
		Entry("the query", in(credential.TokenCheck{Query: "token"}), "/?a=b&token="+roles("x"), nil, "direct_response"),
		Entry("no query parameter", in(credential.TokenCheck{Query: "token"}), "/?a=b", []string{"Authorization: Bearer " + roles("x")}, "token_refused"),
		Entry("a header", in(credential.TokenCheck{Header: "x-token"}), "/", []string{"X-Token: " + roles("x")}, "direct_response"),
		Entry("something that is not a token", in(credential.TokenCheck{Header: "x-token"}), "/", []string{"X-Token: a.b.c"}, "token_refused"),
		Entry("another prefix", bearer, "/", []string{"Authorization: Basic " + roles("staff")}, "token_refused"),
	)

	It("reports what the client receives", func() {
		a := ask(bearer, nil, false, "/")
		Expect(a.Status).To(Equal(401))
		Expect(a.Body).To(Equal("Jwt is missing\n"))
		Expect(a.Message).To(Equal("filter api requires a token in header authorization, and the request has none there"))
		a = ask(bearer, nil, false, "/", "Authorization: Bearer "+roles("x"))
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("the token does not have the claims that are required here\n"))
		Expect(a.Message).To(Equal("filter api requires of the token: realm.roles is, or has, staff or admins. The token of the request does not have it"))
	})

	It("compares what the tokens of its issuer must have, of several", func() {
		several := in(credential.TokenCheck{Issuer: "us", Header: "x-token", Optional: true}, credential.ClaimMatch{Claim: []string{"role"}, Values: []string{"staff"}})
		several.Others = []*credential.Tokens{
			{Check: &credential.TokenCheck{Name: "filter/api/0/1", Issuer: "them", Header: "x-token"}, Scopes: []string{"read", "a.b"}},
			{Check: &credential.TokenCheck{Name: "filter/api/0/2", Issuer: "you", Header: "x-token"}},
		}
		code := func(claims map[string]any) string {
			return ask(several, nil, false, "/", "X-Token: "+tokenSaying(claims)).Code
		}
		Expect(ask(several, nil, false, "/").Code).To(Equal("direct_response"), "without a token")
		Expect(code(map[string]any{"iss": "us", "role": "staff"})).To(Equal("direct_response"))
		Expect(code(map[string]any{"iss": "us", "scope": "read a.b"})).To(Equal("claim_refused"))
		Expect(code(map[string]any{"iss": "them", "scope": "x a.b read"})).To(Equal("direct_response"))
		Expect(code(map[string]any{"iss": "them", "scp": []string{"read", "a.b"}})).To(Equal("direct_response"))
		Expect(code(map[string]any{"iss": "them", "scope": "read axb"})).To(Equal("claim_refused"))
		Expect(code(map[string]any{"iss": "them", "role": "staff"})).To(Equal("claim_refused"))
		Expect(code(map[string]any{"iss": "you"})).To(Equal("direct_response"))
		Expect(ask(several, nil, false, "/", "X-Token: "+tokenSaying(map[string]any{"iss": "us"})).Message).To(Equal("filter api requires of the token: " +
			"that it is of us and role is, or has, staff, or that it is of them and scope is, or has, read; scope is, or has, a.b, or that it is of you. The token of the request does not have it"))
	})

	It("is skipped on a public route, but a route's own check applies", func() {
		Expect(ask(bearer, nil, true, "/").Code).To(Equal("direct_response"))
		other := in(credential.TokenCheck{Header: "x-token"})
		Expect(ask(bearer, other, false, "/", "X-Token: "+roles("x")).Code).To(Equal("direct_response"))
		Expect(ask(bearer, other, true, "/", "Authorization: Bearer "+roles("staff")).Code).To(Equal("token_refused"))
	})
})
