package pipeline

import (
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
)

// Gateway returns what the Envoys of a proxy must do, from what the build
// keeps; nil if the proxy does not exist. It omits a service that is not served
// because another one has the same host.
func (b *Build) Gateway(proxy string) *ir.Gateway {
	p := b.proxies[proxy]
	if p == nil {
		return nil
	}
	g := &ir.Gateway{Name: proxy, Listener: compile.Listener(b.config.Proxy(proxy), b.settings, p.needs)}
	tree := b.config.Proxy(proxy)
	l4 := b.l4Of(p, tree, tree.Services)
	g.HTTPS, g.L4 = b.httpsListener(tree, p, p.needs, tree.Services, l4), l4.Listeners
	g.More = compile.MoreListeners(tree.Proxy, &g.Listener, g.HTTPS)
	g.HTTP3 = compile.HTTP3Listener(g.HTTPS, certificatesOf(p.certificates))
	lost := p.builder.Conflicts()
	for _, name := range slices.Sorted(maps.Keys(p.services)) {
		s := b.serviceOn(p, name)
		if _, taken := lost[name]; taken || s == nil || s.parts == nil || s.l4 != nil {
			continue
		}
		whole := *s.host
		host := &whole
		of := b.treeOn(p, name)
		if p.login != nil && p.login.err == nil && credential.TakesGlobalLogin(of) {
			_ = p.login.login.AddTo(host) // p.closed has the error
		}
		first := compile.ChallengeRoutes(b.config.Service(name))
		host.First = slices.Concat(first, compile.PlainRoutes(of.Service, tree.Proxy))
		if _, closed := p.closed[name]; closed || s.closed {
			host = &ir.Host{Name: host.Name, Domain: host.Domain, First: first, Routes: []*ir.Route{compile.UnavailableRoute()}}
		}
		host.Counted = p.counted
		g.Hosts = append(g.Hosts, host)
	}
	for _, r := range p.builder.Snapshot(b.Revision()).Endpoints {
		a := *b.assign(r.Objects).ir
		a.Name = r.Name // clusters for the calls of filters share the endpoints
		g.Assignments = append(g.Assignments, &a)
	}
	return g
}
