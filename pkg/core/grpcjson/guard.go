package grpcjson

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// rule says which parts of a request a rule reads.
type rule struct {
	// text is its method and path.
	text      string
	input     protoreflect.MessageDescriptor
	variables [][]string
	// inPath are the variables, by the numbers of their fields: a field may have two names.
	inPath map[string]bool
	// body is the field that the body becomes, by its numbers; wholeBody says that the body is the whole message.
	body      string
	wholeBody bool
}

// newRule returns the rule of a path whose fields exist.
func newRule(text string, input protoreflect.MessageDescriptor, variables [][]string, body string) rule {
	r := rule{text: text, input: input, variables: variables, inPath: map[string]bool{}, wholeBody: body == "*"}
	for _, v := range variables {
		r.inPath[numbersOf(input, v)] = true
	}
	if body != "" && !r.wholeBody {
		r.body = numbersOf(input, strings.Split(body, "."))
	}
	return r
}

// asks reports whether the rule can read a field from the query.
func (r rule) asks(field []string) bool {
	if r.wholeBody {
		return false
	}
	f := fieldAt(r.input, field)
	if f == nil || f.Message() != nil || r.inPath[numbersOf(r.input, field)] {
		return false
	}
	return r.body == "" || len(field) == 1 || r.body != numbersOf(r.input, field[:1])
}

// guardPaths finds the query parameters that would override a value in the path, on which other filters may have based
// their decision.
func (c *Calls) guardPaths() error {
	asking, spellings := map[string]string{}, map[string]bool{}
	for _, r := range c.rules {
		for _, v := range r.variables {
			name := strings.Join(v, ".")
			by, known := asking[name]
			if !known {
				if (len(asking)+1)*len(c.rules) > mostCompared {
					return fmt.Errorf("the http rules have more than %d variables; leave out services that are not called",
						len(asking))
				}
				by = c.findAsking(v)
				asking[name] = by
			}
			if by != "" && len(c.Overriding) < mostOverriding {
				c.Overriding = append(c.Overriding, fmt.Sprintf("the query parameter %s takes the place of what the path of %s "+
					"says: %s needs it too", name, r.text, by))
			}
			if by != "" {
				continue
			}
			for _, s := range spellingsOf(r.input, v) {
				spellings[s] = true
			}
			if len(spellings) > mostSpellings {
				return fmt.Errorf("the variables of the http rules have more than %d spellings as query parameters (%s is one); "+
					"leave out services that are not called", mostSpellings, name)
			}
		}
	}
	for s := range spellings {
		c.Ignored = append(c.Ignored, s)
	}
	slices.Sort(c.Ignored)
	return nil
}

// findAsking returns a rule that can read a field from the query; empty means that there is none.
func (c *Calls) findAsking(field []string) string {
	for _, r := range c.rules {
		if r.asks(field) {
			return r.text
		}
	}
	return ""
}

// numbersOf returns the numbers of the fields on a path that exists, such as 2.1. They differ for different fields.
func numbersOf(m protoreflect.MessageDescriptor, path []string) string {
	var text []byte
	for _, name := range path {
		f := fieldAt(m, []string{name})
		text = append(strconv.AppendInt(text, int64(f.Number()), 10), '.')
		m = f.Message()
	}
	return string(text)
}

// spellingsOf returns the names by which Envoy knows a field that exists: two for each part of the path whose name in
// JSON is another one. A path has at most deepestField parts.
func spellingsOf(m protoreflect.MessageDescriptor, path []string) []string {
	list := []string{""}
	for i, name := range path {
		f := fieldAt(m, []string{name})
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
