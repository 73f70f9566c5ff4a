package form

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Field is one field of a kind of object.
type Field struct {
	// Name is the canonical form name; a request may write it in any letter
	// case.
	Name string
	// Required fields must be sent to create an object.
	Required bool
	// fromBytes says how to convert binary data to text; empty means no hint.
	fromBytes string
	// set puts what was sent into the object. Its error follows the field's
	// name in a sentence.
	set func(model.Object, Value) error
	// get returns what a document shows for the field.
	get func(model.Object) any
}

// Get returns the field of obj as a document shows it: text, a whole number, true or
// false, a list of words or json.RawMessage.
func (f Field) Get(obj model.Object) any { return f.get(obj) }

// Copy sets the field of an object to that of another one of its kind.
func (f Field) Copy(to, from model.Object) error {
	v := Value{Name: f.Name, Shape: IsText}
	switch is := f.get(from).(type) {
	case json.RawMessage:
		v.Text = string(is)
	case []string:
		v.Text = strings.Join(is, ",")
	default:
		v.Text = fmt.Sprint(is)
	}
	return f.set(to, v)
}

// inPEM marks a field that holds PEM; convert is the command that makes it from DER.
func inPEM(f Field, convert string) Field {
	f.fromBytes = "; it must be in PEM form (-----BEGIN ...), which " + convert + " makes from DER"
	return f
}

// text is a field that holds a string.
func text(name string, at func(model.Object) *string) Field {
	return Field{
		Name: name,
		set: func(obj model.Object, v Value) error {
			if v.Shape != IsText {
				return fmt.Errorf("must be text, not %s", v.Shape)
			}
			*at(obj) = v.Text
			return nil
		},
		get: func(obj model.Object) any { return *at(obj) },
	}
}

// integer is a field for an integer; in JSON it may also be a string.
func integer(name string, at func(model.Object) *int) Field {
	return Field{
		Name: name,
		set: func(obj model.Object, v Value) error {
			if v.Shape != IsText && v.Shape != IsNumber {
				return fmt.Errorf("must be a whole number, not %s", v.Shape)
			}
			n, err := strconv.Atoi(v.Text)
			switch {
			case errors.Is(err, strconv.ErrRange):
				return fmt.Errorf("%q is far out of range", v.Text)
			case err != nil || strings.HasPrefix(v.Text, "+"):
				return fmt.Errorf("%q is not a whole number", v.Text)
			}
			*at(obj) = n
			return nil
		},
		get: func(obj model.Object) any { return *at(obj) },
	}
}

// version marks a field for text such as 1.2, which may be a number in YAML and JSON.
func version(f Field) Field {
	set := f.set
	f.set = func(obj model.Object, v Value) error {
		if v.Shape == IsNumber {
			v.Shape = IsText
		}
		return set(obj, v)
	}
	return f
}

// boolean is a field that is true or false; in JSON it may also be a string.
func boolean(name string, at func(model.Object) *bool) Field {
	return Field{
		Name: name,
		set: func(obj model.Object, v Value) error {
			if v.Shape != IsText && v.Shape != IsBool {
				return fmt.Errorf("must be %s, not %s", IsBool, v.Shape)
			}
			if v.Text != "true" && v.Text != "false" {
				return fmt.Errorf("%q is not %s", v.Text, IsBool)
			}
			*at(obj) = v.Text == "true"
			return nil
		},
		get: func(obj model.Object) any { return *at(obj) },
	}
}

// object is a field for a JSON object: as text or, in JSON, as an object.
func object[T any](name string, at func(model.Object) *T, read func(text string) (T, error)) Field {
	return Field{
		Name: name,
		set: func(obj model.Object, v Value) error {
			if v.Shape != IsText && v.Shape != IsObject {
				return fmt.Errorf("must be a JSON object, or text that contains one, not %s", v.Shape)
			}
			if err := CheckJSON(v.Text); err != nil {
				return err
			}
			value, err := read(v.Text)
			if err == nil {
				*at(obj) = value
			}
			return err
		},
		get: func(obj model.Object) any {
			b, err := json.Marshal(*at(obj))
			if err != nil {
				return json.RawMessage("{}") // stored values are well formed
			}
			return json.RawMessage(b)
		},
	}
}

// words is a field with a list of words, such as the tags of an object.
func words(name string, at func(model.Object) *model.Tags) Field {
	return Field{
		Name: name,
		set: func(obj model.Object, v Value) error {
			var list []string
			switch v.Shape {
			case IsText:
				for word := range strings.SplitSeq(v.Text, ",") {
					if word = strings.TrimSpace(word); word != "" {
						list = append(list, word)
					}
				}
			case IsArray:
				if err := json.Unmarshal([]byte(v.Text), &list); err != nil {
					return errors.New("must be a list of words")
				}
			default:
				return fmt.Errorf("must be a list of words, or text with commas between them, not %s", v.Shape)
			}
			*at(obj) = model.NewTags(list)
			return nil
		},
		get: func(obj model.Object) any { return []string(*at(obj)) },
	}
}
