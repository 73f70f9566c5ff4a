package rest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"reflect"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// change is what a write did to one object, in words.
type change struct {
	// Action is create, update or delete.
	Action string        `json:"action"`
	Path   string        `json:"path"`
	Kind   model.Kind    `json:"kind"`
	Fields []fieldChange `json:"fields"`
}

// changeList stands in an answer for the changes that writeChanges puts there.
type changeList struct{}

// noChanges is how it looks in JSON. No text within an answer looks so: a text
// has a backslash before each quote.
const noChanges = `"changes":[]`

// MarshalJSON implements json.Marshaler.
func (changeList) MarshalJSON() ([]byte, error) { return []byte("[]"), nil }

// fieldChange is a field that is different. Before or After is missing where
// there was or is no object.
type fieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

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
	first := true
	for w, err := range changes() {
		if err != nil {
			return err
		}
		if !first {
			_ = out.WriteByte(',') // Flush has the error of every write
		}
		first = false
		if _, err := out.Write(jsonText(changeOf(w))); err != nil {
			return err
		}
	}
	return out.Flush()
}

// changeOf says what a transaction did to one object. A secret text is not in it.
func changeOf(w store.Written) change {
	action := "update"
	switch {
	case w.Before == nil:
		action = "create"
	case w.After == nil:
		action = "delete"
	}
	return change{Action: action, Path: w.Key.Path(), Kind: w.Key.Kind, Fields: fieldChanges(w.Before, w.After)}
}

// fieldChanges compares what is stored, and shows what a reader may see of it.
func fieldChanges(before, after model.Object) []fieldChange {
	was, is := fields(before), fields(after)
	shownBefore, shownAfter := redactedFields(before, was), redactedFields(after, is)
	list := []fieldChange{}
	for i := range max(len(was), len(is)) {
		var c fieldChange
		var old, now json.RawMessage
		if before != nil {
			c.Field, old, c.Before = was[i].name, was[i].text, shownBefore[i].text
		}
		if after != nil {
			c.Field, now, c.After = is[i].name, is[i].text, shownAfter[i].text
		}
		if !bytes.Equal(old, now) {
			list = append(list, c)
		}
	}
	return list
}

// redactedFields returns the fields of an object as a reader may see them.
func redactedFields(obj model.Object, stored []field) []field {
	if _, sealed := obj.(model.Confidential); sealed {
		return fields(model.RedactObject(obj))
	}
	return stored
}

// field is a field of an object that its user has set, as JSON.
type field struct {
	name string
	text json.RawMessage
}

// fields are those of an object in their order, without what the store assigns.
// They are taken one by one: to take the JSON of the whole object apart again
// costs several times more, and a document may change 100,000 objects.
func fields(obj model.Object) []field {
	if obj == nil {
		return nil
	}
	v := reflect.ValueOf(obj).Elem()
	var list []field
	for i := 1; i < v.NumField(); i++ { // the first is the ID
		name := v.Type().Field(i).Tag.Get("json")
		if name == "create_ts" || name == "update_ts" {
			continue
		}
		list = append(list, field{name, jsonText(v.Field(i).Interface())})
	}
	return list
}
