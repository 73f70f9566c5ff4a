package importer

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// anySegment is what a parameter of a path matches.
const anySegment = "[^/]+"

// template is a path of the document, split at its slashes. Each segment alternates
// between literal text and parameters, and begins with text (which may be empty).
type template struct{ segments [][]string }

// parseTemplate parses a path with parameters in braces, after a base path.
func parseTemplate(base, path string) (template, error) {
	var t template
	if !strings.HasPrefix(path, "/") {
		return t, errors.New("a path begins with /")
	}
	path = base + path
	if strings.ContainsAny(path, "?#") {
		return t, errors.New("a path has no query (?) and no fragment (#)")
	}
	for _, text := range strings.Split(path, "/")[1:] {
		var parts []string
		for {
			literal, rest, found := strings.Cut(text, "{")
			if strings.Contains(literal, "}") {
				return t, errors.New("has a } without {")
			}
			parts = append(parts, escape(literal))
			if !found {
				break
			}
			name, after, closed := strings.Cut(rest, "}")
			if !closed || name == "" || strings.Contains(name, "{") {
				return t, errors.New("has a { that does not begin a parameter such as {id}")
			}
			parts, text = append(parts, name), after
		}
		t.segments = append(t.segments, parts)
	}
	return t, nil
}

// escape writes text as clients send it in a path: characters that a URL cannot contain
// are percent-encoded, and existing escapes stay.
func escape(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte("\"<>\\^`|", c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
			continue
		}
		b.WriteByte(c)
	}
	return b.String()
}

// parameters counts the segments that are not literal.
func (t template) parameters() int {
	n := 0
	for _, parts := range t.segments {
		n += min(len(parts)-1, 1)
	}
	return n
}

// join returns the path, with text applied to literals and param for each parameter.
func (t template) join(text func(string) string, param string) string {
	var b strings.Builder
	for _, parts := range t.segments {
		b.WriteByte('/')
		for i, part := range parts {
			if i%2 == 1 {
				b.WriteString(param)
				continue
			}
			b.WriteString(text(part))
		}
	}
	return b.String()
}

// literal returns the path with {} for each parameter.
func (t template) literal() string {
	return t.join(func(s string) string { return s }, "{}")
}

func (t template) regex() string { return t.join(regexp.QuoteMeta, anySegment) }

// overlaps reports whether one path may match both. It compares whole segments: two
// that have a parameter count as the same.
func (t template) overlaps(u template) bool {
	if len(t.segments) != len(u.segments) {
		return false
	}
	for i, a := range t.segments {
		if b := u.segments[i]; len(a) == 1 && len(b) == 1 && a[0] != b[0] {
			return false
		}
	}
	return true
}

// firstServer returns the address of the first server, with its variables filled in;
// nil if there is none.
func firstServer(servers openapi3.Servers) (*url.URL, error) {
	if len(servers) == 0 || servers[0] == nil {
		return nil, nil
	}
	text := servers[0].URL
	for _, name := range slices.Sorted(maps.Keys(servers[0].Variables)) {
		if v := servers[0].Variables[name]; v != nil {
			text = strings.ReplaceAll(text, "{"+name+"}", v.Default)
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Opaque != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is not an address such as https://api.example.com/v1", text)
	}
	return u, nil
}

// basePath returns the path of the first server, to which every path of the document is
// relative. host is the server's host, "" for a relative address.
func basePath(servers openapi3.Servers) (base, host string, err error) {
	u, err := firstServer(servers)
	if u == nil || err != nil {
		return "", "", err
	}
	base = strings.TrimRight(u.EscapedPath(), "/")
	if base != "" && base[0] != '/' {
		return "", "", fmt.Errorf("%q is relative to where the document is published; write its path from the root, "+
			"or the whole address", u)
	}
	return base, strings.ToLower(u.Hostname()), nil
}
