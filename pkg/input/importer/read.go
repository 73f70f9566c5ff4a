package importer

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Description is an OpenAPI document that was read and checked.
type Description struct {
	doc *openapi3.T
	// located says that the document has line numbers.
	located bool
	// again reads the document with line numbers, which takes several times as long.
	again func() (*Description, error)
	// lenient leaves out what cannot be imported.
	lenient  bool
	warnings []string
}

// Read reads an OpenAPI 3 document, YAML or JSON, and checks it. Its error is an *Error
// with every problem that was found. With lenient they become warnings of the plan:
// faulty parts are left out, or do not matter for routing.
func Read(ctx context.Context, data []byte, lenient bool) (*Description, error) {
	if !json.Valid(data) {
		return read(ctx, data, lenient, true)
	}
	again := func() (*Description, error) { return read(ctx, data, lenient, true) }
	d, err := read(ctx, data, lenient, false)
	if err != nil || len(d.warnings) > 0 {
		return again()
	}
	d.again = again
	return d, nil
}

func read(ctx context.Context, data []byte, lenient, located bool) (*Description, error) {
	doc, err := load(ctx, data, located)
	if err != nil {
		return nil, &Error{Message: unreadable(err)}
	}
	switch {
	case doc.Extensions["swagger"] != nil:
		return nil, &Error{Message: fmt.Sprintf("the document is Swagger %v; convert it to OpenAPI 3 first",
			doc.Extensions["swagger"])}
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return nil, &Error{Message: fmt.Sprintf("the document says openapi: %q; this program reads OpenAPI 3, "+
			"such as openapi: \"3.1.0\"", doc.OpenAPI)}
	}
	d := &Description{doc: doc, located: located, lenient: lenient}
	problems := check(ctx, doc)
	if len(problems) > 0 && !lenient {
		return nil, problemsError(problems)
	}
	sortByLine(problems)
	for _, p := range problems {
		d.warnings = append(d.warnings, p.String())
	}
	return d, nil
}

// check finds what the specification does not allow. It ignores examples, defaults and
// patterns, which do not matter for routing. It also ignores the rule that two paths
// must not differ only in the names of their parameters: their methods may differ, and
// duplicates finds those that do not.
func check(ctx context.Context, doc *openapi3.T) (problems []Problem) {
	err := doc.Validate(ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(),
		openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation())
	if err == nil {
		return nil
	}
	list := openapi3.MultiError{err}
	if several, ok := errors.AsType[openapi3.MultiError](err); ok {
		list = several
	}
	for _, e := range list {
		if _, conflict := errors.AsType[*openapi3.ConflictingPathsError](e); !conflict {
			problems = append(problems, Problem{Line: lineOf(doc, e), Message: e.Error()})
		}
	}
	return problems
}

func sortByLine(problems []Problem) {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
}

// problemsError returns the error of a document with problems.
func problemsError(problems []Problem) *Error {
	sortByLine(problems)
	what := "the document has errors"
	if len(problems) == 1 {
		what = "the document has an error"
	}
	return &Error{Message: what + "; nothing was changed", Problems: problems}
}

// load decodes a document. The loader follows no reference out of it, and has line
// numbers only for YAML.
func load(ctx context.Context, data []byte, located bool) (*openapi3.T, error) {
	loader := func() *openapi3.Loader {
		l := openapi3.NewLoader()
		l.Context, l.IncludeOrigin = ctx, located
		return l
	}
	if !located || !json.Valid(data) {
		return loader().LoadFromData(data)
	}
	// JSON is YAML except for a few escapes. With a comment it is no longer JSON.
	doc, err := loader().LoadFromData(slices.Concat(data, []byte("\n#")))
	if err != nil {
		doc, err = loader().LoadFromData(data)
	}
	return doc, err
}

// unreadable says why a document could not be loaded.
func unreadable(err error) string {
	text := err.Error()
	// The loader tries JSON first and reports both.
	if _, after, ok := strings.Cut(text, ", yaml error: "); ok {
		text = strings.TrimPrefix(after, "error converting YAML to JSON: ")
	}
	text = strings.TrimPrefix(text, "yaml: ")
	if strings.Contains(text, "disallowed external reference") {
		text += "; references to other files and servers are not followed: bundle the document into one file first"
	}
	return printable("the document cannot be read: " + text)
}

// lineOf returns the line of a validation error: that of the innermost place that it
// names, otherwise of its operation or path. It is 0 if neither is known.
func lineOf(doc *openapi3.T, err error) int {
	line := 0
	var item *openapi3.PathItem
	for ; err != nil; err = errors.Unwrap(err) {
		here := ownLine(err)
		switch e := err.(type) { //nolint:errorlint // this is the walk along the chain
		case *openapi3.PathValidationError:
			item = doc.Paths.Value(e.Path)
			here = pathLine(item)
		case *openapi3.OperationValidationError:
			if item != nil {
				here = operationLine(item.GetOperation(e.Method))
			}
		case *openapi3.PathMustStartWithSlashError:
			here = pathLine(doc.Paths.Value(e.Path))
		}
		line = cmp.Or(here, line)
	}
	return line
}

// ownLine returns the line in one error of a chain: most types have a field Origin, and
// there is no interface for it.
func ownLine(err error) int {
	v := reflect.Indirect(reflect.ValueOf(err))
	if v.Kind() != reflect.Struct {
		return 0
	}
	field := v.FieldByName("Origin")
	if !field.IsValid() {
		return 0
	}
	origin, _ := field.Interface().(*openapi3.Origin)
	return originLine(origin)
}

func originLine(o *openapi3.Origin) int {
	if o == nil || o.Key == nil {
		return 0
	}
	return o.Key.Line
}

func pathLine(item *openapi3.PathItem) int {
	if item == nil {
		return 0
	}
	return originLine(item.Origin)
}

func operationLine(op *openapi3.Operation) int {
	if op == nil {
		return 0
	}
	return originLine(op.Origin)
}
