package rest

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/suggest"
)

// field is one form field of a kind.
type field[T any] struct {
	// name is the canonical form name; a request may write it in any letter
	// case.
	name     string
	required bool
	// set puts what was sent into the object. Its error follows the field's
	// name in a sentence.
	set func(T, value) error
}

// need marks a field that must be sent to create an object.
func need[T any](f field[T]) field[T] {
	f.required = true
	return f
}

// text is a field that holds a string.
func text[T any](name string, at func(T) *string) field[T] {
	return field[T]{name: name, set: func(obj T, v value) error {
		if v.shape != isText {
			return fmt.Errorf("must be text, not %s", v.shape)
		}
		*at(obj) = v.text
		return nil
	}}
}

// integer is a field that holds a whole number, in JSON also as a string.
func integer[T any](name string, at func(T) *int) field[T] {
	return field[T]{name: name, set: func(obj T, v value) error {
		if v.shape != isText && v.shape != isNumber {
			return fmt.Errorf("must be a whole number, not %s", v.shape)
		}
		n, err := strconv.Atoi(v.text)
		switch {
		case errors.Is(err, strconv.ErrRange):
			return fmt.Errorf("%q is far out of range", v.text)
		case err != nil || strings.HasPrefix(v.text, "+"):
			return fmt.Errorf("%q is not a whole number", v.text)
		}
		*at(obj) = n
		return nil
	}}
}

// fieldErrors holds at most one error for each field: the first one, which is
// nearest to what was sent.
type fieldErrors struct {
	list []model.FieldError
	bad  map[string]bool
}

func (e *fieldErrors) add(name, format string, args ...any) {
	if e.bad[name] {
		return
	}
	if e.bad == nil {
		e.bad = map[string]bool{}
	}
	e.bad[name] = true
	e.list = append(e.list, model.FieldError{Field: name, Message: fmt.Sprintf(format, args...)})
}

// bind puts the fields sent into obj and returns every bad field, in the order
// of the table, then the unknown ones. obj then holds the fields that could be
// read; creating tells that fields not sent are missing, where otherwise they
// keep what obj has.
func bind[T model.Object](table []field[T], obj T, sent []value, creating bool) []model.FieldError {
	var known, unknown fieldErrors
	seen := map[string]bool{}
	for _, v := range sent {
		at := slices.IndexFunc(table, func(f field[T]) bool { return strings.EqualFold(f.name, v.name) })
		if at < 0 {
			if len(unknown.list) < maxFieldErrors && !unknown.bad[v.name] {
				unknown.add(v.name, "%s", unknownField(v.name, namesOf(table)))
			}
			continue
		}
		f := table[at]
		if seen[f.name] {
			known.add(f.name, "is sent more than once")
			continue
		}
		seen[f.name] = true
		if err := setField(f, obj, v); err != nil {
			known.add(f.name, "%s", err)
		}
	}
	for _, f := range table {
		if creating && f.required && !seen[f.name] {
			known.add(f.name, "is required")
		}
	}
	merged := slices.Concat(known.list, others(obj.Validate(), known.bad))
	slices.SortStableFunc(merged, func(a, b model.FieldError) int {
		return cmp.Compare(position(table, a.Field), position(table, b.Field))
	})
	return append(merged, unknown.list...)
}

func setField[T any](f field[T], obj T, v value) error {
	if err := checkText(v.text); err != nil {
		return err
	}
	return f.set(obj, v)
}

// others leaves out what is about a field that is known to be bad, or about a
// part of one (Route_config.match).
func others(errs []model.FieldError, bad map[string]bool) []model.FieldError {
	return slices.DeleteFunc(errs, func(e model.FieldError) bool {
		name, _, _ := strings.Cut(e.Field, ".")
		return bad[name]
	})
}

func position[T any](table []field[T], name string) int {
	name, _, _ = strings.Cut(name, ".")
	return slices.IndexFunc(table, func(f field[T]) bool { return f.name == name })
}

func namesOf[T any](table []field[T]) []string {
	names := make([]string, len(table))
	for i, f := range table {
		names[i] = f.name
	}
	return names
}

// textOf returns the text of a field, or "" where it was not sent as text.
func textOf(sent []value, name string) string {
	for _, v := range sent {
		if v.shape == isText && strings.EqualFold(name, v.name) {
			return v.text
		}
	}
	return ""
}

// unknownField says what was probably meant.
func unknownField(name string, known []string) string {
	switch err := checkText(name); {
	case err != nil:
		return "the name of this field " + err.Error()
	case len(known) == 0:
		return "unknown field; this call takes none"
	}
	if best, near := suggest.Nearest(name, known); near {
		return "unknown field; did you mean " + best + "?"
	}
	return "unknown field; known are " + strings.Join(known, ", ")
}

// canExist reports whether an object may have this name. Names of routes have
// the plain rule of rest-api.md ("Names"), without reserved words.
func canExist(name string) bool {
	return len((&model.Route{Name: name, Prefix: "/"}).Validate()) == 0
}
