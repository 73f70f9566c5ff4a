package grpcjson

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// rule says which parts of a request a rule reads.
type rule struct {
	// text is its method and path.
	text      string
	input     protoreflect.MessageDescriptor
	variables [][]string
	body      string
}

// guardPaths finds the query parameters that would override a value in the path, on which other filters may have based
// their decision.
func (c *Calls) guardPaths() {
	for _, r := range c.rules {
		for _, v := range r.variables {
			if by := c.findAsking(v); by != "" {
				c.Overriding = append(c.Overriding, fmt.Sprintf("the query parameter %s takes the place of what the path of %s says: %s needs it too", strings.Join(v, "."), r.text, by))
			} else {
				c.Ignored = append(c.Ignored, spellings(r.input, v)...)
			}
		}
	}
	slices.Sort(c.Ignored)
	c.Ignored = slices.Compact(c.Ignored)
}

// findAsking returns a rule that can read a field from the query; empty means that there is none.
func (c *Calls) findAsking(field []string) string {
	for _, r := range c.rules {
		f := fieldAt(r.input, field)
		inPath := slices.ContainsFunc(r.variables, func(v []string) bool { return isOneField(r.input, v, field) })
		inBody := r.body == "*" || r.body != "" && len(field) > 1 && isOneField(r.input, strings.Split(r.body, "."), field[:1])
		if f != nil && f.Message() == nil && !inPath && !inBody {
			return r.text
		}
	}
	return ""
}

// isOneField reports whether two paths lead to the same field.
func isOneField(m protoreflect.MessageDescriptor, a, b []string) bool {
	names := spellings(m, a)
	return len(names) > 0 && slices.Equal(names, spellings(m, b))
}

// spellings returns the names by which Envoy knows a field; none if the field does not exist.
func spellings(m protoreflect.MessageDescriptor, path []string) []string {
	list := []string{""}
	for i, name := range path {
		f := fieldAt(m, []string{name})
		if f == nil {
			return nil
		}
		var longer []string
		for _, text := range list {
			if i > 0 {
				text += "."
			}
			longer = append(longer, text+string(f.Name()))
			if f.JSONName() != string(f.Name()) {
				longer = append(longer, text+f.JSONName())
			}
		}
		list, m = longer, f.Message()
	}
	return list
}
