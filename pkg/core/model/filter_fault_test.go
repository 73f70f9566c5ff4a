package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The bounds of a fault", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterFault, config)).To(Equal(faults))
},
	Entry("with the longest delay", `{"delay":"1m"}`),
	Entry("with a longer delay", `{"delay":"60001ms"}`, ".delay 1m0.001s is not between 1ms and 1m"),
	Entry("for all requests", `{"delay":1,"percent":100}`),
	Entry("for more than all", `{"delay":1,"percent":100.0001}`, ".percent 100.0001 is not between 0.0001 and 100"),
	Entry("with a share of five decimals", `{"delay":1,"percent":10.00005}`, ".percent 10.00005 has more than four decimals"),
	Entry("with a delay that is no number", `{"delay":true}`, ` delay true is not a duration such as "1.5s", and not a whole number of milliseconds`),
)

var _ = DescribeTable("A fault says which requests it hits", func(config, which string) {
	Expect(adviceOf(model.FilterFault, config)).To(Equal([]string{"is for tests: " + which + " are delayed or fail where it is attached"}))
},
	Entry(nil, `{"abort":503}`, "all requests"),
	Entry(nil, `{"abort":503,"percent":100}`, "all requests"),
	Entry(nil, `{"abort":503,"percent":0.25}`, "0.25% of the requests"),
	Entry(nil, `{"abort":503,"percent":50,"header":"x-test"}`, "50% of the requests with the header x-test"),
)

var _ = It("A fault hits a share in millionths", func() {
	share := func(config model.JSON) int {
		f, _ := (&model.Filter{Name: "f", Type: model.FilterFault, Config: config}).Parse().Spec.(*model.FaultFilter)
		return f.Millionths()
	}
	Expect(share(`{"abort":503}`)).To(Equal(1_000_000))
	Expect(share(`{"abort":503,"percent":33.3333}`)).To(Equal(333_333))
})
