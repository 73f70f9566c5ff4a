package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("A filter that names the header of API keys", func() {
	fault := func(config string) []model.FieldError {
		return (&model.Filter{Name: "f", Type: model.FilterAPIKey, Config: model.JSON(config)}).Validate()
	}

	It("accepts no header that Envoy would parse as a format command, or that has another meaning", func() {
		for _, header := range []string{"a%b", "a)", "a(b", "a?b", "a|b", ":path", "authorization", "Cookie", "X-Client", "x-gatehouse-key", "host", "x-forwarded-for", "te", "a b", "x\n", strings.Repeat("x", 256)} {
			list := fault(`{"keys":"a","header":` + quote(header) + `}`)
			Expect(list).To(HaveLen(1), header)
			Expect(list[0].Field).To(Equal("Filter_config.header"), header)
		}
		for _, header := range []string{"", "X-Api-Key", "apikey", "x.y-z"} {
			Expect(fault(`{"keys":"a","header":`+quote(header)+`}`)).To(BeEmpty(), header)
		}
	})

	It("lists from 1 to 100 clients", func() {
		Expect(fault(`{"keys":"a","clients":[]}`)).To(Equal([]model.FieldError{
			{Field: "Filter_config.clients", Message: "is empty, so no client would be allowed; name at least one, or omit clients"},
		}))
		many := strings.TrimSuffix(strings.Repeat(`"x",`, 100), ",")
		Expect(fault(`{"keys":"a","clients":[` + many + `]}`)).To(BeEmpty())
		Expect(fault(`{"keys":"a","clients":[` + many + `,"x"]}`)).To(HaveLen(1))
	})
})

var _ = DescribeTable("The places of API keys are", func(from string, want ...string) {
	Expect(faultsOf(model.FilterAPIKey, `{"keys":"a","from":`+from+`}`)).To(Equal(want))
},
	Entry("a header, a parameter and a cookie", `[{"header":"X-Api-Key"},{"query":"apikey"},{"cookie":"a_b-C"}]`),
	Entry("at least one", `[]`, ".from is empty, so no key would be found; name at least one place, or omit from"),
	Entry("at most eight", `[`+strings.Repeat(`{},`, 8)+`{}]`, ".from has 9 places; at most 8 are allowed"),
	Entry("different", `[{"query":"a"},{"query":"a"}]`, ".from[1] is listed twice"),
	Entry("one each", `[{"query":"a","header":"b"}]`, ".from[0] takes exactly one of header, cookie and query"),
	Entry("plain words", `[{"query":"a)%"},{"cookie":"a="}]`,
		`.from[0] "a)%" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`,
		`.from[1] "a=" must be a name of A-Z a-z 0-9 _ - of at most 255 characters`),
	Entry("headers of their own", `[{"header":"cookie"},{"header":"x'y"},{"header":"a%b"}]`,
		`.from[0].header "cookie" has another meaning; choose a header such as x-api-key`,
		`.from[1].header "x'y" has a character that is not allowed in the name of this header`,
		`.from[2].header "a%b" has a character that is not allowed in the name of this header`),
)

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

var _ = It("Each client of a filter for API keys has a name", func() {
	Expect(faultsOf(model.FilterAPIKey, `{"keys":"a","clients":["b","c d"]}`)).To(Equal([]string{`.clients "c d" may contain only the characters A-Z a-z 0-9 . _ -`}))
})
