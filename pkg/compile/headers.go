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
	return &ir.Headers{
		Request:  append(headers.Request, headerChanges(f.Request)...),
		Response: append(headers.Response, headerChanges(f.Response)...),
	}
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
