package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A list of addresses", func() {
	fault := func(config string) []model.FieldError {
		return (&model.Filter{Name: "f", Type: model.FilterIPAccess, Config: model.JSON(config)}).Validate()
	}

	It("has addresses and ranges of both families", func() {
		Expect(fault(`{"allow":["192.0.2.7","10.0.0.0/8","2001:db8::1","::/0"],"deny":[]}`)).To(BeEmpty())
	})

	It("is not empty if it lists who is allowed", func() {
		Expect(fault(`{"allow":[],"deny":["192.0.2.1"]}`)).To(Equal([]model.FieldError{
			{Field: "Filter_config.allow", Message: "is empty, so no client would be allowed; name at least one address, or omit allow"},
		}))
	})

	It("has at most 2,000 entries", func() {
		many := strings.TrimSuffix(strings.Repeat(`"192.0.2.1",`, 2000), ",")
		Expect(fault(`{"deny":[` + many + `]}`)).To(BeEmpty())
		Expect(fault(`{"deny":[` + many + `,"192.0.2.1"]}`)).To(Equal([]model.FieldError{
			{Field: "Filter_config.deny", Message: "has 2001 entries; at most 2000 are allowed"},
		}))
	})
})

var _ = DescribeTable("An entry of a list of addresses", func(entry string, right bool) {
	want := []string{}
	if !right {
		want = []string{`.deny "` + entry + `" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`}
	}
	Expect(faultsOf(model.FilterIPAccess, `{"deny":["192.0.2.1","`+entry+`"]}`)).To(Equal(want))
},
	Entry(nil, "192.0.2.7", true), Entry(nil, "2001:db8::/32", true),
	Entry("that is IPv4 inside of IPv6", "::ffff:192.0.2.7", false), Entry("that is a range of IPv4 inside of IPv6", "::ffff:192.0.2.0/120", false),
	Entry("with a zone", "fe80::1%eth0", false), Entry("with a range that is too long", "192.0.2.0/33", false), Entry("that is a name", "a.test", false),
)

var _ = It("A list of addresses warns about ranges that are larger than they look", func() {
	Expect(adviceOf(model.FilterIPAccess, `{"allow":["10.0.0.0/8","192.0.2.7","10.1.2.3/8"],"deny":["2001:db8::1/32"]}`)).To(Equal([]string{
		"allow has 10.1.2.3/8, which is all of 10.0.0.0/8: write that, or the address alone",
		"deny has 2001:db8::1/32, which is all of 2001:db8::/32: write that, or the address alone",
	}))
})

var _ = DescribeTable("Lists of countries and networks", func(config string, want ...string) {
	if want == nil {
		want = []string{}
	}
	Expect(faultsOf(model.FilterIPAccess, config)).To(Equal(want))
},
	Entry("in any case", `{"allow_countries":["de","AT","xk"],"deny_countries":[],"unknown":"allow","no_database":"refuse"}`),
	Entry("the largest number", `{"deny_asns":[1,4294967295]}`),
	Entry("no country", `{"deny_countries":["UK","D","DEU","","A "]}`,
		`.deny_countries "UK" is not the code of a country with two letters (ISO 3166-1), such as DE`,
		`.deny_countries "D" is not the code of a country with two letters (ISO 3166-1), such as DE`,
		`.deny_countries "DEU" is not the code of a country with two letters (ISO 3166-1), such as DE`,
		`.deny_countries "" is not the code of a country with two letters (ISO 3166-1), such as DE`,
		`.deny_countries "A " is not the code of a country with two letters (ISO 3166-1), such as DE`),
	Entry("no number", `{"allow_asns":[0,4294967296,-1]}`,
		`.allow_asns 0 is not the number of an autonomous system: these are from 1 to 4294967295`,
		`.allow_asns 4294967296 is not the number of an autonomous system: these are from 1 to 4294967295`,
		`.allow_asns -1 is not the number of an autonomous system: these are from 1 to 4294967295`),
	Entry("nobody", `{"allow_countries":[],"allow_asns":[]}`,
		`.allow_countries is empty, so no client would be allowed; name at least one country, or omit allow_countries`,
		`.allow_asns is empty, so no client would be allowed; name at least one network, or omit allow_asns`),
	Entry("too many", `{"deny_asns":[`+strings.Repeat("1,", 500)+`1],"deny_countries":["`+strings.Repeat(`DE","`, 250)+`DE"]}`,
		`.deny_countries has 251 entries; at most 250 are allowed`, `.deny_asns has 501 entries; at most 500 are allowed`),
	Entry("choices about nothing", `{"deny":["192.0.2.1"],"unknown":"allow","no_database":"maybe"}`,
		`.unknown is about lists of countries and networks, and the filter has none: set one, or omit unknown`,
		`.no_database "maybe" is not one of allow, refuse`,
		`.no_database is about lists of countries and networks, and the filter has none: set one, or omit no_database`),
)

var _ = DescribeTable("Headers for backends", func(config string, want ...string) {
	g := &model.GlobalConfig{Name: "where", Type: model.GlobalConfigGeoIP, Config: model.JSON(config)}
	list := []string{}
	for _, e := range g.Validate() {
		list = append(list, e.Field+" "+e.Message)
	}
	if want == nil {
		want = []string{}
	}
	Expect(list).To(Equal(want))
},
	Entry(nil, `{"country_header":"X-Country","asn_header":"x-asn"}`),
	Entry("none", `{}`, `config names no header; set country_header or asn_header, such as {"country_header":"x-country-code"}`),
	Entry("the same", `{"country_header":"X-A","asn_header":"x-a"}`, `config.asn_header "x-a" is named twice`),
	Entry("one of the gateway", `{"country_header":"host"}`, `config.country_header "host" cannot be changed; the rewrite of Route_config changes path and host`),
)
