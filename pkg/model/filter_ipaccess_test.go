package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
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
