package form

import (
	"reflect"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Fields lists the fields of a kind, in the order of documentation: those of its Go type with the tag form. The tag has
// the name of the field, then, after commas, "required", "version" for text that may look like a number, and "pem="
// with the command that makes PEM from DER. Links have no fields.
func Fields(kind model.Kind) (fields []Field) {
	t := reflect.TypeOf(model.New(kind)).Elem()
	for i := range t.NumField() {
		tag, has := t.Field(i).Tag.Lookup("form")
		if !has {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		f := fieldOf(name, t.Field(i).Type, i)
		for option := range strings.SplitSeq(options, ",") {
			switch word, command, _ := strings.Cut(option, "="); word {
			case "required":
				f.Required = true
			case "version":
				f = version(f)
			case "pem":
				f = inPEM(f, command)
			}
		}
		fields = append(fields, f)
	}
	return fields
}

// fieldOf returns the field with an index in an object, by its Go type.
func fieldOf(name string, t reflect.Type, i int) Field {
	switch t {
	case reflect.TypeFor[model.Tags]():
		return words(name, at[model.Tags](i))
	case reflect.TypeFor[model.JSON]():
		return object(name, at[model.JSON](i), model.CompactJSON)
	case reflect.TypeFor[model.RouteConfig]():
		return object(name, at[model.RouteConfig](i), model.ParseRouteConfig)
	case reflect.TypeFor[model.ConsumerCredentials]():
		return object(name, at[model.ConsumerCredentials](i), model.ParseConsumerCredentials)
	case reflect.TypeFor[int]():
		return integer(name, at[int](i))
	case reflect.TypeFor[bool]():
		return boolean(name, at[bool](i))
	}
	return text(name, at[string](i))
}

// at returns a function that returns the field with an index in an object.
func at[T any](i int) func(model.Object) *T {
	return func(o model.Object) *T { return reflect.ValueOf(o).Elem().Field(i).Addr().Interface().(*T) }
}
