package form_test

import (
	"encoding/json"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

var _ = Describe("JSONValue", func() {
	DescribeTable("recognizes the form", func(raw string, shape form.Shape, text string) {
		v, err := form.JSONValue("f", json.RawMessage(raw))
		Expect(err).NotTo(HaveOccurred())
		Expect(v).To(Equal(form.Value{Name: "f", Shape: shape, Text: text}))
	},
		Entry(nil, `"a\n\u00fc"`, form.IsText, "a\nü"),
		Entry(nil, `""`, form.IsText, ""),
		Entry(nil, `-1.50`, form.IsNumber, "-1.50"),
		Entry(nil, `0`, form.IsNumber, "0"),
		Entry(nil, `true`, form.IsBool, "true"),
		Entry(nil, `false`, form.IsBool, "false"),
		Entry(nil, `null`, form.IsNull, "null"),
		Entry(nil, `[1, 2]`, form.IsArray, "[1, 2]"),
		Entry(nil, `{"a": 1}`, form.IsObject, `{"a": 1}`),
	)
})

var _ = Describe("TextOf", func() {
	It("finds text by its name, whatever the letter case", func() {
		list := []form.Value{{Name: "n", Shape: form.IsNumber, Text: "1"}, {Name: "NAME", Shape: form.IsText, Text: "a"}, {Name: "name", Shape: form.IsText, Text: "b"}}
		Expect(form.TextOf(list, "Name")).To(Equal("a"))
		Expect(form.TextOf(list, "N")).To(BeEmpty())
		Expect(form.TextOf(nil, "Name")).To(BeEmpty())
	})
})

var _ = Describe("CheckText", func() {
	DescribeTable("refuses text that no field may contain", func(text, want string) {
		if want == "" {
			Expect(form.CheckText(text)).To(Succeed())
			return
		}
		Expect(form.CheckText(text)).To(MatchError(want))
	},
		Entry("nothing", "", ""),
		Entry("Unicode", "Grüße, 世界 🚪", ""),
		Entry("control characters", "a\n\t\x01\x7f", ""),
		Entry("a NUL", "\x00", "contains a NUL character"),
		Entry("part of a character", "\xc3", "contains text that is not valid UTF-8"),
		Entry("the replacement character of a decoder", "a\ufffdb", "contains text that is not valid UTF-8"),
		Entry("half a surrogate pair", "\xed\xa0\x80", "contains text that is not valid UTF-8"),
	)
})

var _ = Describe("CheckJSON", func() {
	DescribeTable("refuses text that parsers read differently", func(text, want string) {
		if want == "" {
			Expect(form.CheckJSON(text)).To(Succeed())
			return
		}
		Expect(form.CheckJSON(text)).To(MatchError(want))
	},
		Entry(nil, `{"a":[1,"x",null,true,{"b":{}}],"c":1e999}`, ""),
		Entry("invalid JSON, which is left to its parser", `{"a":1,"a":2`, ""),
		Entry("equal keys in different objects", `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, ""),
		Entry("a key twice", `{"a":1,"b":2,"a":3}`, `has the key "a" twice in one object`),
		Entry("a key twice in another case", `{"x":[{"Name":1,"name":2}]}`, `has the key "name" twice in one object`),
		Entry("a key twice, once escaped", `{"a":1,"\u0061":2}`, `has the key "a" twice in one object`),
		Entry("a NUL in text", `["\u0000"]`, "contains a NUL character"),
		Entry("a NUL in a key", `{"\u0000":1}`, "contains a NUL character"),
		Entry("text that is not UTF-8", "{\"a\":\"\xff\"}", "contains text that is not valid UTF-8"),
		Entry("half a surrogate pair", `{"a":"\ud800"}`, "contains text that is not valid UTF-8"),
		Entry("64 levels", strings.Repeat("[", 64)+strings.Repeat("]", 64), ""),
		Entry("65 levels", strings.Repeat("[", 65)+strings.Repeat("]", 65), "nests deeper than 64 levels"),
		Entry("65 levels of objects", strings.Repeat(`{"a":`, 65)+"1"+strings.Repeat("}", 65), "nests deeper than 64 levels"),
	)
})

var _ = Describe("Errors", func() {
	It("keeps the first error of each field", func() {
		var e form.Errors
		e.Add("b", "is %q", "x")
		e.Add("a", "is wrong")
		e.Add("b", "is wrong too")
		Expect(said(e.List)).To(Equal([]string{`b: is "x"`, "a: is wrong"}))
	})
})
