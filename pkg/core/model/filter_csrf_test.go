package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The origins of a CSRF filter", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterCSRF, config)).To(Equal(faults))
},
	Entry("may be 100", `{"origins":`+names("https://a", 100)+`}`),
	Entry("may not be more", `{"origins":`+names("https://a", 101)+`}`, ".origins has 101 entries; at most 100 are allowed"),
	Entry("are all checked", `{"origins":["https://a.test","null"]}`, `.origins browsers send "null" for pages without an origin, which anybody can make; remove it`),
)
