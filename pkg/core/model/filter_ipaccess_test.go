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
