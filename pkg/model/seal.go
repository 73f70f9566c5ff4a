package model

import (
	"bytes"
	"encoding/json"
	"strings"
)

// SealedPrefix begins every text that a Sealer made.
const SealedPrefix = "sealed:v1:"

// Redacted stands in a read for a text that is secret. Written back, it means
// what is stored (rest-api.md, "redacted").
const Redacted = "<redacted>"

// Sealer makes text unreadable without its key. The same text sealed for the
// same place is the same again, and is readable for that place only.
type Sealer interface {
	Seal(plain, place string) (string, error)
	Unseal(sealed, place string) (string, error)
}

// Confidential is an object of which a part is stored sealed.
type Confidential interface {
	Object
	// Seal seals what is in the clear. stored is the object that this one
	// replaces, or nil; it gives what Redacted stands for. A field that cannot
	// be sealed is an Invalid error.
	Seal(s Sealer, stored Object) error
	// Redact returns a copy for a reader: nothing sealed is in it.
	Redact() Object
	// MapSealed replaces every sealed text by what change says for it and the
	// place that it is sealed for.
	MapSealed(change func(sealed, place string) (string, error)) error
}

// IsSealed reports whether a Sealer made the text.
func IsSealed(text string) bool { return strings.HasPrefix(text, SealedPrefix) }

// RedactObject returns what a reader may see of an object.
func RedactObject(obj Object) Object {
	if c, ok := obj.(Confidential); ok {
		return c.Redact()
	}
	return obj
}

// sealText seals one text in the clear, or puts what is stored in place of
// Redacted. Its error follows the field's name in a sentence.
func sealText(s Sealer, text, stored, place string) (sealed, message string, err error) {
	switch {
	case text == "":
		return "", "", nil
	case text == Redacted && stored == "":
		return "", "is " + Redacted + ", but nothing is stored that it could stand for; write the secret itself, or apply what GET /config?secrets=sealed shows", nil
	case text == Redacted || text == stored:
		return stored, "", nil
	case IsSealed(text):
		// It may open with a key that is about to go, so it is sealed again.
		text, err = s.Unseal(text, place)
		switch {
		case IsKind(err, Invalid):
			return "", "was sealed with another key or for another object", nil
		case err != nil:
			return "", "", err
		}
	}
	sealed, err = s.Seal(text, place)
	return sealed, "", err
}

// redactJSON puts Redacted in place of every sealed text.
func redactJSON(j JSON) JSON {
	if !strings.Contains(string(j), SealedPrefix) {
		return j
	}
	out, err := mapStrings(j, func(_, s string) (string, error) {
		if IsSealed(s) {
			return Redacted, nil
		}
		return s, nil
	})
	if err != nil { // stored JSON is well formed
		return `"` + Redacted + `"`
	}
	return out
}

// mapStrings returns j with each string value replaced by what change says for
// it and its path ("a.b"; elements of arrays have the path of the array).
func mapStrings(j JSON, change func(path, s string) (string, error)) (JSON, error) {
	dec := json.NewDecoder(strings.NewReader(j.text()))
	dec.UseNumber()
	var out bytes.Buffer
	if err := mapValue(dec, &out, "", change); err != nil {
		return "", err
	}
	return JSON(out.String()), nil
}

func mapValue(dec *json.Decoder, out *bytes.Buffer, path string, change func(path, s string) (string, error)) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case string:
		s, err := change(path, t)
		if err != nil {
			return err
		}
		return writeJSON(out, s)
	case json.Delim:
		return mapNested(dec, out, path, t, change)
	default:
		return writeJSON(out, t)
	}
}

func mapNested(dec *json.Decoder, out *bytes.Buffer, path string, open json.Delim, change func(path, s string) (string, error)) error {
	out.WriteRune(rune(open))
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		at := path
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if err := writeJSON(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			at = strings.TrimPrefix(path+"."+key.(string), ".")
		}
		if err := mapValue(dec, out, at, change); err != nil {
			return err
		}
	}
	end, err := dec.Token()
	if err != nil {
		return err
	}
	out.WriteRune(rune(end.(json.Delim)))
	return nil
}

func writeJSON(out *bytes.Buffer, v any) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // the encoder's line feed
	return nil
}
