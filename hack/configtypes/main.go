// Command configtypes generates what repeats pkg/core/model. From the Go types of the configurations of filters and global
// configs, with their comments: their schemas in api/openapi.yaml, their table in docs/api.md, and their names in
// api/gateway/v1. From the table of kinds and the templates of api/calls.yaml: the calls in api/openapi.yaml.
//
// usage: configtypes, in the directory of go.mod
//
// The comment of a type or field is its description. Lines that begin with + are keywords
// of its schema, with a value in YAML, which may name a constant; what follows belongs to it
// until the next one. Four are not from OpenAPI:
//
//	+required          the field is required
//	+page=headers.md   the page in docs about the type
//	+or=StatedLimit    another Go type, whose JSON is also allowed
//	+schema=HTTPS      the schema of the field, which is written by hand
//
// A comment after a field or type is only for readers of the code.
package main

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func main() {
	made, err := generate(".")
	for _, f := range made {
		if err == nil {
			err = os.WriteFile(f.path, []byte(f.text), 0o644) //nolint:gosec // everybody may read it
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "configtypes:", err)
		os.Exit(1)
	}
}

// file is a file with its generated content.
type file struct{ path, text string }

// configType is a type of filters or global configs.
type configType struct {
	name string
	on   []string
	// spec is the Go type of its configuration.
	spec *goType
}

// generate returns the files below root.
func generate(root string) ([]file, error) {
	src, err := parseModel(filepath.Join(root, "pkg/core/model"))
	if err != nil {
		return nil, err
	}
	filters, err := src.configTypes(model.KindFilter)
	if err != nil {
		return nil, err
	}
	globals, err := src.configTypes(model.KindGlobalConfig)
	if err != nil {
		return nil, err
	}
	lists, err := src.configTypes(model.KindList)
	if err != nil {
		return nil, err
	}
	sections, err := src.openAPI(filters, globals, lists)
	if err != nil {
		return nil, err
	}
	calls, err := src.calls(filepath.Join(root, "api/calls.yaml"), map[model.Kind][]configType{
		model.KindFilter: filters, model.KindGlobalConfig: globals, model.KindList: lists,
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(sections, calls)
	document, err := withSections(filepath.Join(root, "api/openapi.yaml"), sections)
	if err != nil {
		return nil, err
	}
	page, err := withSections(filepath.Join(root, "docs/api.md"), map[string]string{"types": table(append(filters, globals...))})
	return []file{document, page, {filepath.Join(root, "api/gateway/v1/zz_generated.types.go"), kubernetesTypes(filters, globals, lists)}}, err
}

// configTypes returns the types of a kind, in the order of pkg/core/model.
func (s *source) configTypes(kind model.Kind) ([]configType, error) {
	var list []configType
	for _, name := range model.ConfigTypes(kind) {
		var spec model.Spec
		on := []string{string(model.KindProxy)}
		switch kind {
		case model.KindList:
			spec, on = (&model.List{Type: name, Config: "{}"}).Parse().Spec, nil
		case model.KindFilter:
			f := &model.Filter{Type: name, Config: "{}"}
			spec, on = f.Parse().Spec, nil
			for _, k := range []model.Kind{model.KindRoute, model.KindService, model.KindProxy} {
				if f.FitsOn(k) {
					on = append(on, string(k))
				}
			}
		default:
			spec = (&model.GlobalConfig{Type: name, Config: "{}"}).Parse().Spec
		}
		goName := strings.TrimPrefix(fmt.Sprintf("%T", spec), "*model.")
		t := s.types[goName]
		if t == nil || t.doc.description == "" || t.doc.page == "" {
			return nil, fmt.Errorf("pkg/core/model: %s, the configuration of a %s, needs a comment with what it does, and +page", goName, name)
		}
		list = append(list, configType{name, on, t})
	}
	return list, nil
}

// withSections returns a file with new text in its sections. A section is the text between
// two comments, "begin NAME" and "end NAME".
func withSections(path string, sections map[string]string) (file, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	text := string(b)
	for name, section := range sections {
		pattern := regexp.MustCompile(`(?ms)^( *(?:#|<!--) begin ` + name + `\b[^\n]*\n).*?(^ *(?:#|<!--) end ` + name + `\b)`)
		if len(pattern.FindAllStringIndex(text, -1)) != 1 {
			return file{}, fmt.Errorf("%s: there must be one section %q between the comments begin %s and end %s", path, name, name, name)
		}
		text = pattern.ReplaceAllStringFunc(text, func(found string) string {
			ends := pattern.FindStringSubmatch(found)
			return ends[1] + section + ends[2]
		})
	}
	return file{path, text}, nil
}

// table returns the table of docs/api.md.
func table(types []configType) string {
	rows := "| type | short | attached to | what it does | page |\n|---|---|---|---|---|\n"
	for _, t := range types {
		first, _, _ := strings.Cut(t.spec.doc.description+" ", ". ")
		rows += fmt.Sprintf("| `%s` | `%s` | %s | %s | [%s](%s) |\n", t.name, model.ShortType(t.name), strings.Join(t.on, ", "), strings.TrimSuffix(first, "."), t.spec.doc.page, t.spec.doc.page)
	}
	return rows
}

// kubernetesTypes returns the Go file with the types of cluster mode.
func kubernetesTypes(filters, globals, lists []configType) string {
	routeFilters := names(filters)
	for _, l := range lists {
		routeFilters = append(routeFilters, model.ListPrefix+l.name)
	}
	return fmt.Sprintf(`// Code generated by make types. DO NOT EDIT.

package v1

// What the filter does. %s The types %s... are lists that filters of the namespace name.
// +kubebuilder:validation:Enum=%s
type RouteFilterType string

// What the global config sets. The types of filters, each by its long name, are for filters of the proxy.
// +kubebuilder:validation:Enum=%s
type GlobalConfigType string
`, attached(filters, "host"), model.ListPrefix, strings.Join(routeFilters, ";"), strings.Join(append(names(globals), onProxies(filters)...), ";"))
}

// onProxies are the long names of the types of filters that a proxy may have. A short one may be that of a global config.
func onProxies(filters []configType) (list []string) {
	for _, t := range filters {
		if slices.Contains(t.on, string(model.KindProxy)) {
			list = append(list, t.name)
		}
	}
	return list
}

// names are all names of types: the long ones, then the short ones.
func names(types []configType) (list []string) {
	var short []string
	for _, t := range types {
		list = append(list, t.name)
		if s := model.ShortType(t.name); s != t.name {
			short = append(short, s)
		}
	}
	return append(list, short...)
}

// attached says which types can be attached to what; service is the word for a service.
func attached(types []configType, service string) string {
	var sentences []string
	for _, place := range []struct{ on, words string }{
		{"route service", "a route or a " + service}, {"service", "a " + service}, {"route", "a route"},
	} {
		var fit []string
		for _, t := range types {
			if strings.TrimSuffix(strings.Join(t.on, " "), " "+string(model.KindProxy)) == place.on {
				fit = append(fit, t.name)
			}
		}
		if len(fit) > 0 {
			sentences = append(sentences, "On "+place.words+": "+strings.Join(fit, ", ")+".")
		}
	}
	if len(names(types)) > len(types) {
		sentences = append(sentences, "Each type also has a short name, without http_filter_, route_filter_ or vh_filter_.")
	}
	return strings.Join(sentences, " ")
}
