package model_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("A path template is refused:", func(template, want string) {
	_, err := model.ParsePathTemplate(template)
	Expect(err).To(MatchError(want))
},
	Entry("no slash", "{id}", `must start with "/"`),
	Entry("too long", "/{id}/"+strings.Repeat("a", 251), "has 257 characters; at most 256 are allowed"),
	Entry("no variable part", "/users", `has no variable such as {id}; use "match":"exact"`),
	Entry("an empty segment", "/a//{id}", "has an empty segment (//)"),
	Entry("six variables", "/{a}/{b}/{c}/{d}/{e}/{f}", "has 6 variables; Envoy takes at most 5 (* is a segment without a name)"),
	Entry("a name twice", "/{a}/{a}", "has the variable a twice"),
	Entry("a name that is too long", "/{abcdefghijklmnopq}", "has the variable abcdefghijklmnopq; Envoy takes names of at most 16 characters"),
	Entry("a name that begins with a digit", "/{1a}", `has a variable "1a": a name has letters, digits and underscores, and begins with a letter`),
	Entry("no name", "/{}", `has a variable "": a name has letters, digits and underscores, and begins with a letter`),
	Entry("an invalid pattern", "/{a=b}", "has the variable {a=b}: only * (one segment) or ** (the rest of the path) can follow ="),
	Entry("an empty pattern", "/{a=}", "has the variable {a=}: only * (one segment) or ** (the rest of the path) can follow ="),
	Entry("a variable after the rest", "/{rest=**}/{id}", "has {id} after **; only fixed text can follow it"),
	Entry("a wildcard after the rest", "/**/*", "has * after **; only fixed text can follow it"),
	Entry("a part of a segment", "/{id}.json", `has the segment "{id}.json": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
	Entry("an unmatched brace", "/*/a}", `has the segment "a}": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
	Entry("a space", "/{id}/a b", `has the segment "a b": a segment is percent-encoded fixed text, *, ** or a variable such as {id} or {rest=**}`),
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
	Entry("matches a segment", "/users/{id}", "/users/7", "7"),
	Entry("does not match another number of segments", "/users/{id}", "/users/7/cart"),
	Entry("does not match an empty segment", "/users/{id}", "/users/"),
	Entry("does not match a trailing slash", "/users/{id}", "/users/7/"),
	Entry("matches its own trailing slash", "/users/{id}/", "/users/7/", "7"),
	Entry("matches the rest", "/users/{id}/{rest=**}", "/users/7/a/b", "7", "a/b"),
	Entry("matches an empty rest", "/users/{id}/{rest=**}", "/users/7/", "7", ""),
	Entry("does not match the rest without its slash", "/users/{id}/{rest=**}", "/users/7"),
	Entry("matches text after the rest", "/{all=**}/end", "/a/b/end", "a/b"),
	Entry("matches fixed text literally", "/a.b+c/{id}", "/a.b+c/1", "1"),
	Entry("does not match other fixed text", "/a.b/{id}", "/axb/1"),
	Entry("matches five variables", "/{a}/{b}/{c}/{d}/{e}", "/1/2/3/4/5", "1", "2", "3", "4", "5"),
	Entry("matches escapes", "/users/{id=*}", "/users/%20", "%20"),
	Entry("does not match brackets", "/users/{id}", "/users/[7]"),
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
	Entry("uses the variables in any order", "template", "/users/{id}/{rest=**}", `{"template":"/{rest}/of-{id}","host":"inner"}`, "", ""),
	Entry("may use none", "template", "/users/{id}", `{"template":"/all"}`, "", ""),
	Entry("requires a template to match", "segment", "/users", `{"template":"/{id}"}`, "Route_config.rewrite.template", `requires "match":"template", whose variables it uses`),
	Entry("uses no unknown variable", "template", "/users/{id}", `{"template":"/{name}"}`, "Route_config.rewrite.template",
		`"/{name}" names {name}, which Route_prefix does not have; its variables are {id}`),
	Entry("uses none if there is none", "template", "/users/*", `{"template":"/{id}"}`, "Route_config.rewrite.template",
		`"/{id}" names {id}, which Route_prefix does not have; its variables are none: give one of its segments a name, such as {id}`),
	Entry("closes its braces", "template", "/users/{id}", `{"template":"/{id"}`, "Route_config.rewrite.template",
		`"/{id" names {id}, which Route_prefix does not have; its variables are {id}`),
	Entry("is a path", "template", "/users/{id}", `{"template":"{id}"}`, "Route_config.rewrite.template", `"{id}" must start with "/"`),
	Entry("has no empty segment", "template", "/users/{id}", `{"template":"//{id}"}`, "Route_config.rewrite.template", `"//{id}" has an empty segment (//)`),
	Entry("has no query", "template", "/users/{id}", `{"template":"/a?id={id}"}`, "Route_config.rewrite.template",
		`"/a?id={id}" has the text "a?id="; percent-encode characters that a path cannot have, and write {NAME} for a variable of Route_prefix`),
	Entry("has no wildcard", "template", "/users/{id}", `{"template":"/*"}`, "Route_config.rewrite.template",
		`"/*" has the text "*"; percent-encode characters that a path cannot have, and write {NAME} for a variable of Route_prefix`),
	Entry("is not combined with another rewrite", "template", "/users/{id}", `{"template":"/a","regex":"b"}`, "Route_config.rewrite", "takes only one of prefix, regex and template"),
	Entry("is used instead of a prefix", "template", "/users/{id}", `{"prefix":"/a"}`, "Route_config.rewrite.prefix",
		"cannot replace a prefix if match is template; use template, such as /v2/{id}"),
	Entry("leaves an error of the path to the path's check", "template", "/users", `{"template":"/{id}"}`, "Route_prefix", `"/users" has no variable such as {id}; use "match":"exact"`),
)
