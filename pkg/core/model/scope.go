package model

import (
	"maps"
	"slices"
)

// On returns a service as a proxy serves it: with the filters of the proxy that apply to it, before its own. It is t
// itself if there are none. Routes of before, an earlier result, are kept where nothing changed.
//
// What a filter of a proxy does is therefore what the same filter does on each service, protections included.
func (t *ServiceTree) On(p *ProxyTree, before *ServiceTree) *ServiceTree {
	outer := outerFilters(p.Filters, t)
	if len(outer) == 0 {
		return t
	}
	on := *t
	on.Filters = slices.Concat(outer, t.Filters)
	on.Named = joinNamed(t.Named, p.FilterNamed)
	kept := map[*RouteTree]*RouteTree{}
	if before != nil && slices.Equal(before.Filters, on.Filters) {
		for _, r := range before.Routes {
			kept[r.base] = r
		}
	}
	on.Routes = make([]*RouteTree, len(t.Routes))
	for i, r := range t.Routes {
		named := joinNamed(r.Named, p.FilterNamed)
		if k := kept[r]; k != nil && maps.Equal(k.Named, named) {
			on.Routes[i] = k
			continue
		}
		route := *r
		route.ServiceFilters, route.Named, route.base = on.Filters, named, r
		on.Routes[i] = &route
	}
	return &on
}

// Has reports whether a filter is attached to the proxy.
func (p *ProxyTree) Has(filter string) bool {
	return slices.ContainsFunc(p.Filters, func(f *ParsedFilter) bool { return f.Name == filter })
}

// outerFilters returns those filters of a proxy that apply to a service.
func outerFilters(filters []*ParsedFilter, t *ServiceTree) []*ParsedFilter {
	return slices.DeleteFunc(slices.Clone(filters), func(f *ParsedFilter) bool {
		replaced := slices.ContainsFunc(t.Filters, func(own *ParsedFilter) bool {
			return own.Name == f.Name || Replaces(own.Type, f.Type)
		})
		// Of the known types, only this one looks at connections. One that is not known closes the service.
		_, known := findType(filterTypes(), f.Type)
		isForRequests := t.Service.IsL4() && known && f.Type != FilterIPAccess
		return replaced || isForRequests || slices.Contains(t.Service.ExemptFilters, f.Name)
	})
}

func joinNamed(a, b map[Key]Object) map[Key]Object {
	if len(b) == 0 {
		return a
	}
	all := maps.Clone(b)
	if all == nil {
		all = map[Key]Object{}
	}
	maps.Copy(all, a)
	return all
}

// Combines reports whether all filters of a type apply to a request: those of the proxy, of the service and of the
// route. Otherwise the innermost replace the others.
func Combines(filterType string) bool {
	t, _ := findType(filterTypes(), filterType)
	return t.addsUp || t.joins
}

// Replaces reports whether a filter of a service is used instead of one of its proxy, by their types. A filter for a
// credential replaces those that a route's own one replaces.
func Replaces(own, outer string) bool {
	switch own {
	case outer:
		return !Combines(own)
	case FilterAnyOf:
		return asksWho(outer) || outer == FilterAPIKey
	case FilterAPIKey:
		return outer == FilterAnyOf
	}
	return asksWho(own) && asksWho(outer)
}

// asksWho reports whether filters of a type decide who a client is, so that only one of them can be in a place.
func asksWho(filterType string) bool {
	return slices.Contains([]string{FilterOIDC, FilterJWT, FilterBasicAuth, FilterAnyOf}, filterType)
}
