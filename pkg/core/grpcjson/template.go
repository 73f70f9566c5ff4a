package grpcjson

import "strings"

// The segments of a template that match one segment of a path, or any number of them.
const (
	oneSegment  = "*"
	anySegments = "**"
)

// template is the path of an http rule:
//
//	Template = "/" [ Segments [ ":" LITERAL ] ] ;
//	Segments = Segment { "/" Segment } ;
//	Segment  = "*" | "**" | LITERAL | "{" FieldPath [ "=" Segments ] "}" ;
type template struct {
	// segments are literals, oneSegment and anySegments; the last is the verb if there is one.
	segments []string
	verb     string
	// variables are the paths of the fields that receive the matched segments.
	variables [][]string
}

// parseTemplate parses a template; ok is false for one that Envoy refuses.
func parseTemplate(text string) (t template, ok bool) {
	if text == "/" {
		return t, true
	}
	p := templateParser{rest: text}
	if !p.take("/") || !p.readSegments(false) {
		return t, false
	}
	if p.take(":") {
		if p.verb = p.upTo("/:}"); p.verb == "" {
			return t, false
		}
		p.segments = append(p.segments, p.verb)
	}
	return p.template, p.rest == "" && p.isFixedBehindAny()
}

type templateParser struct {
	template
	rest string
}

// take reads the text if it comes next, and reports whether it did.
func (p *templateParser) take(text string) (taken bool) {
	p.rest, taken = strings.CutPrefix(p.rest, text)
	return taken
}

// upTo reads up to the first of some characters.
func (p *templateParser) upTo(ends string) string {
	at := strings.IndexAny(p.rest, ends)
	if at < 0 {
		at = len(p.rest)
	}
	text := p.rest[:at]
	p.rest = p.rest[at:]
	return text
}

func (p *templateParser) readSegments(inVariable bool) bool {
	for {
		if !p.readSegment(inVariable) {
			return false
		}
		if !p.take("/") {
			return true
		}
	}
}

func (p *templateParser) readSegment(inVariable bool) bool {
	switch {
	case p.take(anySegments):
		p.segments = append(p.segments, anySegments)
	case p.take(oneSegment):
		p.segments = append(p.segments, oneSegment)
	case p.take("{"):
		return !inVariable && p.readVariable()
	default:
		literal := p.upTo("/:}")
		p.segments = append(p.segments, literal)
		return literal != ""
	}
	return true
}

func (p *templateParser) readVariable() bool {
	path := strings.Split(p.upTo("}="), ".")
	for _, name := range path {
		if name == "" {
			return false
		}
	}
	p.variables = append(p.variables, path)
	if !p.take("=") {
		p.segments = append(p.segments, oneSegment)
	} else if !p.readSegments(true) {
		return false
	}
	return p.take("}")
}

// isFixedBehindAny reports whether only literals come after the first **.
func (p *templateParser) isFixedBehindAny() bool {
	behind := false
	for _, s := range p.segments {
		if behind && (s == oneSegment || s == anySegments) {
			return false
		}
		behind = behind || s == anySegments
	}
	return true
}
