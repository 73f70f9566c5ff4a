package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds the nesting of a document.
const maxDepth = 64

// jsonReader makes the same tree from JSON that the YAML parser makes from YAML. The
// JSON must be well formed: see checkJSON.
type jsonReader struct {
	data []byte
	// at is the offset of the next byte. line is the line of the offset counted.
	at, line, counted int
	// parts counts the parts of the current tree.
	parts int
	// text makes the node for a text.
	text func(string) *yaml.Node
}

// newJSONReader reads JSON that checkJSON has passed.
func newJSONReader(data []byte, text func(string) *yaml.Node) *jsonReader {
	return &jsonReader{data: data, line: 1, text: text}
}

// parseJSON reads one JSON value, to be written as YAML.
func parseJSON(data []byte) (*yaml.Node, error) {
	if err := checkJSON(data); err != nil {
		return nil, err
	}
	return newJSONReader(data, textNode).value()
}

// checkJSON refuses anything but one JSON value, and nesting that is too deep.
func checkJSON(data []byte) error {
	if json.Valid(data) {
		return checkDepth(data)
	}
	var syntax *json.SyntaxError
	if err := json.Unmarshal(data, new(json.RawMessage)); !errors.As(err, &syntax) {
		return err
	}
	read := data[:min(len(data), int(syntax.Offset))]
	if err := checkDepth(read); err != nil {
		return err
	}
	line := 1 + bytes.Count(bytes.TrimRight(read, " \t\r\n"), []byte("\n"))
	switch {
	case strings.HasSuffix(syntax.Error(), "after top-level value"):
		return fmt.Errorf("line %d: contains more than one JSON value", line)
	case len(read) == len(data) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return fmt.Errorf("line %d: ends too early", line)
	}
	return fmt.Errorf("line %d: %w", line, syntax)
}

// checkDepth refuses a JSON value that begins with nesting that is too deep.
func checkDepth(data []byte) error {
	depth, line, quoted := 0, 1, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '\n':
			line++
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return fmt.Errorf("line %d: nests deeper than %d levels", line, maxDepth)
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return nil
}

// peek skips space and returns what comes next.
func (r *jsonReader) peek() byte {
	for strings.IndexByte(" \t\r\n", r.data[r.at]) >= 0 {
		r.at++
	}
	return r.data[r.at]
}

// next reports whether an object or array, whose opening bracket was read, has another
// element. It moves there, or past the closing bracket.
func (r *jsonReader) next() bool {
	c := r.peek()
	if c == ',' {
		r.at++
		c = r.peek()
	}
	if c == ']' || c == '}' {
		r.at++
		return false
	}
	return true
}

// lineHere returns the line of the next byte.
func (r *jsonReader) lineHere() int {
	r.peek()
	r.line += bytes.Count(r.data[r.counted:r.at], []byte("\n"))
	r.counted = r.at
	return r.line
}

// value reads the next value.
func (r *jsonReader) value() (node *yaml.Node, err error) {
	line := r.lineHere()
	if r.parts++; r.parts > maxParts {
		return nil, fmt.Errorf("line %d: an object has more parts than %d", line, maxParts)
	}
	switch c := r.peek(); c {
	case '{', '[':
		node, err = r.nested(c)
	case '"':
		node = r.text(r.string())
	case 't', 'f':
		node = plainNode(r.word(), "!!bool")
	case 'n':
		node = plainNode(r.word(), "!!null")
	default:
		node = plainNode(r.word(), "")
	}
	if err != nil {
		return nil, err
	}
	node.Line = line
	return node, nil
}

func (r *jsonReader) nested(open byte) (*yaml.Node, error) {
	node := sequence()
	if open == '{' {
		node = mapping()
	}
	for r.at++; r.next(); {
		if open == '{' {
			text, line := r.key()
			key := r.text(text)
			key.Line = line
			node.Content = append(node.Content, key)
		}
		value, err := r.value()
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, value)
	}
	return node, nil
}

// key reads a key of an object, with the colon.
func (r *jsonReader) key() (text string, line int) {
	line = r.lineHere()
	text = r.string()
	r.peek()
	r.at++
	return text, line
}

// string reads the next text.
func (r *jsonReader) string() string {
	start, plain := r.at, true
	for r.at++; r.data[r.at] != '"'; r.at++ {
		if r.data[r.at] == '\\' {
			r.at++
			plain = false
		}
	}
	r.at++
	raw := r.data[start:r.at]
	if plain && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1])
	}
	var text string
	_ = json.Unmarshal(raw, &text) // it is well formed
	return text
}

// word reads the next number, true, false or null.
func (r *jsonReader) word() string {
	start := r.at
	for r.at < len(r.data) && strings.IndexByte(",]} \t\r\n", r.data[r.at]) < 0 {
		r.at++
	}
	return string(r.data[start:r.at])
}

// jsonText returns the JSON of a node, in the form in which the store keeps it.
func jsonText(n *yaml.Node) (string, error) {
	var out bytes.Buffer
	if err := writeJSON(&out, n); err != nil {
		return "", err
	}
	return out.String(), nil
}

func writeJSON(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.MappingNode:
		out.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeText(out, n.Content[i].Value); err != nil {
				return err
			}
			out.WriteByte(':')
			if err := writeJSON(out, n.Content[i+1]); err != nil {
				return err
			}
		}
		out.WriteByte('}')
		return nil
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, element := range n.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := writeJSON(out, element); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	}
	return writeScalar(out, n)
}

func writeScalar(out *bytes.Buffer, n *yaml.Node) error {
	// Every JSON number keeps its form, even one that YAML would read as text (1e999).
	if n.Style&quoted == 0 && isJSONNumber(n.Value) {
		out.WriteString(n.Value)
		return nil
	}
	switch n.ShortTag() {
	case "!!int", "!!float", "!!bool", "!!null":
		var v any
		if err := n.Decode(&v); err != nil {
			return fmt.Errorf("%q cannot be read", n.Value)
		}
		b, err := json.Marshal(v)
		if err != nil {
			return fmt.Errorf("%q is not allowed in JSON", n.Value)
		}
		out.Write(b)
		return nil
	}
	return writeText(out, n.Value)
}

func writeText(out *bytes.Buffer, s string) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder's line feed
	return nil
}
