package pipeline_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

var _ = Describe("A filter of a proxy", func() {
	guard := func(config string) *model.Filter {
		return &model.Filter{ID: 20, Name: "guard", Type: model.FilterIPAccess, Config: model.JSON(config)}
	}
	on := &model.ProxyFilter{ID: 21, Proxy: "gw", Filter: "guard"}
	second := []model.Object{
		&model.Service{Name: "till", FQDN: "till.test"}, &model.ProxyService{Proxy: "gw", Service: "till"},
		&model.Route{Service: "till", Name: "root", Prefix: "/"}, &model.RouteUpstream{Service: "till", Route: "root", Upstream: "blue"},
	}
	var build *pipeline.Build
	var revision int64
	apply := func(objects ...model.Object) pipeline.Result {
		revision++
		c := model.Change{Revision: revision}
		for _, o := range objects {
			c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		return build.Apply(c)
	}
	hosts := func(r pipeline.Result) map[string]*routev3.VirtualHost {
		GinkgoHelper()
		found := map[string]*routev3.VirtualHost{}
		for _, h := range r.Snapshots["gw"].Hosts {
			vh, err := h.VirtualHost()
			Expect(err).NotTo(HaveOccurred())
			found[vh.GetName()] = vh
		}
		return found
	}

	BeforeEach(func() {
		build, revision = newBuild(), 1
		build.Apply(filtered(second...))
	})

	It("closes all services if it cannot be enforced, which one condition says, until it can", func() {
		result := apply(guard(`{"allow":["x"]}`), on)
		for _, vh := range hosts(result) {
			Expect(vh.GetRoutes()).To(HaveLen(1))
			Expect(vh.GetRoutes()[0].GetDirectResponse().GetStatus()).To(BeEquivalentTo(503))
		}
		Expect(result.Conditions["proxy gw"]).To(HaveExactElements(And(
			HaveField("Key", model.ProxyFilterKey("gw", "guard")), HaveField("Code", model.Quarantined),
			HaveField("Message", HavePrefix(`on 2 services of proxy "gw": the service has filter guard, which cannot be read`)),
		)))
		result = apply(guard(`{"allow":["192.0.2.1"]}`))
		Expect(hosts(result)["shop"].GetRoutes()).To(HaveLen(2))
		Expect(result.Conditions["proxy gw"]).To(BeEmpty())
	})

	DescribeTable("closes a service of connections if it may protect it and cannot", func(filterType, config string, closed bool) {
		apply(&model.Service{ID: 30, Name: "db", FQDN: "*", Mode: model.ModeTCP, Port: 5432}, &model.ProxyService{ID: 31, Proxy: "gw", Service: "db"},
			&model.Route{ID: 32, Service: "db", Name: "root", Prefix: "/"}, &model.RouteUpstream{ID: 33, Service: "db", Route: "root", Upstream: "blue"})
		result := apply(&model.Filter{ID: 20, Name: "guard", Type: filterType, Config: model.JSON(config)}, on)
		Expect(build.Gateway("gw").L4[0].Services[0].Clusters).To(HaveLen(map[bool]int{true: 0, false: 1}[closed]))
		Expect(result.Conditions["proxy gw"]).To(HaveLen(map[bool]int{true: 1, false: 0}[closed]))
	},
		Entry("an address", model.FilterIPAccess, `{"allow":["192.0.2.1"]}`, false),
		Entry("a country", model.FilterIPAccess, `{"allow_countries":["DE"]}`, true),
		Entry("one that is broken", model.FilterIPAccess, `{"allow":["x"]}`, true),
		Entry("an unknown type", "http_filter_none", `{}`, true),
		Entry("one that is about requests", model.FilterCORS, `{"origins":["https://a.test"]}`, false),
	)

	It("moves to the other routes when one is exempt, and back", func() {
		ofRoutes := func(r pipeline.Result) (have []int) {
			h := hosts(r)["shop"]
			for _, route := range h.GetRoutes() {
				have = append(have, len(route.GetTypedPerFilterConfig()))
			}
			return append(have, len(h.GetTypedPerFilterConfig()))
		}
		health := &model.Route{ID: 40, Service: "shop", Name: "health", Prefix: "/health"}
		Expect(ofRoutes(apply(guard(`{"deny":["192.0.2.1"]}`), on, health, &model.RouteUpstream{ID: 41, Service: "shop", Route: "health", Upstream: "blue"}))).
			To(Equal([]int{0, 0, 0, 1}))
		exempt := *health
		exempt.Config.Exempt = &model.Exempt{Proxy: []string{"guard"}}
		Expect(ofRoutes(apply(&exempt))).To(Equal([]int{1, 0, 1, 0}))
		Expect(ofRoutes(apply(health))).To(Equal([]int{0, 0, 0, 1}))
	})

	It("reaches its services with each change of it and of them", func() {
		first := hosts(apply(guard(`{"deny":["192.0.2.1"]}`), on))
		Expect(first["shop"].GetTypedPerFilterConfig()).To(HaveLen(1))
		changed := hosts(apply(guard(`{"deny":["192.0.2.2"]}`)))
		Expect(changed["shop"].GetTypedPerFilterConfig()).NotTo(Equal(first["shop"].GetTypedPerFilterConfig()))
		Expect(changed["till"].GetTypedPerFilterConfig()).To(Equal(changed["shop"].GetTypedPerFilterConfig()))

		one := hosts(apply(&model.Service{Name: "till", FQDN: "till.test", ExemptFilters: model.Tags{"guard"}}))
		Expect(one["till"].GetTypedPerFilterConfig()).To(BeEmpty())
		Expect(one["shop"].GetTypedPerFilterConfig()).To(Equal(changed["shop"].GetTypedPerFilterConfig()))
		revision++
		none := hosts(build.Apply(model.Change{Revision: revision, Entries: []model.Entry{{Key: on.Key()}}}))
		Expect(none["shop"].GetTypedPerFilterConfig()).To(BeEmpty())
	})
})
