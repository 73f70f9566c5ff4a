package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// FieldNames lists the fields of a kind, without its name, by the words that a user writes: those
// of the API in lower case, without the word of the kind in front.
func (k Kind) FieldNames() (names []string) {
	for _, f := range k.fields[1:] {
		names = append(names, k.Short(f.Name))
	}
	return names
}

// Short is the name of a field without the word of the kind.
func (k Kind) Short(name string) string { return strings.TrimPrefix(strings.ToLower(name), k.Name+"_") }

// find finds a field by its name in the API or the short one, without regard to case.
func (k Kind) find(word string) (form.Field, error) {
	at := slices.IndexFunc(k.fields, func(f form.Field) bool {
		return strings.EqualFold(f.Name, word) || strings.EqualFold(k.Short(f.Name), word)
	})
	switch {
	case at > 0:
		return k.fields[at], nil
	case at == 0:
		return form.Field{}, fmt.Errorf("%s is the name of the %s: write it before the fields; it cannot be changed", word, k.Name)
	}
	if best, near := suggest.Nearest(k.Short(word), k.FieldNames()); near {
		return form.Field{}, fmt.Errorf("%q is not a field of %s; did you mean %s?", word, k.One(), best)
	}
	return form.Field{}, fmt.Errorf("%q is not a field of %s; the fields are %s", word, k.One(), strings.Join(k.FieldNames(), ", "))
}

// standard is the value that a new object has.
func (k Kind) standard(f form.Field) any { return f.Get(model.New(model.Kind(k.Name))) }

func (k Kind) isObject(f form.Field) bool {
	_, is := k.standard(f).(json.RawMessage)
	return is
}

// Assignment is one field=value of a command line.
type Assignment struct {
	// Field is the name in the API.
	Field string
	// path leads to the place in a field that is a JSON object; nil means the whole field.
	path []string
	// value is what to set: text, or of a JSON object its JSON; nil removes the place.
	value any
}

// IsInside reports whether the assignment changes only a part of its field, so that the rest must
// be known.
func (a Assignment) IsInside() bool { return a.path != nil }

// ParseAssignments reads field=value, field= (the default), field=@FILE and field=- (standard
// input). read returns what a file contains; its name is - for standard input.
func (k Kind) ParseAssignments(args []string, read func(file string) (string, error)) ([]Assignment, error) {
	var list []Assignment
	stdin := ""
	for _, arg := range args {
		word, text, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, fmt.Errorf("%q is not field=value; the fields of %s are %s", arg, k.One(), strings.Join(k.FieldNames(), ", "))
		}
		a, isObject, err := k.parsePlace(word)
		if err != nil {
			return nil, err
		}
		for _, other := range list {
			if overlap(a, other) {
				return nil, fmt.Errorf("%s is given twice", word)
			}
		}
		switch {
		case text == "-" && stdin != "":
			return nil, fmt.Errorf("%s=- and %s=- cannot both read standard input", stdin, word)
		case text == "-":
			stdin = word
			text, err = read("-")
		case strings.HasPrefix(text, "@@"):
			text = text[1:]
		case strings.HasPrefix(text, "@"):
			text, err = read(text[1:])
		case text == "":
			a.value = k.cleared(a)
			list = append(list, a)
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
		if a.value, err = readValue(text, a.path, isObject); err != nil {
			return nil, fmt.Errorf("%s: %w", word, err)
		}
		list = append(list, a)
	}
	return list, nil
}

// overlap reports whether one of two assignments is, or is in, what the other one sets.
func overlap(a, b Assignment) bool {
	n := min(len(a.path), len(b.path))
	return a.Field == b.Field && slices.Equal(a.path[:n], b.path[:n])
}

// parsePlace reads FIELD or FIELD.KEY.KEY; a dot in a key is written \. and an element of a list
// as its index.
func (k Kind) parsePlace(word string) (a Assignment, isObject bool, err error) {
	const dot = "\x00"
	parts := strings.Split(strings.ReplaceAll(word, `\.`, dot), ".")
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(p, dot, ".")
	}
	f, err := k.find(parts[0])
	if err != nil {
		return a, false, err
	}
	a, isObject = Assignment{Field: f.Name}, k.isObject(f)
	switch {
	case len(parts) == 1:
		return a, isObject, nil
	case !isObject:
		return a, false, fmt.Errorf("%s: %s has no keys inside", word, parts[0])
	case slices.Contains(parts, ""):
		return a, false, fmt.Errorf("%s: a key is empty", word)
	}
	a.path = parts[1:]
	return a, true, nil
}

// cleared is the value of an assignment without a text.
func (k Kind) cleared(a Assignment) any {
	if a.path != nil {
		return nil
	}
	f, err := k.find(a.Field)
	if err != nil {
		return "" // cannot be: the name is one of a field
	}
	switch is := k.standard(f).(type) {
	case []string:
		return strings.Join(is, ",")
	case json.RawMessage:
		if string(is) == "null" {
			return "{}"
		}
		return string(is)
	default:
		return fmt.Sprint(is)
	}
}

// readValue reads a text as the value of a field. What a JSON object contains may be written in
// YAML, so that 2 and true are no texts there, and "2" is one.
func readValue(text string, path []string, isObject bool) (any, error) {
	if !isObject {
		return text, nil
	}
	raw, err := yamlToJSON([]byte(text))
	if err != nil {
		return nil, err
	}
	if path == nil {
		return string(raw), nil
	}
	return raw, nil
}

// yamlToJSON returns JSON as it is, so that no number changes, and YAML as JSON.
func yamlToJSON(text []byte) (json.RawMessage, error) {
	if json.Valid(text) {
		return bytes.TrimSpace(text), nil
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("is neither JSON nor YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("has a key that is not text: %w", err)
	}
	return raw, nil
}

// Body returns the fields that assignments set, as JSON. current is the object as the API shows
// it, for those that change a part of a field; nil means a new one.
func (k Kind) Body(list []Assignment, current json.RawMessage) (map[string]any, error) {
	body := map[string]any{}
	for _, a := range list {
		if !a.IsInside() {
			body[a.Field] = a.value
			continue
		}
		tree, started := body[a.Field]
		if !started {
			stored, err := member(current, a.Field)
			if err != nil {
				return nil, err
			}
			tree = stored
		}
		changed, err := setAt(tree, a.path, k.asText(a, list, current))
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", strings.ToLower(a.Field), strings.Join(a.path, "."), err)
		}
		if changed == nil {
			changed = map[string]any{}
		}
		body[a.Field] = changed
	}
	return body, nil
}

// member returns the value of a field of an object of the API; an empty object if there is none.
func member(object json.RawMessage, field string) (any, error) {
	if len(object) == 0 {
		return map[string]any{}, nil
	}
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(object))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil, fmt.Errorf("reading the stored object: %w", err)
	}
	if tree := fields[strings.ToLower(field)]; tree != nil {
		return tree, nil
	}
	return map[string]any{}, nil
}

// setAt puts a value at a path in a tree, or removes the place if it is nil, and returns the tree.
func setAt(tree any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	switch node := tree.(type) {
	case nil:
		if value == nil {
			return nil, nil
		}
		return setAt(map[string]any{}, path, value)
	case map[string]any:
		key := path[0]
		for known := range node {
			if strings.EqualFold(known, key) {
				key = known
			}
		}
		child, err := setAt(node[key], path[1:], value)
		if err != nil {
			return nil, err
		}
		if node[key] = child; child == nil {
			delete(node, key)
		}
		if len(node) == 0 {
			return nil, nil // what held only this is not needed either
		}
		return node, nil
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i >= len(node) {
			return nil, fmt.Errorf("%q is not an index of a list of %d", path[0], len(node))
		}
		child, err := setAt(node[i], path[1:], value)
		if err != nil {
			return nil, err
		}
		if child == nil {
			return slices.Delete(node, i, i+1), nil
		}
		node[i] = child
		return node, nil
	}
	return nil, fmt.Errorf("%q would be inside of %v, which is not an object", path[0], tree)
}

// Fields returns the fields of an object as the API shows it, without its name, by the names that a write takes.
func (k Kind) Fields(object json.RawMessage) (map[string]any, error) {
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(object, &stored); err != nil {
		return nil, fmt.Errorf("reading the object: %w", err)
	}
	fields := map[string]any{}
	for _, f := range k.fields[1:] {
		if raw, shown := stored[strings.ToLower(f.Name)]; shown {
			fields[f.Name] = raw
		}
	}
	return fields, nil
}

// IsStandard reports whether a field of the API has the value that a new object has. What is not a
// field that can be set never has it.
func (k Kind) IsStandard(name string, value json.RawMessage) bool {
	at := slices.IndexFunc(k.fields, func(f form.Field) bool { return strings.EqualFold(f.Name, name) })
	if at < 0 {
		return false
	}
	is := string(value)
	if standard, err := json.Marshal(k.standard(k.fields[at])); err == nil && is == string(standard) {
		return true
	}
	return is == "[]" || is == "null" || is == "{}"
}
