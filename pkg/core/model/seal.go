package model

import (
	"bytes"
	"cmp"
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
		return "", "is " + Redacted + ", but no value is stored that it could stand for; write the secret itself, " +
			"or apply what GET /config?secrets=sealed returns", nil
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
	out, err := mapStrings(j, func(_ textField, s string) (string, error) {
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

// textField is where a text is in JSON.
type textField struct {
	// path has the keys, "a.b"; elements of arrays have the path of the array.
	path string
	// named is the path that tells elements of arrays apart by their name, "a[ann].b".
	named string
}

// mapStrings returns j with each string value replaced by what change says for
// it and its place.
func mapStrings(j JSON, change func(at textField, s string) (string, error)) (JSON, error) {
	var out bytes.Buffer
	if err := mapValue(decoderOf([]byte(j.text())), &out, textField{}, change); err != nil {
		return "", err
	}
	return JSON(out.String()), nil
}

func decoderOf(text []byte) *json.Decoder {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	return dec
}

func mapValue(
	dec *json.Decoder, out *bytes.Buffer, at textField, change func(at textField, s string) (string, error),
) error {
	token, err := dec.Token()
	if err != nil {
		return err
	}
	switch t := token.(type) {
	case string:
		s, err := change(at, t)
		if err != nil {
			return err
		}
		return writeJSON(out, s)
	case json.Delim:
		return mapNested(dec, out, at, t, change)
	default:
		return writeJSON(out, t)
	}
}

func mapNested(
	dec *json.Decoder, out *bytes.Buffer, at textField, open json.Delim,
	change func(at textField, s string) (string, error),
) error {
	out.WriteRune(rune(open))
	for first := true; dec.More(); first = false {
		if !first {
			out.WriteByte(',')
		}
		inner, of := dec, at
		if open == '{' {
			key, err := dec.Token()
			if err != nil {
				return err
			}
			if err := writeJSON(out, key); err != nil {
				return err
			}
			out.WriteByte(':')
			of.path, of.named = strings.TrimPrefix(at.path+"."+key.(string), "."),
				strings.TrimPrefix(at.named+"."+key.(string), ".")
		} else { // what tells it apart may be its last key
			var element json.RawMessage
			if err := dec.Decode(&element); err != nil {
				return err
			}
			inner, of.named = decoderOf(element), at.named+elementName(element)
		}
		if err := mapValue(inner, out, of, change); err != nil {
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

// elementName tells an element of an array apart; empty if it has no name.
func elementName(element []byte) string {
	var named struct {
		Name string `json:"name"`
		// Issuer is the name of an issuer of tokens.
		Issuer string `json:"issuer"`
	}
	name := ""
	if json.Unmarshal(element, &named) == nil {
		name = cmp.Or(named.Name, named.Issuer)
	}
	if name == "" {
		return ""
	}
	return "[" + name + "]"
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
