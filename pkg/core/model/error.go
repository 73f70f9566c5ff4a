package model

import (
	"errors"
	"strings"
)

// ErrorKind sorts errors by what the caller can do about them.
type ErrorKind string

// The kinds of errors. Each maps to one HTTP status, in pkg/input/rest.
const (
	// Invalid: the caller sent something that is wrong in itself.
	Invalid ErrorKind = "invalid"
	// NotFound: a name that does not exist.
	NotFound ErrorKind = "not_found"
	// Exists: the name is taken.
	Exists ErrorKind = "already_exists"
	// InUse: others refer to the object, see Error.ReferencedBy.
	InUse ErrorKind = "in_use"
	// Conflict: two objects claim the same thing.
	Conflict ErrorKind = "conflict"
	// Unworkable: valid in itself, but it cannot become a working
	// configuration.
	Unworkable ErrorKind = "unworkable"
	// Compacted: a revision that the change log holds no longer.
	Compacted ErrorKind = "compacted"
	// Forbidden: the caller may not make the change, see Error.Fields.
	Forbidden ErrorKind = "forbidden"
	// Unavailable: the database is away; trying again may help.
	Unavailable ErrorKind = "unavailable"
)

// FieldError names one bad field by its form name, for example Upstream_port.
type FieldError struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is an error that a user can read: what, where and what to do next.
type Error struct {
	Kind ErrorKind
	// Path is the resource it is about, as a REST path; may be empty.
	Path    string
	Message string
	// Hint says what to do next; may be empty.
	Hint string
	// Fields lists every bad field of an Invalid error, and the path of every object of a Forbidden one.
	Fields []FieldError
	// ReferencedBy lists the REST paths that keep an InUse object.
	ReferencedBy []string
	// Err is the cause; it is logged and never shown to a user.
	Err error
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Message)
	for i, f := range e.Fields {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(f.Field + ": " + f.Message)
	}
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	return b.String()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// IsKind reports whether err is, or wraps, an Error of that kind.
func IsKind(err error, kind ErrorKind) bool {
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

// NotFoundError says that key does not exist.
func NotFoundError(key Key) *Error {
	return &Error{
		Kind: NotFound, Path: key.Path(),
		Message: nounOf(key) + " does not exist",
	}
}

// ExistsError says that key is taken.
func ExistsError(key Key) *Error {
	return &Error{
		Kind: Exists, Path: key.Path(),
		Message: nounOf(key) + " already exists",
		Hint:    "choose another name, or delete the existing one first",
	}
}

// nounOf returns the text that names an object in a sentence.
func nounOf(key Key) string {
	quoted := `"` + key.Name() + `"`
	owner := key.Owner()
	switch {
	case key.Attached() != (Key{}):
		return "the link from " + string(owner.Kind) + ` "` + owner.Text() + `" to ` + string(key.Attached().Kind) + " " +
			quoted
	case owner != (Key{}):
		return string(key.Kind) + " " + quoted + " of " + nounOf(owner)
	}
	return string(key.Kind) + " " + quoted
}
