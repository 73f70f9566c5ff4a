package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("The share of a mirror", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterMirror, config)).To(Equal(faults))
},
	Entry("may be all", `{"upstream":"a","percent":100}`),
	Entry("may not be more", `{"upstream":"a","percent":100.01}`, ".percent 100.01 is not between 0.01 and 100"),
	Entry("may be a ten-thousandth", `{"upstream":"a","percent":0.01}`),
	Entry("may not be smaller", `{"upstream":"a","percent":0.009}`, ".percent 0.009 is not between 0.01 and 100"),
)

var _ = It("A mirror removes credentials unless it says that it does not", func() {
	f, _ := (&model.Filter{Name: "f", Type: model.FilterMirror, Config: `{"upstream":"a","strip_credentials":true}`}).Parse().Spec.(*model.MirrorFilter)
	Expect(f.Strips()).To(BeTrue())
})
