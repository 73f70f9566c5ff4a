package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The bounds of an affinity", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterAffinity, config)).To(Equal(faults))
},
	Entry("of a second", `{"ttl":"1s"}`),
	Entry("shorter than a second", `{"ttl":"999ms"}`, ".ttl 999ms is not between 1s and 8760h"),
	Entry("of a year", `{"ttl":"8760h"}`),
	Entry("longer than a year", `{"ttl":"8760h1s"}`, ".ttl 8760h0m1s is not between 1s and 8760h"),
	Entry("by a header with a long name", `{"header":"`+strings.Repeat("a", 255)+`"}`),
	Entry("by a header with a name that is too long", `{"header":"`+strings.Repeat("a", 256)+`"}`, ".header has more than 255 characters"),
	Entry("by something else", `{"by":"path"}`, `.by "path" is not one of cookie, header, address`),
)
