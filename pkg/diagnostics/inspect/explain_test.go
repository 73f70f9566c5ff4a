package inspect

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("What explains a request", func() {
	It("is what Envoys should have, until one is known", func() {
		list, err := New(Sources{}).Explain(context.Background(), "gw", explain.Request{Method: "GET", Target: "/", Headers: []explain.Header{{Name: "host", Value: "shop.example"}}})
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(HaveLen(1))
		Expect(list[0].Code).To(Equal(explain.NoListener))
		own := func(context.Context, string, explain.Request) ([]Explained, error) { return make([]Explained, 2), nil }
		Expect(New(Sources{Explain: own}).Explain(context.Background(), "gw", explain.Request{})).To(HaveLen(2))
		basis, envoys := list[0].Basis()
		Expect([]any{basis, envoys}).To(Equal([]any{"wanted", []string{}}))
		basis, envoys = Explained{Envoys: []string{"192.0.2.1:1"}}.Basis()
		Expect([]any{basis, envoys}).To(Equal([]any{"envoys", []string{"192.0.2.1:1"}}))
	})
})

var _ = Describe("The objects that cause a response", func() {
	objects := []model.Object{
		&model.Filter{Name: "rules", Type: model.FilterRBAC}, &model.Filter{Name: "more", Type: model.FilterRBAC},
		&model.Filter{Name: "allow", Type: model.FilterRBAC}, &model.Filter{Name: "zone", Type: model.FilterRBAC},
		&model.Filter{Name: "tokens", Type: model.FilterJWT}, &model.Filter{Name: "others", Type: model.FilterJWT},
		&model.Filter{Name: "hello", Type: model.FilterDirectResponse},
		&model.RouteFilter{Service: "shop", Route: "root", Filter: "rules"}, &model.RouteFilter{Service: "shop", Route: "root", Filter: "gone"},
		&model.RouteFilter{Service: "shop", Route: "root", Filter: "tokens"}, &model.RouteFilter{Service: "shop", Route: "api", Filter: "hello"},
		&model.RouteFilter{Service: "shop", Route: "root", Filter: "allow"}, &model.ServiceFilter{Service: "shop", Filter: "zone"},
		&model.ServiceFilter{Service: "shop", Filter: "rules"}, &model.ServiceFilter{Service: "shop", Filter: "others"},
		&model.ServiceFilter{Service: "shop", Filter: "more"}, &model.ServiceFilter{Service: "shop", Filter: "deleted"},
		&model.ServiceFilter{Service: "api", Filter: "hello"},
		&model.Service{Name: "shop"}, &model.Service{Name: "api"}, &model.Service{Name: "free", ExemptFilters: model.Tags{"wide"}},
		&model.Filter{Name: "wide", Type: model.FilterIPAccess}, &model.Filter{Name: "own", Type: model.FilterIPAccess},
		&model.ServiceFilter{Service: "api", Filter: "own"},
		&model.ProxyFilter{Proxy: "gw", Filter: "wide"},
		&model.Route{Service: "api", Name: "inside", Config: model.RouteConfig{Exempt: &model.Exempt{Service: []string{"own"}}}},
		&model.Route{Service: "api", Name: "outside", Config: model.RouteConfig{Exempt: &model.Exempt{Proxy: []string{"wide", "own"}}}},
	}
	answer := func(service, route, filterType, message string) []Explained {
		return []Explained{{}, {Answer: explain.Answer{
			Code: explain.DirectResponse, Status: 503, Service: service, Route: route, FilterType: filterType, Message: message, Steps: []explain.Step{{Message: "first"}, {Message: message}},
		}}}
	}

	DescribeTable("are the filters of the type", func(service, route, filterType, message, told string, by ...string) {
		list := answer(service, route, filterType, message)
		Expect(New(Sources{}).NameObjects(stored{list: objects}, "gw", list)).To(Succeed())
		Expect(list[1].Message).To(Equal(told))
		Expect(list[1].Steps).To(HaveExactElements(HaveField("Message", "first"), HaveField("Message", told)))
		Expect(list[1].RefusedBy).To(HaveExactElements(by))
		Expect(list[0].RefusedBy).To(BeEmpty())
	},
		Entry("of the route and of the service, if they add up", "shop", "root", model.FilterRBAC, "a vh_filter_rbac denies it", "vh_filter_rbac allow or rules or more or zone denies it",
			"/filter/allow", "/filter/rules", "/filter/more", "/filter/zone"),
		Entry("of the route, if they replace those of the service", "shop", "root", model.FilterJWT, "a http_filter_jwt denies it", "http_filter_jwt tokens denies it", "/filter/tokens"),
		Entry("of the service, if the route has none", "shop", "api", model.FilterJWT, "an http_filter_jwt denies it", "http_filter_jwt others denies it", "/filter/others"),
		Entry("which answers", "shop", "api", model.FilterDirectResponse, "the route answers 200", "route_filter_directresponse hello answers 200", "/filter/hello"),
		Entry("of the proxy", "shop", "root", model.FilterIPAccess, "a vh_filter_ipaccess denies it", "vh_filter_ipaccess wide of the proxy denies it", "/proxy/gw/filter/wide"),
		Entry("of the proxy and the service, if they add up", "api", "root", model.FilterIPAccess, "a vh_filter_ipaccess denies it", "vh_filter_ipaccess own or wide of the proxy denies it", "/filter/own", "/proxy/gw/filter/wide"),
		Entry("without those of the service from which the route is exempt", "api", "inside", model.FilterIPAccess, "a vh_filter_ipaccess denies it", "vh_filter_ipaccess wide of the proxy denies it", "/proxy/gw/filter/wide"),
		Entry("without those of the proxy from which the route is exempt", "api", "outside", model.FilterIPAccess, "a vh_filter_ipaccess denies it", "vh_filter_ipaccess own denies it", "/filter/own"),
		Entry("unless the service is exempt", "free", "root", model.FilterIPAccess, "a vh_filter_ipaccess denies it", "a vh_filter_ipaccess denies it"),
		Entry("unless there is none now", "later", "root", model.FilterJWT, "a http_filter_jwt denies it", "a http_filter_jwt denies it"),
		Entry("unless no filter responds", "shop", "root", "", "a vh_filter_rbac denies it", "a vh_filter_rbac denies it"),
		Entry("unless no service was found", "", "", model.FilterRBAC, "a vh_filter_rbac denies it", "a vh_filter_rbac denies it"),
	)

	It("are named for each filter that the request passes, the outermost first", func() {
		list := answer("api", "root", "", "m")
		list[1].Filters = []explain.Filter{
			{Name: "envoy.filters.http.rbac/ip"}, {Name: "envoy.filters.http.router"},
			{Name: "envoy.filters.http.rbac/access"},
		}
		Expect(New(Sources{}).NameObjects(stored{list: objects}, "gw", list)).To(Succeed())
		Expect(list[1].Filters).To(HaveExactElements(
			HaveField("From", []string{"/proxy/gw/filter/wide", "/service/api/filter/own"}), HaveField("From", BeEmpty()), HaveField("From", BeEmpty())))
		list = answer("shop", "root", "", "m")
		list[1].Filters = []explain.Filter{{Name: "envoy.filters.http.rbac/access"}, {Name: "envoy.filters.http.jwt_authn"}}
		Expect(New(Sources{}).NameObjects(stored{list: objects}, "gw", list)).To(Succeed())
		Expect(list[1].Filters).To(HaveExactElements(
			HaveField("From", ConsistOf("/service/shop/filter/zone", "/service/shop/filter/more", "/service/shop/route/root/filter/rules", "/service/shop/route/root/filter/allow")),
			HaveField("From", []string{"/service/shop/route/root/filter/tokens"})))
	})

	DescribeTable("are not named if they cannot be read", func(broken model.Kind) {
		err := New(Sources{}).NameObjects(stored{list: objects, broken: broken}, "gw", answer("shop", "root", model.FilterRBAC, "m"))
		Expect(err).To(MatchError(errStore))
	},
		Entry(nil, model.KindFilter), Entry(nil, model.KindRouteFilter), Entry(nil, model.KindServiceFilter),
	)

	DescribeTable("are not named if one cannot be read", func(name string) {
		err := New(Sources{}).NameObjects(stored{list: objects, lost: model.FilterKey(name)}, "gw", answer("shop", "root", model.FilterRBAC, "m"))
		Expect(err).To(MatchError(errStore))
	},
		Entry("of the route", "allow"), Entry("of the service", "more"),
	)

	It("are what cannot work rather than filters, and only if it cannot", func() {
		registry := status.NewRegistry()
		in := New(Sources{Status: registry})
		list := answer("shop", "root", model.FilterJWT, "the route answers 503")
		list[1].Code, list[1].Status = explain.DirectResponse, 503
		Expect(in.NameObjects(stored{list: objects}, "gw", list)).To(Succeed())
		Expect(list[1].RefusedBy).To(Equal([]string{"/filter/tokens"}))
		list[1].RefusedBy = nil
		registry.SetConditions("build", []model.Condition{{Key: model.ServiceKey("shop"), Code: model.Quarantined, Message: "m"}})
		Expect(in.NameObjects(stored{list: objects}, "gw", list)).To(Succeed())
		Expect(list[1].RefusedBy).To(Equal([]string{"/service/shop"}))
	})

	DescribeTable("are those that cannot work", func(c model.Condition, code string, httpStatus int, by ...string) {
		registry := status.NewRegistry()
		c.Message = "it names secret x, which does not exist"
		registry.SetConditions("build", []model.Condition{{Key: model.ServiceKey("other"), Code: model.Quarantined}, c})
		list := answer("shop", "root", "", "the route answers 503")
		list[1].Code, list[1].Status = code, httpStatus
		Expect(New(Sources{Status: registry}).NameObjects(stored{}, "gw", list)).To(Succeed())
		Expect(list[1].RefusedBy).To(HaveExactElements(by))
		if len(by) > 0 {
			Expect(list[1].Message).To(Equal(c.Message))
		} else {
			Expect(list[1].Message).To(Equal("the route answers 503"))
		}
	},
		Entry("the service", model.Condition{Key: model.ServiceKey("shop"), Code: model.Quarantined}, explain.DirectResponse, 503, "/service/shop"),
		Entry("a filter of the proxy", model.Condition{Key: model.ProxyFilterKey("gw", "login"), Code: model.Quarantined}, explain.DirectResponse, 503, "/proxy/gw/filter/login"),
		Entry("a filter of another proxy", model.Condition{Key: model.ProxyFilterKey("edge", "login"), Code: model.Quarantined}, explain.DirectResponse, 503),
		Entry("a filter of the service", model.Condition{Key: model.ServiceFilterKey("shop", "login"), Code: model.Quarantined}, explain.DirectResponse, 503, "/service/shop/filter/login"),
		Entry("the route", model.Condition{Key: model.RouteKey("shop", "root"), Code: model.NoUpstream}, explain.DirectResponse, 503, "/service/shop/route/root"),
		Entry("not another route", model.Condition{Key: model.RouteKey("shop", "api"), Code: model.NoUpstream}, explain.DirectResponse, 503),
		Entry("not a route of another service", model.Condition{Key: model.RouteKey("api", "root"), Code: model.NoUpstream}, explain.DirectResponse, 503),
		Entry("not a filter of another service", model.Condition{Key: model.ServiceFilterKey("api", "login"), Code: model.Quarantined}, explain.DirectResponse, 503),
		Entry("not a link of a proxy", model.Condition{Key: model.ProxyServiceKey("gw", "shop"), Code: model.Quarantined}, explain.DirectResponse, 503),
		Entry("not what only warns", model.Condition{Key: model.ServiceKey("shop"), Code: model.NoRates}, explain.DirectResponse, 503),
		Entry("not for another status", model.Condition{Key: model.ServiceKey("shop"), Code: model.Quarantined}, explain.DirectResponse, 200),
		Entry("not for the answer of an upstream", model.Condition{Key: model.ServiceKey("shop"), Code: model.Quarantined}, explain.Forwarded, 503),
	)
})
