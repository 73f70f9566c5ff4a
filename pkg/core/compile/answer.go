package compile

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// answers reports whether a filter answers requests itself.
func answers(f *model.ParsedFilter) bool { return model.Answers(f.Type) }

// isAnswered reports whether a filter of the route or of its service answers the route's requests.
func isAnswered(t *model.RouteTree) bool {
	return slices.ContainsFunc(t.Filters, answers) || slices.ContainsFunc(t.ServiceFilters, answers)
}

// isForwarded reports whether a filter of the route or of its service sets the clusters of the route.
func isForwarded(t *model.RouteTree) bool {
	forwards := func(f *model.ParsedFilter) bool {
		sets := func(ft filterType) bool { return ft.Forwards && ft.name == f.Type }
		return f.Fault == nil && slices.ContainsFunc(types, sets)
	}
	return slices.ContainsFunc(t.Filters, forwards) || slices.ContainsFunc(t.ServiceFilters, forwards)
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

// Clash returns the conflict if filters cannot be in one place. The text follows the name of the object with the
// filters. Empty means no conflict.
func Clash(filters []*model.ParsedFilter) string {
	what := SecondAnswer(filters)
	for _, ft := range types {
		if what == "" && ft.Clash != nil {
			what = ft.Clash(filters)
		}
	}
	return what
}
