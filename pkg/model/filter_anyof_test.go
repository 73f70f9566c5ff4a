package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

const (
	someUsers = `"basicauth":{"users":[{"name":"a","password":"twelve-chars"}]}`
	someToken = `"jwt":{"issuer":"https://a.test"`
)

var _ = DescribeTable("A configuration with one of several credentials", func(config, field string) {
	Expect(refusedField(model.FilterAnyOf, config)).To(Equal(field))
},
	Entry("that has two", `{"apikey":{"keys":"a"},`+someUsers+`}`, ""),
	Entry("that has all", `{"apikey":{"keys":"a"},`+someUsers+`,`+someToken+`}}`, ""),
	Entry("that has an empty one", `{"apikey":{},`+someUsers+`}`, ".apikey.keys"),
	Entry("with a header of keys that ends an expression", `{"apikey":{"keys":"a","header":"x'y"},`+someUsers+`}`, ".apikey.header"),
	Entry("of which one keeps what the other removes", `{`+someUsers+`,`+someToken+`,"forward":true}}`, ".jwt.forward"),
	Entry("of which one keeps another header", `{`+someUsers+`,`+someToken+`,"forward":true,"from":{"header":"x-token"}}}`, ""),
	Entry("with a password under a key in other letters", `{"apikey":{"keys":"a"},"basicauth":{"users":[{"name":"a","Password":"twelve-chars"}]}}`, ".basicauth.users[0].Password"),
)

var _ = It("A configuration with one of several credentials that has one alone is refused", func() {
	for _, config := range []model.JSON{`{}`, `{` + someUsers + `}`, `{"apikey":{"keys":"a"}}`} {
		errs := (&model.Filter{Name: "f", Type: model.FilterAnyOf, Config: config}).Validate()
		Expect(errs).To(HaveLen(1))
		Expect(errs[0].Field).To(Equal("Filter_config"))
	}
})
