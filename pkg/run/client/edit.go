package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// EditText returns the fields of an object of the API as YAML, in the order of the documentation,
// for a person to change. The name is not among them.
func (k Kind) EditText(object json.RawMessage) (string, error) {
	var stored map[string]json.RawMessage
	if err := json.Unmarshal(object, &stored); err != nil {
		return "", fmt.Errorf("reading the object: %w", err)
	}
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, f := range k.fields[1:] {
		name := strings.ToLower(f.Name)
		raw, shown := stored[name]
		if !shown {
			continue
		}
		var doc yaml.Node
		if err := yaml.Unmarshal(raw, &doc); err != nil {
			return "", fmt.Errorf("reading %s: %w", name, err)
		}
		block(doc.Content[0])
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, doc.Content[0])
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err := e.Encode(root)
	return b.String(), err
}

// block gives a tree that was read from JSON the style that people write.
func block(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && strings.Contains(n.Value, "\n") {
		n.Style = yaml.LiteralStyle
	}
	for _, child := range n.Content {
		block(child)
	}
}

// Edited returns the fields that differ between two texts, as the body of a PATCH. A field that
// was removed gets its default. The error is about the text after.
func (k Kind) Edited(before, after string) (map[string]any, error) {
	was, err := k.readEdited(before)
	if err != nil {
		return nil, err
	}
	is, err := k.readEdited(after)
	if err != nil {
		return nil, err
	}
	body := map[string]any{}
	for _, f := range k.fields[1:] {
		old, had := was[f.Name]
		now, has := is[f.Name]
		switch {
		case has && (!had || string(old) != string(now)):
			body[f.Name] = now
		case had && !has:
			body[f.Name] = k.cleared(Assignment{Field: f.Name})
		}
	}
	return body, nil
}

// readEdited returns the values of an edited text as JSON, by the names of the API.
func (k Kind) readEdited(text string) (map[string]json.RawMessage, error) {
	var values map[string]any
	d := yaml.NewDecoder(strings.NewReader(text))
	if err := d.Decode(&values); err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it is not YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	fields := map[string]json.RawMessage{}
	for word, value := range values {
		f, err := k.find(word)
		if err != nil {
			return nil, err
		}
		if _, twice := fields[f.Name]; twice {
			return nil, fmt.Errorf("%s is there twice", word)
		}
		if value == nil {
			continue // as if the line were not there
		}
		raw, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("%s has a key that is not text", word)
		}
		fields[f.Name] = raw
	}
	return fields, nil
}
