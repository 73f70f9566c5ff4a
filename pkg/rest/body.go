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
	"unicode/utf8"

	"github.com/gin-gonic/gin"
)

const (
	maxBody  = 1 << 20 // bytes; rest-api.md, "413 body over 1 MiB"
	maxDepth = 64      // nesting of a JSON value
)

// shape is what was sent for a field. A form knows text only.
type shape string

const (
	isText   shape = "text"
	isNumber shape = "a number"
	isBool   shape = "true or false"
	isNull   shape = "null"
	isArray  shape = "an array"
	isObject shape = "an object"
)

// value is one field as it was sent.
type value struct {
	name  string
	shape shape
	// text is the text itself, or the JSON of any other shape.
	text string
}

// readBody returns the fields of the body, in the order sent (a form: sorted
// by name), with fields that were sent twice. An empty body of any content
// type has none.
func readBody(c *gin.Context) ([]value, error) {
	data, err := io.ReadAll(http.MaxBytesReader(c.Writer, c.Request.Body, maxBody))
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return nil, newProblem(http.StatusRequestEntityTooLarge, "body_too_large", "the body has more than 1 MiB (1048576 bytes)")
	}
	if err != nil {
		return nil, malformed("the body ended early")
	}
	if len(data) == 0 {
		return nil, nil
	}
	if enc := c.GetHeader("Content-Encoding"); enc != "" && !strings.EqualFold(enc, "identity") {
		return nil, newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type", fmt.Sprintf("Content-Encoding %q is not supported; send the body as it is", enc))
	}
	return decodeBody(c.GetHeader("Content-Type"), data)
}

// decodeBody reads the three encodings that mean the same.
func decodeBody(contentType string, data []byte) ([]value, error) {
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

func decodeForm(data []byte) ([]value, error) {
	form, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, malformed("the form cannot be read: %s", err)
	}
	var sent []value
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, text := range form[name] {
			sent = append(sent, value{name, isText, text})
		}
	}
	return sent, nil
}

// decodeMultipart takes a file for its content.
func decodeMultipart(data []byte, boundary string) ([]value, error) {
	if boundary == "" {
		return nil, malformed("multipart/form-data has no boundary parameter")
	}
	parts := multipart.NewReader(bytes.NewReader(data), boundary)
	var sent []value
	for {
		part, err := parts.NextPart()
		// The end is io.EOF itself. Wrapped, or where the last boundary is
		// missing, it means that the body was cut.
		if err == io.EOF && bytes.Contains(data, []byte("--"+boundary+"--")) { //nolint:errorlint // see above
			return sent, nil
		}
		if err != nil {
			return nil, malformed("the multipart form cannot be read: %s", err)
		}
		text, err := io.ReadAll(part)
		if err != nil {
			return nil, malformed("the multipart form cannot be read: %s", err)
		}
		if part.FormName() == "" {
			return nil, malformed("a part of the multipart form has no name")
		}
		sent = append(sent, value{part.FormName(), isText, string(text)})
	}
}

func decodeJSON(data []byte) ([]value, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	first, err := dec.Token()
	if err != nil {
		return nil, malformed("the body is not JSON: %s", jsonError(err))
	}
	if first != json.Delim('{') {
		return nil, malformed("the JSON body must be an object, such as {%q: %q}", "Name", "gw")
	}
	var sent []value
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, malformed("the body is not JSON: %s", jsonError(err))
		}
		var raw json.RawMessage
		if err := dec.Decode(&raw); err != nil {
			return nil, malformed("the body is not JSON: %s", jsonError(err))
		}
		v, err := jsonValue(name.(string), raw)
		if err != nil {
			return nil, err
		}
		sent = append(sent, v)
	}
	if _, err := dec.Token(); err != nil {
		return nil, malformed("the body is not JSON: %s", jsonError(err))
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, malformed("the body goes on after the JSON object")
	}
	return sent, nil
}

func jsonValue(name string, raw json.RawMessage) (value, error) {
	v := value{name: name, text: string(raw)}
	switch raw[0] {
	case '"':
		v.shape = isText
		if err := json.Unmarshal(raw, &v.text); err != nil {
			return v, malformed("the body is not JSON: %s", jsonError(err))
		}
	case '{':
		v.shape = isObject
	case '[':
		v.shape = isArray
	case 't', 'f':
		v.shape = isBool
	case 'n':
		v.shape = isNull
	default:
		v.shape = isNumber
	}
	return v, nil
}

func jsonError(err error) string {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return "it ends early"
	}
	return err.Error()
}

// checkText refuses what no field may hold. Both decoding of JSON and a broken
// client put U+FFFD where text was not UTF-8, so it is refused like the bytes.
func checkText(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("holds text that is not valid UTF-8")
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("holds a NUL character")
	}
	return nil
}

// checkJSON refuses JSON that nests too deeply, has a key twice in one object
// (in any letter case: encoding/json matches without regard to it) or holds
// text that checkText refuses. JSON that is not well formed is left to the
// parser that it is meant for.
func checkJSON(text string) error {
	if !json.Valid([]byte(text)) {
		return nil
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	return checkNested(dec, 0)
}

func checkNested(dec *json.Decoder, depth int) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	if s, ok := token.(string); ok {
		return checkText(s)
	}
	open, ok := token.(json.Delim)
	if !ok {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("nests deeper than %d levels", maxDepth)
	}
	keys := map[string]bool{}
	for dec.More() {
		if open == '{' {
			if err := checkKey(dec, keys); err != nil {
				return err
			}
		}
		if err := checkNested(dec, depth+1); err != nil {
			return err
		}
	}
	_, err = dec.Token() // the closing bracket
	return err
}

func checkKey(dec *json.Decoder, keys map[string]bool) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	key := token.(string)
	if err := checkText(key); err != nil {
		return err
	}
	if keys[strings.ToLower(key)] {
		return fmt.Errorf("has the key %q twice in one object", key)
	}
	keys[strings.ToLower(key)] = true
	return nil
}
