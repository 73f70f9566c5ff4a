package importer

import (
	"fmt"
	"strings"
	"unicode"
)

// Error lists everything that is wrong with a description. Its text has one line for
// each problem.
type Error struct {
	Message string
	// Problems are sorted by line.
	Problems []Problem
}

// Problem is one thing that is wrong.
type Problem struct {
	// Line is where it is in the text; 0 if that is not known.
	Line int
	// Where is an operation or a part of the document; may be empty.
	Where   string
	Message string
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, p := range e.Problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-i)
			break
		}
		b.WriteString("\n  " + p.String())
	}
	return b.String()
}

// maxProblems bounds the lines of an error's text.
const maxProblems = 100

// String returns the problem in one line.
func (p Problem) String() string {
	s := p.Message
	if p.Where != "" {
		s = p.Where + ": " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	return printable(s)
}

// printable replaces characters that would move the cursor of a terminal with spaces.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
