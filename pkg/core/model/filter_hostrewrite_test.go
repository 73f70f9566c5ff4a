package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = It("A rewrite of the host with an invalid expression has one fault", func() {
	Expect(faultsOf(model.FilterHostRewrite, `{"from_path":{"regex":"/(","substitution":"\\1@a"}}`)).To(HaveLen(1))
})

var _ = DescribeTable("A rewrite of the host from a header with a name", func(length int, faults ...string) {
	Expect(faultsOf(model.FilterHostRewrite, `{"from_header":"`+strings.Repeat("a", length)+`"}`)).To(Equal(faults))
},
	Entry("of 255 characters", 255),
	Entry("of 256 characters", 256, ".from_header has more than 255 characters"),
)
