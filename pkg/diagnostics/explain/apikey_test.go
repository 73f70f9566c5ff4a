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

var _ = Describe("The filter that requires an API key", func() {
	// with explains a GET to a host, and to a route with other keys or none. The Envoy knows the keys
	// a/x and a.b/x, both with an empty secret.
	var rules []*credential.Access
	BeforeEach(func() { rules = nil })
	with := func(ofHost, ofRoute *credential.KeyAccess, headers ...string) explain.Answer {
		GinkgoHelper()
		const empty = "{SHA}2jmj7l5rSw0yVb/vlWAYkK/YBwk="
		route := &ir.Route{Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503}, Filters: ir.Filters{"keys": ofRoute}}
		h := &ir.Host{Name: "shop", Domain: "*", Identity: []string{"x-client"}, Routes: []*ir.Route{route}, Filters: ir.Filters{"keys": ofHost, "access": rules}}
		encoded := must(snapshot.NewRoute(must(translate.Route(route))))
		have := state(must(snapshot.NewHost(must(translate.VirtualHost(h)), []*snapshot.Route{encoded}, snapshot.ObjectRef{})))
		resources := must(translate.ListenerResources(ir.Listener{Keys: []ir.APIKey{{Client: "a/x", Hash: empty}, {Client: "a.b/x", Hash: empty}}}))
		have.Extensions = []*snapshot.Resource{must(snapshot.NewExtension(resources.Extensions[1]))}
		return ask(have, "http://h/", headers...)
	}
	key := func(header, text string) string {
		return header + ": " + base64.StdEncoding.EncodeToString([]byte(text))
	}
	keys := &credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a"}
	other := &credential.KeyAccess{From: []model.KeySource{{Header: "x-other"}}, Set: "a.b", Clients: []string{"a.b/x", "a.b/y"}}

	It("accepts a key of the set", func() {
		a := with(keys, nil, key("X-Api-Key", "a/x:"))
		Expect(a.Code).To(Equal("direct_response"))
		Expect(a.Filters).To(Equal([]explain.Filter{
			{Name: "envoy.filters.http.header_mutation/in", Message: "removes headers that only the gateway may set: x-client, x-gatehouse-key, x-gatehouse-any-key"},
			{Name: "envoy.filters.http.basic_auth/key", Message: "takes the API key as that of a/x, as the backend sees in x-client"},
			{Name: "envoy.filters.http.rbac/clients", Message: "allows the keys of a/*"},
			{Name: "envoy.filters.http.header_mutation/clean", Message: "removes the gateway's own form of the API key"},
			{Name: "envoy.filters.http.header_mutation/key", Message: "removes the API key from the headers of the request to the backend"},
			{Name: "envoy.filters.http.router", Message: "forwards the request, or answers as the route says"},
		}))
	})

	DescribeTable("reports why it refuses another key", func(why string, headers ...string) {
		a := with(keys, nil, headers...)
		Expect(a.Code).To(Equal("key_required"))
		Expect(a.Status).To(Equal(401))
		Expect(a.Body).To(Equal("a valid API key is required\n"))
		Expect(a.Message).To(Equal("a http_filter_apikey requires an API key: " + why))
	},
		Entry("no key", "the request has no x-api-key"),
		Entry("in another header", "the request has no x-api-key", key("X-Other", "a/x:")),
		Entry("another secret", "the value of x-api-key is not a key that the Envoy knows", key("X-Api-Key", "a/x:y")),
		Entry("another name", "the value of x-api-key is not a key that the Envoy knows", key("X-Api-Key", "a/y:")),
		Entry("another format", "the value of x-api-key does not have the form of a key", key("X-Api-Key", "a/x")),
		Entry("not base64", "the value of x-api-key does not have the form of a key", "X-Api-Key: ?"),
	)

	It("refuses keys of other sets, and of clients that the filter does not list", func() {
		a := with(keys, nil, key("X-Api-Key", "a.b/x:"))
		Expect(a.Code).To(Equal("client_refused"))
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("this API key is not valid here\n"))
		Expect(a.Message).To(Equal("a http_filter_apikey does not allow client a.b/x"))
		Expect(with(&credential.KeyAccess{From: []model.KeySource{{Header: "x-api-key"}}, Set: "a", Clients: []string{"a/y"}}, nil, key("X-Api-Key", "a/x:")).Code).To(Equal("client_refused"))
	})

	DescribeTable("tells rules whose key it is", func(code string, clients ...string) {
		rules = []*credential.Access{{Allow: []credential.AccessRule{{Clients: clients}}}}
		Expect(with(keys, nil, key("X-Api-Key", "a/x:")).Code).To(Equal(code))
		Expect(with(nil, nil, key("X-Api-Key", "a/x:")).Code).To(Equal("access_refused"), "without the filter, nobody reads the key")
	},
		Entry("by name", "direct_response", "a/y", "a/x"), Entry("by set", "direct_response", "a/"),
		Entry("with another name", "access_refused", "a/y"), Entry("with the beginning of its name", "access_refused", "a/x2"),
		Entry("with another set", "access_refused", "b/", "a.b/"),
	)

	It("prefers the route's configuration", func() {
		Expect(with(keys, other, key("X-Other", "a.b/x:")).Code).To(Equal("direct_response"))
		Expect(with(keys, other, key("X-Api-Key", "a/x:")).Code).To(Equal("key_required"))
		Expect(with(nil, other, key("X-Other", "a/x:")).Code).To(Equal("client_refused"))
	})
})
