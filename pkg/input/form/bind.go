package form

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/suggest"
)

// maxUnknown bounds the unknown fields that are reported.
const maxUnknown = 100

// Errors has at most one error for each field: the first one, which is closest to what
// was sent.
type Errors struct {
	List []model.FieldError
	bad  map[string]bool
}

// Add records an error of a field.
func (e *Errors) Add(name, format string, args ...any) {
	if e.bad[name] {
		return
	}
	if e.bad == nil {
		e.bad = map[string]bool{}
	}
	e.bad[name] = true
	e.List = append(e.List, model.FieldError{Field: name, Message: fmt.Sprintf(format, args...)})
}

// Bind puts the fields sent into obj and returns every bad field, in the order of the
// kind's table, then the unknown ones. obj then has the fields that could be read. With
// creating, missing required fields are errors; otherwise fields that were not sent
// keep their values in obj.
func Bind(obj model.Object, sent []Value, creating bool) []model.FieldError {
	return BindFields(obj, Fields(obj.Key().Kind), sent, creating)
}

// BindFields is Bind with the table of the kind of obj, for callers that bind many
// objects.
func BindFields(obj model.Object, table []Field, sent []Value, creating bool) []model.FieldError {
	var known, unknown Errors
	seen := make([]bool, len(table))
	for _, v := range sent {
		at := slices.IndexFunc(table, func(f Field) bool { return strings.EqualFold(f.Name, v.Name) })
		if at < 0 {
			if len(unknown.List) < maxUnknown && !unknown.bad[v.Name] {
				unknown.Add(v.Name, "%s", unknownField(v.Name, namesOf(table)))
			}
			continue
		}
		f := table[at]
		if seen[at] {
			known.Add(f.Name, "is sent more than once")
			continue
		}
		seen[at] = true
		if err := setField(f, obj, v); err != nil {
			known.Add(f.Name, "%s", err)
		}
	}
	for i, f := range table {
		if creating && f.Required && !seen[i] {
			known.Add(f.Name, "is required")
		}
	}
	merged := slices.Concat(known.List, withoutBad(obj.Validate(), known.bad))
	slices.SortStableFunc(merged, func(a, b model.FieldError) int {
		return cmp.Compare(indexOf(table, a.Field), indexOf(table, b.Field))
	})
	return append(merged, unknown.List...)
}

func setField(f Field, obj model.Object, v Value) error {
	if err := CheckText(v.Text); err != nil {
		return fmt.Errorf("%w%s", err, f.fromBytes)
	}
	return f.set(obj, v)
}

// withoutBad removes errors about a field that is already known to be bad, or about a
// part of one (Route_config.match).
func withoutBad(errs []model.FieldError, bad map[string]bool) []model.FieldError {
	return slices.DeleteFunc(errs, func(e model.FieldError) bool {
		name, _, _ := strings.Cut(e.Field, ".")
		return bad[name]
	})
}

func indexOf(table []Field, name string) int {
	name, _, _ = strings.Cut(name, ".")
	return slices.IndexFunc(table, func(f Field) bool { return f.Name == name })
}

func namesOf(table []Field) []string {
	names := make([]string, len(table))
	for i, f := range table {
		names[i] = f.Name
	}
	return names
}

// unknownField returns the error for an unknown field, with the name that was probably
// meant.
func unknownField(name string, known []string) string {
	switch err := CheckText(name); {
	case err != nil:
		return "the name of this field " + err.Error()
	case len(known) == 0:
		return "unknown field; this call takes none"
	}
	if best, near := suggest.Nearest(name, known); near {
		return "unknown field; did you mean " + best + "?"
	}
	return "unknown field; known fields are " + strings.Join(known, ", ")
}
