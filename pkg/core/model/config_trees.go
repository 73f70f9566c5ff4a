package model

import (
	"cmp"
	"slices"
)

// rebuildService makes a new tree and keeps the route trees that did not
// change.
func (c *Config) rebuildService(name string, changed *ReachedService) {
	key := ServiceKey(name)
	svc, ok := c.objects[key].(*Service)
	if !ok {
		delete(c.services, name)
		return
	}
	tree := &ServiceTree{Service: svc}
	for k := range c.children[key].all {
		switch k.Kind {
		case KindServiceFilter:
			tree.Filters = appendObject(tree.Filters, c, k.Attached())
		case KindServiceSecret:
			tree.Secrets = appendObject(tree.Secrets, c, k.Attached())
		}
	}
	sortByName(tree.Filters)
	sortByName(tree.Secrets)
	c.addAutomatic(tree)
	tree.ClientCA, _ = c.objects[SecretKey(svc.ClientCACertificate)].(*Secret)
	tree.Named = c.namedBy(tree.Filters)
	old := map[string]*RouteTree{}
	before := c.services[name]
	if before != nil && !changed.EveryRoute {
		for _, r := range before.plain().Routes {
			old[r.Route.Name] = r
		}
	}
	for k := range c.children[key].all {
		if k.Kind != KindRoute {
			continue
		}
		if o, ok := c.objects[k].(*Route); ok {
			have := old[o.Name]
			if have == nil || changed.Routes[o.Name] {
				have = c.buildRoute(k, o, tree.Filters)
			}
			tree.Routes = append(tree.Routes, have)
		}
	}
	slices.SortFunc(tree.Routes, func(a, b *RouteTree) int { return cmp.Compare(a.Route.ID, b.Route.ID) })
	c.services[name] = tree.spread(nil, nil, before)
}

func (c *Config) buildRoute(key Key, route *Route, ofService []*ParsedFilter) *RouteTree {
	tree := &RouteTree{Route: route, ServiceFilters: ofService}
	for k := range c.children[key].all {
		switch k.Kind {
		case KindRouteUpstream:
			tree.Upstreams = appendObject(tree.Upstreams, c, k.Attached())
		case KindRouteFilter:
			tree.Filters = appendObject(tree.Filters, c, k.Attached())
		}
	}
	for _, u := range tree.Upstreams {
		for _, name := range u.Names() {
			if s, ok := c.objects[name].(*Secret); ok {
				if tree.Secrets == nil {
					tree.Secrets = map[string]*Secret{}
				}
				tree.Secrets[s.Name] = s
			}
		}
	}
	sortByName(tree.Upstreams)
	sortByName(tree.Filters)
	tree.Named = c.namedBy(ofService, tree.Filters)
	return tree
}

// appendObject adds the object of a key, where there is one.
func appendObject[T Object](list []T, c *Config, key Key) []T {
	if o, ok := c.objects[key].(T); ok {
		list = append(list, o)
	}
	return list
}

func sortByName[T Object](list []T) {
	slices.SortFunc(list, func(a, b T) int { return cmp.Compare(a.Key().Name(), b.Key().Name()) })
}

// globalConfigs returns those that hold for a proxy, sorted by name.
func (c *Config) globalConfigs(proxy string) []*ParsedGlobalConfig {
	var list []*ParsedGlobalConfig
	for key, g := range c.globals {
		_, own := c.objects[ProxyGlobalConfigKey(proxy, g.Name)]
		if own || c.children[key].len() == 0 {
			list = append(list, g)
		}
	}
	sortByName(list)
	return list
}

func (c *Config) rebuildProxy(name string) {
	key := ProxyKey(name)
	proxy, ok := c.objects[key].(*Proxy)
	if !ok {
		delete(c.proxies, name)
		return
	}
	var links []*ProxyService
	var filters []*ParsedFilter
	for k := range c.children[key].all {
		if l, ok := c.objects[k].(*ProxyService); ok {
			links = append(links, l)
		}
		if k.Kind == KindProxyFilter {
			filters = appendObject(filters, c, k.Attached())
		}
	}
	sortByName(filters)
	slices.SortFunc(links, func(a, b *ProxyService) int { return cmp.Compare(a.ID, b.ID) })
	tree := &ProxyTree{Proxy: proxy, GlobalConfigs: c.globalConfigs(name), Filters: filters, FilterNamed: c.namedBy(filters)}
	for _, l := range links {
		tree.Services = append(tree.Services, l.Service)
	}
	var names []Key
	for _, g := range tree.GlobalConfigs {
		names = append(names, g.Names()...)
	}
	tree.Named = c.findNamed(names)
	c.proxies[name] = tree
}
