package ingress

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"

	yamlv3 "go.yaml.in/yaml/v3"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"
)

// source is an Ingress with the lines of its annotations.
type source struct {
	networkingv1.Ingress
	line  int
	lines map[string]int
}

func (s *source) String() string { return s.Namespace + "/" + s.Name }

// read returns the Ingresses of YAML documents or lists, the oldest first, and the kinds of what else there is.
func read(in io.Reader) (list []*source, skipped []string, err error) {
	docs := yamlv3.NewDecoder(in)
	for {
		var doc yamlv3.Node
		switch err := docs.Decode(&doc); {
		case errors.Is(err, io.EOF):
			slices.SortStableFunc(list, func(a, b *source) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
			return list, skipped, nil
		case err != nil:
			return nil, nil, err
		}
		for _, n := range doc.Content {
			if err := readNode(n, &list, &skipped); err != nil {
				return nil, nil, err
			}
		}
	}
}

func readNode(n *yamlv3.Node, list *[]*source, skipped *[]string) error {
	kind, version := valueOf(n, "kind"), valueOf(n, "apiVersion")
	switch {
	case n.Kind != yamlv3.MappingNode:
		return nil // an empty document
	case kind == "List" || kind == "IngressList":
		if items := child(n, "items"); items != nil {
			for _, item := range items.Content {
				if err := readNode(item, list, skipped); err != nil {
					return err
				}
			}
		}
		return nil
	case kind != "Ingress":
		if kind = cmp.Or(kind, "unknown"); !slices.Contains(*skipped, kind) {
			*skipped = append(*skipped, kind)
		}
		return nil
	case version != networkingv1.SchemeGroupVersion.String():
		return fmt.Errorf("line %d: an Ingress of apiVersion %q cannot be read: Kubernetes 1.22 has %s, which kubectl get prints", n.Line, version, networkingv1.SchemeGroupVersion)
	}
	var text bytes.Buffer
	encoder := yamlv3.NewEncoder(&text)
	if err := errors.Join(encoder.Encode(n), encoder.Close()); err != nil {
		return fmt.Errorf("line %d: %w", n.Line, err)
	}
	s := &source{line: n.Line, lines: map[string]int{}}
	if err := yaml.Unmarshal(text.Bytes(), &s.Ingress); err != nil {
		return fmt.Errorf("the Ingress at line %d: %w", n.Line, err)
	}
	s.Namespace = cmp.Or(s.Namespace, "default")
	if meta := child(n, "metadata"); meta != nil {
		if a := child(meta, "annotations"); a != nil {
			for i := 0; i+1 < len(a.Content); i += 2 {
				s.lines[a.Content[i].Value] = a.Content[i].Line
			}
		}
	}
	*list = append(*list, s)
	return nil
}

func child(n *yamlv3.Node, key string) *yamlv3.Node {
	if n.Kind == yamlv3.MappingNode {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	}
	return nil
}

func valueOf(n *yamlv3.Node, key string) string {
	if c := child(n, key); c != nil {
		return c.Value
	}
	return ""
}
