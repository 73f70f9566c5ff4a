package store

import (
	"fmt"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// This file has the rules between objects for services of a mode other than http.

// checkL4 applies the rules for an object that is, or belongs to, such a service.
func checkL4(r Reader, obj model.Object) error {
	switch o := obj.(type) {
	case *model.Proxy:
		return checkPortsOf(r, o)
	case *model.Service:
		return checkMode(r, o)
	case *model.Filter:
		return checkFilterFitsL4(r, o)
	case *model.Route:
		return checkRouteOf(r, o)
	}
	key := obj.Key()
	if root := key.Root(); key.Kind == root.Kind || root.Kind != model.KindService {
		return nil
	}
	svc, err := Get[*model.Service](r, key.Root())
	if err != nil || !svc.IsL4() {
		return err
	}
	switch o := obj.(type) {
	case *model.RouteFilter, *model.ServiceFilter:
		f, err := Get[*model.Filter](r, key.Attached())
		if err != nil {
			return err
		}
		if why := f.L4Refusal(); why != "" {
			return &model.Error{Kind: model.Unworkable, Path: key.Path(), Message: filterRefusal(f, svc, why), Hint: hintFilters}
		}
	case *model.ServiceSecret:
		if why := svc.SecretRefusal(); why != "" {
			return &model.Error{Kind: model.Unworkable, Path: key.Path(), Message: fmt.Sprintf("service %q %s", svc.Name, why)}
		}
	case *model.RouteUpstream:
		u, err := Get[*model.Upstream](r, model.UpstreamKey(o.Upstream))
		if err != nil {
			return err
		}
		if why := svc.UpstreamRefusal(u); why != "" {
			return &model.Error{Kind: model.Unworkable, Path: key.Path(), Message: fmt.Sprintf("upstream %q %s", u.Name, why)}
		}
	}
	return nil
}

const hintFilters = "only filters of type " + model.FilterIPAccess + " work for connections"

func filterRefusal(f *model.Filter, svc *model.Service, why string) string {
	return fmt.Sprintf("filter %q %s, and service %q is of mode %s", f.Name, why, svc.Name, svc.Mode)
}

// checkRouteOf refuses what a route of such a service cannot have, and a second one.
func checkRouteOf(r Reader, route *model.Route) error {
	svc, err := Get[*model.Service](r, model.ServiceKey(route.Service))
	if err != nil || !svc.IsL4() {
		return err
	}
	if fields := route.ValidateL4(); len(fields) > 0 {
		return &model.Error{
			Kind: model.Unworkable, Path: route.Key().Path(), Fields: fields,
			Message: fmt.Sprintf("service %q is of mode %s", svc.Name, svc.Mode),
		}
	}
	others, err := List[*model.Route](r, Query{Kind: model.KindRoute, To: []model.Key{svc.Key()}, Limit: 2})
	for _, other := range others {
		if other.Name != route.Name {
			return &model.Error{
				Kind: model.Unworkable, Path: route.Key().Path(),
				Message: fmt.Sprintf("service %q is of mode %s, and has route %q already: connections take one way", svc.Name, svc.Mode, other.Name),
				Hint:    "attach the upstreams to that route",
			}
		}
	}
	return err
}

// checkMode refuses a mode that does not go with what the service has.
func checkMode(r Reader, svc *model.Service) error {
	if !svc.IsL4() {
		return nil
	}
	old, err := Get[*model.Service](r, svc.Key())
	if model.IsKind(err, model.NotFound) || err == nil && old.Mode == svc.Mode {
		return nil
	}
	if err != nil {
		return err
	}
	return checkParts(r, svc)
}

// checkParts refuses a mode other than http for a service that has what this mode cannot have.
func checkParts(r Reader, svc *model.Service) error {
	var wrong []string
	to := []model.Key{svc.Key()}
	routes, err := List[*model.Route](r, Query{Kind: model.KindRoute, To: to, Limit: 2})
	if err != nil {
		return err
	}
	if len(routes) > 1 {
		wrong = append(wrong, "it has more than one route")
	}
	filters := []model.Object{}
	for _, route := range routes {
		for _, f := range route.ValidateL4() {
			wrong = append(wrong, fmt.Sprintf("%s of route %q %s", f.Field, route.Name, f.Message))
		}
		ups, err := List[*model.RouteUpstream](r, Query{Kind: model.KindRouteUpstream, To: []model.Key{route.Key()}})
		if err != nil {
			return err
		}
		for _, l := range ups {
			u, err := Get[*model.Upstream](r, model.UpstreamKey(l.Upstream))
			if err != nil {
				return err
			}
			if why := svc.UpstreamRefusal(u); why != "" {
				wrong = append(wrong, fmt.Sprintf("upstream %q %s", u.Name, why))
			}
		}
		more, err := r.List(Query{Kind: model.KindRouteFilter, To: []model.Key{route.Key()}})
		if err != nil {
			return err
		}
		filters = append(filters, more...)
	}
	more, err := r.List(Query{Kind: model.KindServiceFilter, To: to})
	if err != nil {
		return err
	}
	for _, link := range append(filters, more...) {
		f, err := Get[*model.Filter](r, link.Key().Attached())
		if err != nil {
			return err
		}
		if why := f.L4Refusal(); why != "" {
			wrong = append(wrong, filterRefusal(f, svc, why))
		}
	}
	secrets, err := r.List(Query{Kind: model.KindServiceSecret, To: to, Limit: 1})
	if err != nil {
		return err
	}
	if why := svc.SecretRefusal(); why != "" && len(secrets) > 0 {
		wrong = append(wrong, "it "+why)
	}
	if len(wrong) == 0 {
		return nil
	}
	return &model.Error{
		Kind: model.Unworkable, Path: svc.Key().Path(),
		Message: fmt.Sprintf("service %q cannot be of mode %s: %s", svc.Name, svc.Mode, strings.Join(wrong, "; ")),
		Hint:    "change or detach these first",
		Fields:  []model.FieldError{{Field: "Mode", Message: "does not go with what the service has"}},
	}
}

// checkFilterFitsL4 refuses what does not work for connections to which the filter is attached.
func checkFilterFitsL4(r Reader, f *model.Filter) error {
	why := f.L4Refusal()
	if why == "" {
		return nil
	}
	old, err := Get[*model.Filter](r, f.Key())
	if model.IsKind(err, model.NotFound) || err == nil && old.L4Refusal() != "" {
		return nil
	}
	if err != nil {
		return err
	}
	for _, kind := range []model.Kind{model.KindServiceFilter, model.KindRouteFilter} {
		links, err := r.List(Query{Kind: kind, To: []model.Key{f.Key()}})
		if err != nil {
			return err
		}
		for _, link := range links {
			svc, err := Get[*model.Service](r, link.Key().Root())
			if err != nil {
				return err
			}
			if svc.IsL4() {
				return &model.Error{Kind: model.Unworkable, Path: f.Key().Path(), Message: filterRefusal(f, svc, why), Hint: hintFilters}
			}
		}
	}
	return nil
}

// checkPort refuses a service that a proxy cannot have on its port, or beside another of its services.
func checkPort(r Reader, proxy string, svc *model.Service) error {
	p, err := Get[*model.Proxy](r, model.ProxyKey(proxy))
	if err != nil {
		return err
	}
	refuse := func(why, hint string) error {
		e := &model.Error{
			Kind: model.Unworkable, Path: model.ProxyServiceKey(proxy, svc.Name).Path(),
			Message: fmt.Sprintf("proxy %q cannot serve service %q, which %s", proxy, svc.Name, why), Hint: hint,
		}
		if svc.IsL4() {
			e.Fields = []model.FieldError{{Field: "Port", Message: "the service " + why}}
		}
		return e
	}
	if why := p.PortRefusal(svc); why != "" {
		return refuse(why, "choose another port")
	}
	others, err := neighbors(r, p, svc)
	if err != nil {
		return err
	}
	ports := map[string]bool{}
	for _, other := range others {
		if svc.IsL4() || other.IsL4() {
			if why := p.Clash(svc, other); why != "" {
				return refuse(why, "detach that service first, or change one of the two")
			}
		}
		if port, transport, own := p.Port(other); own {
			ports[fmt.Sprint(transport, port)] = true
		}
	}
	if port, transport, own := p.Port(svc); own && len(ports) >= model.MaxL4Ports && !ports[fmt.Sprint(transport, port)] {
		return refuse(fmt.Sprintf("wants another port, and %d is the most that a proxy has", model.MaxL4Ports), "detach another service first")
	}
	return nil
}

// neighbors returns the services of a proxy that a service may clash with: those with the same host, and those with a
// port.
func neighbors(r Reader, p *model.Proxy, svc *model.Service) ([]*model.Service, error) {
	all, err := r.ServicesOf(svc.FQDN)
	if err != nil {
		return nil, err
	}
	if svc.IsL4() {
		ported, err := r.PortedServices()
		if err != nil {
			return nil, err
		}
		all = append(all, ported...)
	}
	seen := map[string]bool{svc.Name: true}
	var list []*model.Service
	for _, other := range all {
		if seen[other.Name] {
			continue
		}
		seen[other.Name] = true
		_, err := r.Get(model.ProxyServiceKey(p.Name, other.Name))
		if err == nil {
			list = append(list, other)
		} else if !model.IsKind(err, model.NotFound) {
			return nil, err
		}
	}
	return list, nil
}

// checkPortsOf refuses ports for HTTP that a service of the proxy has.
func checkPortsOf(r Reader, p *model.Proxy) error {
	old, err := Get[*model.Proxy](r, p.Key())
	if model.IsKind(err, model.NotFound) || err == nil && old.HTTPPort == p.HTTPPort && old.HTTPSPort == p.HTTPSPort {
		return nil
	}
	if err != nil {
		return err
	}
	ported, err := r.PortedServices()
	if err != nil {
		return err
	}
	for _, svc := range ported {
		if _, err := r.Get(model.ProxyServiceKey(p.Name, svc.Name)); model.IsKind(err, model.NotFound) {
			continue
		} else if err != nil {
			return err
		}
		why := p.PortRefusal(svc)
		others, err := neighbors(r, p, svc)
		if err != nil {
			return err
		}
		for _, other := range others {
			if why == "" {
				why = p.Clash(svc, other)
			}
		}
		if why != "" {
			return &model.Error{
				Kind: model.Unworkable, Path: p.Key().Path(),
				Message: fmt.Sprintf("proxy %q serves service %q, which %s", p.Name, svc.Name, why), Hint: "choose another port",
			}
		}
	}
	return nil
}
