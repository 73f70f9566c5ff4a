package compile

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// filterType is what filters of one type do.
type filterType struct {
	*seam.Config
	name string
	// together means that filters of the service and of the route both apply, although in ir the route's settings replace
	// the host's. So a route with its own filters also receives those of the service.
	together bool
}

// types are in the order in which filters are added. A filter of any other type closes the object that
// it is on: otherwise its protection would be missing unnoticed.
var types = filterTypes() //nolint:gochecknoglobals // never written: a constant, which every route iterates

// filterTypes returns those of pkg/core/filter, after rate limits, whose package is pkg/core/limits.
func filterTypes() []filterType {
	list := []filterType{{Config: rateLimits(), name: model.FilterRateLimit}}
	for _, f := range filter.Configs() {
		list = append(list, filterType{Config: f.Config, name: f.Type})
	}
	for i := range list {
		list[i].together = model.AddsUp(list[i].name)
	}
	return list
}

// globalConfigType is what global configs of one type do.
type globalConfigType struct {
	name string
	// listener adds the global configs of a proxy to its listener. The needs are those of the
	// routes.
	listener func(*ir.Listener, *model.ProxyTree, Settings, ir.Needs)
}

func globalConfigTypes() []globalConfigType {
	return []globalConfigType{
		{name: model.GlobalConfigOAuth}, // see credential.GlobalLogin
		{name: model.GlobalConfigRateLimit, listener: addRateLimitServices},
		{name: model.GlobalConfigGlobals, listener: addGlobals},
		{name: model.GlobalConfigTracing}, // see addTelemetry
		{name: model.GlobalConfigAccessLog, listener: addTelemetry},
		{name: model.GlobalConfigRefusals, listener: addRefusalPage},
		{name: model.GlobalConfigProxyProtocol, listener: addProxyProtocol},
		{name: model.GlobalConfigConnections, listener: addConnections},
		{name: model.GlobalConfigGeoIP, listener: addLocationHeaders},
		{name: model.GlobalConfigMetrics, listener: addMetrics},
		{name: model.GlobalConfigACME}, // see pkg/trust/acme
	}
}

// ClosedHost returns why a whole service must not be served: it has a filter that cannot be
// enforced, or cannot verify clients as required. Nil means that it may be served.
func ClosedHost(t *model.ServiceTree) *model.Condition {
	if ca := t.Service.ClientCACertificate; ca != "" {
		why := ""
		switch {
		case t.ClientCA == nil || t.ClientCA.Cert == "":
			why = "secret " + ca + " has no certificate authority"
		case Domain(t.Service) == "*":
			why = "it is for every host, and client certificates are requested by host name"
		}
		if why != "" {
			return &model.Condition{
				Key: t.Service.Key(), Code: model.Quarantined,
				Message: "the service cannot request client certificates: " + why + ". It answers 503 and lets nobody in",
			}
		}
	}
	if what := Clash(slices.Concat(t.Filters, t.Apart)); what != "" {
		return &model.Condition{Key: t.Service.Key(), Code: model.Quarantined, Message: "the service " + what + " and answers 503"}
	}
	if most, wrong := MaxRoutes(slices.Concat(t.Filters, t.Apart)); wrong != "" && len(t.Routes) > most {
		return &model.Condition{Key: t.Service.Key(), Code: model.Quarantined, Message: "the service " + wrong + " and answers 503"}
	}
	for _, f := range t.Filters {
		message := ""
		if what := fault(f); what != "" {
			message = "the service " + what + " and answers 503"
		}
		if message != "" {
			return &model.Condition{Key: model.ServiceFilterKey(t.Service.Name, f.Name), Code: model.Quarantined, Message: message}
		}
	}
	return nil
}

// fault returns why a filter cannot be enforced, in words that follow the name of the object
// that it is on. Empty means that it can.
func fault(f *model.ParsedFilter) string {
	at := slices.IndexFunc(types, func(ft filterType) bool { return ft.name == f.Type })
	switch {
	case at < 0:
		return fmt.Sprintf("has filter %s of type %q, which this version does not support,", f.Name, f.Type)
	case f.Fault != nil:
		return fmt.Sprintf("has filter %s, which cannot be read (%s),", f.Name, f.Fault)
	case !types[at].Takes(f.Spec):
		return fmt.Sprintf("has filter %s, whose configuration is not that of a %s,", f.Name, f.Type)
	}
	return ""
}

// faultOnRoute is fault for a filter on a route.
func faultOnRoute(f *model.ParsedFilter) string {
	if what := fault(f); what != "" {
		return what
	}
	if !slices.ContainsFunc(types, func(ft filterType) bool { return ft.name == f.Type && ft.Route != nil }) {
		return fmt.Sprintf("has filter %s of type %q, which works for whole services only,", f.Name, f.Type)
	}
	return ""
}

// addFilters adds the filters of a route, and those of its service that are combined with them
// or work per route. It returns what is wrong if one cannot be added.
func addFilters(r *ir.Route, t *model.RouteTree, s Settings) (what string) {
	if len(t.ServiceFilters)+len(t.Filters) == 0 {
		return ""
	}
	for _, f := range t.Filters {
		if what := faultOnRoute(f); what != "" {
			return what
		}
	}
	ofService := t.ServiceFilters
	if slices.ContainsFunc(t.Filters, answers) {
		ofService = slices.DeleteFunc(slices.Clone(ofService), answers)
	}
	for _, ft := range types {
		if ft.Last {
			if what := ft.addLast(r, ft.Route, t, s); what != "" {
				return what
			}
			continue
		}
		own := t.Filters
		if ft.Host == nil || ft.together && slices.ContainsFunc(own, func(f *model.ParsedFilter) bool { return f.Type == ft.name }) {
			if what := ft.addTo(r, ft.Route, ofService, t, s); what != "" {
				return what
			}
			// A filter that is on the service has already been added to this route.
			own = slices.DeleteFunc(slices.Clone(own), func(f *model.ParsedFilter) bool { return slices.Contains(ofService, f) })
		}
		if what := ft.addTo(r, ft.Route, own, t, s); what != "" {
			return what
		}
	}
	r.Filters = withLists(r.Filters, t.Filters, t.ServiceFilters...)
	return ""
}

// MaxRoutes returns how many routes a service with these filters may have, and what is wrong with more, in words that
// follow the name of the service; empty means that any number is allowed.
func MaxRoutes(filters []*model.ParsedFilter) (most int, wrong string) {
	for _, f := range filters {
		for _, ft := range types {
			if ft.MaxRoutes == nil || f.Type != ft.name || f.Fault != nil {
				continue
			}
			if most, wrong = ft.MaxRoutes(f); wrong != "" {
				return most, wrong
			}
		}
	}
	return 0, ""
}

// conflict returns why a route cannot have one of its filters beside its own configuration, in words that follow the
// name of the route. Empty means no conflict.
func conflict(t *model.RouteTree) string {
	for _, ft := range types {
		if ft.Conflict != nil {
			if what := ft.Conflict(t); what != "" {
				return what
			}
		}
	}
	return ""
}

// finish completes a route, after all filters. As with answers, the last filter is the first. It returns what is wrong
// if it cannot.
func finish(r *ir.Route, t *model.RouteTree, s Settings) (what string) {
	for _, ft := range slices.Backward(types) {
		if what := ft.addLast(r, ft.Finish, t, s); what != "" {
			return what
		}
	}
	return ""
}

// addHostFilters adds the filters of a service that work per host. It returns why one cannot
// be enforced. The service must then answer 503.
func addHostFilters(h *ir.Host, t *model.ServiceTree, s Settings) *model.Condition {
	for _, ft := range types {
		for _, f := range t.Filters {
			if ft.Host == nil || f.Type != ft.name || f.Fault != nil {
				continue
			}
			if err := ft.Host(h, f.Spec, Places(t.Named, s)(f.Key())); err != nil {
				return &model.Condition{
					Key: model.ServiceFilterKey(t.Service.Name, f.Name), Code: model.Quarantined,
					Message: "filter " + f.Name + " cannot be enforced: " + err.Error() + ". The service answers 503 and lets nobody in",
				}
			}
		}
	}
	h.Filters = withLists(h.Filters, t.Filters)
	return nil
}

// addLast is addTo for the last filter of the type on a route, or else on its service; for all of them if there may be
// several.
func (ft filterType) addLast(
	r *ir.Route, add func(*ir.Route, model.Spec, seam.Place) error, t *model.RouteTree, s Settings,
) (what string) {
	if add == nil {
		return ""
	}
	others := func(f *model.ParsedFilter) bool { return f.Type != ft.name }
	chosen := slices.DeleteFunc(slices.Clone(t.Filters), others)
	if len(chosen) == 0 {
		chosen = slices.DeleteFunc(slices.Clone(t.ServiceFilters), others)
	}
	if len(chosen) > 1 && !ft.Several {
		chosen = chosen[len(chosen)-1:]
	}
	return ft.addTo(r, add, chosen, t, s)
}

// addTo adds those of filters that have the type. It returns what is wrong with one of them.
func (ft filterType) addTo(
	r *ir.Route, add func(*ir.Route, model.Spec, seam.Place) error, filters []*model.ParsedFilter,
	t *model.RouteTree, s Settings,
) (what string) {
	for _, f := range filters {
		if add == nil || f.Type != ft.name || f.Fault != nil {
			continue
		}
		if err := add(r, f.Spec, Places(t.Named, s)(f.Key())); err != nil {
			return fmt.Sprintf("has filter %s, which cannot be enforced (%s),", f.Name, err)
		}
	}
	return ""
}

// Needs returns what a service needs from the listeners. h is its host.
func Needs(h *ir.Host, t *model.ServiceTree, pairs []*ir.Pair) ir.Needs {
	needs := tlsNeeds(h, t.ClientCA, pairs).Merge(listNeeds(h))
	needs.Ports = slices.ContainsFunc(h.Routes, func(r *ir.Route) bool { return len(r.Match.Ports) > 0 })
	for _, ft := range types {
		if ft.Needs != nil {
			needs = needs.Merge(ft.Needs(h))
		}
	}
	return needs
}
