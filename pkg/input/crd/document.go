package crd

import (
	"encoding/json"
	"errors"
	"io"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
)

// Parse reads a configuration document in YAML or JSON. An error is an *Error that lists what
// is wrong.
func Parse(data []byte) (*document.Document, error) {
	mediaType := ""
	if json.Valid(data) {
		mediaType = "application/json"
	}
	doc, err := document.Parse(data, mediaType)
	if e, ok := errors.AsType[*model.Error](err); ok {
		unfit := &Error{Message: "this is not a configuration document: " + e.Message}
		for _, f := range e.Fields {
			unfit.Problems = append(unfit.Problems, f.Field+" "+f.Message)
		}
		return nil, unfit
	}
	return doc, err
}

// Encode writes a configuration document, in YAML.
func Encode(w io.Writer, doc *document.Document) error { return document.Encode(w, doc, false) }
