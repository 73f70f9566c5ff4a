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

func quote(s string) string { return `"` + strings.ReplaceAll(s, "\n", `\n`) + `"` }

var _ = It("Each client of a filter for API keys has a name", func() {
	Expect(faultsOf(model.FilterAPIKey, `{"keys":"a","clients":["b","c d"]}`)).To(Equal([]string{`.clients "c d" may contain only the characters A-Z a-z 0-9 . _ -`}))
})
