package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// Build keeps the configuration and what was built from it, and rebuilds only what a
// change affects. It is not safe for concurrent use.
type Build struct {
	settings compile.Settings
	head     *snapshot.RouteHead
	jwt      *snapshot.ExtensionHead
	config   *model.Config
	loaded   bool
	services map[string]*service
	proxies  map[string]*proxy
	limits   rateLimits
	secrets  *secretCache
	// assignments are the assignments of discovered upstreams, by upstream. joined are those of
	// clusters of several, by cluster, as far as the last Apply needed them.
	assignments, joined map[string]*assignment
}

// service is the result for one service.
type service struct {
	parts *snapshot.Parts
	// host is what the parts were made from. l4 is set in its place for a service of a mode other than http.
	host   *ir.Host
	l4     *ir.L4Service
	routes map[*model.RouteTree]*route
	// needs is what its routes need from the listener.
	needs ir.Needs
	// closed means that none of its routes is served.
	closed bool
	// plain sets what happens to plain HTTP. It differs from proxy to proxy.
	plain *model.Service
	// conditions are what is wrong with it.
	conditions []model.Condition
}

// route is the result for one route.
type route struct {
	ir        *ir.Route
	encoded   []*snapshot.Route
	named     snapshot.Named
	condition *model.Condition
	// unverified are the conditions for upstreams whose certificate is not verified.
	unverified []model.Condition
	// err means that not even a fixed response can be built for the route.
	err error
}

// proxy is the result for one proxy.
type proxy struct {
	name     string
	builder  *snapshot.Builder
	services map[string]struct{}
	// refused is why there is no listener; nil means that there is one.
	refused *model.Condition
	// l4 are the conditions of services whose port another one has.
	l4 []model.Condition
	// untold says why global configs send no spans or logs, and show no page.
	untold []model.Condition
	// login applies to its services; nil means none. It was made from logins. closed
	// contains, by service, why it cannot be enforced.
	login  *globalLogin
	logins globalLogins
	closed map[string]model.Condition
	// scoped are the services to which filters of the proxy apply. filters are those filters, and filterNamed is what they
	// name.
	scoped      map[string]*scopedService
	troubled    map[string]*scopedService // those of scoped with conditions
	filters     []*model.ParsedFilter
	filterNamed map[model.Key]model.Object
	// counted means that its hosts have what metrics need.
	counted bool
	// globals are the global configs of the proxy. limits are its rate limits.
	globals []*model.ParsedGlobalConfig
	limits  limits.Proxy
	// needs is what the routes of its services need from the listener.
	needs    ir.Needs
	keyLists keyLists
	// hasL4 means that it has services of a mode other than http. passes means that some have names: then a host of
	// another service may change the listener.
	hasL4, passes bool
	// certificates are those of the listener of HTTP/3; nil if the proxy has none.
	certificates []*snapshot.Certificate
	encoded      encodedListeners
	// listeners are the versions of the listeners. relistened is the revision at which one
	// last changed.
	listeners  string
	relistened int64
	// httpPort and httpsPort are the ports for which its services were built.
	httpPort, httpsPort int
}

// Result is the result of Apply.
type Result struct {
	// Snapshots are by proxy; nil means that the proxy was deleted.
	Snapshots map[string]*snapshot.Snapshot
	// Conditions are by source; an empty list means that there are none left.
	Conditions map[string][]model.Condition
	// RateLimits are the domains that the rate-limit engine needs; nil means that they did
	// not change.
	RateLimits []*limits.Domain
}

// NewBuild returns a build of the empty configuration.
func NewBuild(settings compile.Settings) (*Build, error) {
	unavailable, err := translate.Route(compile.UnavailableRoute())
	if err != nil {
		return nil, err
	}
	head, err := snapshot.NewRouteHead(translate.RouteConfiguration(), unavailable,
		&snapshot.SecretHost{Host: credential.KeeperHost(), Route: credential.KeeperRoute})
	if err != nil {
		return nil, err
	}
	jwt, err := snapshot.NewExtensionHead(seam.TokenFilter, credential.ClosedTokenChecks())
	if err != nil {
		return nil, err
	}
	return &Build{
		settings: settings, head: head, jwt: jwt, config: model.NewConfig(),
		services: map[string]*service{}, proxies: map[string]*proxy{}, limits: newRateLimits(), secrets: newSecretCache(),
		assignments: map[string]*assignment{}, joined: map[string]*assignment{},
	}, nil
}

// Revision returns the revision of the configuration; 0 before the first change.
func (b *Build) Revision() int64 { return b.config.Revision }

// Apply brings the configuration to the change's revision and returns what changed.
func (b *Build) Apply(change model.Change) Result {
	touched := b.config.Apply(change)
	all := change.Full || !b.loaded
	b.loaded = true
	result := Result{Snapshots: map[string]*snapshot.Snapshot{}, Conditions: map[string][]model.Condition{}}
	dirty := map[string]*proxy{}
	relisten := map[string]*model.ProxyTree{}

	for _, p := range b.rescope(touched.Services) {
		relisten[p] = b.config.Proxy(p)
	}
	for i, built := range b.buildServices(touched.Services) {
		name := touched.Services[i]
		b.limits.due[name] = struct{}{}
		needed, l4 := b.needsOf(nil, name), b.hasL4(nil, name)
		b.applyService(name, built)
		result.Conditions["service "+name] = built.conditions
		needsChanged := l4 || b.hasL4(nil, name) || !needed.Equal(b.needsOf(nil, name))
		for _, p := range b.config.ProxiesOf(name) {
			if state := b.proxies[p]; state != nil {
				state.services[name] = struct{}{}
				b.setHost(state, name, b.config.Proxy(p))
				dirty[p] = state
				if needsChanged || state.needs.HasWildcard() || state.passes {
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
		if dirty[name].hasL4 { // which of its services are served is known only now
			relisten[name] = tree
		}
	}
	b.applyAssignments(touched.Upstreams, &result)
	b.moveEndpoints(change, touched.Upstreams, dirty)
	for name, state := range b.proxies {
		if state.keyLists.hasAny(touched) {
			relisten[name], dirty[name] = b.config.Proxy(name), state
		}
	}
	for name, tree := range relisten {
		b.applyListener(tree, b.proxies[name], tree.Services)
	}
	b.adviseServices(&result)
	for name, state := range dirty {
		b.followCertificates(state, b.config.Proxy(name))
		result.Snapshots[name] = state.builder.Snapshot(change.Revision)
		result.Conditions["proxy "+name] = b.conditionsOf(state)
	}
	if b.limits.apply(change, b.config) || all {
		b.collectDomains(&result)
	}
	return result
}

// conditions returns what is wrong with a proxy and what is attached to it.
func (b *Build) conditionsOf(p *proxy) []model.Condition {
	conditions := conflicts(p.name, p.builder.Conflicts())
	for _, s := range slices.Sorted(maps.Keys(p.closed)) {
		conditions = append(conditions, p.closed[s])
	}
	if p.refused != nil {
		conditions = append(conditions, *p.refused)
	}
	return slices.Concat(conditions, b.scopeConditions(p), p.l4, p.untold)
}

// builtService is a service and its conditions. A nil service means that it was deleted.
type builtService struct {
	service    *service
	conditions []model.Condition
}

// buildServices builds services independently and in parallel.
func (b *Build) buildServices(names []string) []builtService {
	list := make([]builtService, len(names))
	b.secrets.forget()
	in := builder{newClusterCache(b.secrets), b.settings}
	inParallel(len(names), func(i int) {
		if tree := b.config.Service(names[i]); tree != nil {
			list[i].service, list[i].conditions = buildService(tree, b.services[names[i]], b.head, in)
			list[i].service.conditions = list[i].conditions
		}
	})
	return list
}

// applyService replaces or removes a service.
func (b *Build) applyService(name string, built builtService) {
	if built.service == nil {
		delete(b.services, name)
		return
	}
	b.services[name] = built.service
}

// setHost updates a service on a proxy.
func (b *Build) setHost(p *proxy, name string, t *model.ProxyTree) {
	parts, closed := b.partsFor(p, name, t)
	p.builder.SetHost(name, parts)
	delete(p.closed, name)
	if closed != nil {
		p.closed[name] = *closed
	}
}

// partsFor returns the parts of a service for a proxy, nil if there are none, and why the
// service is closed there.
func (b *Build) partsFor(p *proxy, name string, t *model.ProxyTree) (*snapshot.Parts, *model.Condition) {
	parts, closed := b.uncountedParts(p, name, t)
	if parts == nil || parts.Host == nil || !p.counted {
		return parts, closed
	}
	host, err := parts.Host.With(translate.CountedHost(name), nil, snapshot.Needs{})
	if err != nil {
		return parts, closed // a name is always valid for Envoy
	}
	counted := *parts
	counted.Host = host
	return &counted, closed
}

// uncountedParts are the parts without what metrics need. A closed service answers challenges too: it may be closed
// because it lacks the certificate.
func (b *Build) uncountedParts(p *proxy, name string, t *model.ProxyTree) (*snapshot.Parts, *model.Condition) {
	parts, closed := b.servedParts(p, name, t)
	routes := compile.ChallengeRoutes(b.config.Service(name))
	if parts == nil || parts.Host == nil || len(routes) == 0 {
		return parts, closed
	}
	answering, err := withChallenge(parts, routes)
	if err != nil { // this is always valid for Envoy
		return parts, closed
	}
	return answering, closed
}

// withChallenge returns parts with routes before all others, to which no filter of the host applies.
func withChallenge(parts *snapshot.Parts, routes []*ir.Route) (*snapshot.Parts, error) {
	host, err := parts.Host.VirtualHost()
	if err != nil {
		return nil, err
	}
	var first []*snapshot.Route
	for _, r := range routes {
		out, err := translate.BareRoute(r, host)
		if err != nil {
			return nil, err
		}
		encoded, err := snapshot.NewRoute(out)
		if err != nil {
			return nil, err
		}
		first = append(first, encoded)
	}
	with := *parts
	with.Host = parts.Host.WithFirst(first)
	return &with, nil
}

// servedParts is partsFor without challenges.
func (b *Build) servedParts(p *proxy, name string, t *model.ProxyTree) (*snapshot.Parts, *model.Condition) {
	s := b.serviceOn(p, name)
	if s == nil {
		return nil, nil
	}
	if s.l4 != nil && t != nil {
		return l4Parts(s, b.config.Service(name).Service, t.Proxy), nil
	}
	if s.parts == nil || s.closed || t == nil {
		return s.parts, nil
	}
	parts, closed := b.withLogin(p, s, name)
	if s.plain == nil || closed != nil {
		return parts, closed
	}
	first, err := encodeRoutes(compile.PlainRoutes(s.plain, t.Proxy))
	if err != nil || len(first) == 0 {
		return parts, nil // this is always valid for Envoy
	}
	plain := *parts
	plain.Host = plain.Host.WithFirst(first)
	return &plain, nil
}

// applyProxy updates a proxy's listeners and list of hosts.
func (b *Build) applyProxy(tree *model.ProxyTree) *proxy {
	name := tree.Proxy.Name
	p := b.proxies[name]
	if p == nil {
		p = &proxy{
			name: name, builder: snapshot.NewBuilder(b.head, b.jwt), closed: map[string]model.Condition{},
			scoped: map[string]*scopedService{}, troubled: map[string]*scopedService{},
			keyLists: newKeyLists(),
		}
		b.proxies[name] = p
		p.builder.AssignWith(b.assignmentOf)
	}
	services := tree.Services
	before := p.limits
	rescoped := b.scopeAll(p, tree)
	b.applyListener(tree, p, services)
	ported := p.httpPort != tree.Proxy.HTTPPort || p.httpsPort != tree.Proxy.HTTPSPort
	p.httpPort, p.httpsPort = tree.Proxy.HTTPPort, tree.Proxy.HTTPSPort
	logins := loginsOf(tree)
	relogin := !logins.equal(p.logins)
	recounted := p.counted != compile.HasMetrics(tree)
	p.counted = compile.HasMetrics(tree)
	if relogin {
		p.login, p.logins = newGlobalLogin(tree, builder{newClusterCache(b.secrets), b.settings}), logins
	}
	wanted := map[string]struct{}{}
	for _, s := range services {
		if built := b.services[s]; built != nil {
			wanted[s] = struct{}{}
			if _, have := p.services[s]; !have || relogin || recounted || rescoped || ported && (built.plain != nil || built.l4 != nil) {
				b.setHost(p, s, tree)
			}
		}
	}
	for s := range p.services {
		if _, keep := wanted[s]; !keep {
			p.builder.SetHost(s, nil)
			delete(p.closed, s)
			p.unscope(s)
		}
	}
	b.limits.servicesMoved(p.services, wanted)
	if !slices.Equal(p.globals, tree.GlobalConfigs) {
		b.limitsChanged(p, wanted, before, p.limits)
	}
	p.services, p.globals = wanted, tree.GlobalConfigs
	return p
}

// needsOf returns what the routes of services on a proxy need from the listener.
func (b *Build) needsOf(p *proxy, services ...string) ir.Needs {
	list := make([]ir.Needs, 0, len(services))
	for _, name := range services {
		if s := b.serviceOn(p, name); s != nil {
			list = append(list, s.needs)
		}
	}
	return ir.Needs{}.Merge(list...)
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

// buildService builds a service and keeps the unchanged routes.
func buildService(
	tree *model.ServiceTree, old *service, head *snapshot.RouteHead, in builder,
) (*service, []model.Condition) {
	if tree.Service.IsL4() {
		return buildL4(tree, in)
	}
	s := &service{routes: make(map[*model.RouteTree]*route, len(tree.Routes))}
	byIR := make(map[*ir.Route]*route, len(tree.Routes))
	pairs := compile.Pairs(tree, in.settings.Open)
	host, closed := compile.Host(tree, pairs, in.settings, func(t *model.RouteTree) *ir.Route {
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
	named := newNames()
	var broken error
	for _, r := range host.Routes {
		r := byIR[r]
		if r.condition != nil {
			conditions = append(conditions, *r.condition)
		}
		conditions = append(conditions, r.unverified...)
		if r.err != nil {
			broken = r.err
		}
		encoded = append(encoded, r.encoded...)
		named.add(r.named)
	}
	used, needs, err := encodeFilterClusters(host, in.clusters)
	if err != nil {
		broken = err
	}
	named.add(used)
	reserved, err := encodeRoutes(host.Reserved)
	if err != nil {
		broken = err
	}
	last, err := encodeRoutes(host.Last)
	if err != nil {
		broken = err
	}
	encoded = slices.Concat(reserved, encoded, last)
	s.host, s.needs = host, compile.Needs(host, tree, pairs)
	needs.Parts = partsOf(s.needs)
	s.parts = &snapshot.Parts{Domain: host.Domain, Order: tree.Service.ID}
	if broken == nil {
		s.parts.Host, broken = encodeHost(host, encoded, tree.Service.Key(), needs)
	}
	if broken == nil {
		s.parts.Certificates, broken = encodeCertificates(host, tree.Service.Key())
	}
	if tree.Service.HTTPS != model.HTTPSBoth {
		s.plain = tree.Service
	}
	if closed = closedBy(tree, closed, broken); closed != nil {
		s.closed = true
		s.close(tree, host, head)
		return s, append(conditions, *closed)
	}
	s.parts.Named = named.sorted()
	return s, conditions
}

// close makes the host answer 503 to every request: an open host would be worse. If not
// even that can be built, the host is omitted.
func (s *service) close(tree *model.ServiceTree, host *ir.Host, head *snapshot.RouteHead) {
	bare, err := encodeHost(&ir.Host{Name: host.Name, Domain: host.Domain}, nil, tree.Service.Key())
	if err != nil {
		s.parts = nil
		return
	}
	s.parts.Host = head.Unavailable(bare)
}

// builder builds routes.
type builder struct {
	clusters *clusterCache
	settings compile.Settings
}

// route builds one route. A route that Envoy would refuse becomes a fixed 503.
func (b builder) route(t *model.RouteTree) *route {
	r := &route{}
	r.ir, r.condition = compile.Route(t, b.settings)
	r.unverified = compile.Unverified(t)
	refusal := r.encode(b.clusters)
	if refusal == nil {
		return r
	}
	r.ir, r.condition = compile.Unavailable(t, model.Quarantined, "would be refused by Envoy: "+refusal.Error())
	r.err = r.encode(b.clusters)
	return r
}
