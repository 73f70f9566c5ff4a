package compile

import (
	"fmt"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// filterType is what filters of one type do. A nil hook does nothing.
type filterType struct {
	name string
	// takes reports whether a configuration has the Go type of the hooks. Any other type
	// closes the object that the filter is on.
	takes func(model.Spec) bool
	// host adds a filter of a service to its host. An error is the reason why it cannot, and
	// closes the service. If host is nil, filters of the service are added to each of its
	// routes, before the route's own.
	host func(*ir.Host, model.Spec, Place) error
	// route adds a filter to a route. The route may already answer itself. An error is the
	// reason why the filter cannot be added, and closes the route.
	route func(*ir.Route, model.Spec, Place) error
	// together means that filters of the service and of the route both apply, although in ir
	// the route's settings replace the host's. So a route with its own filters also receives
	// those of the service.
	together bool
	// needs returns what a route needs from the listener.
	needs func(*ir.Route) ir.Needs
}

// filterTypes returns the types in the order in which filters are added. A filter of any other
// type closes the object that it is on: otherwise its protection would be missing unnoticed.
func filterTypes() []filterType {
	return []filterType{
		filterOf(model.FilterDirectResponse, nil, addDirectResponse, nil),
		filterOf(model.FilterRedirect, nil, addRedirect, nil),
		filterOf(model.FilterCanary, nil, addCanary, nil),
		filterOf(model.FilterAffinity, nil, addAffinity, nil),
		namingFilterOf(model.FilterMirror, nil, addMirror),
		filterOf(model.FilterHostRewrite, nil, addHostRewrite, nil),
		filterOf(model.FilterCORS, nil, addRouteCORS, nil),
		filterOf(model.FilterCSRF, addHostCSRF, addRouteCSRF, nil),
		filterOf(model.FilterOIDC, addLogin, nil, nil),
		namingFilterOf(model.FilterJWT, addHostJWT, addRouteJWT),
		filterOf(model.FilterRateLimit, nil, addRateLimits, rateLimitNeeds),
		filterOf(model.FilterIPAccess, addHostIPAccess, addRouteIPAccess, nil),
		filterOf(model.FilterRBAC, addHostAccess, addRouteAccess, nil),
		filterOf(model.FilterMaintenance, addMaintenance, nil, nil),
		filterOf(model.FilterCompress, addHostCompress, addRouteCompress, nil),
		filterOf(model.FilterBodyLimit, nil, addBodyLimit, nil),
		filterOf(model.FilterFault, addHostFault, addRouteFault, nil),
		namingFilterOf(model.FilterAPIKey, addHostKeys, addRouteKeys),
		namingFilterOf(model.FilterBasicAuth, addHostBasicAuth, addRouteBasicAuth),
		namingFilterOf(model.FilterAnyOf, addHostAnyOf, addRouteAnyOf),
		namingFilterOf(model.FilterExtAuthz, addHostExtAuthz, addRouteExtAuthz),
		namingFilterOf(model.FilterExtProc, addHostExtProc, addRouteExtProc),
		namingFilterOf(model.FilterLua, addHostLua, addRouteLua),
		filterOf(model.FilterGRPCWeb, nil, addGRPCWeb, nil),
		namingFilterOf(model.FilterGRPCJSON, nil, addGRPCJSON),
		filterOf(model.FilterHeaders, addHostHeaders, addRouteHeaders, nil),
	}
}

// filterOf returns the type whose configuration has type S.
func filterOf[S model.Spec](name string, host func(*ir.Host, S, Place) error, route func(*ir.Route, S), needs func(*ir.Route) ir.Needs) filterType {
	ft := namingFilterOf(name, host, func(r *ir.Route, s S, _ Place) error {
		route(r, s)
		return nil
	})
	if route == nil {
		ft.route = nil
	}
	ft.needs = needs
	return ft
}

// namingFilterOf is filterOf for a type whose hooks need the objects that the configuration
// names.
func namingFilterOf[S model.Spec](name string, host func(*ir.Host, S, Place) error, route func(*ir.Route, S, Place) error) filterType {
	return filterType{name: name, host: placed(host), route: placed(route), together: model.AddsUp(name), takes: func(spec model.Spec) bool { _, ok := spec.(S); return ok }}
}

// placed turns a hook for type S into a hook for any configuration.
func placed[T any, S model.Spec](add func(T, S, Place) error) func(T, model.Spec, Place) error {
	if add == nil {
		return nil
	}
	return func(to T, spec model.Spec, at Place) error {
		if s, ok := spec.(S); ok {
			return add(to, s, at)
		}
		return nil
	}
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
		{name: model.GlobalConfigOAuth}, // see GlobalLogin
		{name: model.GlobalConfigRateLimit, listener: addRateLimitServices},
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
	if what := Clash(t.Filters); what != "" {
		return &model.Condition{Key: t.Service.Key(), Code: model.Quarantined, Message: "the service " + what + " and answers 503"}
	}
	if most, wrong := MaxRoutes(t.Filters); wrong != "" && len(t.Routes) > most {
		return &model.Condition{Key: t.Service.Key(), Code: model.Quarantined, Message: "the service " + wrong + " and answers 503"}
	}
	types := filterTypes()
	for _, f := range t.Filters {
		message := ""
		if what := fault(f, types); what != "" {
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
func fault(f *model.ParsedFilter, types []filterType) string {
	at := slices.IndexFunc(types, func(ft filterType) bool { return ft.name == f.Type })
	switch {
	case at < 0:
		return fmt.Sprintf("has filter %s of type %q, which this version does not support,", f.Name, f.Type)
	case f.Fault != nil:
		return fmt.Sprintf("has filter %s, which cannot be read (%s),", f.Name, f.Fault)
	case !types[at].takes(f.Spec):
		return fmt.Sprintf("has filter %s, whose configuration is not that of a %s,", f.Name, f.Type)
	}
	return ""
}

// faultOnRoute is fault for a filter on a route.
func faultOnRoute(f *model.ParsedFilter, types []filterType) string {
	if what := fault(f, types); what != "" {
		return what
	}
	if !slices.ContainsFunc(types, func(ft filterType) bool { return ft.name == f.Type && ft.route != nil }) {
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
	types := filterTypes()
	for _, f := range t.Filters {
		if what := faultOnRoute(f, types); what != "" {
			return what
		}
	}
	ofService := t.ServiceFilters
	if slices.ContainsFunc(t.Filters, answers) {
		ofService = slices.DeleteFunc(slices.Clone(ofService), answers)
	}
	for _, ft := range types {
		own := t.Filters
		if ft.host == nil || ft.together && slices.ContainsFunc(own, func(f *model.ParsedFilter) bool { return f.Type == ft.name }) {
			if what := ft.addTo(r, ofService, t, s); what != "" {
				return what
			}
			// A filter that is on the service has already been added to this route.
			own = slices.DeleteFunc(slices.Clone(own), func(f *model.ParsedFilter) bool { return slices.Contains(ofService, f) })
		}
		if what := ft.addTo(r, own, t, s); what != "" {
			return what
		}
	}
	return ""
}

// addHostFilters adds the filters of a service that work per host. It returns why one cannot
// be enforced. The service must then answer 503.
func addHostFilters(h *ir.Host, t *model.ServiceTree, s Settings) *model.Condition {
	for _, ft := range filterTypes() {
		for _, f := range t.Filters {
			if ft.host == nil || f.Type != ft.name || f.Fault != nil {
				continue
			}
			if err := ft.host(h, f.Spec, Place{Key: f.Key(), Named: t.Named, Settings: s}); err != nil {
				return &model.Condition{
					Key: model.ServiceFilterKey(t.Service.Name, f.Name), Code: model.Quarantined,
					Message: "filter " + f.Name + " cannot be enforced: " + err.Error() + ". The service answers 503 and lets nobody in",
				}
			}
		}
	}
	return nil
}

// addTo adds those of filters that have the type. It returns what is wrong with one of them.
func (ft filterType) addTo(r *ir.Route, filters []*model.ParsedFilter, t *model.RouteTree, s Settings) (what string) {
	for _, f := range filters {
		if ft.route == nil || f.Type != ft.name || f.Fault != nil {
			continue
		}
		if err := ft.route(r, f.Spec, Place{Key: f.Key(), Named: t.Named, Settings: s}); err != nil {
			return fmt.Sprintf("has filter %s, which cannot be enforced (%s),", f.Name, err)
		}
	}
	return ""
}

// Needs returns what a service needs from the listeners. h is its host.
func Needs(h *ir.Host, t *model.ServiceTree, pairs []*ir.Pair) ir.Needs {
	needs := tlsNeeds(h, t.ClientCA, pairs).Merge(keyNeeds(h))
	for _, ft := range filterTypes() {
		for _, r := range h.Routes {
			if ft.needs != nil {
				needs = needs.Merge(ft.needs(r))
			}
		}
	}
	return needs
}
