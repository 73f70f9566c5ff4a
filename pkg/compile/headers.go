package compile

import (
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

func addHostHeaders(h *ir.Host, f *model.HeadersFilter, _ Place) error {
	h.Headers = withHeaders(h.Headers, f)
	return nil
}

func addRouteHeaders(r *ir.Route, f *model.HeadersFilter) { r.Headers = withHeaders(r.Headers, f) }

// withHeaders returns the changes of headers and f.
func withHeaders(headers *ir.Headers, f *model.HeadersFilter) *ir.Headers {
	if headers == nil {
		headers = &ir.Headers{}
	}
	request, response := headerChanges(f.Request), headerChanges(f.Response)
	if f.Template {
		request, response = templates(request, "REQ"), templates(response, "RESP")
	}
	return &ir.Headers{Request: append(headers.Request, request...), Response: append(headers.Response, response...)}
}

func headerChanges(c model.HeaderChanges) []ir.HeaderChange {
	var list []ir.HeaderChange
	for _, name := range c.Remove {
		list = append(list, ir.HeaderChange{Action: ir.HeaderRemove, Name: strings.ToLower(name)})
	}
	list = append(list, headerValues(ir.HeaderSet, c.Set)...)
	return append(list, headerValues(ir.HeaderAdd, c.Add)...)
}

func headerValues(action ir.HeaderAction, values map[string]string) []ir.HeaderChange {
	list := make([]ir.HeaderChange, 0, len(values))
	for name, value := range values {
		list = append(list, ir.HeaderChange{Action: action, Name: strings.ToLower(name), Value: value})
	}
	slices.SortFunc(list, func(a, b ir.HeaderChange) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// templates returns changes whose values are templates. command is the one that copies a header of the changed message.
func templates(changes []ir.HeaderChange, command string) []ir.HeaderChange {
	list := make([]ir.HeaderChange, 0, len(changes))
	for _, c := range changes {
		// Envoy leaves a header as it is if its new value is empty: a client could then choose it.
		if c.Action == ir.HeaderSet && !model.TemplateCopies(c.Value, command, c.Name) {
			list = append(list, ir.HeaderChange{Action: ir.HeaderRemove, Name: c.Name})
		}
		if c.Action != ir.HeaderRemove {
			c.Value, c.Template = model.BoundedTemplate(c.Value), true
		}
		list = append(list, c)
	}
	return list
}
