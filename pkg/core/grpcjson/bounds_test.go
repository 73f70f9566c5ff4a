package grpcjson_test

import (
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/grpcjson"
)

// nested returns a file in which a message contains itself, by a field that has two names; its rule has the template.
func nested(template string) string {
	return `name: "n.proto" package: "shop" syntax: "proto3"
		message_type { name: "N"
			field { name: "a_b" number: 1 type: TYPE_MESSAGE type_name: ".shop.N" label: LABEL_OPTIONAL json_name: "aB" }
			field { name: "v_x" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "vX" }
		}
		service { name: "Books" method { name: "Call" input_type: ".shop.N" output_type: ".shop.N" options { ` + get(template) + ` } } }`
}

// variable returns a template with a variable of n fields.
func variable(n int) string { return "/v1/{" + strings.Repeat("a_b.", n-1) + "v_x}" }

// manyFields returns a file whose message has fields with two names each, in rules that have twenty of them as variables,
// and further rules without variables.
func manyFields(fields, rules int) string {
	text, each := `name: "f.proto" package: "shop" syntax: "proto3" message_type { name: "M" `, `[google.api.http] { put: "/b" body: "*"`
	for i := range fields {
		text += fmt.Sprintf(`field { name: "f_%d" number: %d type: TYPE_STRING label: LABEL_OPTIONAL json_name: "f%d" } `, i, i+1, i)
		if i%20 == 0 {
			each += fmt.Sprintf(`} additional_bindings { put: "/v%d/`, i)
		}
		each += fmt.Sprintf("{f_%d}", i)
		if i%20 == 19 || i == fields-1 {
			each += `" body: "*"`
		} else {
			each += "/"
		}
	}
	each = strings.Replace(each, "} additional_bindings", " additional_bindings", 1) + "}"
	for i := range rules {
		each += fmt.Sprintf(` additional_bindings { put: "/r%d" body: "*" }`, i)
	}
	return text + `} service { name: "Books" method { name: "Call" input_type: ".shop.M" output_type: ".shop.M" options { ` + each + ` } } } }`
}

// publicImports returns files in layers: each file of a layer publicly imports all of the layer below.
func publicImports(layers, width int) (files []string) {
	files = []string{books(get("/b"))}
	for layer := range layers {
		for i := range width {
			text := fmt.Sprintf(`name: "%d.%d" syntax: "proto3" `, layer, i)
			for j := range width {
				if layer > 0 {
					text += fmt.Sprintf(`dependency: "%d.%d" public_dependency: %d `, layer-1, j, j)
				}
			}
			files = append(files, text)
		}
	}
	return files
}

// longPackage returns a file whose package has a name of n bytes, an even number.
func longPackage(n int) []string {
	return []string{books(get("/b")), `name: "p" syntax: "proto3" package: "` + strings.Repeat("a.", n/2-1) + `aa"`}
}

// typed returns a file with a field of the type.
func typed(name string) []string {
	return []string{books(get("/b")), `name: "p" syntax: "proto3" package: "p" dependency: "books.proto" message_type { name: "M" nested_type { name: "I"
		field { name: "f" number: 1 type: TYPE_MESSAGE label: LABEL_OPTIONAL type_name: "` + name + `" } } }`}
}

// methodOf returns a file with a call whose request has the type.
func methodOf(input string) []string {
	return []string{strings.Replace(books(get("/b")), `input_type: ".shop.Book"`, `input_type: "`+input+`"`, 1)}
}

var _ = Describe("The work for a descriptor set", func() {
	DescribeTable("is bounded: the set is accepted", func(files []string) {
		c, err := grpcjson.Read(set(files...), withService(grpcjson.Options{}))
		Expect(err).NotTo(HaveOccurred())
		Expect(len(c.Ignored)).To(BeNumerically("<=", 4096))
	},
		Entry("with a variable of 8 fields", []string{nested(variable(8))}),
		Entry("with 4,096 spellings", []string{manyFields(2048, 0)}),
		Entry("with a path of 2,048 bytes", []string{books(get("/" + strings.Repeat("a", 2047)))}),
		Entry("with public imports of public imports", publicImports(8, 2)),
		Entry("with a name of 512 bytes", longPackage(512)),
		Entry("with many rules", []string{manyFields(20, 5000)}),
	)

	DescribeTable("is bounded: the set is refused", func(says string, files []string) {
		_, err := grpcjson.Read(set(files...), withService(grpcjson.Options{}))
		Expect(err).To(MatchError(ContainSubstring(says)))
		Expect(len(err.Error())).To(BeNumerically("<", 1500))
	},
		Entry("with a variable of 9 fields", "the http rule of shop.Books.Call leads through 9 fields to v_x; at most 8 are allowed", []string{nested(variable(9))}),
		Entry("with a variable of 25 fields, of 191 bytes", "leads through 25 fields", []string{nested(variable(25))}),
		Entry("with a body of 9 fields", "leads through 9 fields to a_b", []string{strings.Replace(nested("/v1"), `get: "/v1"`, `put: "/v1" body: "`+strings.Repeat("a_b.", 8)+`a_b"`, 1)}),
		Entry("with 4,098 spellings", "have more than 4096 spellings as query parameters (f_2048 is one)", []string{manyFields(2049, 0)}),
		Entry("with a path of 2,049 bytes", "has a path of 2049 bytes; at most 2048 are allowed", []string{books(get("/" + strings.Repeat("a", 2048)))}),
		Entry("with rules times variables beyond a million", "the http rules have more than 1025 variables", []string{manyFields(1027, 970)}),
		Entry("with public imports that double in each layer", "more than 10000 ways through its public imports", publicImports(40, 2)),
		Entry("with a long chain of public imports", "more than 10000 ways through its public imports", publicImports(200, 1)),
		Entry("with a long package", "descriptor_set has in file p a name of 514 bytes; at most 512 are allowed", longPackage(514)),
		Entry("with long names of nested messages", "a name of 600 bytes", []string{books(get("/b")) + ` message_type { name: "` + strings.Repeat("a", 295) + `" nested_type { name: "` + strings.Repeat("b", 299) + `" } }`}),
		Entry("with a long name of a value", "a name of 605 bytes", []string{books(get("/b")) + ` enum_type { name: "E" value { name: "` + strings.Repeat("a", 598) + `" number: 0 } }`}),
		Entry("with the relative name of a field's type", `in file p the relative name of a type, "shop.Book"`, typed("shop.Book")),
		Entry("with the relative name of a call's message", `in file books.proto the relative name of a type, "Book"`, methodOf("Book")),
		Entry("with the long name of a type", "the name of a type of 600 bytes; at most 512 are allowed", typed("."+strings.Repeat("a", 600))),
	)

	It("reports at most 100 query parameters that override a path", func() {
		var text strings.Builder
		for i := range 150 {
			fmt.Fprintf(&text, ` additional_bindings { get: "/%d/{id}" }`, i)
		}
		c, err := grpcjson.Read(set(books(`[google.api.http] { get: "/x" `+text.String()+"}")), withService(grpcjson.Options{}))
		Expect(err).NotTo(HaveOccurred())
		Expect(c.Overriding).To(HaveLen(100))
		Expect(c.Overriding[0]).To(Equal("the query parameter id takes the place of what the path of GET /0/{id} says: GET /x needs it too"))
		Expect(c.Ignored).To(BeEmpty())
	})
})
