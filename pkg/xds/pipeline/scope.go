package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// This file is for filters of a proxy. A service that they apply to is built again for the proxy, as if the filters
// were its own (ADR 0122).

// scopedService is a service as one proxy serves it.
type scopedService struct {
	tree    *model.ServiceTree
	service *service
	// conditions are what is wrong with it.
	conditions []model.Condition
}

// serviceOn returns a service as a proxy serves it; nil if there is none.
func (b *Build) serviceOn(p *proxy, name string) *service {
	if p != nil && p.scoped[name] != nil {
		return p.scoped[name].service
	}
	return b.services[name]
}

// treeOn returns the tree that serviceOn was built from.
func (b *Build) treeOn(p *proxy, name string) *model.ServiceTree {
	if s := p.scoped[name]; s != nil {
		return s.tree
	}
	return b.config.Service(name)
}

// rescope builds services again on the proxies whose filters apply to them. It returns the proxies of which they now
// need something else.
func (b *Build) rescope(services []string) (relisten []string) {
	of := map[string][]string{}
	for _, name := range services {
		for _, p := range b.config.ProxiesOf(name) {
			if b.proxies[p] != nil {
				of[p] = append(of[p], name)
			}
		}
	}
	for p, names := range of {
		if b.scope(b.proxies[p], b.config.Proxy(p), names...) {
			relisten = append(relisten, p)
		}
	}
	return relisten
}

// scopeAll builds the services of a proxy with its filters. It does nothing, and returns false, unless the filters
// or the list of services changed.
func (b *Build) scopeAll(p *proxy, t *model.ProxyTree) (filtersChanged bool) {
	filtersChanged = !slices.Equal(p.filters, t.Filters) || !maps.Equal(p.filterNamed, t.FilterNamed)
	p.filters, p.filterNamed = t.Filters, t.FilterNamed
	if len(t.Filters)+len(p.scoped) == 0 {
		return filtersChanged
	}
	var names []string
	for _, name := range t.Services {
		if _, have := p.services[name]; filtersChanged || !have {
			names = append(names, name)
		}
	}
	b.scope(p, t, names...)
	return filtersChanged
}

// scope builds services of a proxy with its filters. It reports whether they need something else of the listeners than
// before.
func (b *Build) scope(p *proxy, t *model.ProxyTree, names ...string) (needsChanged bool) {
	if t == nil || len(t.Filters)+len(p.scoped) == 0 {
		return false
	}
	list := make([]*scopedService, len(names))
	in := builder{newClusterCache(b.secrets), b.settings}
	inParallel(len(names), func(i int) {
		base, before := b.config.Service(names[i]), p.scoped[names[i]]
		if base == nil {
			return
		}
		var tree *model.ServiceTree
		var built *service
		if before != nil {
			tree, built = before.tree, before.service
		}
		if tree = base.On(t, tree); tree != base {
			list[i] = &scopedService{tree: tree}
			list[i].service, list[i].conditions = buildService(tree, built, b.head, in)
		}
	})
	for i, name := range names {
		before, was := p.scoped[name].needs()
		p.unscope(name)
		if s := list[i]; s != nil {
			p.scoped[name] = s
			if len(s.conditions) > 0 {
				p.troubled[name] = s
			}
		}
		after, is := p.scoped[name].needs()
		needsChanged = needsChanged || was || is || !before.Equal(after)
	}
	return needsChanged
}

// needs returns what the service needs of listeners, and whether it is for connections. A nil service needs nothing.
func (s *scopedService) needs() (needs ir.Needs, l4 bool) {
	if s == nil {
		return needs, false
	}
	return s.service.needs, s.service.l4 != nil
}

// unscope forgets that filters of the proxy apply to a service.
func (p *proxy) unscope(name string) {
	delete(p.scoped, name)
	delete(p.troubled, name)
}

// scopeConditions returns what is wrong with services on a proxy because of its filters. A filter that closes them has
// one condition, whatever their number.
func (b *Build) scopeConditions(p *proxy) (list []model.Condition) {
	closing := map[model.Key]int{}
	for _, name := range slices.Sorted(maps.Keys(p.troubled)) {
		var known []model.Condition
		if s := b.services[name]; s != nil {
			known = s.conditions
		}
		for _, c := range p.troubled[name].conditions {
			switch filter := c.Key.Attached(); {
			case slices.ContainsFunc(known, func(k model.Condition) bool { return k.Key == c.Key && k.Message == c.Message }):
			case c.Key.Kind == model.KindServiceFilter && b.config.Proxy(p.name).Has(filter.Name()):
				c.Key = model.ProxyFilterKey(p.name, filter.Name())
				if closing[c.Key]++; closing[c.Key] == 1 {
					list = append(list, c)
				}
			case len(list) < mostScopeConditions:
				c.Message, c.Proxies = fmt.Sprintf("with the filters of proxy %q, %s", p.name, c.Message), []string{p.name}
				list = append(list, c)
			}
		}
	}
	for _, f := range p.filters {
		if f.Type == model.FilterRateLimit {
			scope := []limits.Scope{{Proxy: b.config.Proxy(p.name), Limits: p.limits}}
			list = append(list, limits.NewAdvisor().Advise(model.ProxyFilterKey(p.name, f.Name), f, true, scope)...)
		}
	}
	for i, c := range list {
		if n := closing[c.Key]; n > 0 {
			list[i].Message = fmt.Sprintf("on %d services of proxy %q: %s", n, p.name, c.Message)
		}
	}
	return list
}

// mostScopeConditions bounds the conditions of services on a proxy that their filters and those of the proxy cause
// together.
const mostScopeConditions = 100
