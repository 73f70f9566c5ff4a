package document

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/api"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Schema returns the JSON Schema (draft 2020-12) of a document, for editors and other programs. It is made of the schemas
// in api/openapi.yaml, which are made of the model, and says beyond them which configuration belongs to which type. A
// server accepts a little more: keys in other letter cases, and numbers, lists and configurations as text.
func Schema() ([]byte, error) {
	var openAPI struct {
		Components struct {
			Schemas map[string]map[string]any
		}
	}
	if err := yaml.Unmarshal(api.OpenAPI(), &openAPI); err != nil {
		return nil, fmt.Errorf("reading the OpenAPI document: %w", err)
	}
	s := schemas{from: openAPI.Components.Schemas, defs: map[string]any{}}
	s.typed("ConfigFilter", "filter_type", "filter_config", "FilterPatch", "Filter_config", model.KindFilter)
	s.typed("ConfigGlobalconfig", "globalconfig_type", "config", "GlobalconfigPatch", "config", model.KindGlobalConfig)
	root, ok := s.convert(s.from["Config"]).(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the OpenAPI document has no schema Config")
	}
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Configuration document of Gatehouse"
	root["$defs"] = s.defs
	return json.MarshalIndent(root, "", "  ")
}

// schemas are converted as they are needed.
type schemas struct {
	from map[string]map[string]any
	defs map[string]any
}

const inOpenAPI = "#/components/schemas/"

// convert returns a part of a schema of OpenAPI 3.0 in the words of JSON Schema.
func (s schemas) convert(part any) any {
	switch node := part.(type) {
	case []any:
		list := make([]any, len(node))
		for i, item := range node {
			list[i] = s.convert(item)
		}
		return list
	case map[string]any:
		converted := map[string]any{}
		for key, value := range node {
			ref, isText := value.(string)
			switch {
			case key == "$ref" && isText:
				converted[key] = s.reference(strings.TrimPrefix(ref, inOpenAPI))
			case key == "example":
				converted["examples"] = []any{value}
			case key == "nullable":
			default:
				converted[key] = s.convert(value)
			}
		}
		if node["nullable"] == true {
			return map[string]any{"anyOf": []any{converted, map[string]any{"type": "null"}}}
		}
		return converted
	}
	return part
}

// reference returns the reference to a schema, which it converts the first time.
func (s schemas) reference(name string) string {
	if _, done := s.defs[name]; !done {
		s.defs[name] = true // it may refer to itself
		s.defs[name] = s.convert(s.from[name])
	}
	return "#/$defs/" + name
}

// typed has a schema say which configuration belongs to which type. all is the schema that lists the configurations of
// all types under a field; one that belongs to no type is another form of the one before it.
func (s schemas) typed(name, typeKey, configKey, all, field string, kind model.Kind) {
	forms, last := map[string][]any{}, ""
	byGoName := map[string]string{}
	for _, word := range model.ConfigTypes(kind) {
		byGoName[specName(kind, word)] = word
	}
	for _, schema := range anyOf(s.from[all], field) {
		ref, _ := schema.(map[string]any)["$ref"].(string)
		word, has := byGoName[strings.TrimPrefix(ref, inOpenAPI)]
		if !has {
			word = last
		}
		if ref == inOpenAPI+"Text" || word == "" {
			continue
		}
		last = word
		forms[word] = append(forms[word], map[string]any{"$ref": ref})
	}
	var rules []any
	for _, word := range slices.Sorted(slices.Values(model.ConfigTypes(kind))) {
		rules = append(rules, map[string]any{
			"if":   map[string]any{"properties": map[string]any{typeKey: map[string]any{"enum": []any{word, model.ShortType(word)}}}, "required": []any{typeKey}},
			"then": map[string]any{"properties": map[string]any{configKey: map[string]any{"anyOf": forms[word]}}},
		})
	}
	s.from[name]["allOf"] = rules
}

// specName is the name of the Go type of a configuration, which its schema has too.
func specName(kind model.Kind, word string) string {
	var spec model.Spec
	if kind == model.KindFilter {
		spec = (&model.Filter{Type: word, Config: "{}"}).Parse().Spec
	} else {
		spec = (&model.GlobalConfig{Type: word, Config: "{}"}).Parse().Spec
	}
	return strings.TrimPrefix(fmt.Sprintf("%T", spec), "*model.")
}

func anyOf(schema map[string]any, field string) []any {
	properties, _ := schema["properties"].(map[string]any)
	of, _ := properties[field].(map[string]any)
	list, _ := of["anyOf"].([]any)
	return list
}
