package rest

import (
	"bytes"
	"encoding/json"
	"slices"

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
	names, was, is := fieldsOf(before), values(before), values(after)
	for _, name := range fieldsOf(after) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	shownBefore, shownAfter := was, is
	if before != nil {
		shownBefore = values(model.RedactObject(before))
	}
	if after != nil {
		shownAfter = values(model.RedactObject(after))
	}
	list := []fieldChange{}
	for _, name := range names {
		if !bytes.Equal(was[name], is[name]) {
			list = append(list, fieldChange{Field: name, Before: shownBefore[name], After: shownAfter[name]})
		}
	}
	return list
}

// values are the fields of an object that its user has set.
func values(obj model.Object) map[string]json.RawMessage {
	if obj == nil {
		return nil
	}
	fields := map[string]json.RawMessage{}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // text is shown as it was sent
	err := enc.Encode(obj)
	if err == nil {
		err = json.Unmarshal(b.Bytes(), &fields)
	}
	if err != nil {
		panic("encoding object: " + err.Error()) // what is stored was encoded before
	}
	return fields
}

// fieldsOf lists the names of these fields in their order, without what the
// store assigns.
func fieldsOf(obj model.Object) []string {
	if obj == nil {
		return nil
	}
	b, err := json.Marshal(obj)
	if err != nil {
		return nil
	}
	var names []string
	dec := json.NewDecoder(bytes.NewReader(b))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for first := true; dec.More(); first = false {
		name, err := dec.Token()
		if err != nil {
			return nil
		}
		var skip json.RawMessage
		if err := dec.Decode(&skip); err != nil {
			return nil
		}
		if !first && name != "create_ts" && name != "update_ts" { // the first is the ID
			names = append(names, name.(string))
		}
	}
	return names
}
