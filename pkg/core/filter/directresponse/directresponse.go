// Package directresponse is route_filter_directresponse: it answers with a fixed text. Envoy's router does that, so
// there is no filter on the listener.
package directresponse

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// Filter returns the filter.
func Filter() seam.Filter {
	return seam.Filter{Type: model.FilterDirectResponse, Config: seam.Hooks(nil, answer)}
}

func answer(r *ir.Route, f *model.DirectResponseFilter, _ seam.Place) error {
	headers := make([]ir.HeaderChange, 0, len(f.Headers)+1)
	for name, value := range f.Headers {
		headers = append(headers, ir.HeaderChange{Action: ir.HeaderSet, Name: strings.ToLower(name), Value: value})
	}
	slices.SortFunc(headers, func(a, b ir.HeaderChange) int { return strings.Compare(a.Name, b.Name) })
	// A refusal without a content type is the gateway's own (translate.ownAnswers).
	if f.ContentType != "" || f.Status >= http.StatusBadRequest {
		headers = append(headers, ir.HeaderChange{
			Action: ir.HeaderSet, Name: "content-type", Value: cmp.Or(f.ContentType, "text/plain"),
		})
	}
	r.Respond = &ir.Respond{Status: f.Status, Body: f.Body, Headers: headers}
	return nil
}
