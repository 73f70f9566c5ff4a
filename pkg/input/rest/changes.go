package rest

import (
	"bufio"
	"bytes"
	"cmp"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// changeList stands in an answer for the changes that writeChanges puts there.
type changeList struct{}

// noChanges is how it looks in JSON. No text within an answer looks so: a text
// has a backslash before each quote.
const noChanges = `"changes":[]`

// MarshalJSON implements json.Marshaler.
func (changeList) MarshalJSON() ([]byte, error) { return []byte("[]"), nil }

// writeChanges answers with v as writeJSON does, with the text of spoolChanges as
// its list of changes, and closes that.
func (s *server) writeChanges(c *gin.Context, status int, v any, changes *spool) {
	defer func() { _ = changes.close() }() // there is nothing to lose in it
	head, tail, _ := bytes.Cut(jsonText(v), []byte(noChanges))
	head = append(head, noChanges[:len(noChanges)-1]...)
	tail = append([]byte("]"), tail...)
	if changes.size > largeAnswer && isRead(c.Request.Method) {
		leave, err := s.large.acquire(c)
		if err != nil {
			s.fail(c, err)
			return
		}
		defer leave()
	}
	c.Status(status)
	s.send(c, "application/json", int64(len(head)+len(tail))+changes.size, func(out io.Writer) error {
		_, err := out.Write(head)
		if err == nil {
			err = changes.send(out)
		}
		if err == nil {
			_, err = out.Write(tail)
		}
		return err
	})
}

// spoolChanges makes the text of a list of changes without its brackets. There
// may be 100,000: it is made one by one, and kept where other large answers are.
func spoolChanges(changes store.Changes) (*spool, error) {
	text := &spool{}
	if err := writeAll(text, changes); err != nil {
		_ = text.close() // there is nothing to lose in it
		return nil, err
	}
	return text, nil
}

func writeAll(to io.Writer, changes store.Changes) error {
	out := bufio.NewWriterSize(to, paceBytes)
	p := changePrinter{fields: map[model.Kind][]string{}, standard: map[model.Kind]reflect.Value{}}
	for w, err := range changes() {
		if err != nil {
			return err
		}
		if len(p.text) > 0 {
			_ = out.WriteByte(',') // Flush has the error of every write
		}
		p.print(w)
		if _, err := out.Write(p.text); err != nil {
			return err
		}
	}
	return out.Flush()
}

// changePrinter writes changes as JSON, field by field: encoding/json looks at each
// value again, which costs several times more, and a document may change 100,000
// objects.
type changePrinter struct {
	// text is the change that was printed last.
	text []byte
	// fields are the names of the fields of each kind, by their place in its type;
	// empty for what the store assigns.
	fields map[model.Kind][]string
	// standard are the kinds' new objects.
	standard map[model.Kind]reflect.Value
}

// print writes what a transaction did to one object: its action (create, update or
// delete), its path and kind, and the fields that are different, each with what it
// was and is, of which one is missing where there was or is no object, and whether that is the default. A secret text
// is not in it.
func (p *changePrinter) print(w store.Written) {
	action := "update"
	switch {
	case w.Before == nil:
		action = "create"
	case w.After == nil:
		action = "delete"
	}
	p.text = append(p.text[:0], `{"action":"`+action+`","path":`...)
	p.text = appendText(p.text, w.Key.Path())
	p.text = append(p.text, `,"kind":"`+string(w.Key.Kind)+`","fields":[`...)
	start := len(p.text)
	was, shownBefore := valuesOf(w.Before)
	is, shownAfter := valuesOf(w.After)
	for i, name := range p.fieldsOf(cmp.Or(w.After, w.Before)) {
		if name == "" || was.IsValid() && is.IsValid() && isSame(was.Field(i), is.Field(i)) {
			continue
		}
		if len(p.text) > start {
			p.text = append(p.text, ',')
		}
		p.text = append(p.text, `{"field":"`+name+`"`...)
		if was.IsValid() {
			p.text = appendValue(append(p.text, `,"before":`...), shownBefore.Field(i))
		}
		if is.IsValid() {
			p.text = appendValue(append(p.text, `,"after":`...), shownAfter.Field(i))
		}
		if one := cmp.Or(w.After, w.Before); action != "update" &&
			isSame(reflect.ValueOf(one).Elem().Field(i), p.standardOf(one).Field(i)) {
			p.text = append(p.text, `,"default":true`...)
		}
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, "]}"...)
}

// standardOf returns a new object of the kind of an object.
func (p *changePrinter) standardOf(obj model.Object) reflect.Value {
	kind := obj.Key().Kind
	if _, known := p.standard[kind]; !known {
		p.standard[kind] = reflect.ValueOf(model.New(kind)).Elem()
	}
	return p.standard[kind]
}

// fieldsOf returns the fields of an object.
func (p *changePrinter) fieldsOf(obj model.Object) []string {
	kind := obj.Key().Kind
	if names, known := p.fields[kind]; known {
		return names
	}
	typ := reflect.TypeOf(obj).Elem()
	names := make([]string, typ.NumField())
	for i := 1; i < len(names); i++ { // the first is the ID
		name := typ.Field(i).Tag.Get("json")
		if name != "create_ts" && name != "update_ts" && !strings.HasSuffix(name, ",omitempty") { // which no call changes
			names[i] = name
		}
	}
	p.fields[kind] = names
	return names
}

// valuesOf returns the struct of an object as it is stored, and as a reader may see
// it; none of nil.
func valuesOf(obj model.Object) (stored, shown reflect.Value) {
	if obj == nil {
		return stored, shown
	}
	stored = reflect.ValueOf(obj).Elem()
	if _, sealed := obj.(model.Confidential); sealed {
		return stored, reflect.ValueOf(model.RedactObject(obj)).Elem()
	}
	return stored, stored
}

// isSame reports whether two values of a field are the same in JSON.
func isSame(a, b reflect.Value) bool {
	if isPlain(a) {
		return a.Equal(b)
	}
	return bytes.Equal(jsonText(a.Interface()), jsonText(b.Interface()))
}

// isPlain reports whether a value is a text or an integer that has no JSON of its own.
func isPlain(v reflect.Value) bool {
	return (v.Kind() == reflect.String || v.Kind() == reflect.Int) && v.Type().PkgPath() == ""
}

// appendValue appends a value as jsonText writes it.
func appendValue(to []byte, v reflect.Value) []byte {
	switch {
	case !isPlain(v):
		return append(to, jsonText(v.Interface())...)
	case v.Kind() == reflect.Int:
		return strconv.AppendInt(to, v.Int(), 10)
	}
	return appendText(to, v.String())
}

// appendText appends a text as jsonText writes it.
func appendText(to []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(to, jsonText(s)...)
		}
	}
	return append(append(append(to, '"'), s...), '"')
}
