package document

import (
	"encoding/json"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

const quoted = yaml.DoubleQuotedStyle | yaml.SingleQuotedStyle | yaml.LiteralStyle | yaml.FoldedStyle

// textNode returns a scalar that every YAML parser reads as this text.
func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	switch {
	case isBlock(s):
		n.Style = yaml.LiteralStyle
	case !isPrintable(s), isJSONNumber(s), isYAML11Value(s):
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}

// quotedNode returns a scalar that is a text, whatever it looks like.
func quotedNode(s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
}

// plainNode returns a number, true, false or null, as JSON writes it.
func plainNode(text, tag string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
}

func sequence(nodes ...*yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: nodes}
}

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"} }

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, textNode(key), value)
}

// isBlock reports whether s is readable as a literal block and stays unchanged in it:
// no line has a space that would be lost.
func isBlock(s string) bool {
	body := strings.TrimSuffix(s, "\n")
	if !strings.Contains(s, "\n") || body == "" || body[0] == '\n' || strings.HasSuffix(body, "\n") {
		return false
	}
	for i, line := range strings.Split(body, "\n") {
		if !isPrintable(line) || strings.HasSuffix(line, " ") || i == 0 && strings.HasPrefix(line, " ") {
			return false
		}
	}
	return true
}

func isPrintable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

func isJSONNumber(s string) bool {
	return s != "" && (s[0] == '-' || s[0] >= '0' && s[0] <= '9') && json.Valid([]byte(s))
}

// isYAML11Value reports whether a YAML 1.1 parser would read the text as a boolean or a
// base 60 number.
func isYAML11Value(s string) bool {
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off":
		return true
	}
	return strings.Contains(s, ":") && strings.Trim(s, "0123456789+-_.:") == ""
}
