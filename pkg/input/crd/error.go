package crd

import (
	"fmt"
	"strings"
)

// Error lists everything that cannot be converted. Its text has one line per problem.
type Error struct {
	Message  string
	Problems []string
}

// maxProblems bounds the lines of an error's text.
const maxProblems = 100

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, p := range e.Problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "\n  and %d more", len(e.Problems)-i)
			break
		}
		b.WriteString("\n  " + strings.Join(strings.Fields(p), " "))
	}
	return b.String()
}

// problems collects what is wrong.
type problems struct{ list []string }

func (p *problems) add(format string, args ...any) {
	p.list = append(p.list, fmt.Sprintf(format, args...))
}

func (p *problems) err(message string) error {
	if len(p.list) == 0 {
		return nil
	}
	return &Error{Message: message, Problems: p.list}
}
