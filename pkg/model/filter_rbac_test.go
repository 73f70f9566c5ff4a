package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = Describe("The rules about who may do what", func() {
	filter := func(config string) *model.Filter {
		return &model.Filter{Name: "rules", Type: "vh_filter_rbac", Config: model.JSON(config)}
	}

	DescribeTable("are refused", func(config, field, message string) {
		Expect(filter(config).Validate()).To(Equal([]model.FieldError{{Field: "Filter_config" + field, Message: message}}))
	},
		Entry("with an empty list", `{"allow":[]}`, ".allow", `has no rule, so nothing would be allowed; list what is allowed, or write {"allow":[{}]} and list in deny what is not`),
		Entry("with a path of two slashes", `{"allow":[{"paths":[{"exact":"/a//b"}]}]}`, ".allow[0].paths[0]",
			`"/a//b" matches no request: paths are normalized first, and have no //, dot segment, backslash or percent sign`),
		Entry("with a dot segment at the end", `{"allow":[{"paths":[{"prefix":"/a/."}]}]}`, ".allow[0].paths[0]",
			`"/a/." matches no request: paths are normalized first, and have no //, dot segment, backslash or percent sign`),
		Entry("with an escaped letter", `{"allow":[{"paths":[{"segment":"/%61"}]}]}`, ".allow[0].paths[0]",
			`"/%61" matches no request: paths are normalized first, and have no //, dot segment, backslash or percent sign`),
		Entry("with a query", `{"allow":[{"paths":[{"segment":"/a?b"}]}]}`, ".allow[0].paths[0]", `"/a?b" must be a path without query (?) and fragment (#)`),
		Entry("with an invalid claim", `{"allow":[{"claims":[{"claim":"a..b","values":["c"]}]}]}`, ".allow[0].claims[0].claim",
			`"a..b" is not the name of a claim, such as email or realm_access.roles`),
	)

	It("warn if everybody may do everything", func() {
		advice := func(config string) []string { return filter(config).Parse().Spec.(*model.RBACFilter).Advice() }
		Expect(advice(`{"allow":[{"methods":["GET"]},{}]}`)).To(Equal([]string{"allow[1] has no condition: everybody may do everything"}))
		Expect(advice(`{"allow":[{}],"deny":[{"methods":["PUT"]}]}`)).To(BeEmpty())
	})
})
