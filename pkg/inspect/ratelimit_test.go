package inspect

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
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
		{Key: "all", RateLimit: &model.RateLimit{Unlimited: true}},
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
	})

	It("has the places that it applies to, each once, and the number of places not shown", func() {
		var places []limitPlace
		for _, at := range []string{"shop/g", "shop/f", "shop/*", "shop/a", "shop/b", "shop/c", "shop/a"} {
			places = append(places, limitPlace{at, "each", filter("shop")})
		}
		got := described(append(places, limitPlace{"shop/other", "other", filter("api")}), true, "path")[0]
		Expect(got.Routes).To(Equal([]string{"shop/*", "shop/a", "shop/b", "shop/c", "shop/f"}))
		Expect(got.MoreRoutes).To(Equal(1))
	})

	It("has places of filters without a domain in the first domain of the proxy only", func() {
		places := []limitPlace{{"shop/root", "each", filter("")}}
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
