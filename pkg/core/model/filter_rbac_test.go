package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
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
		Entry("with a key in a key", `{"allow":[{"clients":["partners/"]}]}`, ".allow[0].clients[0]", "is required"),
		Entry("with the header of the host", `{"allow":[{"headers":[{"name":"Host"}]}]}`, ".allow[0].headers[0].name",
			`"Host" cannot be compared; methods and paths compare the request, and a service has its host`),
		Entry("with the header of the gateway", `{"deny":[{"headers":[{"name":"X-Gatehouse-Key"}]}],"allow":[{}]}`, ".deny[0].headers[0].name",
			`"X-Gatehouse-Key" is set by the gateway; clients compares the API key`),
		Entry("with an empty value", `{"allow":[{"headers":[{"name":"a","values":[""]}]}]}`, ".allow[0].headers[0].values[0]", `"" is not a value of a header`),
		Entry("with a name", `{"allow":[{"addresses":["shop.test"]}]}`, ".allow[0].addresses",
			`"shop.test" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`),
	)

	DescribeTable("are bounded in", func(field, one string) {
		of := func(n int) []model.FieldError {
			return filter(`{"allow":[{"` + field + `":[` + strings.TrimSuffix(strings.Repeat(one+",", n), ",") + `]}]}`).Validate()
		}
		Expect(of(50)).To(BeEmpty())
		Expect(of(51)).To(Equal([]model.FieldError{{Field: "Filter_config.allow[0]", Message: "has more than 50 methods, paths, clients, consumers, groups, headers or addresses"}}))
	},
		Entry("methods", "methods", `"GET"`), Entry("paths", "paths", `{"exact":"/a"}`), Entry("clients", "clients", `"partners"`),
		Entry("headers", "headers", `{"name":"a"}`), Entry("addresses", "addresses", `"192.0.2.1"`),
	)

	It("have a condition with any of their parts", func() {
		for _, part := range []string{`"methods":["PUT"]`, `"paths":[{"exact":"/a"}]`, `"claims":[{"claim":"a","values":["b"]}]`, `"clients":["a"]`, `"headers":[{"name":"a"}]`, `"addresses":["::1"]`} {
			Expect(filter(`{"allow":[{}],"deny":[{`+part+`}]}`).Validate()).To(BeEmpty(), part)
			Expect(filter(`{"allow":[{`+part+`}]}`).Parse().Spec.(*model.RBACFilter).Advice()).To(BeEmpty(), part)
		}
	})

	It("warn if everybody may do everything", func() {
		advice := func(config string) []string { return filter(config).Parse().Spec.(*model.RBACFilter).Advice() }
		Expect(advice(`{"allow":[{"methods":["GET"]},{}]}`)).To(Equal([]string{"allow[1] has no condition: everybody may do everything"}))
		Expect(advice(`{"allow":[{}],"deny":[{"methods":["PUT"]}]}`)).To(BeEmpty())
	})
})

var _ = DescribeTable("Each part of the rules is checked", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterRBAC, config)).To(Equal(faults))
},
	Entry("100 rules", `{"allow":[{}`+strings.Repeat(`,{}`, 99)+`]}`),
	Entry("101 rules", `{"allow":[{}`+strings.Repeat(`,{}`, 100)+`]}`, ".allow has 101 rules; at most 100 are allowed"),
	Entry("a second rule that denies all", `{"allow":[{}],"deny":[{"methods":["PUT"]},{}]}`, ".deny[1] has no condition, so nothing would be allowed; set methods, paths or claims"),
	Entry("the second of each", `{"allow":[{},{"methods":["GET","p"],"paths":[{"exact":"/a"},{}],"clients":["a","/b"],"headers":[{"name":"a"},{"name":"b c"}],"addresses":["::1","a"]}]}`,
		`.allow[1].methods[1] "p" has lowercase letters, and methods are case-sensitive: write P`,
		`.allow[1].paths[1] takes exactly one of exact, prefix and segment, such as {"segment":"/admin"}`,
		`.allow[1].clients[1] is required`,
		`.allow[1].headers[1].name "b c" is not an HTTP token`,
		`.allow[1].addresses "a" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`),
	Entry("what follows a rule that is too large", `{"allow":[{"methods":["GET"`+strings.Repeat(`,"GET"`, 50)+`]},{"methods":["p"]}]}`,
		".allow[0] has more than 50 methods, paths, clients, consumers, groups, headers or addresses", `.allow[1].methods[0] "p" has lowercase letters, and methods are case-sensitive: write P`),
	Entry("a header of 255 characters", `{"allow":[{"headers":[{"name":"`+strings.Repeat("a", 255)+`"}]}]}`),
	Entry("a header of 256 characters", `{"allow":[{"headers":[{"name":"`+strings.Repeat("a", 256)+`"}]}]}`, ".allow[0].headers[0].name has more than 255 characters"),
	Entry("a value with a line break", `{"allow":[{"headers":[{"name":"a","values":["b\nc"]}]}]}`, `.allow[0].headers[0].values[0] "b\nc" is not a value of a header`),
)
