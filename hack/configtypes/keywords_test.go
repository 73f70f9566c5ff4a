package main

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

type object = map[string]any

// violations are the values that break a keyword of a schema, by the keyword. item is an item of a list that is allowed.
func violations(schema object, item any) map[string]any {
	broken := map[string]any{}
	if n, has := schema["minimum"].(int); has {
		broken["minimum"] = n - 1
	}
	if n, has := schema["maximum"].(int); has {
		broken["maximum"] = n + 1
	}
	if _, has := schema["enum"]; has {
		broken["enum"] = "none-of-them"
	}
	if n, has := schema["maxLength"].(int); has {
		broken["maxLength"] = strings.Repeat("a", n+1)
	}
	if _, has := schema["minLength"]; has {
		broken["minLength"] = ""
	}
	if _, has := schema["minItems"]; has {
		broken["minItems"] = []any{}
	}
	if n, has := schema["maxItems"].(int); has && item != nil {
		broken["maxItems"] = slices.Repeat([]any{item}, n+1)
	}
	return broken
}

// exceptions are the keywords that an example cannot break, or that are not checked.
func exceptions() []string {
	return []string{
		"AffinityFilter.header maxLength",       // its example has a cookie instead
		"MaintenanceFilter.retry_after minimum", // 0 is the same as none
		"RedirectFilter.port minimum",           // 0 is the same as none
	}
}

// prober breaks one keyword after another in an example of a configuration.
type prober struct {
	schemas object
	// try returns the fields for which the configuration, as it is now, is refused.
	try      func() []string
	accepted []string
	tried    int
}

// resolved returns a schema with the keywords of those that it refers to.
func (p *prober) resolved(schema object) object {
	all := object{}
	if ref, _ := schema["$ref"].(string); ref != "" {
		maps.Copy(all, p.resolved(p.schemas[strings.TrimPrefix(ref, schemas)].(object)))
	}
	if parts, _ := schema["allOf"].([]any); len(parts) > 0 {
		maps.Copy(all, p.resolved(parts[0].(object)))
	}
	maps.Copy(all, schema)
	return all
}

func (p *prober) probe(at string, schema object, value object) {
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(object)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		property, was := p.resolved(properties[name].(object)), value[name]
		broken := violations(property, nil)
		if list, _ := was.([]any); len(list) > 0 {
			broken = violations(property, list[0])
		}
		for keyword, wrong := range broken {
			value[name] = wrong
			p.expect(at + "." + name + " " + keyword)
		}
		delete(value, name)
		if slices.Contains(required, any(name)) {
			p.expect(at + "." + name + " required")
		}
		if was == nil {
			continue
		}
		value[name] = was
		if inner, is := was.(object); is {
			p.probe(at+"."+name, property, inner)
		}
		items, _ := property["items"].(object)
		if list, _ := was.([]any); len(list) > 0 && items != nil {
			if inner, is := list[0].(object); is {
				p.probe(at+"."+name+"[]", p.resolved(items), inner)
				continue
			}
			first := list[0]
			for keyword, wrong := range violations(p.resolved(items), nil) {
				list[0] = wrong
				p.expect(at + "." + name + "[] " + keyword)
			}
			list[0] = first
		}
	}
}

// expect requires that the field of a keyword, or one that it is in, is refused.
func (p *prober) expect(what string) {
	p.tried++
	_, field, _ := strings.Cut(strings.ReplaceAll(what, "[]", ""), ".")
	field, _, _ = strings.Cut(field, " ")
	if !slices.ContainsFunc(p.try(), func(wrong string) bool {
		return wrong != "" && (strings.HasPrefix(field, wrong) || strings.HasPrefix(wrong, field))
	}) {
		p.accepted = append(p.accepted, what)
	}
}

var _ = Describe("A keyword of a configuration", func() {
	It("is checked when the configuration is read", func() {
		src, err := parseModel("../../pkg/core/model")
		Expect(err).NotTo(HaveOccurred())
		filters, err := src.configTypes(model.KindFilter)
		Expect(err).NotTo(HaveOccurred())
		globals, err := src.configTypes(model.KindGlobalConfig)
		Expect(err).NotTo(HaveOccurred())
		lists, err := src.configTypes(model.KindList)
		Expect(err).NotTo(HaveOccurred())
		sections, err := src.openAPI(filters, globals, lists)
		Expect(err).NotTo(HaveOccurred())
		p, index := &prober{}, regexp.MustCompile(`\[\d+\]`)
		Expect(yaml.Unmarshal([]byte(sections["schemas of configs"]), &p.schemas)).To(Succeed())
		for i, t := range slices.Concat(filters, globals, lists) {
			for n, example := range src.examples(t) {
				var value object
				Expect(json.Unmarshal([]byte(example), &value)).To(Succeed())
				p.try = func() (wrong []string) {
					text, err := json.Marshal(value)
					Expect(err).NotTo(HaveOccurred())
					var o model.Object = &model.GlobalConfig{Name: "g", Type: t.name, Config: model.JSON(text)}
					switch {
					case i < len(filters):
						o = &model.Filter{Name: "f", Type: t.name, Config: model.JSON(text)}
					case i >= len(filters)+len(globals):
						o = &model.List{Name: "l", Type: t.name, Config: model.JSON(text)}
					}
					for _, e := range o.Validate() {
						_, field, _ := strings.Cut(index.ReplaceAllString(e.Field, ""), ".")
						wrong = append(wrong, field)
					}
					return wrong
				}
				form := t.spec.name
				if n > 0 {
					form = t.spec.doc.or
				}
				p.probe(form, p.resolved(p.schemas[form].(object)), value)
			}
		}
		slices.Sort(p.accepted)
		Expect(p.accepted).To(Equal(exceptions()))
		Expect(p.tried).To(BeNumerically(">", 150))
	})
})
