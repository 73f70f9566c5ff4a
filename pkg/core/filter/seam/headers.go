package seam

import (
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// ChangesOf returns changes of headers in the order in which they are made.
func ChangesOf(c model.HeaderChanges) []ir.HeaderChange {
	var list []ir.HeaderChange
	for _, name := range c.Remove {
		list = append(list, ir.HeaderChange{Action: ir.HeaderRemove, Name: strings.ToLower(name)})
	}
	return slices.Concat(list, headerValues(ir.HeaderSet, c.Set), headerValues(ir.HeaderAdd, c.Add))
}

func headerValues(action ir.HeaderAction, values map[string]string) []ir.HeaderChange {
	list := make([]ir.HeaderChange, 0, len(values))
	for name, value := range values {
		list = append(list, ir.HeaderChange{Action: action, Name: strings.ToLower(name), Value: value})
	}
	slices.SortFunc(list, func(a, b ir.HeaderChange) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// HeaderOption returns the message for a change that sets or adds a value.
func HeaderOption(c ir.HeaderChange) *corev3.HeaderValueOption {
	value := c.Value
	if !c.Template { // Envoy reads text between percent signs as a command.
		value = strings.ReplaceAll(value, "%", "%%")
	}
	option := SetHeader(c.Name, value)
	if c.Action == ir.HeaderAdd {
		option.AppendAction = corev3.HeaderValueOption_APPEND_IF_EXISTS_OR_ADD
	}
	return option
}
