package client

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"strings"
	"unicode"
)

// FieldError is a field that the server refuses.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is an answer that is not a success (RFC 9457).
type Error struct {
	// Method and Path are the call.
	Method, Path string
	// Status is the HTTP status.
	Status int
	// Code is the stable name of the problem; empty when the answer is not
	// one of Gatehouse's.
	Code   string
	Title  string
	Detail string
	// Fields are all the bad fields.
	Fields []FieldError
	// ReferencedBy are the paths of the objects that are in the way.
	ReferencedBy []string
	// Hint says what to do next on this side; may be empty.
	Hint string
}

// Error is one line, and one more for every bad field and every reference.
func (e *Error) Error() string {
	detail := e.Detail
	if len(e.Fields) > 0 {
		// The hint is for readers of the JSON; the fields follow here.
		detail = strings.TrimSuffix(detail, "; see errors")
	}
	if detail == "" {
		detail = e.Title
	}
	if detail == "" {
		detail = http.StatusText(e.Status)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s (%s)", e.Method, e.Path, Printable(detail),
		strings.TrimSpace(fmt.Sprint(e.Status, " ", Printable(e.Code))))
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	for _, f := range e.Fields {
		b.WriteString("\n  " + Printable(f.Field) + ": " + Printable(f.Message))
	}
	for _, path := range e.ReferencedBy {
		b.WriteString("\n  referenced by " + Printable(path))
	}
	return b.String()
}

func readProblem(r Request, resp *http.Response, body []byte, hasToken bool) *Error {
	e := &Error{Method: r.Method, Path: r.Path, Status: resp.StatusCode}
	switch {
	case e.Status/100 == 3:
		e.Detail = fmt.Sprintf("the server redirects the call to %q, which is not followed", resp.Header.Get("Location"))
	case e.Status == http.StatusUnauthorized && !hasToken:
		e.Hint = "send a token with --token-file, GATEHOUSE_TOKEN_FILE or a context"
	case e.Status == http.StatusUnauthorized:
		e.Hint = "the server does not know the token that was sent"
	case e.Status == http.StatusForbidden:
		e.Hint = "check whether the token has the role admin"
	}
	media, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || media != "application/problem+json" {
		return e
	}
	var p struct {
		Title, Detail, Code string
		Errors              []FieldError
		ReferencedBy        []string `json:"referenced_by"`
	}
	if json.Unmarshal(body, &p) == nil { // else the status says what there is to say
		e.Title, e.Detail, e.Code, e.Fields, e.ReferencedBy = p.Title, p.Detail, p.Code, p.Errors, p.ReferencedBy
		if e.Status == http.StatusForbidden && len(p.Errors) > 0 {
			e.Hint = "" // the role is right, and something else is missing
		}
	}
	return e
}

// Printable writes characters that could steer a terminal as \u escapes: the
// text of objects is stored as it was sent.
func Printable(s string) string {
	if !strings.ContainsFunc(s, unprintable) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
