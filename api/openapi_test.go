package api_test

import (
	"context"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

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

// eachContent calls fn with the request and answer bodies of each call.
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

	It("lists every field of a body, so that an unknown field is noticed", func() {
		done := map[*openapi3.Schema]bool{}
		var walk func(where string, ref *openapi3.SchemaRef)
		walk = func(where string, ref *openapi3.SchemaRef) {
			if ref == nil || done[ref.Value] {
				return
			}
			schema := ref.Value
			done[schema] = true
			if len(schema.Properties) > 0 && schema.AdditionalProperties.Schema == nil { // otherwise it allows unknown fields
				// A key set has what its publisher gives it (RFC 7517 section 5).
				Expect(schema.AdditionalProperties.Has).To(HaveValue(Equal(strings.HasSuffix(where, ".jwks"))), where)
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

// What a generator of clients makes of the document; test/clients runs four.
var _ = Describe("A client that is generated from the OpenAPI document", func() {
	It("sends JSON, the content type that is listed first", func() {
		var doc yaml.Node
		Expect(yaml.Unmarshal(api.OpenAPI(), &doc)).To(Succeed())
		seen := 0
		var walk func(where string, node *yaml.Node)
		walk = func(where string, node *yaml.Node) {
			for i := 0; node.Kind == yaml.MappingNode && i < len(node.Content); i += 2 {
				name, value := node.Content[i].Value, node.Content[i+1]
				if name == "content" && len(value.Content) > 2 && isJSON.MatchString(keys(value)) {
					seen++
					Expect(value.Content[0].Value).To(Equal("application/json"), where)
				}
				walk(where+"."+name, value)
			}
		}
		walk("", doc.Content[0])
		Expect(seen).To(BeNumerically(">", 25))
	})

	It("has one type for each name", func() {
		c := load().Components
		seen := map[string]string{}
		for section, names := range map[string][]string{
			"schemas": slices.Collect(maps.Keys(c.Schemas)), "responses": slices.Collect(maps.Keys(c.Responses)),
			"parameters": slices.Collect(maps.Keys(c.Parameters)), "requestBodies": slices.Collect(maps.Keys(c.RequestBodies)),
			"headers": slices.Collect(maps.Keys(c.Headers)),
		} {
			for _, name := range names {
				key := strings.ToLower(name) // a parameter blue becomes a type Blue
				Expect(seen[key]).To(BeEmpty(), "%s in %s", name, section)
				seen[key] = section
			}
		}
		Expect(len(seen)).To(BeNumerically(">", 200))
	})

	It("sends no default on its own: that would override the gateway's decision, and a PATCH would reset fields", func() {
		for path, item := range load().Paths.Map() {
			for method, operation := range item.Operations() {
				if operation.RequestBody == nil {
					continue
				}
				for _, body := range operation.RequestBody.Value.Content {
					Expect(defaults(method+" "+path, body.Schema, map[*openapi3.Schema]bool{})).To(BeEmpty())
				}
			}
		}
		Expect(load().Components.Parameters["timeout"].Value.Schema.Value.Default).To(BeNil(), "timeout is an error without wait")
	})

	It("has a PATCH type without required fields", func() {
		seen := 0
		for path, item := range load().Paths.Map() {
			if item.Patch == nil {
				continue
			}
			seen++
			body := item.Patch.RequestBody.Value.Content["application/json"].Schema
			Expect(body.Ref).To(HaveSuffix("Patch"), path)
			Expect(body.Value.Required).To(BeEmpty(), path)
			Expect(body.Value.Properties).NotTo(BeEmpty(), path)
		}
		Expect(seen).To(Equal(11))
	})

	It("has a type of its own for the body of each media type, which tells it how to send it", func() {
		seen := 0
		for name, body := range load().Components.RequestBodies {
			for contentType, content := range body.Value.Content {
				if !strings.Contains(contentType, "form") {
					continue
				}
				seen++
				where := name + " " + contentType
				Expect(content.Schema.Ref).To(BeEmpty(), where)
				Expect(content.Schema.Value.AllOf).To(HaveLen(2), where)
				Expect(content.Schema.Value.AllOf[0].Ref).To(Equal(body.Value.Content["application/json"].Schema.Ref), where)
				Expect(content.Schema.Value.AllOf[1].Value.IsEmpty()).To(BeTrue(), where)
			}
		}
		Expect(seen).To(Equal(84))
	})

	It("takes no type that requires fields for the one that it is made of", func() {
		seen := 0
		for name, schema := range load().Components.Schemas {
			if s := schema.Value; len(s.Required) > 0 && len(s.AllOf) > 0 {
				seen++
				Expect(s.AllOf).To(HaveLen(2), name)
				Expect(s.AllOf[1].Value.IsEmpty()).To(BeTrue(), name)
			}
		}
		Expect(seen).To(Equal(18))
	})

	It("needs no enum of numbers with a fraction, which have no names", func() {
		done := map[*openapi3.Schema]bool{}
		var walk func(where string, ref *openapi3.SchemaRef)
		walk = func(where string, ref *openapi3.SchemaRef) {
			if done[ref.Value] {
				return
			}
			done[ref.Value] = true
			Expect(ref.Value.Type.Is("number") && len(ref.Value.Enum) > 0).To(BeFalse(), where)
			for name, part := range parts(ref.Value) {
				walk(where+"."+name, part)
			}
		}
		for name, schema := range load().Components.Schemas {
			walk(name, schema)
		}
	})

	DescribeTable("requires only the essential fields of a new object",
		func(path string, required ...string) {
			for method, operation := range load().Paths.Value(path).Operations() {
				if method != http.MethodPost {
					continue
				}
				for contentType, body := range operation.RequestBody.Value.Content {
					Expect(needed(body.Schema.Value)).To(ConsistOf(required), contentType)
				}
			}
		},
		Entry(nil, "/upstream", "Upstream_name", "Upstream_ip", "Upstream_port"),
		Entry(nil, "/service", "Service_Name", "fqdn"),
		Entry(nil, "/service/{service}/route", "Route_Name", "Route_prefix"),
		Entry(nil, "/proxy", "Name"),
		Entry(nil, "/filter", "Filter_name", "Filter_type"),
		Entry(nil, "/globalconfig", "globalconfig_name", "globalconfig_type", "config"),
		Entry(nil, "/secret", "Secret_name"),
		Entry(nil, "/token", "Token_name", "Token_role"),
		Entry(nil, "/proxy/{proxy}/token", "Token_name"),
		Entry(nil, "/ratelimit/token", "Token_name"),
	)

	It("accepts any JSON where the document does not specify more", func() {
		// openapi-typescript makes an object without anything an empty one.
		seen := 0
		for name, ref := range load().Components.Schemas {
			for field, property := range ref.Value.Properties {
				s := property.Value
				if !s.Type.Is("object") || len(s.Properties) > 0 || s.AdditionalProperties.Schema != nil {
					continue
				}
				seen++
				Expect(s.AdditionalProperties.Has).To(HaveValue(BeTrue()), name+"."+field)
			}
		}
		Expect(seen).To(BeNumerically(">", 4))
	})
})

var isJSON = regexp.MustCompile(`\bapplication/json\b`)

// keys joins the keys of a mapping.
func keys(mapping *yaml.Node) string {
	var names []string
	for i := 0; i < len(mapping.Content); i += 2 {
		names = append(names, mapping.Content[i].Value)
	}
	return strings.Join(names, " ")
}

// parts are the schemas within a schema, by their place in it.
func parts(schema *openapi3.Schema) map[string]*openapi3.SchemaRef {
	found := maps.Clone(map[string]*openapi3.SchemaRef(schema.Properties))
	if found == nil {
		found = map[string]*openapi3.SchemaRef{}
	}
	if schema.Items != nil {
		found["[]"] = schema.Items
	}
	for _, list := range []openapi3.SchemaRefs{schema.OneOf, schema.AnyOf, schema.AllOf} {
		for _, part := range list {
			found[strings.Repeat("|", len(found)+1)] = part
		}
	}
	return found
}

// defaults lists where a schema has one.
func defaults(where string, ref *openapi3.SchemaRef, done map[*openapi3.Schema]bool) (found []string) {
	if done[ref.Value] {
		return nil
	}
	done[ref.Value] = true
	if ref.Value.Default != nil {
		found = append(found, where)
	}
	for name, part := range parts(ref.Value) {
		found = append(found, defaults(where+"."+name, part, done)...)
	}
	return found
}

// needed are the fields that a body must have.
func needed(schema *openapi3.Schema) []string {
	names := slices.Clone(schema.Required)
	for _, part := range schema.AllOf {
		names = append(names, needed(part.Value)...)
	}
	return names
}
