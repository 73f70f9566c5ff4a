package rest

import (
	"bytes"
	"encoding/json"
	"reflect"

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

// fieldChange is a field that is different. Before or After is missing where
// there was or is no object.
type fieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// changes says what a transaction did. A secret text is not in it.
func changes(written []store.Written) []change {
	list := make([]change, len(written))
	for i, w := range written {
		action := "update"
		switch {
		case w.Before == nil:
			action = "create"
		case w.After == nil:
			action = "delete"
		}
		list[i] = change{Action: action, Path: w.Key.Path(), Kind: w.Key.Kind, Fields: fieldChanges(w.Before, w.After)}
	}
	return list
}

// fieldChanges compares what is stored, and shows what a reader may see of it.
func fieldChanges(before, after model.Object) []fieldChange {
	was, is := fields(before), fields(after)
	shownBefore, shownAfter := shown(before, was), shown(after, is)
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

// shown are the fields of an object as a reader may see them.
func shown(obj model.Object, stored []field) []field {
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
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false) // text is shown as it was sent
		if err := enc.Encode(v.Field(i).Interface()); err != nil {
			panic("encoding object: " + err.Error()) // what is stored was encoded before
		}
		list = append(list, field{name, bytes.TrimSuffix(b.Bytes(), []byte("\n"))})
	}
	return list
}
