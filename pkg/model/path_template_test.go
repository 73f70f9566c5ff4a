package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

var _ = DescribeTable("A path template is refused:", func(template, want string) {
	_, err := model.ParsePathTemplate(template)
	Expect(err).To(MatchError(want))
},
	Entry("no slash", "{id}", `must start with "/"`),
	Entry("too long", "/{id}/"+strings.Repeat("a", 251), "has 257 characters; at most 256 are allowed"),
	Entry("nothing that varies", "/users", `has no variable such as {id}; use "match":"exact"`),
	Entry("an empty segment", "/a//{id}", "has an empty segment (//)"),
	Entry("six variables", "/{a}/{b}/{c}/{d}/{e}/{f}", "has 6 variables; Envoy takes at most 5 (* is a segment without a name)"),
	Entry("a name twice", "/{a}/{a}", "has the variable a twice"),
	Entry("a name that is too long", "/{abcdefghijklmnopq}", "has the variable abcdefghijklmnopq; Envoy takes names of at most 16 characters"),
	Entry("a name that begins with a digit", "/{1a}", `has a variable "1a": a name has letters, digits and underscores, and begins with a letter`),
	Entry("no name", "/{}", `has a variable "": a name has letters, digits and underscores, and begins with a letter`),
	Entry("a pattern that is none", "/{a=b}", "has the variable {a=b}: only * (one segment) or ** (the rest of the path) can follow ="),
	Entry("an empty pattern", "/{a=}", "has the variable {a=}: only * (one segment) or ** (the rest of the path) can follow ="),
	Entry("a variable after the rest", "/{rest=**}/{id}", "has {id} after **; only fixed text can follow it"),
	Entry("a wildcard after the rest", "/**/*", "has * after **; only fixed text can follow it"),
	Entry("a part of a segment", "/{id}.json", `has the segment "{id}.json": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
	Entry("a brace alone", "/*/a}", `has the segment "a}": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
	Entry("a blank", "/{id}/a b", `has the segment "a b": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
	Entry("a query", "/{id}?a", `has the segment "{id}?a": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
)

var _ = DescribeTable("A path template", func(template, path string, values ...string) {
	t, err := model.ParsePathTemplate(template)
	Expect(err).NotTo(HaveOccurred())
	got, matches := t.Match(path)
	if len(values) == 0 {
		Expect(matches).To(BeFalse(), "%q", got)
		return
	}
	Expect(matches).To(BeTrue())
	Expect(got).To(HaveExactElements(values))
},
	Entry("takes a segment", "/users/{id}", "/users/7", "7"),
	Entry("takes no other number of segments", "/users/{id}", "/users/7/cart"),
	Entry("takes no empty segment", "/users/{id}", "/users/"),
	Entry("takes no slash behind it", "/users/{id}", "/users/7/"),
	Entry("takes its own slash", "/users/{id}/", "/users/7/", "7"),
	Entry("takes the rest", "/users/{id}/{rest=**}", "/users/7/a/b", "7", "a/b"),
	Entry("takes an empty rest", "/users/{id}/{rest=**}", "/users/7/", "7", ""),
	Entry("takes no rest without its slash", "/users/{id}/{rest=**}", "/users/7"),
	Entry("takes text after the rest", "/{all=**}/end", "/a/b/end", "a/b"),
	Entry("takes fixed text literally", "/a.b+c/{id}", "/a.b+c/1", "1"),
	Entry("takes fixed text only", "/a.b/{id}", "/axb/1"),
	Entry("takes five variables", "/{a}/{b}/{c}/{d}/{e}", "/1/2/3/4/5", "1", "2", "3", "4", "5"),
	Entry("takes escapes", "/users/{id=*}", "/users/%20", "%20"),
	Entry("takes no brackets", "/users/{id}", "/users/[7]"),
)

var _ = DescribeTable("A rewrite by template", func(match, prefix, rewrite, field, message string) {
	config, err := model.ParseRouteConfig(`{"match":"` + match + `","rewrite":` + rewrite + `}`)
	Expect(err).NotTo(HaveOccurred())
	errs := (&model.Route{Service: "shop", Name: "root", Prefix: prefix, Config: config}).Validate()
	if field == "" {
		Expect(errs).To(BeEmpty())
		return
	}
	Expect(errs).To(Equal([]model.FieldError{{Field: field, Message: message}}))
},
	Entry("takes the variables in any order", "template", "/users/{id}/{rest=**}", `{"template":"/{rest}/of-{id}","host":"inner"}`, "", ""),
	Entry("takes none", "template", "/users/{id}", `{"template":"/all"}`, "", ""),
	Entry("needs a template to match", "segment", "/users", `{"template":"/{id}"}`, "Route_config.rewrite.template", `requires "match":"template", whose variables it uses`),
	Entry("names no other variable", "template", "/users/{id}", `{"template":"/{name}"}`, "Route_config.rewrite.template",
		`"/{name}" names {name}, which Route_prefix does not have; its variables are {id}`),
	Entry("names none where there is none", "template", "/users/*", `{"template":"/{id}"}`, "Route_config.rewrite.template",
		`"/{id}" names {id}, which Route_prefix does not have; its variables are none: give one of its segments a name, such as {id}`),
	Entry("closes its braces", "template", "/users/{id}", `{"template":"/{id"}`, "Route_config.rewrite.template",
		`"/{id" names {id}, which Route_prefix does not have; its variables are {id}`),
	Entry("is a path", "template", "/users/{id}", `{"template":"{id}"}`, "Route_config.rewrite.template", `"{id}" must start with "/"`),
	Entry("has no empty segment", "template", "/users/{id}", `{"template":"//{id}"}`, "Route_config.rewrite.template", `"//{id}" has an empty segment (//)`),
	Entry("has no query", "template", "/users/{id}", `{"template":"/a?id={id}"}`, "Route_config.rewrite.template",
		`"/a?id={id}" has the text "a?id="; percent-encode characters that a path cannot have, and write {NAME} for a variable of Route_prefix`),
	Entry("has no wildcard", "template", "/users/{id}", `{"template":"/*"}`, "Route_config.rewrite.template",
		`"/*" has the text "*"; percent-encode characters that a path cannot have, and write {NAME} for a variable of Route_prefix`),
	Entry("is not beside another", "template", "/users/{id}", `{"template":"/a","regex":"b"}`, "Route_config.rewrite", "takes only one of prefix, regex and template"),
	Entry("takes the place of a prefix", "template", "/users/{id}", `{"prefix":"/a"}`, "Route_config.rewrite.prefix",
		"cannot replace a prefix if match is template; use template, such as /v2/{id}"),
	Entry("leaves the path where it is wrong to the path", "template", "/users", `{"template":"/{id}"}`, "Route_prefix", `"/users" has no variable such as {id}; use "match":"exact"`),
)
