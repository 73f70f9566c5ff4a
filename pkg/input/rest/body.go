package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

const (
	maxBody = 1 << 20 // bytes; rest-api.md, "413 body over 1 MiB"
	// maxFields is far more than any object has.
	maxFields = 1000
)

func tooManyFields() error { return malformedProblem("the body has more than %d fields", maxFields) }

// readBody returns the fields of the body, in the order sent (a form: sorted
// by name), with fields that were sent twice. An empty body of any content
// type has none.
func readBody(c *gin.Context) ([]form.Value, error) {
	data, err := readBytes(c)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return decodeBody(c.GetHeader("Content-Type"), data)
}

// readBodyOrNull takes the JSON null for an empty body.
func readBodyOrNull(c *gin.Context) ([]form.Value, error) {
	data, err := readBytes(c)
	if err != nil || len(data) == 0 {
		return nil, err
	}
	contentType := c.GetHeader("Content-Type")
	if mediaType, _, err := mime.ParseMediaType(contentType); err == nil && mediaType == "application/json" &&
		string(bytes.TrimSpace(data)) == "null" {
		return nil, nil
	}
	return decodeBody(contentType, data)
}

// readBytes reads a body that is not compressed.
func readBytes(c *gin.Context) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if err != nil {
		return nil, bodyError(c, err, "1 MiB (1048576 bytes)")
	}
	if len(data) == 0 {
		return nil, nil
	}
	if enc := c.GetHeader("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
			fmt.Sprintf("Content-Encoding %q is not supported; send the body as it is", enc))
	}
	return data, nil
}

// maxDiscarded is how much of a body that is too large is still taken.
const maxDiscarded = 16 << 20 // bytes

// bodyError says why a body of at most limit cannot be read.
func bodyError(c *gin.Context, err error, limit string) error {
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		// A client that is still sending would see its connection break
		// instead of the answer. What goes wrong here is its own affair.
		_, _ = io.CopyN(io.Discard, c.Request.Body, maxDiscarded)
		return newProblem(http.StatusRequestEntityTooLarge, "body_too_large", "the body has more than "+limit)
	}
	return malformedProblem("the body ended early")
}

// decodeBody reads the three encodings that mean the same.
func decodeBody(contentType string, data []byte) ([]form.Value, error) {
	mediaType, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		mediaType = ""
	}
	switch mediaType {
	case "application/x-www-form-urlencoded":
		return decodeForm(data)
	case "multipart/form-data":
		return decodeMultipart(data, params["boundary"])
	case "application/json":
		return decodeJSON(data)
	}
	was := fmt.Sprintf("content type %q is", contentType)
	if contentType == "" {
		was = "a body without a content type is"
	}
	return nil, newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
		was+" not supported; send application/x-www-form-urlencoded, multipart/form-data or application/json")
}

func decodeForm(data []byte) ([]form.Value, error) {
	if bytes.Count(data, []byte("&")) >= maxFields {
		return nil, tooManyFields()
	}
	fields, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, malformedProblem("the form cannot be read: %s", err)
	}
	var sent []form.Value
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		for _, text := range fields[name] {
			sent = append(sent, form.Value{Name: name, Shape: form.IsText, Text: text})
		}
	}
	return sent, nil
}

// decodeMultipart takes a file for its content.
func decodeMultipart(data []byte, boundary string) ([]form.Value, error) {
	if boundary == "" {
		return nil, malformedProblem("multipart/form-data has no boundary parameter")
	}
	parts := multipart.NewReader(bytes.NewReader(data), boundary)
	var sent []form.Value
	for {
		part, err := parts.NextPart()
		// The end is io.EOF itself. Wrapped, or where the last boundary is
		// missing, it means that the body was cut.
		if err == io.EOF && bytes.Contains(data, []byte("--"+boundary+"--")) { //nolint:errorlint // see above
			return sent, nil
		}
		if err != nil {
			return nil, malformedProblem("the multipart form cannot be read: %s", err)
		}
		if len(sent) == maxFields {
			return nil, tooManyFields()
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, malformedProblem("the multipart form cannot be read: %s", err)
		}
		if part.FormName() == "" {
			return nil, malformedProblem("a part of the multipart form has no name")
		}
		sent = append(sent, form.Value{Name: part.FormName(), Shape: form.IsText, Text: string(text)})
	}
}

func decodeJSON(data []byte) ([]form.Value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	first, err := dec.Token()
	if err != nil {
		return nil, malformedProblem("the body is not JSON: %s", jsonError(err))
	}
	if first != json.Delim('{') {
		return nil, malformedProblem("the JSON body must be an object, such as {%q: %q}", "Name", "gw")
	}
	var sent []form.Value
	for dec.More() {
		if len(sent) == maxFields {
			return nil, tooManyFields()
		}
		name, err := dec.Token()
		if err != nil {
			return nil, malformedProblem("the body is not JSON: %s", jsonError(err))
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, malformedProblem("the body is not JSON: %s", jsonError(err))
		}
		v, err := form.JSONValue(name.(string), raw)
		if err != nil {
			return nil, malformedProblem("the body is not JSON: %s", jsonError(err))
		}
		sent = append(sent, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformedProblem("the body is not JSON: %s", jsonError(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformedProblem("the body continues after the JSON object")
	}
	return sent, nil
}

func jsonError(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends early"
	}
	return err.Error()
}
