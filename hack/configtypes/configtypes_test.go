package main

import (
	"encoding/json"
	"os"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func TestConfigTypes(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "configtypes")
}

// example is a package with a configuration of each form.
const example = `package example

const most = 7

func Units() []string { return []string{"second", "day"} }

// Limit is how often. At most 7.
// +page=limit.md
// +example={times: 1,
// per: day}
type Limit struct { // for readers of the code
	// How often.
	// +required
	// +maximum=most
	Times int64 ` + "`json:\"times\"`" + `
	// +enum=Units
	Per Unit ` + "`json:\"per,omitempty\"`" + ` // for readers of the code
	On *Days
	Days []Days ` + "`json:\"days\"`" + `
	Base
	Hidden string ` + "`json:\"-\"`" + `
}

// Base has what all have.
type Base struct {
	// The shadow of it.
	Shadow *Days ` + "`json:\"shadow\"`" + `
}

type Days struct {
	Names map[string]bool ` + "`json:\"names\"`" + `
}

type Unit = string
`

// schemaOf returns the schemas for the types of the example, and the error.
func schemaOf(text string) (string, error) {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	Expect(os.WriteFile(dir+"/example.go", []byte(text), 0o600)).To(Succeed())
	src, err := parseModel(dir)
	if err != nil {
		return "", err
	}
	sections, err := src.openAPI([]configType{{"limit", []string{"route"}, src.types["Limit"]}}, nil)
	return sections["schemas of configs"], err
}

var _ = Describe("Everything that repeats the types of filters and global configs", func() {
	It("agrees with pkg/model", func() {
		files, err := generate("../..")
		Expect(err).NotTo(HaveOccurred())
		Expect(files).To(HaveLen(3))
		var stale []string
		for _, f := range files {
			have, err := os.ReadFile(f.path)
			Expect(err).NotTo(HaveOccurred())
			if string(have) != f.text {
				stale = append(stale, f.path)
			}
		}
		Expect(stale).To(BeEmpty(), "run make types")
	})

	It("has an example of each form of each type, which is accepted", func() {
		src, err := parseModel("../../pkg/model")
		Expect(err).NotTo(HaveOccurred())
		filters, err := src.configTypes(model.KindFilter)
		Expect(err).NotTo(HaveOccurred())
		for _, t := range filters {
			for _, config := range src.examples(t) {
				Expect((&model.Filter{Name: "f", Type: t.name, Config: config}).Validate()).To(BeEmpty(), "%s: %s", t.name, config)
			}
		}
		globals, err := src.configTypes(model.KindGlobalConfig)
		Expect(err).NotTo(HaveOccurred())
		for _, t := range globals {
			for _, config := range src.examples(t) {
				Expect((&model.GlobalConfig{Name: "g", Type: t.name, Config: config}).Validate()).To(BeEmpty(), "%s: %s", t.name, config)
			}
		}
	})
})

// examples returns the examples of a type, as JSON.
func (s *source) examples(t configType) (list []model.JSON) {
	GinkgoHelper()
	forms := []*goType{t.spec}
	if t.spec.doc.or != "" {
		forms = append(forms, s.types[t.spec.doc.or])
	}
	for _, form := range forms {
		Expect(form.doc.keywords).To(HaveKey("example"), form.name)
		var value any
		Expect(form.doc.keywords["example"].Decode(&value)).To(Succeed())
		text, err := json.Marshal(value)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, model.JSON(text))
	}
	return list
}

var _ = Describe("The schema of a Go type", func() {
	It("has its fields, their comments, and the values of constants", func() {
		text, err := schemaOf(example)
		Expect(err).NotTo(HaveOccurred())
		var got map[string]any
		Expect(yaml.Unmarshal([]byte(text), &got)).To(Succeed())
		var want map[string]any
		Expect(yaml.Unmarshal([]byte(`
FilterType: {description: "On a route: limit.", type: string, enum: [limit]}
GlobalconfigType: {type: string, enum: []}
Limit:
  description: How often. At most 7.
  type: object
  required: [times]
  additionalProperties: false
  properties:
    times: {description: How often., type: integer, format: int64, maximum: 7}
    per: {allOf: [{$ref: "#/components/schemas/Unit"}], enum: [second, day]}
    days: {type: array, items: {$ref: "#/components/schemas/Days"}}
    shadow: {description: The shadow of it., allOf: [{$ref: "#/components/schemas/Days"}]}
  example: {times: 1, per: day}
Unit: {type: string}
Days:
  type: object
  additionalProperties: false
  properties:
    names: {type: object, additionalProperties: {type: boolean}}
`), &want)).To(Succeed())
		Expect(got).To(Equal(want))
	})

	DescribeTable("is refused", func(text, message string) {
		_, err := schemaOf("package example\n\n" + text)
		Expect(err).To(MatchError(message))
	},
		Entry("with a keyword that OpenAPI does not have", "// Limit limits.\n// +most=5\ntype Limit struct{}",
			"type Limit: +most is no keyword; known are required, page, or, description, $ref, allOf, anyOf, type, format, enum, pattern, minLength, maxLength, minimum, maximum, "+
				"minItems, maxItems, minProperties, maxProperties, required, additionalProperties, items, properties, example"),
		Entry("with a value that cannot be parsed", "// Limit limits.\n// +example={a\ntype Limit struct{}", "type Limit: the value of +example is no YAML: {a"),
		Entry("of a field without a type", "type Limit struct { Call func() `json:\"call\"` }",
			"type Limit: call: no schema can be made of a *ast.FuncType; give +anyOf or +$ref"),
		Entry("of a type that does not exist", "type Limit struct { Other Other `json:\"other\"` }", "pkg/model has no type Other"),
	)
})
