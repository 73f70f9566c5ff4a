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
	outer := slices.DeleteFunc(slices.Clone(p.Filters), func(f *ParsedFilter) bool {
		// Of the known types, only this one looks at connections. One that is not known closes the service.
		_, known := findType(filterTypes(), f.Type)
		isForRequests := t.Service.IsL4() && known && f.Type != FilterIPAccess
		return isForRequests || slices.Contains(t.Service.ExemptFilters, f.Name)
	})
	on := t.plain().spread(outer, p.FilterNamed, before)
	if !slices.ContainsFunc(outer, func(f *ParsedFilter) bool {
		return slices.Contains(on.Filters, f) || slices.ContainsFunc(on.Routes, func(r *RouteTree) bool { return slices.Contains(r.Filters, f) })
	}) {
		return t
	}
	return on
}

// plain returns the tree without filters of a proxy and without exemptions.
func (t *ServiceTree) plain() *ServiceTree {
	if t.base != nil {
		return t.base
	}
	return t
}

// spread returns a plain tree with outer, filters of a proxy, before its own, and with the exemptions of its routes. It
// is t itself without either.
//
// A host has no filters of which a route is exempt: the types of such filters move from the host to the routes, each of
// which has those that apply to it, before its own. So a filter does on them what a filter of a route does.
func (t *ServiceTree) spread(outer []*ParsedFilter, named map[Key]Object, before *ServiceTree) *ServiceTree {
	all := t.applying(outer, nil)
	apart := map[string]bool{}
	lists := make([][]*ParsedFilter, len(t.Routes))
	for i, r := range t.Routes {
		lists[i] = all
		if r.Route.Config.Exempt != nil {
			lists[i] = t.applying(outer, r.Route.Config.Exempt)
			for _, f := range slices.Concat(without(all, lists[i]), without(lists[i], all)) {
				apart[f.Type] = true
			}
		}
	}
	if len(outer)+len(apart) == 0 {
		return t
	}
	isApart := func(f *ParsedFilter) bool { return apart[f.Type] }
	isNot := func(f *ParsedFilter) bool { return !apart[f.Type] }
	on := *t
	on.base = t
	on.Filters = slices.DeleteFunc(slices.Clone(all), isApart)
	on.Apart = slices.DeleteFunc(slices.Clone(all), isNot)
	on.Named = joinNamed(t.Named, named)
	kept := map[*RouteTree]*RouteTree{}
	if before != nil {
		for _, r := range before.Routes {
			kept[r.base] = r
		}
	}
	on.Routes = make([]*RouteTree, len(t.Routes))
	for i, r := range t.Routes {
		route := *r
		route.base, route.ServiceFilters, route.Apart, route.Named = r, on.Filters, on.Apart, joinNamed(r.Named, named)
		moved := slices.DeleteFunc(slices.Clone(lists[i]), isNot)
		route.Filters = slices.Concat(unreplaced(moved, r.Filters), r.Filters)
		if k := kept[r]; k != nil && slices.Equal(k.Filters, route.Filters) && slices.Equal(k.ServiceFilters, route.ServiceFilters) &&
			maps.Equal(k.Named, route.Named) {
			on.Routes[i] = k
			continue
		}
		on.Routes[i] = &route
	}
	return &on
}

// applying returns the filters of a proxy and the service's own that apply to a route with an exemption; nil is none.
func (t *ServiceTree) applying(outer []*ParsedFilter, e *Exempt) []*ParsedFilter {
	own := t.Filters
	if e != nil {
		own, outer = e.apply(e.Service, own), e.apply(e.Proxy, outer)
	}
	return slices.Concat(unreplaced(outer, own), own)
}

// apply returns the filters without those that have one of the names. Filters for whole services have no exemptions.
func (e *Exempt) apply(names []string, filters []*ParsedFilter) []*ParsedFilter {
	return slices.DeleteFunc(slices.Clone(filters), func(f *ParsedFilter) bool {
		return slices.Contains(names, f.Name) && f.FitsOn(KindRoute)
	})
}

// unreplaced returns those of outer that apply beside filters further in.
func unreplaced(outer, inner []*ParsedFilter) []*ParsedFilter {
	return slices.DeleteFunc(slices.Clone(outer), func(f *ParsedFilter) bool {
		return slices.ContainsFunc(inner, func(own *ParsedFilter) bool {
			both := Alone(own.Type) == answering && Alone(f.Type) == answering
			return own.Name == f.Name || both || Replaces(own.Type, f.Type)
		})
	})
}

// without returns the filters of a list that are not in another one.
func without(list, other []*ParsedFilter) []*ParsedFilter {
	return slices.DeleteFunc(slices.Clone(list), func(f *ParsedFilter) bool { return slices.Contains(other, f) })
}

// Has reports whether a filter is attached to the proxy.
func (p *ProxyTree) Has(filter string) bool {
	return slices.ContainsFunc(p.Filters, func(f *ParsedFilter) bool { return f.Name == filter })
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
