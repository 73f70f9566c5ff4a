package translate_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
)

// proxyFilter returns the GlobalConfig operators/office with the type of a filter, and more of its spec.
func proxyFilter(typeName, config, more string) string {
	return fmt.Sprintf("apiVersion: gateway.gatehouse.dev/v1\nkind: GlobalConfig\nmetadata: {name: office, namespace: operators}\nspec: {type: %s, config: %q%s}", typeName, config, more)
}

const (
	officeOnly = `{"allow":["192.0.2.0/24"]}`
	twoRoutes  = "  routes: [{services: [{name: web, port: 80}]}, {name: health, conditions: [{prefix: /health}], services: [{name: web, port: 80}]}]"
)

var _ = Describe("A GlobalConfig of a filter's type", func() {
	const name = "operators.office_proxy"
	links := func(step translate.Step) (list []string) {
		for _, line := range shown(step) {
			if strings.Contains(line, "/proxy/") && strings.Contains(line, "/filter/") {
				list = append(list, line)
			}
		}
		return list
	}

	It("is a filter of the proxies that it names, or of all", func() {
		c := newCluster(webService, webSlice, proxyFilter("vh_filter_ipaccess", officeOnly, ""))
		step := c.step()
		Expect(find[*model.Filter](step, model.FilterKey(name)).Config).To(Equal(model.JSON(officeOnly)))
		Expect(links(step)).To(Equal([]string{"+ /proxy/edge/filter/" + name, "+ /proxy/gatehouse/filter/" + name}))
		Expect(objectIn(step, "GlobalConfig operators/office").Proxies).To(Equal([]string{"edge", "gatehouse"}))
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", proxy: edge"))
		Expect(shown(c.step())).To(Equal([]string{"- /proxy/gatehouse/filter/" + name}))
		c.remove("GlobalConfig operators/office")
		Expect(shown(c.step())).To(Equal([]string{"- /proxy/edge/filter/" + name, "- /filter/" + name}))
	})

	It("is on the proxies of Gateways, too, if it is on all", func() {
		c := gatewayCluster()
		c.gateway("edge", "{name: http, port: 80, protocol: HTTP}")
		Expect(links(c.step())).To(BeEmpty())
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ""))
		Expect(links(c.step())).To(ContainElement("+ /proxy/shop.edge/filter/" + name))
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", proxy: edge"))
		Expect(links(c.step())).To(ContainElement("- /proxy/shop.edge/filter/" + name))
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ""))
		c.step()
		c.gateway("later", "{name: http, port: 80, protocol: HTTP}")
		Expect(links(c.step())).To(Equal([]string{"+ /proxy/shop.later/filter/" + name}))
		c.remove("GlobalConfig operators/office")
		Expect(shown(c.step())).To(Equal([]string{
			"- /proxy/edge/filter/" + name, "- /proxy/gatehouse/filter/" + name, "- /proxy/shop.edge/filter/" + name, "- /proxy/shop.later/filter/" + name, "- /filter/" + name,
		}))
	})

	It("is ignored if its proxy is another installation's", func() {
		step := newCluster(proxyFilter("vh_filter_ipaccess", officeOnly, ", proxy: elsewhere")).step()
		Expect(objectIn(step, "GlobalConfig operators/office").Ignored).To(BeTrue())
		Expect(step.Ops).To(HaveLen(2), "the proxies")
	})

	It("cannot be replaced or named by a RouteFilter of its name, nor by a host", func() {
		c := newCluster(webService, webSlice, proxyFilter("vh_filter_ipaccess", officeOnly, ""))
		find[*model.Filter](c.step(), model.FilterKey(name))
		c.apply(strings.ReplaceAll(filter("office", "vh_filter_ipaccess", `{"allow":["0.0.0.0/0"]}`), "namespace: shop", "namespace: operators"))
		Expect(shown(c.step())).To(Equal([]string{"+ /filter/operators.office"}))
		c.apply(hostOf("  filters: [{name: office_proxy}]\n" + twoRoutes))
		Expect(problems(c.step(), "GatewayHost shop/web")).To(Equal([]string{"spec.filters[0].name RefNotFound: RouteFilter shop/office_proxy does not exist"}))
	})

	DescribeTable("lets nobody in if it cannot be used:", func(typeName, config, problem, standIn string) {
		step := newCluster(proxyFilter(typeName, config, "")).step()
		Expect(problems(step, "GlobalConfig operators/office")).To(Equal([]string{problem}))
		f := find[*model.Filter](step, model.FilterKey(name))
		Expect(f.TypeName() + " " + string(f.Config)).To(Equal(standIn))
		Expect(f.Validate()).To(BeEmpty())
		Expect(links(step)).To(HaveLen(2))
	},
		Entry("not JSON", "http_filter_jwt", "{", "spec.config Invalid: is not JSON: unexpected end of JSON input", `vh_filter_rbac {"allow":[{"addresses":["255.255.255.255/32"]}]}`),
		Entry("an invalid field of one for connections, too", "vh_filter_ipaccess", `{"allow":["office"]}`,
			`spec.config Invalid: allow: "office" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`, `vh_filter_ipaccess {"allow":["255.255.255.255/32"]}`),
		Entry("a Secret that is missing", "http_filter_apikey", `{"keys":"partners"}`,
			"spec.config RefNotFound: Secret operators/partners does not exist", `vh_filter_rbac {"allow":[{"addresses":["255.255.255.255/32"]}]}`),
	)

	It("does not exist if the type is not one for proxies", func() {
		step := newCluster(proxyFilter("http_filter_oidc", "{}", "")).step()
		Expect(problems(step, "GlobalConfig operators/office")).To(Equal([]string{"spec.type Invalid: a filter of this type cannot be on a proxy: " +
			"it names one redirect URL and one set of cookies: a globalconfig_oauth is the login for a proxy"}))
		Expect(links(step)).To(BeEmpty())
	})

	It("does not apply to the hosts and routes that it exempts", func() {
		c := newCluster(webService, webSlice, hostOf(twoRoutes), proxyFilter("vh_filter_ipaccess", officeOnly, ""))
		exempt := func(step translate.Step) []any {
			return []any{[]string(find[*model.Service](step, model.ServiceKey("shop.web")).ExemptFilters), find[*model.Route](step, model.RouteKey("shop.web", "health")).Config.Exempt}
		}
		none := (*model.Exempt)(nil)
		Expect(exempt(c.step())).To(Equal([]any{[]string(nil), none}))
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", exempt: [{namespace: shop, name: web}, {namespace: shop, name: other, routes: [health]}]"))
		step := c.step()
		Expect(find[*model.Service](step, model.ServiceKey("shop.web")).ExemptFilters).To(Equal(model.Tags{name}))
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", exempt: [{namespace: shop, name: web, routes: [health, missing]}, {namespace: shop, name: web, routes: [health]}]"))
		Expect(exempt(c.step())).To(Equal([]any{[]string(nil), &model.Exempt{Proxy: []string{name}}}))
		By("a host of the same name elsewhere")
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", exempt: [{namespace: other, name: web}]"))
		step = c.step()
		Expect(shown(step)).To(Equal([]string{"+ /service/shop.web/route/health"}))
		Expect(find[*model.Route](step, model.RouteKey("shop.web", "health")).Config.Exempt).To(BeNil())
		By("deleting the GlobalConfig")
		c.apply(proxyFilter("vh_filter_ipaccess", officeOnly, ", exempt: [{namespace: shop, name: web}]"))
		c.step()
		c.remove("GlobalConfig operators/office")
		Expect(find[*model.Service](c.step(), model.ServiceKey("shop.web")).ExemptFilters).To(BeEmpty())
	})

	It("exempts nothing if it is no filter", func() {
		step := newCluster(webService, webSlice, hostOf(twoRoutes), proxyFilter("ratelimit", `{"domain":"d","descriptors":[]}`, ", exempt: [{namespace: shop, name: web}]")).step()
		Expect(problems(step, "GlobalConfig operators/office")).To(ContainElement("spec.exempt Invalid: is for the types of filters, and ratelimit is none"))
	})

	It("exempts a host from 32 filters at most, and the others apply", func() {
		c := newCluster(webService, webSlice, hostOf(twoRoutes))
		for i := range 40 {
			c.apply(strings.Replace(proxyFilter("vh_filter_ipaccess", officeOnly, ", exempt: [{namespace: shop, name: web}]"), "name: office", fmt.Sprintf("name: office-%02d", i), 1))
		}
		svc := find[*model.Service](c.step(), model.ServiceKey("shop.web"))
		Expect(svc.ExemptFilters).To(HaveLen(32))
		Expect(svc.Validate()).To(BeEmpty())
	})
})
