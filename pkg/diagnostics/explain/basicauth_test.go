package explain_test

import (
	"encoding/base64"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("The filter that requires a password", func() {
	// with explains a GET to a host, and to a route with other users or none. The users ann and bob have an empty
	// password.
	with := func(ofHost, ofRoute *credential.BasicAuth, public bool, headers ...string) explain.Answer {
		GinkgoHelper()
		route := &ir.Route{Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503}, Public: public, Filters: ir.Filters{"basicAuth": ofRoute}}
		h := &ir.Host{Name: "shop", Domain: "*", Identity: []string{"x-client"}, Routes: []*ir.Route{route}, Filters: ir.Filters{"basicAuth": ofHost}}
		encoded := must(snapshot.NewRoute(must(translate.Route(route))))
		return ask(state(must(snapshot.NewHost(must(translate.VirtualHost(h)), []*snapshot.Route{encoded}, snapshot.ObjectRef{}))), "http://h/", headers...)
	}
	user := func(names ...string) *credential.BasicAuth {
		b := &credential.BasicAuth{}
		for _, name := range names {
			b.Users = append(b.Users, credential.User{Name: name, Hash: "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="})
		}
		return b
	}
	basic := func(text string) string {
		return "Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(text))
	}

	It("accepts the users, and reports which one it is", func() {
		a := with(user("ann", "bob"), nil, false, basic("bob:"))
		Expect(a.Code).To(Equal("direct_response"))
		Expect(a.Filters).To(Equal([]explain.Filter{
			{Name: "envoy.filters.http.header_mutation/in", Message: "removes headers that only the gateway may set: x-client, x-gatehouse-key, x-gatehouse-any-key"},
			{Name: "envoy.filters.http.basic_auth", Message: "takes the request as one of bob, as the backend sees in x-client"},
			{Name: "envoy.filters.http.header_mutation/password", Message: "removes Authorization from the request to the backend"},
			{Name: "envoy.filters.http.router", Message: "forwards the request, or answers as the route says"},
		}))
		Expect(with(user("ann"), nil, false, strings.TrimRight(basic("ann:"), "=")).Code).To(Equal("direct_response"), "without padding")
	})

	DescribeTable("reports why it refuses others", func(why string, headers ...string) {
		a := with(user("ann"), nil, false, headers...)
		Expect(a.Code).To(Equal("password_required"))
		Expect(a.Status).To(Equal(401))
		Expect(a.Body).To(Equal("a valid user name and password are required\n"))
		Expect(a.Message).To(Equal("a http_filter_basicauth requires a user name and a password: " + why))
	},
		Entry("no password", "the request has no Authorization"),
		Entry("another scheme", "Authorization does not begin with Basic", "Authorization: Bearer x"),
		Entry("another password", "the password is wrong", basic("ann:x")),
		Entry("another name", "no user has that name", basic("an:")),
		Entry("another format", "Authorization is not the base64 of a name, a colon and a password", basic("ann")),
		Entry("not base64", "Authorization is not the base64 of a name, a colon and a password", "Authorization: Basic ?"),
		Entry("two headers", "Authorization is not the base64 of a name, a colon and a password", basic("ann:"), basic("ann:")),
	)

	It("prefers the route's configuration, and requires nothing on a public route", func() {
		Expect(with(user("ann"), user("bob"), false, basic("bob:")).Code).To(Equal("direct_response"))
		Expect(with(user("ann"), user("bob"), false, basic("ann:")).Code).To(Equal("password_required"))
		Expect(with(user("ann"), nil, true).Code).To(Equal("direct_response"))
		Expect(with(user("ann"), user("bob"), true).Code).To(Equal("password_required"), "a filter of its own applies")
	})
})
