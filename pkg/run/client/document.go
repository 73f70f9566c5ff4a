package client

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is a configuration document that is to be applied.
type Document struct {
	Data []byte
	// origins gives each line of a merged document the file and line it came from; nil
	// for a single file.
	origins map[int]string
	// Skipped says, in a line each, what of the directories was not read.
	Skipped []string
}

// ReadDocument reads files, the standard input from in. One file is sent as it
// is; several become one document, section by section.
func ReadDocument(from Files, in io.Reader) (Document, error) {
	files, skipped, err := from.list()
	if err != nil {
		return Document{}, fmt.Errorf("reading the configuration: %w", err)
	}
	doc, err := merge(files, in)
	doc.Skipped = skipped
	return doc, err
}

func merge(files []string, in io.Reader) (Document, error) {
	m := merger{single: map[string]*yaml.Node{}, sections: map[string]*yaml.Node{}}
	for _, name := range files {
		data, err := readFile(name, in)
		if err != nil {
			return Document{}, fmt.Errorf("reading the configuration: %w", err)
		}
		if len(files) == 1 {
			return Document{Data: data}, nil
		}
		if err := m.add(name, data); err != nil {
			return Document{}, err
		}
	}
	return m.document()
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
	d := Document{Data: data, origins: map[int]string{}}
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
		d.origins[merged.Line] = fmt.Sprintf("%s line %d", file, source.Line)
	}
	for i := range min(len(merged.Content), len(source.Content)) {
		d.recordLines(merged.Content[i], source.Content[i], files, file)
	}
}
