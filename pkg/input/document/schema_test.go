package document_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

var _ = Describe("The JSON Schema of documents", Ordered, func() {
	var schema *jsonschema.Schema
	BeforeAll(func() {
		text, err := document.Schema()
		Expect(err).NotTo(HaveOccurred())
		parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		Expect(err).NotTo(HaveOccurred())
		c := jsonschema.NewCompiler()
		Expect(c.AddResource("gateway.json", parsed)).To(Succeed())
		schema, err = c.Compile("gateway.json")
		Expect(err).NotTo(HaveOccurred())
		Expect(schema.DraftVersion).To(Equal(2020))
	})

	validate := func(text string) error {
		GinkgoHelper()
		raw, err := yaml.YAMLToJSON([]byte(text))
		Expect(err).NotTo(HaveOccurred())
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		Expect(err).NotTo(HaveOccurred())
		return schema.Validate(value)
	}

	It("accepts the documents of the documentation", func() {
		pages, err := filepath.Glob("../../../docs/*.md")
		Expect(err).NotTo(HaveOccurred())
		found := 0
		for _, page := range append(pages, "../../../README.md") {
			text, err := os.ReadFile(page)
			Expect(err).NotTo(HaveOccurred())
			for _, m := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
				if !regexp.MustCompile(`(?m)^(version|upstreams|secrets|keysets|filters|globalconfigs|services|proxies):`).MatchString(m[1]) ||
					regexp.MustCompile(`(?m)^(apiVersion|[a-z]+):.*\n(kind):|!env|!file`).MatchString(m[1]) {
					continue
				}
				found++
				document := m[1]
				if !strings.HasPrefix(document, "version:") && !strings.Contains(document, "\nversion:") {
					document = "version: 1\n" + document
				}
				Expect(validate(document)).To(Succeed(), "%s:\n%s", page, document)
			}
		}
		Expect(found).To(BeNumerically(">", 20))
	})

	It("accepts the example of each type of filter and global config", func() {
		var list struct {
			Filters       []map[string]any `json:"filters"`
			Globalconfigs []map[string]any `json:"globalconfigs"`
		}
		raw, err := document.Schema()
		Expect(err).NotTo(HaveOccurred())
		var text struct {
			Defs map[string]struct {
				Examples []any
				AllOf    []struct {
					If struct {
						Properties map[string]struct{ Enum []string }
					}
					Then struct {
						Properties map[string]struct {
							AnyOf []struct {
								Ref string `json:"$ref"`
							}
						}
					}
				}
			} `json:"$defs"`
		}
		Expect(json.Unmarshal(raw, &text)).To(Succeed())
		for _, rule := range text.Defs["ConfigFilter"].AllOf {
			for _, form := range rule.Then.Properties["filter_config"].AnyOf {
				for _, name := range rule.If.Properties["filter_type"].Enum {
					list.Filters = append(list.Filters, map[string]any{
						"filter_name": "f", "filter_type": name,
						"filter_config": text.Defs[strings.TrimPrefix(form.Ref, "#/$defs/")].Examples[0],
					})
				}
			}
		}
		for _, rule := range text.Defs["ConfigGlobalconfig"].AllOf {
			for _, form := range rule.Then.Properties["config"].AnyOf {
				for _, name := range rule.If.Properties["globalconfig_type"].Enum {
					list.Globalconfigs = append(list.Globalconfigs, map[string]any{
						"globalconfig_name": "g", "globalconfig_type": name,
						"config": text.Defs[strings.TrimPrefix(form.Ref, "#/$defs/")].Examples[0],
					})
				}
			}
		}
		Expect(list.Filters).To(HaveLen(len(model.WrittenTypes(model.KindFilter)) + 2)) // rate limits have two forms
		Expect(list.Globalconfigs).To(HaveLen(len(model.WrittenTypes(model.KindGlobalConfig))))
		whole, err := yaml.Marshal(list)
		Expect(err).NotTo(HaveOccurred())
		Expect(validate("version: 1\n" + string(whole))).To(Succeed())
	})

	DescribeTable("finds mistakes", func(text, place, message string) {
		err := validate("version: 1\n" + text)
		Expect(err).To(MatchError(And(ContainSubstring("at '"+place+"'"), ContainSubstring(message))))
	},
		Entry("a section", "upstraems: []", "", "additional properties 'upstraems' not allowed"),
		Entry("a field", "upstreams: [{upstream_name: a, upstream_ip: 10.0.0.1, upstream_prot: 1}]", "/upstreams/0", "additional properties 'upstream_prot' not allowed"),
		Entry("a value", "upstreams: [{upstream_name: a, upstream_ip: 10.0.0.1, upstream_port: 70000}]", "/upstreams/0/upstream_port", "maximum"),
		Entry("a missing field", "services: [{service_name: a}]", "/services/0", "missing property 'fqdn'"),
		Entry("a key of a route", "services: [{service_name: a, fqdn: a.example, routes: [{route_name: r, route_prefix: /, route_config: {timeuots: {}}}]}]",
			"/services/0/routes/0/route_config", "additional properties 'timeuots' not allowed"),
		Entry("a type", "filters: [{filter_name: f, filter_type: route_filter_header}]", "/filters/0/filter_type", "value must be one of"),
		Entry("a key of a filter", "filters: [{filter_name: f, filter_type: route_filter_headers, filter_config: {requst: {}}}]",
			"/filters/0/filter_config", "additional properties 'requst' not allowed"),
		Entry("a configuration of another type", "filters: [{filter_name: f, filter_type: route_filter_redirect, filter_config: {request: {set: {a: b}}}}]",
			"/filters/0/filter_config", "additional properties 'request' not allowed"),
		Entry("a key of a global config", "globalconfigs: [{globalconfig_name: f, globalconfig_type: globalconfig_connections, config: {max_age_: 1h}}]",
			"/globalconfigs/0/config", "additional properties 'max_age_' not allowed"),
	)
})
