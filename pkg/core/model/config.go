package model

import (
	"cmp"
	"maps"
	"slices"
)

// Mark tells a revision from every other one, also from that of the same number
// in a database that was restored from an older backup and written to since.
// The zero value is the mark of a reader that has nothing yet.
type Mark struct {
	Revision int64
	// ID is random.
	ID string
}

// Change brings a reader from the revision it has to Revision.
type Change struct {
	Revision int64
	// ID is the ID of the Mark of Revision.
	ID string
	// Restored says that the database was never at the reader's revision: it was
	// restored from an older backup. Full is true then, and the numbers of
	// revisions that the reader knows say nothing about those of the database.
	Restored bool
	// Full says that Entries holds every object there is, and that what the
	// reader has and Entries does not name is gone.
	Full bool
	// Entries name each object once, as it is at Revision. What is there comes
	// in the order of Kinds, an object after what it refers to; then what is
	// gone, the other way round.
	Entries []Entry
	// Learned is what identity providers say of themselves, by the keys of the filters
	// and global configs that ask for logins there. Nil means that nothing is
	// known any more; who is not named stays as it is, with Full too.
	Learned map[Key]Providers
	// Endpoints are those of discovered upstreams, by the keys of the upstreams. Nil means that
	// the upstream is not discovered any more; who is not named stays as it is, with Full
	// too. Those of an upstream that is not there after Entries are forgotten: they come
	// with the entry of a new upstream, or later.
	Endpoints map[Key]*Endpoints
	// Automatic are the certificates that the gateway orders itself, by the keys of the services. Nil means that there is
	// none any more; who is not named stays as it is, with Full too.
	Automatic map[Key]*Automatic
}

// Entry is one object that was written. A nil Object means deleted.
type Entry struct {
	Key    Key
	Object Object
}

// ServiceTree is a service with everything under it. It is immutable: when
// anything in it changes, a new tree takes its place.
type ServiceTree struct {
	Service *Service
	// Routes are in order of creation.
	Routes []*RouteTree
	// Filters are the service's own, sorted by name. If a route is exempt from one, those of its type are Apart: each route
	// that has them has them among its own. See spread.
	Filters, Apart []*ParsedFilter
	// Secrets are those attached to it, and that of its automatic certificate if it is used, sorted by name.
	Secrets []*Secret
	// Automatic is the certificate that the gateway orders for it; nil if that is not so, or not yet.
	Automatic *Automatic
	// ClientCA is the secret that ClientCACertificate names; nil if it names none, or
	// one that is not there.
	ClientCA *Secret
	// Named is what the filters name, and what that names, by key.
	Named map[Key]Object
	// base is the tree that this one was made from, without filters of a proxy and without exemptions; nil if it is that.
	base *ServiceTree
}

// RouteTree is a route with the upstreams and filters attached to it, each
// sorted by name.
type RouteTree struct {
	Route     *Route
	Upstreams []*Upstream
	// Secrets are those that the upstreams name, by their names.
	Secrets map[string]*Secret
	// ServiceFilters are its service's, Filters its own. Apart are those of the service that its routes have instead.
	ServiceFilters, Filters, Apart []*ParsedFilter
	// Named is what all these filters name, and what that names, by key.
	Named map[Key]Object
	// base is the route that this one was made from: see ServiceTree.spread.
	base *RouteTree
}

// ProxyTree is a proxy with the names of its services, in order of attachment.
type ProxyTree struct {
	Proxy    *Proxy
	Services []string
	// GlobalConfigs are those that hold for the proxy, sorted by name: its own,
	// and those that are attached to no proxy.
	GlobalConfigs []*ParsedGlobalConfig
	// Filters are the proxy's own, sorted by name. FilterNamed is what they name, and what that names, by key.
	Filters     []*ParsedFilter
	FilterNamed map[Key]Object
	// Named is what the global configs name, and what that names, by key.
	Named map[Key]Object
}

// Config is the whole configuration at one revision. It belongs to one
// goroutine; the objects and trees in it are immutable and may be shared.
type Config struct {
	Revision int64
	// ID is the ID of the Mark of Revision.
	ID string

	objects map[Key]Object
	// children lists, by owner or used object, the keys of what refers to it.
	children map[Key]referrers
	services map[string]*ServiceTree
	proxies  map[string]*ProxyTree
	// consumers are by name. No tree has them.
	consumers map[string]*Consumer
	globals   map[Key]*ParsedGlobalConfig
	// learned is Change.Learned, endpoints Change.Endpoints without the nil ones.
	learned   map[Key]Providers
	endpoints map[Key]*Endpoints
	automatic map[Key]*Automatic
}

// NewConfig returns an empty configuration at revision 0.
func NewConfig() *Config {
	return &Config{
		objects:   map[Key]Object{},
		children:  map[Key]referrers{},
		services:  map[string]*ServiceTree{},
		proxies:   map[string]*ProxyTree{},
		consumers: map[string]*Consumer{},
		globals:   map[Key]*ParsedGlobalConfig{},
		learned:   map[Key]Providers{}, endpoints: map[Key]*Endpoints{}, automatic: map[Key]*Automatic{},
	}
}

// Touched names what a Change made different: the services and proxies whose
// trees were replaced or removed, sorted.
type Touched struct {
	Services []string
	Proxies  []string
	// Upstreams are those whose Endpoints are others than before, sorted. That alone
	// touches no tree; that an upstream comes to be discovered, or is not any more, does.
	Upstreams []string
	// KeySets are those that have other keys than before, Lists those with other addresses, sorted. HTTP services are not
	// touched by that.
	KeySets, Lists []string
	// Consumers means that some are others than before, which touches no tree.
	Consumers bool
}

// Whole returns the change that makes an empty configuration the same as c.
func (c *Config) Whole() Change {
	ch := Change{
		Revision: c.Revision, ID: c.ID, Full: true, Entries: make([]Entry, 0, len(c.objects)),
		Learned: maps.Clone(c.learned), Endpoints: maps.Clone(c.endpoints),
	}
	for key, obj := range c.objects {
		ch.Entries = append(ch.Entries, Entry{Key: key, Object: obj})
	}
	return ch
}

// Mark is where c is.
func (c *Config) Mark() Mark { return Mark{c.Revision, c.ID} }

// Service returns the tree of a service, or nil.
func (c *Config) Service(name string) *ServiceTree { return c.services[name] }

// Proxy returns the tree of a proxy, or nil.
func (c *Config) Proxy(name string) *ProxyTree { return c.proxies[name] }

// Endpoints returns those of an upstream; nil if it is not discovered, or not there.
func (c *Config) Endpoints(upstream string) *Endpoints { return c.endpoints[UpstreamKey(upstream)] }

// Filter returns a filter, or nil.
func (c *Config) Filter(name string) *ParsedFilter {
	f, _ := c.objects[FilterKey(name)].(*ParsedFilter)
	return f
}

// GlobalConfigs lists all global configs, sorted by name.
func (c *Config) GlobalConfigs() []*ParsedGlobalConfig {
	list := slices.Collect(maps.Values(c.globals))
	sortByName(list)
	return list
}

// GlobalConfig returns a global config, or nil.
func (c *Config) GlobalConfig(name string) *ParsedGlobalConfig {
	return c.globals[GlobalConfigKey(name)]
}

// ProxiesOf lists the proxies that a service is attached to, sorted.
func (c *Config) ProxiesOf(service string) []string {
	var names []string
	for k := range c.children[ServiceKey(service)].all {
		if k.Kind == KindProxyService {
			names = append(names, k.Owner().Name())
		}
	}
	slices.Sort(names)
	return names
}

// Referrers implements Graph.
func (c *Config) Referrers(keys []Key, fn func(to, from Key)) error {
	for _, to := range keys {
		for from := range c.children[to].all {
			if from.Owner() != to {
				fn(to, from)
			}
		}
	}
	return nil
}

// Proxies implements Graph.
func (c *Config) Proxies() ([]string, error) { return slices.Collect(maps.Keys(c.proxies)), nil }

// Apply brings c to ch.Revision and says which trees were touched. The work is
// in proportion to the change and the trees that it touches.
func (c *Config) Apply(ch Change) Touched {
	c.Revision, c.ID = ch.Revision, ch.ID
	changed, sets, consumers := make([]Key, 0, len(ch.Entries)), map[string]bool{}, false
	var lists []Key
	put := func(key Key, obj Object) {
		before := c.objects[key]
		switch there := c.put(key, obj); {
		case there && key.Kind == KindConsumer:
			consumers = true
		case there && key.Root().Kind == KindKeySet:
			sets[key.Root().Name()] = true
		case there && key.Kind == KindList && isAddresses(before) && isAddresses(c.objects[key]):
			lists = append(lists, key)
		case there:
			changed = append(changed, key)
		}
	}
	first := len(c.objects) == 0
	if first {
		c.objects, c.children = make(map[Key]Object, len(ch.Entries)), make(map[Key]referrers, len(ch.Entries)/2)
	}
	before := c.learnEndpoints(ch)
	if ch.Full && !first {
		named := make(map[Key]bool, len(ch.Entries))
		for _, e := range ch.Entries {
			named[e.Key] = true
		}
		for key := range c.objects {
			if !named[key] {
				put(key, nil)
			}
		}
	}
	for _, e := range ch.Entries {
		put(e.Key, e.Object)
	}
	for key, all := range ch.Learned {
		c.learned[key] = all
		put(key, c.objects[key])
	}
	for key, a := range ch.Automatic {
		if c.automatic[key] = a; a == nil {
			delete(c.automatic, key)
		}
		put(key, c.objects[key])
	}
	for key := range ch.Endpoints {
		switch u, ok := c.objects[key].(*Upstream); {
		case !ok:
			delete(c.endpoints, key)
		case u.IsDiscovered() != (c.endpoints[key] != nil):
			put(key, u)
		}
	}
	reached := c.reached(changed, first)
	c.reachConnections(lists, reached)
	for name, s := range reached.Services {
		c.rebuildService(name, s)
	}
	for name := range reached.Proxies {
		c.rebuildProxy(name)
	}
	return Touched{
		Services:  slices.Sorted(maps.Keys(reached.Services)),
		Proxies:   slices.Sorted(maps.Keys(reached.Proxies)),
		Upstreams: c.moved(before),
		KeySets:   slices.Sorted(maps.Keys(sets)),
		Consumers: consumers,
		Lists:     listNames(lists),
	}
}

// Consumers lists all consumers, sorted by name.
func (c *Config) Consumers() []*Consumer {
	list := slices.Collect(maps.Values(c.consumers))
	slices.SortFunc(list, func(a, b *Consumer) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Keys lists the keys of a set, sorted by name.
func (c *Config) Keys(set string) []*APIKey {
	var list []*APIKey
	for key := range c.children[KeySetKey(set)].all {
		if key.Kind == KindAPIKey {
			list = appendObject(list, c, key)
		}
	}
	sortByName(list)
	return list
}

// reached is what Reach finds. Where nothing was before, the services and proxies
// that the keys are in are all there are.
func (c *Config) reached(changed []Key, first bool) Reached {
	if !first {
		reached, _ := Reach(c, changed) // memory does not fail
		return reached
	}
	r := Reached{Services: map[string]*ReachedService{}, Proxies: map[string]*ReachedProxy{}}
	whole := &ReachedService{EveryRoute: true}
	for _, key := range changed {
		switch root := key.Root(); root.Kind {
		case KindService:
			r.Services[root.Name()] = whole
		case KindProxy:
			r.Proxies[root.Name()] = nil // which is rebuilt as a whole
		}
	}
	return r
}

// put stores or removes one object. It reports whether there was or is one.
func (c *Config) put(key Key, obj Object) bool {
	old := c.objects[key]
	if old != nil {
		c.unlink(key, old)
		delete(c.objects, key)
		delete(c.globals, key)
		if key.Kind == KindConsumer {
			delete(c.consumers, key.Name())
		}
	}
	if obj == nil {
		delete(c.endpoints, key)
	}
	if obj != nil {
		obj = c.parsed(key, obj)
		c.objects[key] = obj
		c.link(key, obj)
		switch o := obj.(type) {
		case *ParsedGlobalConfig:
			c.globals[key] = o
		case *Consumer:
			c.consumers[o.Name] = o
		}
	}
	return old != nil || obj != nil
}

// parsed is the object as trees hold it, with what was learned for it. An upstream only
// says whether it is discovered.
func (c *Config) parsed(key Key, obj Object) Object {
	switch o := obj.(type) {
	case *Filter:
		return c.parsed(key, o.Parse())
	case *GlobalConfig:
		return c.parsed(key, o.Parse())
	case *List:
		return o.Parse()
	case *ParsedFilter:
		return &ParsedFilter{o.Filter, o.Type, Learned(o.Spec, c.learned[key]), o.Fault}
	case *Upstream:
		return o.Discovered(c.endpoints[key] != nil)
	case *ParsedGlobalConfig:
		return &ParsedGlobalConfig{o.GlobalConfig, o.Type, Learned(o.Spec, c.learned[key]), o.Fault}
	}
	return obj
}

// Learned is a configuration with what its identity providers say; one that asks for no
// login is as it was.
func Learned(spec Spec, all Providers) Spec {
	if l, ok := spec.(learner); ok {
		return l.learn(all)
	}
	return spec
}

// namedBy is what filters name, and what that names, by key.
func (c *Config) namedBy(lists ...[]*ParsedFilter) map[Key]Object {
	var names []Key
	for _, f := range slices.Concat(lists...) {
		names = append(names, f.Names()...)
	}
	return c.findNamed(names)
}

// findNamed returns the objects of keys, and the objects that these name, by key.
func (c *Config) findNamed(keys []Key) map[Key]Object {
	var all map[Key]Object
	for len(keys) > 0 {
		key := keys[0]
		keys = keys[1:]
		obj := c.objects[key]
		if _, known := all[key]; known || obj == nil {
			continue
		}
		if all == nil {
			all = map[Key]Object{}
		}
		all[key] = obj
		keys = append(keys, uses(key, obj)...)
	}
	return all
}

func (c *Config) link(key Key, obj Object) {
	for _, to := range references(key, obj) {
		c.children[to] = c.children[to].with(key)
	}
}

func (c *Config) unlink(key Key, obj Object) {
	for _, to := range references(key, obj) {
		if c.children[to] = c.children[to].without(key); c.children[to].len() == 0 {
			delete(c.children, to)
		}
	}
}

func references(key Key, obj Object) []Key {
	refs := uses(key, obj)
	if owner := key.Owner(); owner != (Key{}) {
		refs = append(refs, owner)
	}
	return refs
}
