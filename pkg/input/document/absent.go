package document

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
)

// isTags reports whether a field contains tags.
func isTags(f form.Field) bool { return fieldKey(f) == "tags" }

// fillProxy sets the fields that the text does not have, except tags, to the stored
// values, or to the defaults of a new proxy with that name.
func (a *applier) fillProxy(item *Item, p *model.Proxy, stored model.Object) error {
	base, _ := stored.(*model.Proxy)
	switch {
	case base != nil:
	case a.opts.NewProxy != nil:
		base = a.opts.NewProxy(p.Name)
	default:
		base = model.NewProxy()
	}
	for i, f := range form.Fields(model.KindProxy) {
		if !item.isAbsent(i) || isTags(f) {
			continue
		}
		if err := f.Copy(p, base); err != nil {
			return fmt.Errorf("keeping %s: %w", fieldKey(f), err)
		}
	}
	if errs := p.Validate(); len(errs) > 0 {
		return &model.Error{
			Kind: model.Invalid, Message: "the fields conflict with the absent ones, which keep the values of the proxy",
			Hint: "nothing was changed", Fields: errs,
		}
	}
	return nil
}

// warnResets warns of fields that are reset to their defaults because the text
// does not have them. Its author may not know that they had been set.
func (a *applier) warnResets(item *Item, obj, stored model.Object) {
	if stored == nil || item.absent == 0 {
		return
	}
	if _, secret := stored.(*model.Secret); secret {
		return // its contents stay, and they determine its type
	}
	obj, stored = model.RedactObject(obj), model.RedactObject(stored)
	var reset []string
	for i, f := range form.Fields(obj.Key().Kind) {
		if item.isAbsent(i) && !reflect.DeepEqual(f.Get(obj), f.Get(stored)) {
			reset = append(reset, fieldKey(f))
		}
	}
	if len(reset) == 0 {
		return
	}
	if a.resets++; a.resets > maxErrors {
		return // the answer lists each change
	}
	verb, which := "is", "its default"
	if len(reset) > 1 {
		verb, which = "are", "their defaults"
	}
	a.result.Warnings = append(a.result.Warnings, fmt.Sprintf("%s: %s %s not in the document and set to %s",
		place(item.Line, item.At), strings.Join(reset, ", "), verb, which))
}
