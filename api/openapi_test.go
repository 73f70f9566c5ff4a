package api_test

import (
	"context"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/api"
)

func TestAPI(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "api")
}

func load() *openapi3.T {
	GinkgoHelper()
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI())
	Expect(err).NotTo(HaveOccurred())
	return doc
}

// eachContent calls fn with what each call takes and answers with.
func eachContent(doc *openapi3.T, fn func(where string, body *openapi3.MediaType)) {
	for path, item := range doc.Paths.Map() {
		for method, operation := range item.Operations() {
			if operation.RequestBody != nil {
				for contentType, body := range operation.RequestBody.Value.Content {
					fn(method+" "+path+" "+contentType, body)
				}
			}
			for status, response := range operation.Responses.Map() {
				for contentType, body := range response.Value.Content {
					fn(method+" "+path+" "+status+" "+contentType, body)
				}
			}
		}
	}
}

var _ = Describe("The OpenAPI document", func() {
	It("is valid, and so are its examples", func() {
		Expect(load().Validate(context.Background(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaFormatValidation())).To(Succeed())
	})

	It("has an example of each call and each answer", func() {
		seen := 0
		eachContent(load(), func(where string, body *openapi3.MediaType) {
			seen++
			if body.Schema != nil { // else it is bytes, such as a picture
				Expect(body.Example != nil || len(body.Examples) > 0).To(BeTrue(), where)
			}
		})
		Expect(seen).To(BeNumerically(">", 1000))
	})

	It("names every field of a body, so that another one is noticed", func() {
		done := map[*openapi3.Schema]bool{}
		var walk func(where string, ref *openapi3.SchemaRef)
		walk = func(where string, ref *openapi3.SchemaRef) {
			if ref == nil || done[ref.Value] {
				return
			}
			schema := ref.Value
			done[schema] = true
			if len(schema.Properties) > 0 && schema.AdditionalProperties.Schema == nil { // one says that there are others
				Expect(schema.AdditionalProperties.Has).To(HaveValue(BeFalse()), where)
			}
			for name, property := range schema.Properties {
				walk(where+"."+name, property)
			}
			walk(where+"[]", schema.Items)
			for _, list := range []openapi3.SchemaRefs{schema.OneOf, schema.AnyOf, schema.AllOf} {
				for _, part := range list {
					walk(where, part)
				}
			}
		}
		eachContent(load(), func(where string, body *openapi3.MediaType) { walk(where, body.Schema) })
		Expect(len(done)).To(BeNumerically(">", 100))
	})
})
