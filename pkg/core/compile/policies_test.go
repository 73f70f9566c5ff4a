package compile_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// parsed returns a filter that is attached to something.
func parsed(name, kind string, spec model.Spec) *model.ParsedFilter {
	return &model.ParsedFilter{Filter: &model.Filter{Name: name, Type: kind}, Type: kind, Spec: spec}
}

// routeWith returns a route of shop with filters.
func routeWith(name string, filters ...*model.ParsedFilter) *model.RouteTree {
	return &model.RouteTree{
		Route: &model.Route{Service: "shop", Name: name, Prefix: "/" + name}, Upstreams: []*model.Upstream{upstream("blue")}, Filters: filters,
	}
}

var _ = Describe("The listener's part of a service", func() {
	needs := func(keys *credential.KeyAccess, either *credential.AnyOf, routes ...*ir.Route) ir.Needs {
		tree := &model.ServiceTree{Service: &model.Service{Name: "shop", FQDN: "shop.test"}}
		return compile.Needs(&ir.Host{Name: "shop", Routes: routes, Filters: ir.Filters{"keys": keys, "anyOf": either}}, tree, nil)
	}
	set := func(name string) *credential.KeyAccess { return &credential.KeyAccess{Set: name} }

	It("has the keys that the service and any of its routes require", func() {
		front := &ir.Route{Filters: ir.Filters{"keys": set("before")}}
		Expect(needs(set("own"), nil, &ir.Route{}, &ir.Route{Filters: ir.Filters{"keys": set("second")}}, &ir.Route{Before: []*ir.Route{front}, Filters: ir.Filters{"keys": set("third")}})).
			To(Equal(ir.Needs{KeySets: []string{"before", "own", "second", "third"}}))
	})
	It("has the keys that are one of several credentials", func() {
		Expect(needs(nil, &credential.AnyOf{Keys: set("own")}, &ir.Route{Filters: ir.Filters{"anyOf": &credential.AnyOf{}}}, &ir.Route{Filters: ir.Filters{"anyOf": &credential.AnyOf{Keys: set("second")}}})).
			To(Equal(ir.Needs{AnyKeySets: []string{"own", "second"}}))
	})
	It("has the rate limits of each route", func() {
		Expect(needs(nil, nil, &ir.Route{}, &ir.Route{RateLimits: []ir.RateLimit{{}}}, &ir.Route{DomainLimits: map[string][]ir.RateLimit{"b": nil, "a": nil}})).
			To(Equal(ir.Needs{RateLimits: true, RateLimitDomains: []string{"a", "b"}}))
	})
	It("has no domain of filters that state their own limit, which every listener has", func() {
		Expect(needs(nil, nil, &ir.Route{DomainLimits: map[string][]ir.RateLimit{"a": nil, "stated-by-filters": nil}}).RateLimitDomains).To(Equal([]string{"a"}))
	})
})

var _ = Describe("Two filters in one place", func() {
	filters := map[string]*model.ParsedFilter{
		"login": parsed("login", model.FilterOIDC, nil), "jwt": parsed("jwt", model.FilterJWT, nil), "users": parsed("users", model.FilterBasicAuth, nil),
		"either": parsed("either", model.FilterAnyOf, nil), "keys": parsed("keys", model.FilterAPIKey, nil), "headers": parsed("headers", model.FilterHeaders, nil),
	}
	DescribeTable("conflict if both identify the client", func(one, other string) {
		Expect(compile.Clash([]*model.ParsedFilter{filters["headers"], filters[one], filters[other]})).To(HavePrefix("has filters " + one + " and " + other + ", of which only one can decide"))
	},
		Entry(nil, "login", "jwt"), Entry(nil, "jwt", "users"), Entry(nil, "users", "login"), Entry(nil, "either", "jwt"), Entry(nil, "keys", "either"), Entry(nil, "login", "either"),
	)
	It("are at most 8 mirrors", func() {
		mirrors := make([]*model.ParsedFilter, 8)
		for i := range mirrors {
			mirrors[i] = parsed("copy", model.FilterMirror, nil)
		}
		Expect(compile.Clash(append(mirrors, filters["headers"]))).To(BeEmpty())
		Expect(compile.Clash(append(mirrors, mirrors[0]))).To(Equal("has 9 filters of type route_filter_mirror, of which 8 are allowed,"))
	})
	DescribeTable("do not conflict otherwise", func(one, other string) {
		Expect(compile.Clash([]*model.ParsedFilter{filters[one], filters[other]})).To(BeEmpty())
	},
		Entry(nil, "keys", "jwt"), Entry(nil, "keys", "users"), Entry(nil, "login", "keys"), Entry(nil, "headers", "either"),
		Entry("because the login reports it", "login", "login"),
	)
})

var _ = Describe("A limit for bodies", func() {
	limit := parsed("small", model.FilterBodyLimit, &model.BodyLimitFilter{Bytes: 10})
	other := parsed("cart", model.FilterHeaders, &model.HeadersFilter{})
	condition := func(websocket *bool, filters ...*model.ParsedFilter) *model.Condition {
		t := routeWith("root", filters...)
		t.Route.Config.Websocket = websocket
		_, c := compile.Route(t, compile.Settings{})
		return c
	}
	yes, no := true, false
	It("closes a route that accepts websockets, wherever it is among the filters", func() {
		for _, filters := range [][]*model.ParsedFilter{{limit}, {other, limit}, {limit, other}} {
			c := condition(&yes, filters...)
			Expect(c).NotTo(BeNil())
			Expect(c.Message).To(ContainSubstring("filter small, a body limit, and websocket"))
		}
	})
	It("leaves other routes open", func() {
		Expect(condition(&no, limit)).To(BeNil())
		Expect(condition(nil, limit)).To(BeNil())
		Expect(condition(&yes, other)).To(BeNil())
	})
	It("can be read by pages that CORS allows", func() {
		pages := parsed("pages", model.FilterCORS, &model.CORSFilter{Origins: []model.Origin{{Exact: "https://a.test"}}})
		r, c := compile.Route(routeWith("root", pages, limit), compile.Settings{})
		Expect(c).To(BeNil())
		var statuses []int
		for _, b := range r.Before {
			statuses = append(statuses, b.Respond.Status)
		}
		Expect(statuses).To(Equal([]int{413, 413, 204}))
		Expect(r.Before[0].Filters).To(HaveKey("readBy"))
		Expect(r.Before[1].Filters).NotTo(HaveKey("readBy"))
	})
})

var _ = Describe("An upstream that a filter names", func() {
	It("is called with its authority and client certificate", func() {
		secure := upstream("copy", func(u *model.Upstream) {
			u.Protocol, u.ValidationCACertificate, u.ClientCertificate, u.Weight = "tls", "ca", "gateway", 0
		})
		t := routeWith("root", parsed("copies", model.FilterMirror, &model.MirrorFilter{Upstream: "copy"}))
		t.Named = map[model.Key]model.Object{model.UpstreamKey("copy"): secure, model.SecretKey("ca"): &model.Secret{Name: "ca", Cert: "pem"},
			model.SecretKey("gateway"): &model.Secret{Name: "gateway", Cert: "chain", PrivateKey: "sealed"}}
		open := func(sealed, _ string) (string, error) { return "open " + sealed, nil }
		r, c := compile.Route(t, compile.Settings{Open: open})
		Expect(c).To(BeNil())
		Expect(r.Asked).To(HaveLen(1))
		Expect(r.Asked[0].Endpoints).To(HaveLen(1))
		Expect(r.Asked[0].TLS.Authorities).To(Equal(&ir.Authorities{Secret: "ca", PEM: "pem"}))
		Expect(r.Asked[0].TLS.Client).To(Equal(&ir.Pair{Secret: "gateway", Chain: "chain", Key: "open sealed"}))
	})
	It("is verified by the authorities of the system", func() {
		t := routeWith("root", parsed("copies", model.FilterMirror, &model.MirrorFilter{Upstream: "copy"}))
		t.Named = map[model.Key]model.Object{model.UpstreamKey("copy"): upstream("copy", func(u *model.Upstream) { u.Protocol = "tls" })}
		r, c := compile.Route(t, compile.Settings{Authorities: "system"})
		Expect(c).To(BeNil())
		Expect(r.Asked[0].TLS.Authorities).To(Equal(&ir.Authorities{PEM: "system"}))
	})
	It("closes the route if it cannot be called as it says", func() {
		secure := upstream("copy", func(u *model.Upstream) { u.Protocol, u.ValidationCACertificate = "tls", "ca" })
		t := routeWith("root", parsed("copies", model.FilterMirror, &model.MirrorFilter{Upstream: "copy"}))
		t.Named = map[model.Key]model.Object{model.UpstreamKey("copy"): secure}
		r, c := compile.Route(t, compile.Settings{})
		Expect(c.Code).To(Equal(model.Quarantined))
		Expect(r.Forward).To(BeNil())
	})
})
