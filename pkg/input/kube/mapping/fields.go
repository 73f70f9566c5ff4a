package mapping

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Report receives what is wrong with a field of a Kubernetes object.
type Report func(path, format string, args ...any)

// pair is a field of a Kubernetes type and its counterpart.
type pair struct {
	// path is what the field adds to the path of its struct.
	path string
	from int
	// to is the field of the model; -1 if the Kubernetes field groups fields of the same object.
	to int
}

// pairOf returns the pair of a field of a Kubernetes type; false if the field means nothing to the type of the model.
func pairOf(from, to reflect.Type, i int) (p pair, found bool) {
	f := from.Field(i)
	name := jsonName(f)
	p = pair{path: "." + name, from: i, to: -1}
	if name == "" {
		p.path = "" // its fields are inline
	}
	for at := range to.NumField() {
		if counterpart := jsonName(to.Field(at)); counterpart != "" && counterpart == cmp.Or(f.Tag.Get("model"), name) {
			p.to = at
			return p, true
		}
	}
	return p, elem(f.Type).Kind() == reflect.Struct
}

// pairs lists the fields of a Kubernetes type that mean something to a type of the model.
func pairs(from, to reflect.Type) (list []pair) {
	for i := range from.NumField() {
		if p, found := pairOf(from, to, i); found {
			list = append(list, p)
		}
	}
	return list
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

// elem returns the type that a pointer leads to, or the type itself.
func elem(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

// reader sets fields of the model from a Kubernetes object.
type reader struct {
	// secret returns the name of the secret for a Secret.
	secret func(path string, ref gatewayv1.SecretReference) string
	wrong  Report
}

// read sets the fields that are set in from. What is not set stays as it is in to; lists are appended.
func (r reader) read(at string, from, to reflect.Value) {
	for i := range from.NumField() {
		field := from.Field(i)
		if field.IsZero() {
			continue
		}
		switch p, found := pairOf(from.Type(), to.Type(), i); {
		case !found:
		case p.to >= 0:
			r.set(at+p.path, field, to.Field(p.to))
		default:
			r.read(at+p.path, reflect.Indirect(field), to)
		}
	}
}

// set sets a field of the model to the value of its counterpart, which is set.
func (r reader) set(at string, from, to reflect.Value) {
	switch source := from.Interface().(type) {
	case *gatewayv1.SecretReference:
		to.SetString(r.secret(at, *source))
		return
	case gatewayv1.Duration:
		d, err := time.ParseDuration(string(source))
		if err != nil {
			r.wrong(at, "%q is not a duration such as 1.5s", source)
		}
		to.SetInt(int64(d))
		return
	}
	switch {
	case from.Type() == to.Type():
		to.Set(from)
	case from.Kind() == reflect.Pointer && to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		r.set(at, from.Elem(), to.Elem())
	case from.Kind() == reflect.Pointer:
		r.set(at, from.Elem(), to)
	case from.Kind() == reflect.Struct:
		r.read(at, from, to)
	case from.Kind() == reflect.Slice:
		for i := range from.Len() {
			item := reflect.New(to.Type().Elem()).Elem()
			r.set(fmt.Sprintf("%s[%d]", at, i), from.Index(i), item)
			to.Set(reflect.Append(to, item))
		}
	default: // a text or a number
		to.Set(from.Convert(to.Type()))
	}
}

// secretRef refers to the Secret for the name of a secret.
type secretRef func(name string) *gatewayv1.SecretReference

// write sets the fields of a Kubernetes object whose counterparts in the object of the model are not the defaults.
func (s secretRef) write(from, defaults, to reflect.Value) {
	for _, p := range pairs(to.Type(), from.Type()) {
		field := to.Field(p.from)
		switch {
		case p.to >= 0:
			if value := from.Field(p.to); !reflect.DeepEqual(value.Interface(), defaults.Field(p.to).Interface()) {
				s.put(value, field)
			}
		case field.Kind() == reflect.Struct:
			s.write(from, defaults, field)
		default:
			if field.IsNil() {
				field.Set(reflect.New(field.Type().Elem()))
			}
			if s.write(from, defaults, field.Elem()); field.Elem().IsZero() {
				field.SetZero()
			}
		}
	}
}

// put sets a field of a Kubernetes object to the value of its counterpart.
func (s secretRef) put(from, to reflect.Value) {
	switch {
	case to.Type() == reflect.TypeFor[*gatewayv1.SecretReference]():
		to.Set(reflect.ValueOf(s(from.String())))
	case from.Type() == reflect.TypeFor[model.Duration]():
		to.SetString(time.Duration(from.Int()).String())
	case from.Type() == to.Type():
		to.Set(from)
	case from.Kind() == reflect.Pointer:
		s.put(from.Elem(), to)
	case to.Kind() == reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		s.put(from, to.Elem())
	case from.Kind() == reflect.Struct:
		s.write(from, reflect.Zero(from.Type()), to)
	case from.Kind() == reflect.Slice:
		for i := range from.Len() {
			item := reflect.New(to.Type().Elem()).Elem()
			s.put(from.Index(i), item)
			to.Set(reflect.Append(to, item))
		}
	default: // numbers of the model are small enough for those of Kubernetes
		to.Set(from.Convert(to.Type()))
	}
}

// paths maps the JSON names of the fields of a type of the model to the fields of a Kubernetes type.
func paths(from, to reflect.Type) map[string]string {
	all := map[string]string{}
	for _, p := range pairs(from, to) {
		field := elem(from.Field(p.from).Type)
		if p.to < 0 {
			for name, path := range paths(field, to) {
				all[name] = p.path + path
			}
			continue
		}
		name, counterpart := jsonName(to.Field(p.to)), elem(to.Field(p.to).Type)
		all[name] = p.path
		if field.Kind() == reflect.Struct && counterpart.Kind() == reflect.Struct {
			for inner, path := range paths(field, counterpart) {
				all[name+"."+inner] = p.path + path
			}
		}
	}
	return all
}

// longest returns what fields has for the longest part of a name that it knows, followed by the rest of the name.
func longest(fields map[string]string, name string) (path string, found bool) {
	for end := len(name); end > 0; end = strings.LastIndexAny(name[:end], ".[") {
		if path, found := fields[name[:end]]; found {
			return path + name[end:], true
		}
	}
	return "", false
}
