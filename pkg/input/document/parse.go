package document

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Parse reads a document with a media type, for example application/yaml; the default
// is YAML. An error is a *model.Error of kind Invalid. It lists every bad object with
// its line, up to 100 errors.
func Parse(data []byte, mediaType string) (*Document, error) {
	isJSON, err := isJSONType(mediaType)
	if err != nil {
		return nil, err
	}
	b := &builder{seen: map[model.Key]int{}, items: map[model.Kind][]*Item{}, keysOf: map[model.Kind]objectKeys{}}
	if isJSON {
		err = b.readJSON(data)
	} else {
		var root *yaml.Node
		if root, err = parseYAML(data); err == nil {
			b.document(root)
		}
	}
	if err != nil {
		return nil, unreadableError(isJSON, err)
	}
	if len(b.errs) > 0 {
		return nil, invalid(b.errs)
	}
	doc := &Document{Base: b.base}
	for _, kind := range model.Kinds() {
		doc.Items = append(doc.Items, b.items[kind]...)
	}
	return doc, nil
}

func isJSONType(mediaType string) (bool, error) {
	if mediaType == "" {
		return false, nil
	}
	base, _, err := mime.ParseMediaType(mediaType)
	if err == nil {
		switch base {
		case "application/json", "text/json":
			return true, nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return false, nil
		}
	}
	return false, &model.Error{
		Kind: model.Invalid, Message: fmt.Sprintf("a configuration document cannot be of the type %q", mediaType),
		Hint: "send application/yaml or application/json",
	}
}

func unreadableError(isJSON bool, err error) error {
	language := "YAML"
	if isJSON {
		language = "JSON"
	}
	return &model.Error{
		Kind:    model.Invalid,
		Message: "the document cannot be read as " + language + ": " + strings.TrimPrefix(err.Error(), "yaml: "),
		Hint:    "nothing was changed",
	}
}

func invalid(errs []model.FieldError) error {
	return &model.Error{
		Kind: model.Invalid, Message: "the document contains errors",
		Hint: "nothing was changed; see errors", Fields: errs,
	}
}

func parseYAML(data []byte) (*yaml.Node, error) {
	if err := checkYAMLParts(data); err != nil {
		return nil, err
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var root, second yaml.Node
	switch err := dec.Decode(&root); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty")
	case err != nil:
		return nil, err
	}
	switch err := dec.Decode(&second); {
	case err == nil:
		return nil, fmt.Errorf("line %d: contains a second document", second.Line)
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	if len(root.Content) != 1 {
		return nil, errors.New("it is empty")
	}
	return root.Content[0], checkYAML(root.Content[0], 0)
}

// checkYAML refuses what JSON cannot express, and what makes a document mean more than
// it shows.
func checkYAML(n *yaml.Node, depth int) error {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return fmt.Errorf("line %d: anchors (&) and aliases (*) are not supported; quote a string that begins with one",
			n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return fmt.Errorf("line %d: tags (!) are not supported; quote a string that begins with one", n.Line)
	case n.Kind == yaml.ScalarNode:
		return nil
	case depth == maxDepth:
		return fmt.Errorf("line %d: nests deeper than %d levels", n.Line, maxDepth)
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if child.Kind == yaml.ScalarNode && child.ShortTag() == "!!merge" {
				return fmt.Errorf("line %d: merge keys (<<) are not supported", child.Line)
			}
			if child.Kind == yaml.MappingNode || child.Kind == yaml.SequenceNode {
				return fmt.Errorf("line %d: a key must be text", child.Line)
			}
		}
		if err := checkYAML(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
