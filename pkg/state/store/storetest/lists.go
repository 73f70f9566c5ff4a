package storetest

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func listSpecs(h *harness) {
	BeforeEach(func(ctx SpecContext) {
		h.create(ctx,
			service("shop", "shop.example.com"), service("Shop", "*"), service("sh%p", "SHOP.example.COM"), service("blog", "*.example.com"),
			upstream("blue"), upstream("green"),
			route("shop", "root"), route("blog", "root"), route("shop", "api"),
			proxy("gw"), proxy("edge"),
			uses("shop", "root", "green"), uses("shop", "root", "blue"), uses("shop", "api", "blue"), uses("blog", "root", "blue"),
			attached("gw", "blog"), attached("edge", "blog"), attached("gw", "shop"),
		)
	})

	DescribeTable("select, oldest first", func(ctx SpecContext, q store.Query, want ...string) {
		Expect(h.names(ctx, q)).To(HaveExactElements(want))
	},
		Entry("all", store.Query{Kind: model.KindService}, "shop", "Shop", "sh%p", "blog"),
		Entry("a page", store.Query{Kind: model.KindService, Limit: 2}, "shop", "Shop"),
		Entry("the next page", store.Query{Kind: model.KindService, After: 2, Limit: 2}, "sh%p", "blog"),
		Entry("the page after the last", store.Query{Kind: model.KindService, After: 4, Limit: 2}),
		Entry("by prefix, in that letter case", store.Query{Kind: model.KindService, NamePrefix: "sh"}, "shop", "sh%p"),
		Entry("by prefix and page", store.Query{Kind: model.KindService, NamePrefix: "sh", After: 1, Limit: 5}, "sh%p"),
		Entry("by the whole name", store.Query{Kind: model.KindService, NamePrefix: "shop"}, "shop"),
		Entry("by a wildcard, which has no effect", store.Query{Kind: model.KindService, NamePrefix: "%"}),
		Entry("by another one, which is part of a name", store.Query{Kind: model.KindService, NamePrefix: "sh%"}, "sh%p"),
		Entry("by an underscore", store.Query{Kind: model.KindService, NamePrefix: "sho_"}),
		Entry("by a quote", store.Query{Kind: model.KindService, NamePrefix: `'"`}),
		Entry("by the last Unicode character", store.Query{Kind: model.KindService, NamePrefix: "\U0010FFFF"}),
		Entry("by invalid UTF-8", store.Query{Kind: model.KindService, NamePrefix: "\xff"}),
		Entry("by names", store.Query{Kind: model.KindService, Names: []string{"sh%p", "none", "shop"}}, "shop", "sh%p"),
		Entry("routes of a service", store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey("shop")}}, "shop/root", "shop/api"),
		Entry("routes by prefix", store.Query{Kind: model.KindRoute, NamePrefix: "r"}, "shop/root", "blog/root"),
		Entry("links of an upstream", store.Query{Kind: model.KindRouteUpstream, To: []model.Key{model.UpstreamKey("blue")}},
			"shop/root/blue", "shop/api/blue", "blog/root/blue"),
		Entry("links of a route", store.Query{Kind: model.KindRouteUpstream, To: []model.Key{model.RouteKey("shop", "root")}},
			"shop/root/green", "shop/root/blue"),
		Entry("services of a proxy", store.Query{Kind: model.KindProxyService, To: []model.Key{model.ProxyKey("gw")}}, "gw/blog", "gw/shop"),
		Entry("proxies of a service", store.Query{Kind: model.KindProxyService, To: []model.Key{model.ServiceKey("blog")}}, "gw/blog", "edge/blog"),
		Entry("of nothing", store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey("none")}}),
	)

	DescribeTable("find the services of a host, oldest first", func(ctx SpecContext, host string, want ...string) {
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			Expect(namesOf(r, host)).To(HaveExactElements(want))
			Expect(r.PrefetchHosts([]string{host, "*"})).To(Succeed())
			Expect(namesOf(r, host)).To(HaveExactElements(want))
			return nil
		})).To(Succeed())
		h.write(ctx, func(w store.Writer) error {
			Expect(namesOf(w, host)).To(HaveExactElements(want))
			Expect(w.PrefetchHosts([]string{"*.example.com", host, "none.example.com", "*"})).To(Succeed())
			Expect(namesOf(w, host)).To(HaveExactElements(want))
			return nil
		})
		h.write(ctx, func(w store.Writer) error {
			Expect(w.PrefetchHosts([]string{"*.example.com", host, "none.example.com", "*"})).To(Succeed())
			Expect(namesOf(w, host)).To(HaveExactElements(want))
			return nil
		})
	},
		Entry("in any letter case", "Shop.Example.com", "shop", "sh%p"),
		Entry("of *, which is no wildcard", "*", "Shop"),
		Entry("of a host that no service has", "none.example.com"),
		Entry("of invalid UTF-8", "\xff"),
	)

	It("have a type", func(ctx SpecContext) {
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			list, err := store.List[*model.Upstream](r, store.Query{Kind: model.KindUpstream, NamePrefix: "g"})
			Expect(list).To(HaveLen(1))
			Expect(list[0].Name).To(Equal("green"))
			return err
		})).To(Succeed())
	})
}
