package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// PathTemplate matches paths of which some segments vary, such as /users/{id}/files/{rest=**}. Its syntax is a
// part of Envoy's: a variable or wildcard is a whole segment.
type PathTemplate struct {
	text  string
	re    *regexp.Regexp
	names []string
}

// What Envoy bounds in a template (uri_template_match.proto, uri_template_internal.cc).
const (
	maxTemplate      = 256
	maxTemplateNames = 5
	maxTemplateName  = 16
)

const (
	// templateText are the characters that the fixed text of a template has.
	templateText = `a-zA-Z0-9._~%!$&'()+,;:@=\-`
	oneSegment   = "[" + templateText + "*]+"
	manySegments = "[" + templateText + "*/]*"
)

var (
	fixedText    = regexp.MustCompile("^[" + templateText + "]+$")
	templateName = regexp.MustCompile("^[a-zA-Z][a-zA-Z0-9_]*$")
)

// ParsePathTemplate reads a template; the error says what Envoy would refuse, or what has no use.
func ParsePathTemplate(s string) (*PathTemplate, error) {
	switch {
	case !strings.HasPrefix(s, "/"):
		return nil, errors.New(`must start with "/"`)
	case len(s) > maxTemplate:
		return nil, fmt.Errorf("has %d characters; at most %d are allowed", len(s), maxTemplate)
	case !strings.ContainsAny(s, "{*"):
		return nil, errors.New(`has no variable such as {id}; use "match":"exact"`)
	}
	t := &PathTemplate{text: s}
	var expr strings.Builder
	rest := false
	segments := strings.Split(s[1:], "/")
	for i, segment := range segments {
		expr.WriteByte('/')
		if segment == "" && i == len(segments)-1 {
			break
		}
		part, varies, err := t.readSegment(segment)
		if err != nil {
			return nil, err
		}
		if varies && rest {
			return nil, fmt.Errorf("has %s after **; only fixed text can follow it", segment)
		}
		rest = rest || strings.Contains(segment, "**")
		expr.WriteString(part)
	}
	if len(t.names) > maxTemplateNames {
		return nil, fmt.Errorf("has %d variables; Envoy takes at most %d (* is a segment without a name)", len(t.names),
			maxTemplateNames)
	}
	t.re = regexp.MustCompile("^" + expr.String() + "$")
	return t, nil
}

// readSegment returns the expression of a segment.
func (t *PathTemplate) readSegment(segment string) (expr string, varies bool, err error) {
	switch segment {
	case "":
		return "", false, errors.New("has an empty segment (//)")
	case "*":
		return oneSegment, true, nil
	case "**":
		return manySegments, true, nil
	}
	if inner, ok := strings.CutPrefix(segment, "{"); ok && strings.HasSuffix(inner, "}") {
		return t.readVariable(strings.TrimSuffix(inner, "}"))
	}
	if !fixedText.MatchString(segment) {
		return "", false, fmt.Errorf("has the segment %q: a segment is percent-encoded fixed text, *, "+
			"** or a variable such as {id} or {rest=**}", segment)
	}
	return regexp.QuoteMeta(segment), false, nil
}

func (t *PathTemplate) readVariable(inner string) (expr string, varies bool, err error) {
	name, pattern, given := strings.Cut(inner, "=")
	switch {
	case !templateName.MatchString(name):
		return "", false, fmt.Errorf("has a variable %q: a name has letters, digits and underscores, "+
			"and begins with a letter", name)
	case len(name) > maxTemplateName:
		return "", false, fmt.Errorf("has the variable %s; Envoy takes names of at most %d characters", name, maxTemplateName)
	case slices.Contains(t.names, name):
		return "", false, fmt.Errorf("has the variable %s twice", name)
	}
	t.names = append(t.names, name)
	switch {
	case !given || pattern == "*":
		return "(" + oneSegment + ")", true, nil
	case pattern == "**":
		return "(" + manySegments + ")", true, nil
	}
	return "", false, fmt.Errorf("has the variable {%s}: only * (one segment) or ** (the rest of the path) can follow =",
		inner)
}

// String is the template as it was read.
func (t *PathTemplate) String() string { return t.text }

// Match returns the values of the variables, in their order, if the path matches.
func (t *PathTemplate) Match(path string) (values []string, matches bool) {
	found := t.re.FindStringSubmatch(path)
	if found == nil {
		return nil, false
	}
	return found[1:], true
}

// Rewrite is another template with the values of a path.
func (t *PathTemplate) Rewrite(to, path string) string {
	values, _ := t.Match(path)
	pairs := make([]string, 0, 2*len(values))
	for i, value := range values {
		pairs = append(pairs, "{"+t.names[i]+"}", value)
	}
	return strings.NewReplacer(pairs...).Replace(to)
}

// checkRewrite says why Envoy would not take a rewrite.
func (t *PathTemplate) checkRewrite(to string) error {
	switch {
	case !strings.HasPrefix(to, "/"):
		return errors.New(`must start with "/"`)
	case len(to) > maxTemplate:
		return fmt.Errorf("has %d characters; at most %d are allowed", len(to), maxTemplate)
	case strings.Contains(to, "//"):
		return errors.New("has an empty segment (//)")
	}
	for to != "" {
		text, variable, found := strings.Cut(to, "{")
		if text := strings.ReplaceAll(text, "/", ""); text != "" && !fixedText.MatchString(text) {
			return fmt.Errorf("has the text %q; percent-encode characters that a path cannot have, "+
				"and write {NAME} for a variable of Route_prefix", text)
		}
		if !found {
			return nil
		}
		name, after, closed := strings.Cut(variable, "}")
		if !closed || !slices.Contains(t.names, name) {
			return fmt.Errorf("names {%s}, which Route_prefix does not have; its variables are %s", name, namesOf(t.names))
		}
		to = after
	}
	return nil
}

func namesOf(variables []string) string {
	if len(variables) == 0 {
		return "none: give one of its segments a name, such as {id}"
	}
	return "{" + strings.Join(variables, "}, {") + "}"
}
