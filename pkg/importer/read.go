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

// Read reads an OpenAPI 3 document, YAML or JSON, and checks it. Its error is
// an *Error with every problem that was found.
func Read(ctx context.Context, data []byte) (*openapi3.T, error) {
	doc, err := load(ctx, data)
	if err != nil {
		return nil, &Error{Message: unreadable(err)}
	}
	switch {
	case doc.Extensions["swagger"] != nil:
		return nil, &Error{Message: fmt.Sprintf("the document is Swagger %v; convert it to OpenAPI 3 first", doc.Extensions["swagger"])}
	case !strings.HasPrefix(doc.OpenAPI, "3."):
		return nil, &Error{Message: fmt.Sprintf("the document says openapi: %q; this program reads OpenAPI 3, such as openapi: \"3.1.0\"", doc.OpenAPI)}
	}
	// Examples, defaults and patterns have no part in routing.
	err = doc.Validate(ctx, openapi3.EnableMultiError(), openapi3.DisableExamplesValidation(),
		openapi3.DisableSchemaDefaultsValidation(), openapi3.DisableSchemaPatternValidation())
	if err == nil {
		return doc, nil
	}
	list := openapi3.MultiError{err}
	if several, ok := errors.AsType[openapi3.MultiError](err); ok {
		list = several
	}
	var problems []Problem
	for _, e := range list {
		problems = append(problems, Problem{Line: lineOf(doc, e), Message: e.Error()})
	}
	return nil, wrong(problems)
}

// wrong is the error of a document with problems.
func wrong(problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Line, b.Line) })
	what := "the document has errors"
	if len(problems) == 1 {
		what = "the document has an error"
	}
	return &Error{Message: what + "; nothing was changed", Problems: problems}
}

// load decodes a document. The loader follows no reference out of it.
func load(ctx context.Context, data []byte) (*openapi3.T, error) {
	loader := func() *openapi3.Loader {
		l := openapi3.NewLoader()
		l.Context, l.IncludeOrigin = ctx, true
		return l
	}
	if !json.Valid(data) {
		return loader().LoadFromData(data)
	}
	// The loader knows lines of YAML only, which JSON is but for a few
	// escapes. With a comment it is no longer JSON.
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

// lineOf finds where an error of the validation is: the innermost place that
// it names, else its operation or path. It is 0 when neither is known.
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
		case *openapi3.ConflictingPathsError:
			here = pathLine(doc.Paths.Value(e.Path1))
		}
		line = cmp.Or(here, line)
	}
	return line
}

// ownLine is the line that one error of a chain carries: most types have a
// field Origin, and there is no interface for it.
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
