package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// Shape is the type of a value that was sent for a field. A form has text only.
type Shape string

// The shapes; each completes the sentence "must be text, not ...".
const (
	IsText   Shape = "text"
	IsNumber Shape = "a number"
	IsBool   Shape = "true or false"
	IsNull   Shape = "null"
	IsArray  Shape = "an array"
	IsObject Shape = "an object"
)

// Value is one field as it was sent.
type Value struct {
	Name  string
	Shape Shape
	// Text is the text itself, or the JSON of a value with another shape.
	Text string
}

// JSONValue returns the value of a field in a JSON object. raw must be JSON without
// space around it.
func JSONValue(name string, raw json.RawMessage) (Value, error) {
	v := Value{Name: name, Text: string(raw)}
	switch raw[0] {
	case '"':
		v.Shape = IsText
		return v, json.Unmarshal(raw, &v.Text)
	case '{':
		v.Shape = IsObject
	case '[':
		v.Shape = IsArray
	case 't', 'f':
		v.Shape = IsBool
	case 'n':
		v.Shape = IsNull
	default:
		v.Shape = IsNumber
	}
	return v, nil
}

// TextOf returns the text of a field, or "" if it was not sent as text.
func TextOf(sent []Value, name string) string {
	for _, v := range sent {
		if v.Shape == IsText && strings.EqualFold(name, v.Name) {
			return v.Text
		}
	}
	return ""
}

// CheckText refuses text that no field may contain. JSON decoders and broken clients
// write U+FFFD for bytes that are not UTF-8, so it is refused as those bytes are.
func CheckText(s string) error {
	if !utf8.ValidString(s) || strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("contains text that is not valid UTF-8")
	}
	if strings.ContainsRune(s, 0) {
		return errors.New("contains a NUL character")
	}
	return nil
}

const maxDepth = 64 // nesting of a JSON value

// CheckJSON refuses JSON that nests too deeply, has a duplicate key in an object
// (ignoring case, as encoding/json does), or contains text that CheckText refuses. It
// leaves malformed JSON to the parser that reads the value.
func CheckJSON(text string) error {
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
		return CheckText(s)
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
	if err := CheckText(key); err != nil {
		return err
	}
	if keys[strings.ToLower(key)] {
		return fmt.Errorf("has the key %q twice in one object", key)
	}
	keys[strings.ToLower(key)] = true
	return nil
}
