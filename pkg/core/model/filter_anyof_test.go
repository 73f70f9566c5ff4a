package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
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
	Entry("that has an invalid one", `{"apikey":{},`+someUsers+`}`, ".apikey.keys"),
	Entry("with a key header that would end an expression", `{"apikey":{"keys":"a","header":"x'y"},`+someUsers+`}`, ".apikey.header"),
	Entry("of which one forwards the header that another removes", `{`+someUsers+`,`+someToken+`,"forward":true}}`, ".jwt.forward"),
	Entry("of which one forwards another header", `{`+someUsers+`,`+someToken+`,"forward":true,"from":{"header":"x-token"}}}`, ""),
	Entry("of which one may be missing", `{`+someUsers+`,`+someToken+`,"optional":true}}`, ".jwt.optional"),
	Entry("with a shared key under a key in another letter case", `{"apikey":{"keys":"a"},"jwt":{"issuer":"us","HMAC_key":"a key of 32 bytes for the specs!"}}`, ".jwt.HMAC_key"),
	Entry("with a password under a key in another letter case", `{"apikey":{"keys":"a"},"basicauth":{"users":[{"name":"a","Password":"twelve-chars"}]}}`, ".basicauth.users[0].Password"),
)

var _ = It("A configuration with one of several credentials is refused if it has only one", func() {
	for _, config := range []model.JSON{`{}`, `{` + someUsers + `}`, `{"apikey":{"keys":"a"}}`} {
		errs := (&model.Filter{Name: "f", Type: model.FilterAnyOf, Config: config}).Validate()
		Expect(errs).To(HaveLen(1))
		Expect(errs[0].Field).To(Equal("Filter_config"))
	}
})

var _ = It("A configuration with one of several credentials uses what each of them uses", func() {
	uses := func(config model.JSON) []model.Key {
		return (&model.Filter{Name: "f", Type: model.FilterAnyOf, Config: config}).Names()
	}
	withSecret := `"basicauth":{"users":[{"name":"a","password":{"secret":"s"}},{"name":"b","password":{"secret":"s"}}]}`
	Expect(uses(model.JSON(`{"apikey":{"keys":"k"},` + withSecret + `,` + someToken + `,"upstream":"u"}}`))).To(Equal([]model.Key{model.KeySetKey("k"), model.SecretKey("s"), model.UpstreamKey("u")}))
	Expect(uses(model.JSON(`{"apikey":{"keys":"k"},` + someUsers + `}`))).To(Equal([]model.Key{model.KeySetKey("k")}))
})

var _ = It("A configuration with one of several credentials warns about each of them", func() {
	users := "keeps passwords in Envoys as SHA-1 without salt: whoever reads the memory of an Envoy can guess them quickly. Give each user a long random password, or use API keys or a login"
	tokens := "has no audiences: it accepts every token of the issuer, also those issued for other programs"
	Expect(adviceOf(model.FilterAnyOf, `{`+someUsers+`,`+someToken+`}}`)).To(Equal([]string{users, tokens}))
	Expect(adviceOf(model.FilterAnyOf, `{"apikey":{"keys":"k"},`+someUsers+`}`)).To(Equal([]string{users}))
	Expect(adviceOf(model.FilterAnyOf, `{"apikey":{"keys":"k"},`+someToken+`}}`)).To(Equal([]string{tokens}))
})
