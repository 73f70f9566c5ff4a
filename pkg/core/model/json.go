package model

import (
	"bytes"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// JSON is the text of one JSON value, without insignificant space. The zero
// value is the empty object.
type JSON string

// CompactJSON returns text, which must hold one JSON value, without
// insignificant space. Keys keep their order, numbers their form.
func CompactJSON(text string) (JSON, error) {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(text)); err != nil {
		return "", fmt.Errorf("is not JSON: %w", err)
	}
	return JSON(b.String()), nil
}

func (j JSON) text() string {
	if j == "" {
		return "{}"
	}
	return string(j)
}

// MarshalJSON writes the value itself.
func (j JSON) MarshalJSON() ([]byte, error) { return []byte(j.text()), nil }

// UnmarshalJSON takes any value.
func (j *JSON) UnmarshalJSON(b []byte) (err error) {
	*j, err = CompactJSON(string(b))
	return err
}

// Value stores the text (database/sql).
func (j JSON) Value() (driver.Value, error) { return j.text(), nil }

// Scan reads what Value stores (database/sql).
func (j *JSON) Scan(src any) error {
	text, err := scanText(src)
	if err != nil {
		return fmt.Errorf("reading JSON: %w", err)
	}
	*j = JSON(text)
	return nil
}

// decodeError is an error of encoding/json without the name of that.
type decodeError struct{ error }

func (e decodeError) Error() string { return strings.TrimPrefix(e.error.Error(), "json: ") }
func (e decodeError) Unwrap() error { return e.error }

// decodeStrict reads text into v; an unknown key is an error that names it.
func decodeStrict(text string, v any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return decodeError{err}
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("contains more than one JSON value")
	}
	return nil
}
