package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("A login", func() {
	login := &credential.Login{
		Name: "filter/staff", ClientID: "shop", CookieSuffix: "48ef6a1c", AuthorizationEndpoint: "https://login.test/auth?prompt=consent", TokenEndpoint: "https://login.test/token",
		RedirectURI: "%REQ(x-forwarded-proto)%://%REQ(:authority)%/callback", CallbackPath: "/callback", SignOutPath: "/logout", EndSessionEndpoint: "https://login.test/end",
		RedirectDomains: []string{"shop.test"}, Scopes: []string{"openid"}, Cluster: &ir.Cluster{Name: "idp"},
		Token: &credential.TokenCheck{
			Name: "filter/staff/30d9eac6", Issuer: "https://login.test", Audiences: []string{"shop"}, Cookie: "IdToken-48ef6a1c", JWKS: `{"keys":[]}`,
			ClaimHeaders: []credential.ClaimHeader{{Header: "x-user", Claim: "email"}},
		},
		Require: []credential.ClaimMatch{{Claim: []string{"realm", "groups"}, Values: []string{"a", "b"}}},
	}
	have := func() explain.State {
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "shop.test", Filters: ir.Filters{"login": login}}))
		var routes []*snapshot.Route
		for _, r := range []*ir.Route{
			{Name: credential.LoginCallback, Match: ir.Match{PathKind: "exact", Path: "/callback"}},
			{Name: "health", Match: ir.Match{PathKind: "exact", Path: "/health"}, Public: true},
			{Name: "root", Match: ir.Match{PathKind: "prefix", Path: "/"}},
		} {
			r.Respond = &ir.Respond{Status: 503}
			routes = append(routes, must(snapshot.NewRoute(must(translate.Route(r)))))
		}
		return state(must(snapshot.NewHost(vh, routes, snapshot.ObjectRef{})))
	}
	// told returns the message of an answer about a filter.
	told := func(a explain.Answer, name string) string {
		for _, f := range a.Filters {
			if f.Name == name {
				return f.Message
			}
		}
		return ""
	}

	It("sends browsers to the provider, and reports what else it does", func() {
		a := ask(have(), "http://shop.test/deep?a=1")
		Expect(a.Code).To(Equal("login_required"))
		Expect(a.Status).To(Equal(302))
		Expect(a.Location).To(Equal("https://login.test/auth"))
		Expect(a.Message).To(Equal("filter staff requires a login, and the request has no session: the browser is sent to https://login.test/auth"))
		Expect(told(a, "envoy.filters.http.oauth2")).To(Equal("requires a session of filter staff, from a login at login.test; callback /callback, sign-out /logout"))
		Expect(told(a, "envoy.filters.http.jwt_authn")).To(Equal(
			"verifies the id_token of the session: signature, issuer, audience and expiry, as filter/staff/30d9eac6 says. A wrong id_token gets 401, an id_token for another audience 403"))
		Expect(told(a, "envoy.filters.http.rbac/claims")).To(Equal("requires of the id_token: realm.groups is, or has, a or b. Other requests get 403"))
		Expect(told(a, "envoy.filters.http.header_mutation/in")).To(Equal("removes headers that only the gateway may set: x-user"))
		Expect(told(a, "envoy.filters.http.header_mutation/clean")).To(HavePrefix("removes the gateway's own 5 cookies of the login"))
	})

	DescribeTable("returns to a Host with a port, if the port is valid", func(port, code string, status int) {
		a, err := explain.Explain(have(), explain.Request{Method: "GET", Target: "/", Headers: []explain.Header{{Name: "Host", Value: "shop.test" + port}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Code).To(Equal(code))
		Expect(a.Status).To(Equal(status))
	},
		Entry("the highest", ":65535", "login_required", 302),
		Entry("with zeros", ":0080", "login_required", 302),
		Entry("too high", ":65536", "login_refused", 401),
		Entry("empty", ":", "login_refused", 401),
	)

	DescribeTable("is not required for", func(target, header, code string, status int, message string) {
		a := ask(have(), "http://shop.test"+target, header)
		Expect(a.Code).To(Equal(code))
		Expect(a.Status).To(Equal(status))
		Expect(a.Message).To(ContainSubstring(message))
		Expect(a.Message).NotTo(ContainSubstring("marker"))
	},
		Entry("programs", "/a", "sec-fetch-mode: cors", "login_refused", 401, `header sec-fetch-mode is "cors"`),
		Entry("requests with Authorization, which Envoy removes", "/a", "authorization: Bearer marker", "login_required", 302, "the browser is sent to"),
		Entry("the callback", "/callback?code=marker&state=marker", "x-a: 1", "login_callback", 401, "/callback is the path to which the identity provider sends browsers back, for filter staff"),
		Entry("the sign-out path", "/logout", "x-a: 1", "signed_out", 302, "the identity provider (https://login.test/end), which signs out too"),
		Entry("public routes", "/health", "x-a: 1", "direct_response", 503, "the route answers 503 by itself"),
		Entry("clients that may have a session", "/a", "cookie: a=1; OauthHMAC-48ef6a1c=marker; OauthExpires-48ef6a1c=1", "direct_response", 503, "the route answers 503"),
		Entry("clients with cookies of another login", "/a", "cookie: OauthHMAC-00000000=marker; OauthExpires-00000000=1", "login_required", 302, "sent to"),
	)

	It("states that only Envoy can check a session, and where no login is required", func() {
		a := ask(have(), "http://shop.test/a", "cookie: OauthHMAC-48ef6a1c=marker; OauthExpires-48ef6a1c=1")
		Expect(a.Steps).To(ContainElement(HaveField("Message", ContainSubstring("a session cookie of filter staff, whose validity only Envoy knows"))))
		a = ask(have(), "http://shop.test/health")
		Expect(a.Steps).To(ContainElement(HaveField("Message", "route health is public: filter staff requires no login there")))
	})
})
