package compile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// answers reports whether a filter answers requests itself.
func answers(f *model.ParsedFilter) bool { return model.Answers(f.Type) }

// isAnswered reports whether a filter of the route or of its service answers the route's requests.
func isAnswered(t *model.RouteTree) bool {
	return slices.ContainsFunc(t.Filters, answers) || slices.ContainsFunc(t.ServiceFilters, answers)
}

// SecondAnswer returns the conflict if two filters do what only one can, such as to answer: it would be
// undefined which one does. The text follows the name of the object with the filters. Empty means no conflict.
func SecondAnswer(filters []*model.ParsedFilter) string {
	first := map[string]string{}
	for _, f := range filters {
		what := model.Alone(f.Type)
		if other := first[what]; what != "" && other != "" {
			return fmt.Sprintf("has filters %s and %s, of which only one can %s,", other, f.Name, what)
		}
		first[what] = f.Name
	}
	return ""
}

func addDirectResponse(r *ir.Route, f *model.DirectResponseFilter) {
	r.Respond = &ir.Respond{Status: f.Status, Body: f.Body, Headers: headerValues(ir.HeaderSet, f.Headers)}
	if f.ContentType != "" {
		r.Respond.Headers = append(r.Respond.Headers, ir.HeaderChange{Action: ir.HeaderSet, Name: "content-type", Value: f.ContentType})
	}
}

func addRedirect(r *ir.Route, f *model.RedirectFilter) {
	r.Redirect = &ir.Redirect{
		Status: f.Code, Scheme: f.Scheme, Host: strings.ToLower(strings.Trim(f.Host, "[]")), Port: f.Port, Path: f.Path,
		Rewrite: ir.Rewrite{Prefix: f.Prefix, Regex: f.Regex, Substitution: f.Substitution}, StripQuery: f.StripQuery,
	}
}
