package ipaccess_test

import (
	"net/http"
	"net/netip"

	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/ipaccess"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// The specs of test/e2e show that Envoy does what the messages say.
var _ = Describe("The filter that checks the client's country and network", func() {
	both := ir.Databases{Country: "/c.mmdb", ASN: "/a.mmdb"}
	// asked is what the filter says of 192.0.2.7, where the Envoy has databases. The empty place is not known.
	asked := func(d ir.Databases, place string, filters ...*model.IPAccessFilter) string {
		GinkgoHelper()
		h := &ir.Host{}
		for _, f := range filters {
			Expect(ipaccess.Filter().Config.Host(h, f, seam.Place{})).To(Succeed())
		}
		r, err := filtertest.Request(ipaccess.Filter(), h.Filters, nil, http.MethodGet)
		Expect(err).NotTo(HaveOccurred())
		on, err := filtertest.Request(ipaccess.Lookup(), h.Filters, nil, http.MethodGet)
		Expect(err).NotTo(HaveOccurred())
		for name, config := range on.VirtualHost.GetTypedPerFilterConfig() {
			r.VirtualHost.TypedPerFilterConfig[name] = config
		}
		r.Listener = &hcmv3.HttpConnectionManager{}
		for _, m := range ipaccess.Lookup().Listener(ir.Listener{Databases: d}) {
			config, err := seam.Pack(m.Config)
			Expect(err).NotTo(HaveOccurred())
			r.Listener.HttpFilters = append(r.Listener.HttpFilters, &hcmv3.HttpFilter{
				Name: m.Name, Disabled: !m.On, ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: config},
			})
		}
		r.Step = func(string, string) {}
		if place != "?" {
			r.Where = func(netip.Addr) (country, network string) {
				if place == "" {
					return "", ""
				}
				return place[:2], place[3:]
			}
		}
		refused, err := ipaccess.Filter().Refuse(r)
		Expect(err).NotTo(HaveOccurred())
		if refused != nil {
			return refused.Message
		}
		said, err := ipaccess.Filter().Describe(r)
		Expect(err).NotTo(HaveOccurred())
		return said
	}
	germany := &model.IPAccessFilter{AllowCountries: []string{"de"}}
	const refuses, allows = "a vh_filter_ipaccess does not allow 192.0.2.7: it ", "allows 192.0.2.7: it "

	DescribeTable("reports what decides", func(place string, want string, filters ...*model.IPAccessFilter) {
		Expect(asked(both, place, filters...)).To(Equal(want))
	},
		Entry(nil, "DE 1", allows+"has country DE", germany),
		Entry(nil, "AT 1", refuses+"has country AT", germany),
		Entry("no known country", "", refuses+"has no known country", germany),
		Entry("no known country, which is allowed", "", allows+"has no known country", &model.IPAccessFilter{AllowCountries: []string{"DE"}, Unknown: "allow"}),
		Entry("a deny list", "DE 1", refuses+"has country DE", &model.IPAccessFilter{DenyCountries: []string{"DE"}}),
		Entry("a deny list without the unknown", "", allows+"has no known country", &model.IPAccessFilter{DenyCountries: []string{"DE"}}),
		Entry("a deny list with the unknown", "", refuses+"has no known country", &model.IPAccessFilter{DenyCountries: []string{"DE"}, Unknown: "refuse"}),
		Entry("an address that needs no country", "", allows+"is in 192.0.2.7/32", &model.IPAccessFilter{Allow: []string{"192.0.2.7"}, DenyCountries: []string{"DE"}, Unknown: "refuse"}),
		Entry("a network", "DE 64500", refuses+"has country DE, and has network 64500", germany, &model.IPAccessFilter{DenyASNs: []int{64500}, DenyCountries: []string{"FR"}}),
		Entry("a part of a number", "DE 6450", allows+"has network 6450", &model.IPAccessFilter{DenyASNs: []int{64500, 645}}),
		Entry("one of several lists", "AT 64500", allows+"has country AT, and has network 64500", &model.IPAccessFilter{AllowCountries: []string{"DE"}, AllowASNs: []int{64500}}),
		Entry("each of two filters", "AT 64500", refuses+"has country AT", &model.IPAccessFilter{AllowASNs: []int{64500}}, germany),
		Entry("what only Envoy knows", "?", "whether it allows 192.0.2.7 depends on the country of 192.0.2.7, which is compared with AT, DE; "+
			"the Envoy looks it up, and this control plane does not know it", &model.IPAccessFilter{AllowCountries: []string{"DE", "AT"}}),
		Entry("what only Envoy knows, and does not matter", "?", allows+"is in 192.0.2.0/24", &model.IPAccessFilter{Allow: []string{"192.0.2.0/24"}, AllowCountries: []string{"DE"}}),
	)

	It("refuses without a database, unless it is told otherwise", func() {
		const missing = "needs a database of countries, which the Envoy does not have (gatehouse envoy --geoip-country)"
		for _, d := range []ir.Databases{{}, {ASN: "/a.mmdb"}} {
			Expect(asked(d, "?", germany)).To(Equal(refuses + missing))
			Expect(asked(d, "?", &model.IPAccessFilter{DenyCountries: []string{"DE"}})).To(Equal(refuses + missing))
			Expect(asked(d, "?", &model.IPAccessFilter{AllowCountries: []string{"DE"}, NoDatabase: "allow"})).To(Equal(allows + missing))
			Expect(asked(d, "?", &model.IPAccessFilter{DenyCountries: []string{"DE"}, NoDatabase: "allow"})).To(Equal(allows + missing))
		}
	})

	It("looks up nothing for an Envoy without a database, and nothing where no list needs it", func() {
		Expect(ipaccess.Lookup().Listener(ir.Listener{LocationHeaders: ir.LocationHeaders{Country: "x-c"}})).To(BeEmpty())
		h := &ir.Host{}
		Expect(ipaccess.Filter().Config.Host(h, &model.IPAccessFilter{Allow: []string{"192.0.2.7"}}, seam.Place{})).To(Succeed())
		Expect(ipaccess.Lookup().Host(h)).To(BeEmpty())
		Expect(ipaccess.Filter().Config.Needs(h)).To(Equal(ir.Needs{}))
		Expect(ipaccess.Filter().Config.Host(h, &model.IPAccessFilter{DenyASNs: []int{1}}, seam.Place{})).To(Succeed())
		Expect(ipaccess.Lookup().Host(h)).To(HaveLen(4))
		Expect(ipaccess.Filter().Config.Needs(h)).To(Equal(ir.Needs{Networks: true}))
	})

	It("removes its own headers around the lookup", func() {
		names := func(l ir.Listener) (list []string) {
			for _, m := range ipaccess.Lookup().Listener(l) {
				name := m.Name
				if m.On {
					name += " on"
				}
				list = append(list, name)
			}
			return list
		}
		const f = "envoy.filters.http.geoip"
		Expect(names(ir.Listener{Databases: both})).To(Equal([]string{f + "/forged", f, f + "/state", f + "/cleanup"}))
		told := ir.Listener{Databases: both, LocationHeaders: ir.LocationHeaders{Country: "x-c"}}
		Expect(names(told)).To(Equal([]string{f + "/forged on", f + " on", f + "/state", f + "/cleanup on"}))
		told.LocationHeaders.ASN = "x-a"
		Expect(names(told)).To(Equal([]string{f + " on", f + "/state"}))
	})
})
