package pipeline

import (
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// applyListener builds the listener of a proxy for the services that it serves.
func (b *Build) applyListener(tree *model.ProxyTree, p *proxy, services []string) {
	// A proxy whose listener Envoy would refuse has none, and serves nothing.
	p.needs = b.needsOf(p, services...)
	p.limits = limits.OfProxy(tree, p.needs.RateLimitDomains)
	l4 := b.l4Of(p, tree, services)
	p.hasL4, p.passes, p.l4 = b.hasL4(p, services...), b.passes(p, services), l4.Conditions
	listeners, named, err := p.encoded.encode(b.listeners(tree, p, services, l4), l4.Listeners, tree.Proxy.Key(), b.secrets)
	told := compile.TelemetryOf(tree, b.settings)
	p.untold = slices.Concat(told.Conditions, compile.NotFirst(tree),
		compile.NoHTTP3(tree, certificatesOf(p.certificates)))
	p.refused = nil
	if err != nil {
		p.refused = &model.Condition{
			Key: tree.Proxy.Key(), Code: model.Quarantined, Message: "Envoy would refuse the listener: " + err.Error(),
		}
	}
	named.Lists = b.listKeys(p)
	named.Wants = snapshot.Wants{Country: p.needs.Countries, ASN: p.needs.Networks, Logs: told.Files()}
	p.builder.SetListeners(listeners, named)
	versions := ""
	for _, l := range listeners {
		versions += l.Version
	}
	if p.listeners != versions {
		p.listeners, p.relistened = versions, b.Revision()
	}
}

// encodedListeners are what the listeners of a proxy became. Most changes of a proxy, such as another service, change no
// listener, and encoding one takes longer than the rest of a small change.
type encodedListeners struct {
	from      []ir.Listener
	l4        []*ir.L4Listener
	listeners []*snapshot.Resource
	named     snapshot.Named
}

// encode encodes listeners, unless they are those of the last call.
func (e *encodedListeners) encode(
	from []ir.Listener, l4 []*ir.L4Listener, of model.Key, secrets *secretCache,
) ([]*snapshot.Resource, snapshot.Named, error) {
	if e.from != nil && reflect.DeepEqual(e.from, from) && reflect.DeepEqual(e.l4, l4) {
		return e.listeners, e.named, nil
	}
	listeners, named, err := encodeListeners(from, l4, of, newClusterCache(secrets))
	if *e = (encodedListeners{}); err == nil {
		*e = encodedListeners{from, l4, listeners, named}
	}
	return listeners, named, err
}

// listeners returns the listeners of a proxy that serves the services.
func (b *Build) listeners(tree *model.ProxyTree, p *proxy, services []string, l4 compile.L4) []ir.Listener {
	needs := p.needs
	list := []ir.Listener{compile.Listener(tree, b.settings, needs)}
	for _, set := range needs.KeySets {
		list[0].Keys = append(list[0].Keys, credential.Keys(b.config.Keys(set))...)
	}
	for _, set := range needs.AnyKeySets {
		list[0].AnyKeys = append(list[0].AnyKeys, credential.Keys(b.config.Keys(set))...)
	}
	if needs.Consumers {
		list[0].Consumers = credential.Consumers(b.config.Consumers())
	}
	list[0].AddressLists = b.addressLists(needs.AddressLists)
	https := b.httpsListener(tree, p, needs, services, l4)
	list = append(list, compile.MoreListeners(tree.Proxy, &list[0], https)...)
	if https == nil {
		return list
	}
	list = append(list, *https)
	if l := compile.HTTP3Listener(https, certificatesOf(p.certificates)); l != nil {
		list = append(list, *l)
	}
	return list
}

// httpsListener returns the HTTPS listener; nil if the proxy has none.
func (b *Build) httpsListener(tree *model.ProxyTree, p *proxy, needs ir.Needs, services []string, l4 compile.L4) *ir.Listener {
	only := !needs.HTTPS
	needs.HTTPS = needs.HTTPS || len(l4.Passthrough) > 0
	names := b.namesBeside(p, needs, services)
	l := compile.HTTPSListener(tree, b.settings, needs, names)
	if l != nil && len(l4.Passthrough) > 0 {
		l.TLS.Only = only
		l.TLS.Passthrough, l.TLS.Beside = l4.Passthrough, b.hostsBeside(p, l4.Passthrough, services, names)
	}
	return l
}

// namesBeside returns the hosts of services with a certificate but without their own chain
// that are below the wildcards of chains, sorted.
func (b *Build) namesBeside(p *proxy, needs ir.Needs, services []string) []string {
	if !needs.HasWildcard() {
		return nil
	}
	return b.hosts(p, services, func(s *service) bool { return s.needs.HTTPS })
}

// hostsBeside returns the hosts of services without their own chain, and not among those of namesBeside, that are below
// the wildcards of services that do not decrypt, sorted: such a service gets no connection for another one's host, even
// for a host without a certificate.
func (b *Build) hostsBeside(p *proxy, passthrough []*ir.L4Service, services, names []string) []string {
	var suffixes []string
	taken := map[string]bool{} // by an older service
	for _, s := range passthrough {
		taken[s.ServerNames[0]] = true
		if suffix, wild := strings.CutPrefix(s.ServerNames[0], "*"); wild {
			suffixes = append(suffixes, suffix)
		}
	}
	if len(suffixes) == 0 {
		return nil
	}
	return b.hosts(p, services, func(s *service) bool {
		return !taken[s.parts.Domain] && !slices.Contains(names, s.parts.Domain) &&
			slices.ContainsFunc(suffixes, func(suffix string) bool { return strings.HasSuffix(s.parts.Domain, suffix) })
	})
}

// hosts returns the hosts of services for requests without their own chain, sorted.
func (b *Build) hosts(p *proxy, services []string, which func(*service) bool) []string {
	var names []string
	for _, name := range services {
		if s := b.serviceOn(p, name); s != nil && s.host != nil && len(s.needs.Chains) == 0 && s.parts != nil &&
			s.parts.Domain != "*" && which(s) {
			names = append(names, s.parts.Domain)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
