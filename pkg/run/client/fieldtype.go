package client

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// asText turns a number, true or false into a text where the model has a text: set.x-team=1 needs no quotes. What the
// model does not say stays as it is written. all are the assignments of the call, and current the stored object, which
// say the type of a filter.
func (k Kind) asText(a Assignment, all []Assignment, current json.RawMessage) any {
	raw, is := a.value.(json.RawMessage)
	if !is || len(raw) == 0 || strings.ContainsAny(string(raw[:1]), `"{[n`) {
		return a.value
	}
	t := k.configType(a.Field, all, current)
	for _, key := range a.path {
		if t = inside(t, key); t == nil {
			return a.value
		}
	}
	if t.Kind() == reflect.String {
		return string(raw)
	}
	return a.value
}

// configType is the Go type of a field that is a JSON object; nil if it is not known.
func (k Kind) configType(field string, all []Assignment, current json.RawMessage) reflect.Type {
	word := ""
	typeField := k.Name + "_type"
	if stored, err := member(current, typeField); err == nil {
		word, _ = stored.(string)
	}
	for _, a := range all {
		if text, is := a.value.(string); is && strings.EqualFold(a.Field, typeField) {
			word = text
		}
	}
	var spec any
	switch model.Kind(k.Name) {
	case model.KindFilter:
		spec = (&model.Filter{Type: word, Config: "{}"}).Parse().Spec
	case model.KindGlobalConfig:
		spec = (&model.GlobalConfig{Type: word, Config: "{}"}).Parse().Spec
	default:
		t := reflect.TypeOf(model.New(model.Kind(k.Name))).Elem()
		for i := range t.NumField() {
			if name, _, _ := strings.Cut(t.Field(i).Tag.Get("form"), ","); name == field {
				return t.Field(i).Type
			}
		}
	}
	if spec == nil {
		return nil
	}
	return deref(reflect.TypeOf(spec))
}

// inside is the type of what a key leads to; nil if it is not known.
func inside(t reflect.Type, key string) reflect.Type {
	if t == nil {
		return nil
	}
	switch t.Kind() {
	case reflect.Map, reflect.Slice:
		return deref(t.Elem())
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); strings.EqualFold(name, key) {
				return deref(f.Type)
			}
		}
	}
	return nil
}

func deref(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
