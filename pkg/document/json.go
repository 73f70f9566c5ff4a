package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// maxDepth bounds the nesting of a document.
const maxDepth = 64

// jsonReader makes of JSON the tree that the YAML parser makes of YAML.
type jsonReader struct {
	dec  *json.Decoder
	data []byte
	// line is the line of offset at.
	line int
	at   int64
	// parts counts those of the tree that is read.
	parts int
}

func newJSONReader(data []byte) *jsonReader {
	r := &jsonReader{dec: json.NewDecoder(bytes.NewReader(data)), data: data, line: 1}
	r.dec.UseNumber()
	return r
}

// parseJSON reads one JSON value with its lines.
func parseJSON(data []byte) (*yaml.Node, error) {
	r := newJSONReader(data)
	node, err := r.value(0)
	if err != nil {
		return nil, err
	}
	return node, r.expectEnd()
}

func (r *jsonReader) token() (json.Token, error) {
	token, err := r.dec.Token()
	line := r.lineAt(r.dec.InputOffset())
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return nil, fmt.Errorf("line %d: %w", r.lineAt(syntax.Offset), err)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, fmt.Errorf("line %d: ends too early", line)
	}
	return token, err
}

// lineAt is the line of an offset, which must not lie before that of the last
// call: no token reaches over a line's end.
func (r *jsonReader) lineAt(offset int64) int {
	if offset = min(offset, int64(len(r.data))); offset > r.at {
		r.line += bytes.Count(r.data[r.at:offset], []byte("\n"))
		r.at = offset
	}
	return r.line
}

func (r *jsonReader) value(depth int) (*yaml.Node, error) {
	token, err := r.token()
	if err != nil {
		return nil, err
	}
	return r.valueOf(token, depth)
}

// valueOf reads the value that begins with a token.
func (r *jsonReader) valueOf(token json.Token, depth int) (node *yaml.Node, err error) {
	line := r.line
	if r.parts++; r.parts > maxParts {
		return nil, fmt.Errorf("line %d: an object has more parts than %d", line, maxParts)
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, fmt.Errorf("line %d: nests deeper than %d levels", line, maxDepth)
		}
		node, err = r.nested(t, depth)
	case string:
		node = textNode(t)
	case json.Number:
		node = plainNode(t.String(), "")
	case bool:
		node = plainNode(fmt.Sprint(t), "!!bool")
	default:
		node = plainNode("null", "!!null")
	}
	if err != nil {
		return nil, err
	}
	node.Line = line
	return node, nil
}

func (r *jsonReader) nested(open json.Delim, depth int) (*yaml.Node, error) {
	node := sequence()
	if open == '{' {
		node = mapping()
	}
	for r.dec.More() {
		if open == '{' {
			token, err := r.token()
			if err != nil {
				return nil, err
			}
			text, _ := token.(string) // the decoder lets no other key pass
			key := textNode(text)
			key.Line = r.line
			node.Content = append(node.Content, key)
		}
		value, err := r.value(depth + 1)
		if err != nil {
			return nil, err
		}
		node.Content = append(node.Content, value)
	}
	_, err := r.token() // the closing bracket
	return node, err
}

// jsonText is the JSON of a node, in the form in which the store keeps it.
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
	// Any number of JSON keeps its form, also one that YAML would take for
	// text (1e999).
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
			return fmt.Errorf("%q is not possible in JSON", n.Value)
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
