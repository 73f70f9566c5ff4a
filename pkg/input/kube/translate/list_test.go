package translate_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A RouteFilter that is a list", func() {
	const (
		addresses = `{"addresses":["192.0.2.0/24"]}`
		names     = `{"allow_lists":["office"]}`
		limitedBy = "  filters: [{name: limit}]\n  routes: [{services: [{name: web, port: 80}]}]"
	)
	closed := []string{"gatehouse shop.example.com / -> 503"}

	It("is one that filters of its namespace name", func() {
		c := newCluster(webService, webSlice, hostOf(limitedBy), filter("limit", "vh_filter_ipaccess", names), filter("office", "list_addresses", addresses))
		step := c.step()
		Expect(find[*model.List](step, model.ListKey("shop.office_addresses"))).To(Equal(&model.List{Name: "shop.office_addresses", Type: "addresses", Config: addresses}))
		Expect(find[*model.Filter](step, model.FilterKey("shop.limit")).Config).To(Equal(model.JSON(`{"allow_lists":["shop.office_addresses"]}`)))
		for ref, o := range step.Objects {
			Expect(o.Problems).To(BeEmpty(), ref.String())
			Expect(o.Proxies).To(Equal([]string{"gatehouse"}), ref.String())
		}
		By("a change of it")
		c.apply(filter("office", "list_addresses", `{"addresses":[]}`))
		Expect(shown(c.step())).To(Equal([]string{"+ /list/shop.office_addresses"}))
		By("hosts that stop using it")
		c.apply(hostOf(twoRoutes))
		Expect(objectIn(c.step(), "RouteFilter shop/office").Proxies).To(BeEmpty())
	})

	It("is not one of another namespace", func() {
		step := newCluster(webService, webSlice, hostOf(limitedBy), filter("limit", "vh_filter_ipaccess", names),
			strings.Replace(filter("office", "list_addresses", addresses), "namespace: shop", "namespace: other", 1)).step()
		Expect(problems(step, "RouteFilter shop/limit")).To(Equal([]string{"spec.routeFilterConfig.config RefNotFound: RouteFilter shop/office does not exist"}))
		Expect(served(step)).To(Equal(closed))
		Expect(problems(newCluster(filter("limit", "vh_filter_ipaccess", `{"allow_lists":["other.office"]}`),
			strings.Replace(filter("office", "list_addresses", addresses), "namespace: shop", "namespace: other", 1)).step(), "RouteFilter shop/limit")).To(Equal([]string{
			"spec.routeFilterConfig.config RefNotFound: RouteFilter shop/other.office does not exist"}))
	})

	DescribeTable("closes what names it if it cannot be used:", func(list, problem string) {
		c := newCluster(webService, webSlice, hostOf(limitedBy), filter("limit", "vh_filter_ipaccess", names))
		if list != "" {
			c.apply(list)
		}
		step := c.step()
		Expect(problems(step, "RouteFilter shop/limit")).To(Equal([]string{"spec.routeFilterConfig.config " + problem}))
		Expect(served(step)).To(Equal(closed))
		By("and does not once it can")
		c.apply(filter("office", "list_addresses", addresses))
		Expect(problems(c.step(), "RouteFilter shop/limit")).To(BeEmpty())
		By("and again when it is gone")
		c.remove("RouteFilter shop/office")
		Expect(shown(c.step())).To(ContainElements("- /filter/shop.limit", "- /list/shop.office_addresses", "+ /service/shop.web/route/unavailable"))
	},
		Entry("it does not exist", "", "RefNotFound: RouteFilter shop/office does not exist"),
		Entry("another type of list", filter("office", "list_headers", `{"response":{"set":{"x-a":"b"}}}`),
			"Invalid: RouteFilter shop/office is of type list_headers, and must be of type list_addresses"),
		Entry("a filter", filter("office", "http_filter_grpcweb", "{}"), "Invalid: RouteFilter shop/office is of type http_filter_grpcweb, and must be of type list_addresses"),
		Entry("not JSON", filter("office", "list_addresses", "{"),
			"Invalid: RouteFilter shop/office cannot be used: spec.routeFilterConfig.config: is not JSON: unexpected end of JSON input"),
		Entry("an invalid address", filter("office", "list_addresses", `{"addresses":["office"]}`), "Invalid: RouteFilter shop/office cannot be used: "+
			`spec.routeFilterConfig.config: addresses: "office" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`),
		Entry("an unknown type", filter("office", "list_words", "{}"), "Invalid: RouteFilter shop/office is of type list_words, and must be of type list_addresses"),
	)

	It("is no filter of a host", func() {
		step := newCluster(webService, webSlice, hostOf(limitedBy), filter("limit", "list_addresses", addresses)).step()
		Expect(problems(step, "GatewayHost shop/web")).To(Equal([]string{"spec.filters[0].name Invalid: RouteFilter shop/limit is a list, which filters name in their configurations"}))
		Expect(served(step)).To(Equal(closed))
	})

	It("is not a filter that names itself, or one that names it", func() {
		c := newCluster(webService, webSlice, hostOf(limitedBy), filter("limit", "vh_filter_ipaccess", `{"allow_lists":["limit","office"]}`), filter("office", "vh_filter_ipaccess", `{"allow_lists":["limit"]}`))
		Expect(served(c.step())).To(Equal(closed))
	})

	It("is named by a filter of a proxy in its namespace", func() {
		step := newCluster(proxyFilter("vh_filter_ipaccess", names, ""), strings.Replace(filter("office", "list_addresses", addresses), "namespace: shop", "namespace: operators", 1)).step()
		Expect(find[*model.Filter](step, model.FilterKey("operators.office_proxy")).Config).To(Equal(model.JSON(`{"allow_lists":["operators.office_addresses"]}`)))
		Expect(objectIn(step, "RouteFilter operators/office").Proxies).To(Equal([]string{"edge", "gatehouse"}))
	})
})
