package client

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a configuration document that is to be applied.
type Document struct {
	Data []byte
	// origins gives each line of a merged document the file and line it came from; nil
	// for a single file.
	origins map[int]origin
	// file is the name of a single file.
	file string
	// values are what was put into the document, and must not be in errors.
	values [][2]string
	// Skipped says, in a line each, what of the directories was not read.
	Skipped []string
}

// origin is where a line of a merged document was.
type origin struct {
	file string
	line int
	// shift is how much further right the text was.
	shift int
}

func (o origin) String() string { return fmt.Sprintf("%s line %d", o.file, o.line) }

// Place is a place in a file.
type Place struct {
	File string `json:"file"`
	// Line and Column begin with 1; 0 means the whole file.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// Locate finds a key of the document: field is the last part of its path, on the line or in the object that begins
// there. A field that is not found stands for the beginning of the line, and line 0 for the document.
func (d Document) Locate(line int, field string) Place {
	if line == 0 {
		return Place{File: d.file}
	}
	at := Place{d.file, line, 1}
	var root yaml.Node
	if yaml.Unmarshal(d.Data, &root) == nil { // else it begins somewhere on the line
		at.Line, at.Column = locate(&root, line, strings.ToLower(field[strings.LastIndex(field, ".")+1:]))
	}
	if o, merged := d.origins[at.Line]; merged {
		at = Place{o.file, o.line, max(1, at.Column+o.shift)}
	}
	return at
}

// locate finds a key on a line, or in the mapping that begins there.
func locate(n *yaml.Node, line int, key string) (atLine, column int) {
	atLine, column = line, 0
	var walk func(n *yaml.Node, inside bool) bool
	walk = func(n *yaml.Node, inside bool) bool {
		inside = inside || n.Kind == yaml.MappingNode && n.Line == line
		for i, child := range n.Content {
			if child.Line == line && column == 0 && child.Kind != yaml.SequenceNode { // which begins at its first dash
				column = child.Column
			}
			isKey := n.Kind == yaml.MappingNode && i%2 == 0
			if isKey && (inside || child.Line == line) && strings.ToLower(child.Value) == key {
				atLine, column = child.Line, child.Column
				return true
			}
		}
		return slices.ContainsFunc(n.Content, func(child *yaml.Node) bool { return walk(child, inside) })
	}
	walk(n, false)
	return atLine, max(1, column)
}

// ReadDocument reads files, the standard input from in. One file is sent as it
// is; several become one document, section by section.
func ReadDocument(from Files, in io.Reader) (Document, error) {
	files, skipped, err := from.list()
	if err != nil {
		return Document{}, fmt.Errorf("reading the configuration: %w", err)
	}
	doc, err := merge(files, in, from.Env)
	doc.Skipped = skipped
	return doc, err
}

func merge(files []string, in io.Reader, env func(string) (string, bool)) (Document, error) {
	m := merger{single: map[string]*yaml.Node{}, sections: map[string]*yaml.Node{}, values: &expander{lookup: env}}
	for _, name := range files {
		data, err := readFile(name, in)
		if err != nil {
			return Document{}, fmt.Errorf("reading the configuration: %w", err)
		}
		if len(files) == 1 && !hasTags(data) {
			return Document{Data: data, file: name}, nil
		}
		if err := m.add(name, data); err != nil {
			return Document{}, err
		}
	}
	if err := m.values.err(); err != nil {
		return Document{}, err
	}
	doc, err := m.document()
	doc.values = m.values.values
	return doc, err
}

func readFile(name string, in io.Reader) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(name)
}

// merger puts documents together and remembers where each item came from.
type merger struct {
	// single are the values that are no lists, which all files that have them share.
	single   map[string]*yaml.Node
	order    []string
	sections map[string]*yaml.Node
	sources  []source
	values   *expander
}

type source struct {
	node *yaml.Node
	file string
}

func (m *merger) add(file string, data []byte) error {
	d := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		err := d.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s is not YAML: %s", file, strings.TrimPrefix(err.Error(), "yaml: "))
		}
		if len(doc.Content) == 0 || doc.Content[0].Tag == "!!null" {
			continue
		}
		m.values.expand(file, doc.Content[0])
		if err := m.addDocument(file, doc.Content[0]); err != nil {
			return err
		}
	}
}

func (m *merger) addDocument(file string, root *yaml.Node) error {
	if root.Kind != yaml.MappingNode {
		return fmt.Errorf("%s line %d: expected a configuration document, which begins with \"version: 1\"", file, root.Line)
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, val := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s line %d", file, key.Line)
		section := m.sections[key.Value]
		switch {
		case key.Value == "version" || key.Value == "revision":
			if before := m.single[key.Value]; before != nil && before.Value != val.Value {
				return fmt.Errorf("%s: %s %s, where a file before it has %s %s", where, key.Value, val.Value, key.Value,
					before.Value)
			}
			m.single[key.Value] = val
			continue
		case val.Tag == "!!null":
			continue
		case val.Kind != yaml.SequenceNode:
			return fmt.Errorf("%s: %q must be a list", where, key.Value)
		case section == nil:
			section = &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
			m.sections[key.Value] = section
			m.order = append(m.order, key.Value)
		}
		for _, item := range val.Content {
			section.Content = append(section.Content, item)
			m.sources = append(m.sources, source{item, file})
		}
	}
	return nil
}

func (m *merger) document() (Document, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	put := func(key string, val *yaml.Node) {
		root.Content = append(root.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, val)
	}
	for _, key := range []string{"version", "revision"} {
		if val := m.single[key]; val != nil {
			put(key, val)
		}
	}
	for _, key := range m.order {
		put(key, m.sections[key])
	}
	data, err := yaml.Marshal(root)
	if err != nil {
		return Document{}, fmt.Errorf("merging the configuration: %w", err)
	}
	var merged yaml.Node
	if err := yaml.Unmarshal(data, &merged); err != nil {
		return Document{}, fmt.Errorf("merging the configuration: %w", err)
	}
	files := map[*yaml.Node]string{}
	for _, p := range m.sources {
		files[p.node] = p.file
	}
	d := Document{Data: data, origins: map[int]origin{}}
	d.recordLines(merged.Content[0], root, files, "")
	return d, nil
}

// recordLines walks two equal trees and notes where the lines of one are in the
// files of the other.
func (d Document) recordLines(merged, source *yaml.Node, files map[*yaml.Node]string, file string) {
	if f, ok := files[source]; ok {
		file = f
	}
	if _, known := d.origins[merged.Line]; !known && file != "" {
		d.origins[merged.Line] = origin{file, source.Line, source.Column - merged.Column}
	}
	for i := range min(len(merged.Content), len(source.Content)) {
		d.recordLines(merged.Content[i], source.Content[i], files, file)
	}
}

// String is FILE:LINE:COLUMN, as compilers write places.
func (p Place) String() string {
	if p.File == "-" {
		p.File = "standard input"
	}
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// ComparePlaces orders places by file, line and column.
func ComparePlaces(a, b Place) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
}
