package build

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/ratelimit/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// Build keeps the configuration and what was made of it, and rebuilds only
// what a change touches. It belongs to one goroutine.
type Build struct {
	settings compile.Settings
	head     *snapshot.RouteHead
	config   *model.Config
	loaded   bool
	services map[string]*service
	proxies  map[string]*proxy
	limits   rateLimits
}

// service is what was made of one service.
type service struct {
	parts  *snapshot.Parts
	routes map[*model.RouteTree]*route
	// needs is what its routes need of the listener.
	needs ir.Needs
	// closed says that none of its routes is served.
	closed bool
}

// route is what was made of one route.
type route struct {
	ir        *ir.Route
	encoded   *snapshot.Route
	clusters  []*snapshot.Resource
	condition *model.Condition
	// err says that not even a fixed answer can be made for the route.
	err error
}

// proxy is what was made of one proxy.
type proxy struct {
	builder  *snapshot.Builder
	services map[string]struct{}
	// closed says why no service is served; nil means that all are. refused says
	// why there is no listener.
	closed, refused *model.Condition
	// globals hold for the proxy; limits are what counts there.
	globals []*model.ParsedGlobalConfig
	limits  limits.Proxy
	// needs is what the routes of its services need of the listener.
	needs ir.Needs
	// listener is the version of the listener, and relistened the revision at
	// which it changed.
	listener   string
	relistened int64
}

// Result is what an Apply has made.
type Result struct {
	// Snapshots by proxy; nil means that the proxy is gone.
	Snapshots map[string]*snapshot.Snapshot
	// Conditions by source; an empty list means that there are none any more.
	Conditions map[string][]model.Condition
	// RateLimits are the domains that the rate-limit engine has to know; nil
	// means that they are as they were.
	RateLimits []*limits.Domain
}

// NewBuild returns a build of the empty configuration.
func NewBuild(settings compile.Settings) (*Build, error) {
	unavailable, err := translate.Route(compile.UnavailableRoute())
	if err != nil {
		return nil, err
	}
	head, err := snapshot.NewRouteHead(translate.RouteConfiguration(), unavailable)
	if err != nil {
		return nil, err
	}
	return &Build{
		settings: settings, head: head, config: model.NewConfig(),
		services: map[string]*service{}, proxies: map[string]*proxy{}, limits: newRateLimits(),
	}, nil
}

// Revision is the revision of the configuration; 0 before the first change.
func (b *Build) Revision() int64 { return b.config.Revision }

// Apply brings the configuration to the change's revision and returns what is
// different.
func (b *Build) Apply(change model.Change) Result {
	touched := b.config.Apply(change)
	all := change.Full || !b.loaded
	b.loaded = true
	result := Result{Snapshots: map[string]*snapshot.Snapshot{}, Conditions: map[string][]model.Condition{}}
	dirty := map[string]*proxy{}
	relisten := map[string]*model.ProxyTree{}

	for i, built := range b.buildServices(touched.Services) {
		name := touched.Services[i]
		b.limits.due[name] = struct{}{}
		needed := b.needsOf(name)
		parts := b.applyService(name, built)
		result.Conditions["service "+name] = built.conditions
		needsChanged := !needed.Equal(b.needsOf(name))
		for _, p := range b.config.ProxiesOf(name) {
			if state := b.proxies[p]; state != nil && state.closed == nil {
				state.services[name] = struct{}{}
				state.builder.SetHost(name, parts)
				dirty[p] = state
				if needsChanged {
					relisten[p] = b.config.Proxy(p)
				}
			}
		}
	}
	for _, name := range touched.Proxies {
		tree := b.config.Proxy(name)
		delete(relisten, name)
		if tree == nil {
			if state := b.proxies[name]; state != nil {
				b.limits.servicesMoved(state.services, nil)
			}
			delete(b.proxies, name)
			delete(dirty, name)
			result.Snapshots[name] = nil
			result.Conditions["proxy "+name] = nil
			continue
		}
		dirty[name] = b.applyProxy(tree)
	}
	for name, tree := range relisten {
		b.applyListener(tree, b.proxies[name], tree.Services)
	}
	b.adviseServices(&result)
	for name, state := range dirty {
		result.Snapshots[name] = state.builder.Snapshot(change.Revision)
		conditions := conflicts(name, state.builder.Conflicts())
		for _, c := range []*model.Condition{state.closed, state.refused} {
			if c != nil {
				conditions = append(conditions, *c)
			}
		}
		result.Conditions["proxy "+name] = conditions
	}
	if b.limits.apply(change, b.config) || all {
		b.collectDomains(&result)
	}
	return result
}

// builtService is a service and its conditions; nil means that it is gone.
type builtService struct {
	service    *service
	conditions []model.Condition
}

// buildServices builds services, each by itself and several at a time.
func (b *Build) buildServices(names []string) []builtService {
	list := make([]builtService, len(names))
	in := builder{newClusterCache(), b.settings.Upstreams}
	inParallel(len(names), func(i int) {
		if tree := b.config.Service(names[i]); tree != nil {
			list[i].service, list[i].conditions = buildService(tree, b.services[names[i]], b.head, in)
		}
	})
	return list
}

// applyService puts a service in the place of what it was, or forgets it.
func (b *Build) applyService(name string, built builtService) *snapshot.Parts {
	if built.service == nil {
		delete(b.services, name)
		return nil
	}
	b.services[name] = built.service
	return built.service.parts
}

// applyProxy brings one proxy's listeners and list of hosts up to date.
func (b *Build) applyProxy(tree *model.ProxyTree) *proxy {
	name := tree.Proxy.Name
	p := b.proxies[name]
	if p == nil {
		p = &proxy{builder: snapshot.NewBuilder(b.head)}
		b.proxies[name] = p
	}
	services := tree.Services
	if p.closed = compile.ClosedProxy(tree); p.closed != nil {
		services = nil
	}
	before := p.limits
	b.applyListener(tree, p, services)
	wanted := map[string]struct{}{}
	for _, s := range services {
		if built := b.services[s]; built != nil {
			wanted[s] = struct{}{}
			if _, have := p.services[s]; !have {
				p.builder.SetHost(s, built.parts)
			}
		}
	}
	for s := range p.services {
		if _, keep := wanted[s]; !keep {
			p.builder.SetHost(s, nil)
		}
	}
	b.limits.servicesMoved(p.services, wanted)
	if !slices.Equal(p.globals, tree.GlobalConfigs) {
		b.limitsChanged(wanted, before, p.limits)
	}
	p.services, p.globals = wanted, tree.GlobalConfigs
	return p
}

// applyListener builds the listener of a proxy for the services that it
// serves.
func (b *Build) applyListener(tree *model.ProxyTree, p *proxy, services []string) {
	// Without a listener the proxy serves nothing, which is what is left of one
	// that Envoy would refuse.
	p.needs = b.needsOf(services...)
	p.limits = limits.OfProxy(tree, p.needs.RateLimitDomains)
	version := ""
	if l, named, err := encodeListener(compile.Listener(tree, b.settings, p.needs), tree.Proxy.Key()); err == nil {
		p.builder.SetListeners([]*snapshot.Resource{l}, named)
		p.refused, version = nil, l.Version
	} else {
		p.builder.SetListeners(nil, snapshot.Named{})
		p.refused = &model.Condition{
			Key: tree.Proxy.Key(), Code: model.Quarantined, Message: "Envoy would refuse the listener: " + err.Error(),
		}
	}
	if p.listener != version {
		p.listener, p.relistened = version, b.Revision()
	}
}

// needsOf is what the routes of services need of the listener.
func (b *Build) needsOf(services ...string) ir.Needs {
	var needs ir.Needs
	for _, name := range services {
		if s := b.services[name]; s != nil {
			needs = needs.Merge(s.needs)
		}
	}
	return needs
}

func conflicts(proxy string, lost map[string]string) []model.Condition {
	var list []model.Condition
	for _, name := range slices.Sorted(maps.Keys(lost)) {
		list = append(list, model.Condition{
			Key: model.ProxyServiceKey(proxy, name), Code: model.HostConflict,
			Message: fmt.Sprintf("service %q has the same host and is served instead", lost[name]),
		})
	}
	return list
}

// buildService builds a service and keeps the routes that did not change.
func buildService(tree *model.ServiceTree, old *service, head *snapshot.RouteHead, in builder) (*service, []model.Condition) {
	s := &service{routes: make(map[*model.RouteTree]*route, len(tree.Routes))}
	byIR := make(map[*ir.Route]*route, len(tree.Routes))
	host := compile.Host(tree, func(t *model.RouteTree) *ir.Route {
		var r *route
		if old != nil {
			r = old.routes[t]
		}
		if r == nil {
			r = in.route(t)
		}
		s.routes[t] = r
		byIR[r.ir] = r
		return r.ir
	})
	var conditions []model.Condition
	encoded := make([]*snapshot.Route, 0, len(host.Routes))
	clusters := map[string]*snapshot.Resource{}
	var broken error
	for _, r := range host.Routes {
		r := byIR[r]
		if r.condition != nil {
			conditions = append(conditions, *r.condition)
		}
		if r.err != nil {
			broken = r.err
		}
		encoded = append(encoded, r.encoded)
		for _, c := range r.clusters {
			clusters[c.Name] = c
		}
	}
	s.needs = compile.Needs(host)
	s.parts = &snapshot.Parts{Domain: host.Domain, Order: tree.Service.ID}
	if broken == nil {
		s.parts.Host, broken = encodeHost(host, encoded, tree.Service.Key())
	}
	closed := compile.ClosedHost(tree)
	if broken != nil {
		closed = &model.Condition{
			Key: tree.Service.Key(), Code: model.Quarantined, Message: "Envoy would refuse the service: " + broken.Error(),
		}
	}
	if closed != nil {
		s.closed = true
		s.close(tree, host, head)
		return s, append(conditions, *closed)
	}
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		s.parts.Clusters = append(s.parts.Clusters, clusters[name])
	}
	return s, conditions
}

// close makes the host answer 503 to everything: an open door would be worse.
// Where not even that can be given, the host is left out.
func (s *service) close(tree *model.ServiceTree, host *ir.Host, head *snapshot.RouteHead) {
	bare, err := encodeHost(&ir.Host{Name: host.Name, Domain: host.Domain}, nil, tree.Service.Key())
	if err != nil {
		s.parts = nil
		return
	}
	s.parts.Host = head.Unavailable(bare)
}

// builder makes routes.
type builder struct {
	clusters *clusterCache
	// upstreams are the addresses that upstreams may have.
	upstreams egress.Lists
}

// route makes one route. What Envoy would refuse becomes a fixed 503.
func (b builder) route(t *model.RouteTree) *route {
	r := &route{}
	r.ir, r.condition = compile.Route(t, b.upstreams)
	refusal := r.encode(b.clusters)
	if refusal == nil {
		return r
	}
	r.ir, r.condition = compile.Unavailable(t, model.Quarantined, "would be refused by Envoy: "+refusal.Error())
	r.err = r.encode(b.clusters)
	return r
}
