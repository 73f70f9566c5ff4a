package main

import (
	"fmt"
	"go/ast"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const schemas = "#/components/schemas/"

// order lists the keywords of a schema in the order of writing.
func order() []string {
	return []string{
		"description", "$ref", "allOf", "anyOf", "type", "format", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum",
		"minItems", "maxItems", "minProperties", "maxProperties", "required", "additionalProperties", "items", "properties",
		"writeOnly", "example",
	}
}

// writer makes schemas of Go types.
type writer struct {
	*source
	// due are the types that need a schema of their own, in the order in which they occur.
	due []string
}

// openAPI returns the sections of the OpenAPI document.
func (s *source) openAPI(filters, globals, lists []configType) (map[string]string, error) {
	w := &writer{source: s, due: forms(slices.Concat(filters, globals, lists))}
	all := mapping("FilterType", fields(map[string]*yaml.Node{
		"description": scalar(attached(filters, "service")), "type": scalar("string"), "enum": list(names(filters)),
		schemasKey: schemasOf(filters),
	}), "GlobalconfigType", fields(map[string]*yaml.Node{
		"type": scalar("string"), "enum": list(names(globals)), schemasKey: schemasOf(globals),
	}), "ListType", fields(map[string]*yaml.Node{"type": scalar("string"), "enum": list(names(lists))}))
	for i := 0; i < len(w.due); i++ {
		t := s.types[w.due[i]]
		if t == nil {
			return nil, fmt.Errorf("pkg/core/model has no type %s", w.due[i])
		}
		d := t.doc
		if d.description != "" {
			d.description = strings.ToUpper(d.description[:1]) + d.description[1:]
		}
		schema, err := w.schema(t.expr, d)
		if err != nil {
			return nil, fmt.Errorf("type %s: %w", t.name, err)
		}
		all.Content = append(all.Content, scalar(t.name), schema)
	}
	text, err := show(all, 4)
	return map[string]string{"schemas of configs": text}, err
}

// schemasKey says which schemas the configurations of a type have: forms need it.
const schemasKey = "x-schemas"

func schemasOf(types []configType) *yaml.Node {
	m := mapping()
	add := func(name string, t configType) {
		m.Content = append(m.Content, scalar(name), list(forms([]configType{t})))
	}
	for _, t := range types {
		add(t.name, t)
	}
	for _, t := range types {
		if short := model.ShortType(t.name); short != t.name {
			add(short, t)
		}
	}
	return m
}

// forms are the names of the schemas of types.
func forms(types []configType) (names []string) {
	for _, t := range types {
		for _, name := range []string{t.spec.name, t.spec.doc.or} {
			if name != "" {
				names = append(names, name)
			}
		}
	}
	return names
}

func (w *writer) meet(name string) {
	if !slices.Contains(w.due, name) {
		w.due = append(w.due, name)
	}
}

// schema returns the schema of a Go type with its comment.
func (w *writer) schema(e ast.Expr, d doc) (*yaml.Node, error) {
	all := map[string]*yaml.Node{}
	if d.keywords["anyOf"] == nil && d.keywords["$ref"] == nil {
		if err := w.ofType(e, d, all); err != nil {
			return nil, err
		}
	}
	if ref := all["$ref"]; ref != nil && (d.description != "" || len(d.keywords) > 0) { // no keyword is allowed next to it
		all = map[string]*yaml.Node{"allOf": {Kind: yaml.SequenceNode, Content: []*yaml.Node{mapping("$ref", ref)}}}
	}
	if d.description != "" {
		all["description"] = scalar(d.description)
	}
	for name, value := range d.keywords {
		all[name] = value
	}
	return fields(all), nil
}

// ofType adds the keywords of a Go type to all.
func (w *writer) ofType(e ast.Expr, d doc, all map[string]*yaml.Node) error {
	var err error
	switch t := e.(type) {
	case *ast.StarExpr:
		return w.ofType(t.X, d, all)
	case *ast.Ident:
		basic := map[string]string{"string": "string", "bool": "boolean", "int": "integer", "int64": "integer", "uint32": "integer", "float64": "number"}
		if name := basic[t.Name]; name != "" {
			all["type"] = scalar(name)
		} else {
			w.meet(t.Name)
			all["$ref"] = &yaml.Node{Kind: yaml.ScalarNode, Value: schemas + t.Name, Style: yaml.DoubleQuotedStyle}
		}
		if t.Name == "int64" {
			all["format"] = scalar("int64")
		}
	case *ast.ArrayType:
		all["type"] = scalar("array")
		if d.keywords["items"] == nil {
			all["items"], err = w.schema(t.Elt, doc{})
		}
	case *ast.MapType:
		all["type"] = scalar("object")
		if d.keywords["additionalProperties"] == nil {
			all["additionalProperties"], err = w.schema(t.Value, doc{})
		}
	case *ast.StructType:
		return w.ofStruct(t, all)
	default:
		err = fmt.Errorf("no schema can be made of a %T; give +anyOf or +$ref", e)
	}
	return err
}

func (w *writer) ofStruct(t *ast.StructType, all map[string]*yaml.Node) error {
	properties := mapping()
	required, err := w.properties(t, properties)
	if len(required) > 0 {
		all["required"] = list(required)
	}
	all["type"], all["additionalProperties"], all["properties"] = scalar("object"), &yaml.Node{Kind: yaml.ScalarNode, Value: "false"}, properties
	return err
}

// properties adds the fields of a struct, and returns which of them are required.
func (w *writer) properties(t *ast.StructType, to *yaml.Node) (required []string, err error) {
	for _, f := range t.Fields.List {
		if name, ok := f.Type.(*ast.Ident); ok && len(f.Names) == 0 {
			embedded, ok := w.types[name.Name].expr.(*ast.StructType)
			if !ok {
				return nil, fmt.Errorf("%s is embedded and no struct", name.Name)
			}
			more, err := w.properties(embedded, to)
			if err != nil {
				return nil, err
			}
			required = append(required, more...)
			continue
		}
		if f.Tag == nil {
			continue
		}
		name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		d, err := w.readDoc(f.Doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		schema, err := w.schema(f.Type, d)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if d.required {
			required = append(required, name)
		}
		to.Content = append(to.Content, scalar(name), schema)
	}
	return required, nil
}

// fields returns a mapping in the order of the keywords.
func fields(all map[string]*yaml.Node) *yaml.Node {
	m := mapping()
	for _, name := range append(order(), schemasKey) {
		if value := all[name]; value != nil {
			m.Content = append(m.Content, scalar(name), value)
		}
	}
	return m
}

func mapping(pairs ...any) *yaml.Node {
	m := &yaml.Node{Kind: yaml.MappingNode}
	for _, part := range pairs {
		switch p := part.(type) {
		case string:
			m.Content = append(m.Content, scalar(p))
		case *yaml.Node:
			m.Content = append(m.Content, p)
		}
	}
	return m
}

func scalar(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

func list(texts []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, text := range texts {
		n.Content = append(n.Content, scalar(text))
	}
	return n
}

// show writes a mapping as an indented block, with short parts in one line.
func show(m *yaml.Node, indent int) (string, error) {
	m.Style = 0
	for i := 1; i < len(m.Content); i += 2 {
		if err := layOut(m.Content[i]); err != nil {
			return "", err
		}
	}
	var out strings.Builder
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(m); err != nil {
		return "", err
	}
	margin := strings.Repeat(" ", indent)
	return margin + strings.ReplaceAll(strings.TrimSuffix(out.String(), "\n"), "\n", "\n"+margin) + "\n", enc.Close()
}

// layOut decides which parts are written in one line.
func layOut(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		return nil
	}
	n.Style = yaml.FlowStyle
	b, err := yaml.Marshal(n)
	if err != nil || len(b) < 150 && !slices.ContainsFunc(n.Content, func(p *yaml.Node) bool { return p.Value == "properties" }) {
		return err
	}
	n.Style = 0
	for _, part := range n.Content {
		if err := layOut(part); err != nil {
			return err
		}
	}
	return nil
}
