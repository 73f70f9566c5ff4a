package main

import (
	"fmt"
	"go/ast"
	"maps"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// field is a field of a kind of objects.
type field struct {
	name       string // in Go
	json, form string // in answers and in forms
	required   bool
	bounds     string
	doc        doc
	expr       ast.Expr
}

// fieldsOf returns the fields of the Go type of a kind.
func (s *source) fieldsOf(kind model.Kind) (fields []field, err error) {
	t := s.types[reflect.TypeOf(model.New(kind)).Elem().Name()]
	for _, f := range t.expr.(*ast.StructType).Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		name, options, _ := strings.Cut(tag.Get("form"), ",")
		d, err := s.readDoc(f.Doc)
		if err != nil {
			return nil, fmt.Errorf("type %s: %w", t.name, err)
		}
		fields = append(fields, field{
			name: f.Names[0].Name, json: tag.Get("json"), form: name, required: options == "required",
			bounds: tag.Get("range"), doc: d, expr: f.Type,
		})
	}
	return fields, nil
}

// place is where an object is written.
type place int

const (
	inAnswer place = iota
	inBody
	inDocument // of /config
)

// in returns the name of a field in a place, empty if it is not there, and whether it must be there.
func (f field) in(at place) (name string, required bool) {
	switch {
	case at == inAnswer && f.doc.keywords["writeOnly"] == nil:
		name, omitted := strings.CutSuffix(f.json, ",omitempty")
		return name, !omitted
	case at == inAnswer || f.form == "":
		return "", false
	case at == inBody:
		return f.form, f.required
	}
	return f.json, f.required && !is(f.expr, "JSON") // a document may leave out what is empty
}

// objectSchemas returns the schemas of an object of a kind in each place. configs are the types of its configuration.
func (s *source) objectSchemas(kind model.Kind, configs []configType) (*yaml.Node, error) {
	known, err := s.fieldsOf(kind)
	if err != nil {
		return nil, err
	}
	w, name, made := &writer{source: s}, title(string(kind)), mapping()
	var create []string
	for at, called := range []string{name, name + "Patch", "Config" + name} {
		properties := mapping()
		var required []string
		for _, f := range known {
			fieldName, isRequired := f.in(place(at))
			if fieldName == "" {
				continue
			}
			schema, err := w.fieldSchema(kind, f, place(at), configs)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", f.json, err)
			}
			merge(properties, mapping(fieldName, schema))
			if isRequired {
				required = append(required, fieldName)
			}
		}
		switch place(at) {
		case inAnswer:
			merge(properties, mapping("status", reference("schemas", "ObjectStatus")))
		case inBody:
			create, required = required, nil
		}
		schema := mapping("type", scalar("object"))
		if len(required) > 0 {
			merge(schema, mapping("required", list(required)))
		}
		merge(schema, mapping("additionalProperties", literalOf("false"), "properties", properties))
		merge(made, mapping(called, schema))
	}
	put := create[1:] // the path has the name
	merge(made, mapping(name+"Create", ofPatch(name, create), name+"Put", ofPatch(name, put)))
	return made, nil
}

// ofPatch returns the schema of a body with required fields.
func ofPatch(name string, required []string) *yaml.Node {
	parts := references("schemas", []string{name + "Patch"})
	if len(required) == 0 {
		return mapping("allOf", parts)
	}
	parts.Content = append(parts.Content, mapping()) // so that generators define a type of its own (ADR 0028)
	return mapping("required", list(required), "allOf", parts)
}

// fieldSchema returns the schema of a field in a place. Bodies describe it; answers only if no body has it.
func (w *writer) fieldSchema(kind model.Kind, f field, at place, configs []configType) (*yaml.Node, error) {
	d := doc{keywords: maps.Clone(f.doc.keywords)}
	delete(d.keywords, "writeOnly")
	if at == inBody || f.form == "" {
		d.description = strings.TrimSpace(f.doc.description + " " + defaultOf(kind, f))
	}
	if at == inDocument && f.doc.keywords["writeOnly"] != nil {
		delete(d.keywords, "maxLength") // it may be sealed, which is longer
	}
	if star, ok := f.expr.(*ast.StarExpr); ok && is(star.X, "Time") {
		f.expr = ast.NewIdent("string") // null is not allowed next to a reference
	}
	switch {
	case f.json == string(kind)+"_id":
		return reference("schemas", "ID"), nil
	case f.json == "name" || strings.HasSuffix(f.json, "_name"):
		return reference("schemas", "Name"), nil
	case d.keywords["$ref"] != nil:
		return mapping("$ref", d.keywords["$ref"]), nil
	case is(f.expr, "Time"):
		return reference("schemas", "Timestamp"), nil
	case is(f.expr, "Tags") && at == inAnswer:
		return reference("schemas", "Tags"), nil
	case is(f.expr, "Tags"):
		return reference("schemas", "TagsField"), nil
	case is(f.expr, "Groups") && at == inAnswer:
		return reference("schemas", "Groups"), nil
	case is(f.expr, "Groups"):
		return reference("schemas", "GroupsField"), nil
	case is(f.expr, "RouteConfig") && at == inBody:
		d.keywords["anyOf"] = references("schemas", []string{"RouteConfig", "Text"})
	case is(f.expr, "ConsumerCredentials") && at == inBody:
		d.keywords["anyOf"] = references("schemas", []string{"ConsumerCredentials", "Text"})
	case is(f.expr, "JSON") && at == inBody:
		d.keywords["anyOf"] = references("schemas", append(forms(configs), "Text"))
	case is(f.expr, "JSON"):
		open := mapping("type", scalar("object"), "additionalProperties", literalOf("true"))
		if at == inAnswer {
			merge(open, mapping("description", scalar("Secret fields contain <redacted>.")))
		}
		return open, nil
	}
	if from, to, has := strings.Cut(f.bounds, "-"); has {
		d.keywords["minimum"], d.keywords["maximum"] = literalOf(from), literalOf(to)
	}
	return w.schema(f.expr, d)
}

// defaultOf says which value a field has that is not sent, unless it must be, or is empty then.
func defaultOf(kind model.Kind, f field) string {
	if f.required || f.form == "" || strings.Contains(f.doc.description, "Default: ") {
		return ""
	}
	switch v := reflect.ValueOf(model.New(kind)).Elem().FieldByName(f.name); v.Kind() {
	case reflect.Int, reflect.Bool:
		return fmt.Sprintf("Default: %v.", v)
	case reflect.String:
		if v.Len() > 0 {
			return fmt.Sprintf("Default: %v.", v)
		}
	}
	return ""
}

func is(e ast.Expr, name string) bool {
	ident, ok := e.(*ast.Ident)
	return ok && ident.Name == name
}

// literalOf is a number or a truth value.
func literalOf(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }
