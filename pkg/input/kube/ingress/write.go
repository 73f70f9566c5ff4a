package ingress

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Write writes the objects as YAML documents: each after those that it names.
func (r *Result) Write(w io.Writer) error {
	var all []any
	for _, o := range r.Certificates {
		all = append(all, o)
	}
	for _, o := range r.Filters {
		all = append(all, o)
	}
	for _, o := range r.Hosts {
		all = append(all, o)
	}
	for i, o := range all {
		text, err := bare(o)
		if err != nil {
			return fmt.Errorf("writing object %d: %w", i, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// bare returns an object without what a cluster adds.
func bare(o any) ([]byte, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	fields := map[string]any{}
	if err := json.Unmarshal(text, &fields); err != nil {
		return nil, err
	}
	delete(fields, "status")
	if meta, ok := fields["metadata"].(map[string]any); ok {
		delete(meta, "creationTimestamp")
	}
	return yaml.Marshal(fields)
}
