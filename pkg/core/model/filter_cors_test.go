package model_test

import (
	"encoding/json"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func quoted(s string) string {
	b, err := json.Marshal(s)
	Expect(err).NotTo(HaveOccurred())
	return string(b)
}

var _ = DescribeTable("An origin", func(origin string, right bool) {
	for kind, config := range map[string]string{
		model.FilterCORS: fmt.Sprintf(`{"origins":[%s]}`, quoted(origin)), model.FilterCSRF: fmt.Sprintf(`{"origins":[%s]}`, quoted(origin)),
	} {
		Expect(refusedField(kind, config)).To(Equal(map[bool]string{true: "", false: ".origins"}[right]), kind)
	}
},
	Entry(nil, "https://app.example.com", true),
	Entry(nil, "http://localhost:3000", true),
	Entry(nil, "https://a:80", true),
	Entry(nil, "https://xn--bcher-kva.example", true),
	Entry(nil, "http://192.0.2.1:8080", true),
	Entry(nil, "https://[2001:db8::1]:8443", true),
	Entry("of an app", "capacitor://localhost", true),
	Entry("of an extension", "chrome-extension://abcdefghijklmnop", true),
	Entry("without a scheme", "app.example.com", false),
	Entry("without a host", "https://", false),
	Entry("with a slash", "https://a.test/", false),
	Entry("with a path", "https://a.test/b", false),
	Entry("with a query", "https://a.test?b", false),
	Entry("with a user", "https://a@a.test", false),
	Entry("with an uppercase scheme", "HTTPS://a.test", false),
	Entry("with an uppercase host", "https://A.test", false),
	Entry("with the default port of https", "https://a.test:443", false),
	Entry("with the default port of http", "http://a.test:80", false),
	Entry("with an empty port", "https://a.test:", false),
	Entry("with the port 0", "https://a.test:0", false),
	Entry("with a port of six digits", "https://a.test:100000", false),
	Entry("with a port that has leading zeros", "https://a.test:08443", false),
	Entry("with a long IPv6 address", "https://[2001:db8:0::1]", false),
	Entry("with an invalid address", "https://300.1.1.1", false),
	Entry("not in ASCII", "https://bücher.example", false),
	Entry("with a space", "https://a.test ", false),
	Entry("with a line break", "https://a.test\r\nx: y", false),
	Entry("that is a word", "null", false),
	Entry("with a wildcard", "https://*.a.test", false),
	Entry("empty", "", false),
)

var _ = Describe("The expression for origins", func() {
	DescribeTable("that matches every origin is refused", func(expr string, right bool) {
		Expect(refusedField(model.FilterCORS, fmt.Sprintf(`{"origins":[{"regex":%s}]}`, quoted(expr)))).To(Equal(map[bool]string{true: "", false: ".origins"}[right]))
	},
		Entry(nil, `https://[a-z]+\.a\.test`, true),
		Entry("all", `.*`, false),
		Entry("all of https", `https://.*`, false),
		Entry("all of http", `https?://[^/]+`, false),
		Entry("one with an alternative", `https://a\.test|.*`, false),
		Entry("the asterisk that Envoy recognizes", `https://a\.test|\*`, false),
		Entry("the origin null", `https://a\.test|null`, false),
		Entry("a program that is too large", `https://(a{30}){30}{9}`, false),
	)

	DescribeTable("that matches more than it seems to causes a warning", func(expr, told string) {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterCORS, Config: model.JSON(fmt.Sprintf(`{"origins":[{"regex":%s}]}`, quoted(expr)))}).Parse().Spec.(*model.CORSFilter)
		if told == "" {
			Expect(spec.Advice()).To(BeEmpty())
		} else {
			Expect(spec.Advice()).To(ConsistOf("origins has the expression " + expr + ", " + told))
		}
	},
		Entry(nil, `https://[a-z0-9-]+\.a\.test`, ""),
		Entry(nil, `https://(.+\.)?a\.test(:[0-9]+)?`, ""),
		Entry(nil, `https://pr-[0-9]+preview\.a\.test`, ""),
		Entry("a dot", `https://a.test`, `in which a dot stands for any character: write \. for a dot`),
		Entry("a dot in a group", `https://(a|b.c)\.test`, `in which a dot stands for any character: write \. for a dot`),
		Entry("any text before a name", `https://.*a\.test`, `in which any text comes right before a name: those of others can end as it does; write \. before it`),
		Entry("any letters before a name", `https?://[a-z]*a\.test`, `in which any text comes right before a name: those of others can end as it does; write \. before it`),
		Entry("any text at the end", `https://a\.test.*`, `which ends in any text: names of others can begin as yours do; end it with the whole name`),
		Entry("any name at the end", `https://a\.([a-z.]+)`, `which ends in any text: names of others can begin as yours do; end it with the whole name`),
	)

	It("is joined with the others, and each matches as a whole", func() {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterCORS, Config: `{"origins":["https://a.test",{"regex":"https://b|https://c"}]}`}).Parse().Spec.(*model.CORSFilter)
		Expect(spec.Expression()).To(Equal(`https://a\.test|(?:https://b|https://c)`))
	})

	It("is refused if all together are too large", func() {
		var list []string
		for i := range 100 {
			list = append(list, quoted(fmt.Sprint("https://", i, strings.Repeat("a", 60), ".test")))
		}
		Expect(refusedField(model.FilterCORS, `{"origins":[`+strings.Join(list, ",")+`]}`)).To(Equal(".origins"))
	})
})

var _ = Describe("Credentials", func() {
	It("for every origin are refused", func() {
		Expect(refusedField(model.FilterCORS, `{"origins":["*"],"credentials":true}`)).To(Equal(".origins"))
	})

	It("for a page over plain HTTP cause a warning", func() {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterCORS, Config: `{"origins":["http://a.test","http://localhost:3000"],"credentials":true}`}).Parse().Spec.(*model.CORSFilter)
		Expect(spec.Advice()).To(ConsistOf("origins has http://a.test and credentials are allowed: anyone on the network path can change such a page and act as its user; use https"))
	})
})

var _ = DescribeTable("A CORS filter", func(config string, faults ...string) {
	Expect(faultsOf(model.FilterCORS, config)).To(Equal(faults))
},
	Entry("has at most 100 origins", `{"origins":`+names("https://a", 100)+`}`),
	Entry("has one origin too many", `{"origins":`+names("https://a", 101)+`}`, ".origins has 101 entries; at most 100 are allowed; one expression can match many origins"),
	Entry("has a second origin that is wrong", `{"origins":["https://a.test","https://b.test/"]}`, `.origins "https://b.test/" has a path, and an origin has none; write "https://b.test"`),
	Entry("has an origin of neither form", `{"origins":[7]}`, ` an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`),
	Entry("has an origin with another key", `{"origins":[{"regex":"https://a","exact":"b"}]}`, ` an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`),
	Entry("has an origin without an expression", `{"origins":[{}]}`, ` an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`),
	Entry("has an origin with an empty expression", `{"origins":[{"regex":""}]}`, ` an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`),
	Entry("has names that are no tokens", `{"origins":["*"],"methods":["G T"],"headers":["x-a","x b"],"expose":["x c"]}`,
		`.methods "G T" is not an HTTP token`, `.headers "x b" is not an HTTP token`, `.expose "x c" is not an HTTP token`),
	Entry("has a second method in lowercase letters", `{"origins":["*"],"methods":["GET","put"]}`, `.methods "put" must be in upper case, because browsers compare the case; write "PUT"`),
	Entry("has at most 50 headers", `{"origins":["*"],"headers":`+names("x", 50)+`}`),
	Entry("has one header too many", `{"origins":["*"],"headers":`+names("x", 51)+`}`, ".headers has 51 entries; at most 50 are allowed"),
	Entry("has a header of 255 characters", `{"origins":["*"],"headers":["`+strings.Repeat("x", 255)+`"]}`),
	Entry("has a header of 256 characters", `{"origins":["*"],"headers":["`+strings.Repeat("x", 256)+`"]}`, ".headers has an entry of more than 255 characters"),
	Entry("exposes every header without credentials", `{"origins":["*"],"expose":["*"]}`),
	Entry("exposes every header with credentials", `{"origins":["https://a.test"],"expose":["*"],"credentials":true}`, `.expose "*" has no effect in browsers where credentials are allowed; name the headers`),
)

var _ = It("A CORS filter without a list of methods allows those of other gateways", func() {
	methods := func(config model.JSON) []string {
		spec, _ := (&model.Filter{Name: "f", Type: model.FilterCORS, Config: config}).Parse().Spec.(*model.CORSFilter)
		return spec.Methods
	}
	Expect(methods(`{"origins":["*"]}`)).To(Equal([]string{"GET", "HEAD", "PUT", "PATCH", "POST", "DELETE"}))
	Expect(methods(`{"origins":["*"],"methods":[]}`)).To(Equal([]string{}))
})

var _ = It("The expression for every origin matches any text", func() {
	Expect((&model.CORSFilter{Origins: []model.Origin{{Exact: "*"}}}).Expression()).To(Equal(".+"))
})

var _ = DescribeTable("A CORS filter warns", func(config string, advice ...string) {
	Expect(adviceOf(model.FilterCORS, config)).To(Equal(advice))
},
	Entry("not about plain HTTP without credentials", `{"origins":["http://a.test"]}`),
	Entry("not about this machine", `{"origins":["http://127.0.0.1:3000","http://[::1]:3000","http://localhost"],"credentials":true}`),
	Entry("not about https", `{"origins":["https://a.test"],"credentials":true}`),
	Entry("about each hole of each expression", `{"origins":[{"regex":"https://b\\.test"},{"regex":"https://a.test.*"}]}`,
		`origins has the expression https://a.test.*, in which a dot stands for any character: write \. for a dot`,
		`origins has the expression https://a.test.*, which ends in any text: names of others can begin as yours do; end it with the whole name`),
)
