package inspect

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("The description of a limit", func() {
	// 100 seconds after midnight UTC.
	in := New(Sources{Now: func() time.Time { return time.Unix(20_000*24*60*60+100, 0) }})
	per := func(unit string) *model.RateLimit { return &model.RateLimit{Unit: unit, RequestsPerUnit: 5} }
	filter := func(domain string) *model.RateLimitFilter {
		return &model.RateLimitFilter{Domain: domain, Descriptors: []model.RateLimitDescriptor{{{Kind: "path"}}}}
	}
	shop := limits.NewDomain(1, "shop", []model.RateLimitRule{
		{Key: "path", RateLimit: per("minute")},
		{Key: "method", Descriptors: []model.RateLimitRule{{Key: "path", Value: "/", RateLimit: per("day")}}},
		{Key: "all", RateLimit: &model.RateLimit{Unlimited: true}}, {Key: "odd", RateLimit: per("fortnight")},
	})
	// described returns limits with these paths.
	described := func(places []limitPlace, first bool, paths ...string) []RateLimit {
		list := make([]RateLimit, len(paths))
		for i, p := range paths {
			list[i].Limit = p
		}
		in.describeLimits(list, shop, places, first)
		return list
	}
	five := int64(5)

	It("has its rate and what is left of its window", func() {
		Expect(described(nil, true, "path", "method > path=/", "all", "gone")).To(Equal([]RateLimit{
			{Limit: "path", Unit: "minute", RequestsPerUnit: &five, ResetsIn: 20, Routes: nil},
			{Limit: "method > path=/", Unit: "day", RequestsPerUnit: &five, ResetsIn: 24*60*60 - 100},
			{Limit: "all"}, {Limit: "gone"},
		}))
		Expect(described(nil, true, "odd")).To(Equal([]RateLimit{{Limit: "odd", Unit: "fortnight", RequestsPerUnit: &five}}), "of a database that was edited")
	})

	It("has the places that it applies to, each once, and the number of places not shown", func() {
		var places []limitPlace
		for _, at := range []string{"shop/g", "shop/f", "shop/*", "shop/a", "shop/b", "shop/c", "shop/a"} {
			places = append(places, limitPlace{at, model.FilterKey("each"), filter("shop")})
		}
		got := described(append(places, limitPlace{"shop/other", model.FilterKey("other"), filter("api")}), true, "path")[0]
		Expect(got.Routes).To(Equal([]string{"shop/*", "shop/a", "shop/b", "shop/c", "shop/f"}))
		Expect(got.MoreRoutes).To(Equal(1))
	})

	It("has the places of a filter that meets several", func() {
		f := &model.RateLimitFilter{Domain: "shop", Descriptors: []model.RateLimitDescriptor{{{Kind: "path"}}, {{Kind: "method"}, {Kind: "path"}}}}
		Expect(described([]limitPlace{{"shop/root", model.FilterKey("each"), f}}, true, "path", "method > path=/")).To(HaveEach(HaveField("Routes", []string{"shop/root"})))
	})

	It("has places of filters without a domain in the first domain of the proxy only", func() {
		places := []limitPlace{{"shop/root", model.FilterKey("each"), filter("")}}
		Expect(described(places, true, "path")[0].Routes).To(Equal([]string{"shop/root"}))
		Expect(described(places, false, "path")[0].Routes).To(BeEmpty())
	})

	DescribeTable("has a window of", func(unit string, seconds int) {
		Expect(windowSeconds(unit)).To(BeEquivalentTo(seconds))
	},
		Entry(nil, "second", 1), Entry(nil, "minute", 60), Entry(nil, "hour", 3_600), Entry(nil, "day", 86_400),
		Entry(nil, "week", 604_800), Entry(nil, "month", 2_592_000), Entry(nil, "year", 31_536_000), Entry("an unknown unit", "fortnight", 0),
	)
})

var _ = Describe("The domains in a test of rate limits", func() {
	configs := []*model.GlobalConfig{
		{ID: 36, Name: "rates", Type: model.GlobalConfigRateLimit, Config: `{"domain":"shop.eu"}`},
		{ID: 2, Name: "login", Type: model.GlobalConfigOAuth, Config: `{}`},
	}

	DescribeTable("are named after", func(wire, config, domain string) {
		e := Explained{Answer: explain.Answer{Filters: []explain.Filter{{Descriptors: []explain.Descriptor{{Domain: wire}}}}}}
		got := RateLimitTest(e, configs).Descriptors[0]
		Expect(got.Config).To(Equal(config))
		Expect(got.Domain).To(Equal(domain))
	},
		Entry("the global config, dots and all", "10/shop-eu", "rates", "shop.eu"),
		Entry("nothing if it is gone", "z/shop-eu", "", "shop-eu"),
		Entry("nothing if it has another type now", "2/shop-eu", "login", "shop-eu"),
		Entry("nothing for filters that state their own limit", "0/stated-by-filters", "", "stated-by-filters"),
	)
})

var _ = Describe("A test of rate limits", func() {
	DescribeTable("says what is counted", func(e Explained, message string) {
		e.Route = "root"
		Expect(RateLimitTest(e, nil).Message).To(Equal(message))
	},
		Entry("nothing if the gateway answers", Explained{Answer: explain.Answer{Code: explain.NoRoute, Message: "no route matches"}}, "nothing is counted: no route matches"),
		Entry("nothing without a filter", Explained{Answer: explain.Answer{Code: explain.Forwarded}}, "nothing is counted: route root has no rate limit"),
		Entry("nothing without a rate", forwarded(explain.Descriptor{}), "nothing is counted: no descriptor meets a rate"),
		Entry("one rate", forwarded(explain.Descriptor{Limit: &explain.Limit{}}, explain.Descriptor{}), "1 rate is met"),
		Entry("several rates", forwarded(explain.Descriptor{Limit: &explain.Limit{}}, explain.Descriptor{Limit: &explain.Limit{}}), "2 rates are met"),
		Entry("a filter that is not known", Explained{Answer: explain.Answer{Code: explain.NoRoute, UnknownFilters: []string{"a"}}},
			"nothing is counted: ; the filter a is not known, so it may be different"),
		Entry("what is not known", Explained{Answer: explain.Answer{Code: explain.Forwarded, UnknownFilters: []string{"a", "b"}}},
			"nothing is counted: route root has no rate limit; the filter a, b is not known, so it may be different"),
	)

	It("has the descriptors as they are sent, and says on what it is based", func() {
		limit, entries := &explain.Limit{}, []explain.Entry{{}}
		Expect(RateLimitTest(Explained{}, nil).Descriptors).To(Equal([]triedDescriptor{}))
		e := forwarded(explain.Descriptor{Domain: "z/a-b", Sent: true, Message: "m", Entries: entries, Limit: limit}, explain.Descriptor{Domain: "z/a-b", Unknown: true})
		e.Filters[1].Descriptors = append(e.Filters[1].Descriptors, explain.Descriptor{Domain: "0/c"})
		e.Envoys, e.Service, e.Route = []string{"192.0.2.1:1"}, "shop", "root"
		Expect(RateLimitTest(e, nil)).To(Equal(RateLimitTried{
			Basis: "envoys", Envoys: []string{"192.0.2.1:1"}, Code: "forwarded", Message: "1 rate is met", Service: "shop", Route: "root",
			Descriptors: []triedDescriptor{{Domain: "a-b", Sent: true, Message: "m", Entries: entries, Limit: limit}, {Domain: "z/a-b"}, {Domain: "c"}},
		}))
	})
})

// forwarded is an answer of an upstream, with descriptors of several filters.
func forwarded(list ...explain.Descriptor) Explained {
	e := Explained{Answer: explain.Answer{Code: explain.Forwarded}}
	for _, d := range list {
		e.Filters = append(e.Filters, explain.Filter{Descriptors: []explain.Descriptor{d}})
	}
	return e
}

var _ = Describe("The rate limits of a proxy", func() {
	filter := func(name, config string) *model.Filter {
		return &model.Filter{Name: name, Type: model.FilterRateLimit, Config: model.JSON(config)}
	}
	rates := func(name, domain string) *model.GlobalConfig {
		return &model.GlobalConfig{ID: int64(name[0]), Name: name, Type: model.GlobalConfigRateLimit, Config: model.JSON(`{"domain":"` + domain + `","descriptors":[` +
			`{"key":"path","rate_limit":{"unit":"minute","requests_per_unit":5}}]}`)}
	}
	objects := []model.Object{
		rates("d", "second"), rates("c", "first"), rates("b", "first"), rates("a", "elsewhere"), rates("e", "own"),
		&model.GlobalConfig{Name: "0", Type: model.GlobalConfigOAuth, Config: `{}`},
		&model.ProxyGlobalConfig{Proxy: "other", GlobalConfig: "e"}, &model.ProxyGlobalConfig{Proxy: "other", GlobalConfig: "a"},
		&model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "e"},
		&model.ProxyService{Proxy: "gw", Service: "shop"}, &model.ProxyService{Proxy: "gw", Service: "web"}, &model.ProxyService{Proxy: "other", Service: "api"},
		filter("each", `{"descriptors":[{"path":""}]}`), filter("named", `{"domain":"second","descriptors":[{"path":""}]}`),
		filter("invalid", `{"descriptors":[{"path":""},{"paths":""}]}`), filter("short", `{"per":"all","limit":"7/hour"}`),
		filter("brief", `{"per":"all","limit":"8/day"}`), &model.Filter{Name: "web", Type: model.FilterGRPCWeb, Config: `{}`},
		&model.RouteFilter{Service: "shop", Route: "root", Filter: "each"}, &model.RouteFilter{Service: "shop", Route: "api", Filter: "named"},
		&model.RouteFilter{Service: "shop", Route: "bad", Filter: "invalid"}, &model.RouteFilter{Service: "api", Route: "root", Filter: "each"},
		&model.ServiceFilter{Service: "web", Filter: "short"}, &model.ServiceFilter{Service: "web", Filter: "web"}, &model.ServiceFilter{Service: "web", Filter: "brief"}, &model.ServiceFilter{Service: "web", Filter: "each"},
	}
	view := func(config, domain string, limits ...RateLimit) RateLimitStatus {
		return RateLimitStatus{Config: config, Domain: domain, Limits: append([]RateLimit{}, limits...)}
	}
	read := func(list []model.Object) RateLimitScope {
		GinkgoHelper()
		s, err := RateLimitsOf(stored{list: list}, "gw")
		Expect(err).NotTo(HaveOccurred())
		return s
	}

	It("are those of the global configs that apply to it, one for each domain, and of its filters", func() {
		Expect(New(Sources{}).RateLimitStatus(context.Background(), read(objects))).To(Equal([]RateLimitStatus{
			view("b", "first"), view("d", "second"), view("e", "own"), view("", "stated-by-filters"),
		}))
	})

	It("are those of every filter that states one", func() {
		Expect(read(objects).domains[3].Descriptors).To(HaveExactElements(HaveField("Value", "brief"), HaveField("Value", "short")))
	})

	It("are none without any, and nothing is asked then", func() {
		in := New(Sources{RateLimits: func(context.Context, []*limits.Domain) []RateLimitCounts { panic("asked") }})
		Expect(in.RateLimitStatus(context.Background(), read(nil))).To(Equal([]RateLimitStatus{}))
	})

	It("have what was counted, with the places where it is", func() {
		var asked []string
		in := New(Sources{
			Now: func() time.Time { return time.Unix(20_000*24*60*60+100, 0) },
			RateLimits: func(_ context.Context, domains []*limits.Domain) []RateLimitCounts {
				list := make([]RateLimitCounts, len(domains))
				for i, d := range domains {
					asked = append(asked, d.Domain)
					list[i] = RateLimitCounts{
						Counted: i > 0, Note: d.Domain, Top: []RateLimited{{Limit: "path", Over: 1}}, Engines: []RateLimitEngine{{URL: "u"}},
						Limits: []RateLimit{{Limit: "path", Hits: 3}, {Limit: "filter=short"}},
					}
				}
				return list
			},
		})
		got := in.RateLimitStatus(context.Background(), read(objects))
		Expect(asked).To(Equal([]string{"first", "second", "own", "stated-by-filters"}))
		five, seven := int64(5), int64(7)
		counted := func(config, domain string, counted bool, limits ...RateLimit) RateLimitStatus {
			return RateLimitStatus{
				Config: config, Domain: domain, Counted: counted, Note: domain, Top: []RateLimited{{Limit: "path", Over: 1}}, Engines: []RateLimitEngine{{URL: "u"}}, Limits: limits,
			}
		}
		path := func(routes ...string) RateLimit {
			return RateLimit{Limit: "path", Hits: 3, Unit: "minute", RequestsPerUnit: &five, ResetsIn: 20, Routes: routes}
		}
		Expect(got).To(Equal([]RateLimitStatus{
			counted("b", "first", false, path("shop/root", "web/*"), RateLimit{Limit: "filter=short"}),
			counted("d", "second", true, path("shop/api"), RateLimit{Limit: "filter=short"}),
			counted("e", "own", true, path(), RateLimit{Limit: "filter=short"}),
			counted("", "stated-by-filters", true, RateLimit{Limit: "path", Hits: 3},
				RateLimit{Limit: "filter=short", Unit: "hour", RequestsPerUnit: &seven, ResetsIn: 3500, Routes: []string{"web/*"}}),
		}))
	})

	It("that filters state themselves are not those of filters that name no domain", func() {
		in := New(Sources{RateLimits: func(context.Context, []*limits.Domain) []RateLimitCounts {
			return []RateLimitCounts{{Limits: []RateLimit{{Limit: "filter=short"}}}}
		}})
		got := in.RateLimitStatus(context.Background(), read([]model.Object{
			&model.ProxyService{Proxy: "gw", Service: "shop"}, filter("short", `{"per":"all","limit":"7/hour"}`),
			filter("each", `{"descriptors":[{"generic_key":{"descriptor_key":"filter","descriptor_value":"short"}}]}`),
			&model.RouteFilter{Service: "shop", Route: "root", Filter: "each"}, &model.ServiceFilter{Service: "shop", Filter: "short"},
			&model.ProxyFilter{Proxy: "gw", Filter: "short"}, &model.ProxyFilter{Proxy: "other", Filter: "each"},
		}))
		Expect(got[0].Limits[0].Routes).To(Equal([]string{"*/*", "shop/*"}))
	})

	DescribeTable("are not known if they cannot be read", func(broken model.Kind) {
		_, err := RateLimitsOf(stored{list: objects, broken: broken}, "gw")
		Expect(err).To(MatchError(errStore))
	},
		Entry(nil, model.KindProxyGlobalConfig), Entry(nil, model.KindGlobalConfig), Entry(nil, model.KindProxyService),
		Entry(nil, model.KindServiceFilter), Entry(nil, model.KindRouteFilter), Entry(nil, model.KindFilter),
	)
})
