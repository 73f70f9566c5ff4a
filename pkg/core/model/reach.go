package model

// Graph says which objects refer to which: Config does in memory, store.Graph in
// the database.
type Graph interface {
	// Referrers calls fn for each object that refers to one of keys: for the links
	// that attach it, and for the objects that name it in a field.
	Referrers(keys []Key, fn func(to, from Key)) error
	// Proxies lists the names of all proxies.
	Proxies() ([]string, error)
}

// Reached says which parts of the configuration hold some objects: what may be
// different when one of them changes.
type Reached struct {
	// Services and Proxies are by name. A proxy is not reached because one of its
	// services is: see ServedBy.
	Services map[string]*ReachedService
	Proxies  map[string]*ReachedProxy
}

// ReachedService is the part of a service that holds an object.
type ReachedService struct {
	// Routes are the names of those that hold it, EveryRoute says that all do.
	Routes     map[string]bool
	EveryRoute bool
}

// ReachedProxy is the part of a proxy that holds an object.
type ReachedProxy struct {
	// Listeners says that the object is the proxy itself, All that it holds for all
	// of the proxy, as a global config does.
	Listeners, All bool
	// Services are those whose attachment is the object.
	Services map[string]bool
}

// Reach finds what holds each of some objects, directly or through what refers to
// them. It needs the graph as it is after the objects were changed: where a link
// or a name is gone, what had it is among keys.
func Reach(g Graph, keys []Key) (Reached, error) {
	r := Reached{Services: map[string]*ReachedService{}, Proxies: map[string]*ReachedProxy{}}
	seen := map[Key]bool{}
	var next []Key
	follow := func(key Key) {
		for !r.add(key) && !seen[key] {
			seen[key] = true
			next = append(next, key)
			owner := key.Owner()
			if owner == (Key{}) {
				return
			}
			key = owner // what names a set has its keys
		}
	}
	all := false
	for _, key := range keys {
		follow(key)
		// The first link takes it from the other owners, the last gives it back.
		all = all || key.Kind.Row().Attaches().Row().Everywhere
	}
	for len(next) > 0 {
		asked := next
		next = nil
		referred := map[Key]bool{}
		err := g.Referrers(asked, func(to, from Key) {
			referred[to] = true
			follow(from)
		})
		if err != nil {
			return r, err
		}
		for _, key := range asked {
			all = all || key.Kind.Row().Everywhere && !referred[key]
		}
	}
	if !all {
		return r, nil
	}
	proxies, err := g.Proxies()
	for _, name := range proxies {
		r.proxy(name).All = true
	}
	return r, err
}

// add notes the part of a service or proxy that an object is, or reports that it
// is none.
func (r Reached) add(key Key) bool {
	row := key.Kind.Row()
	names, _ := key.split()
	switch row.Path[0] {
	case KindService:
		s := r.service(names[0])
		if row.Path[1] == KindRoute {
			s.Routes[names[1]] = true
		}
		s.EveryRoute = s.EveryRoute || row.EveryRoute
	case KindProxy:
		p := r.proxy(names[0])
		switch row.Path[1] {
		case "":
			p.Listeners = true
		case KindService:
			p.Services[names[1]] = true
		default:
			p.All = true
		}
	default:
		return false
	}
	return true
}

func (r Reached) service(name string) *ReachedService {
	s := r.Services[name]
	if s == nil {
		s = &ReachedService{Routes: map[string]bool{}}
		r.Services[name] = s
	}
	return s
}

func (r Reached) proxy(name string) *ReachedProxy {
	p := r.Proxies[name]
	if p == nil {
		p = &ReachedProxy{Services: map[string]bool{}}
		r.Proxies[name] = p
	}
	return p
}

// ServedBy lists, by the name of each service that is reached, the proxies that
// it is attached to.
func (r Reached) ServedBy(g Graph) (map[string][]string, error) {
	keys := make([]Key, 0, len(r.Services))
	for name := range r.Services {
		keys = append(keys, ServiceKey(name))
	}
	proxies := make(map[string][]string, len(keys))
	err := g.Referrers(keys, func(to, from Key) {
		if from.Kind == KindProxyService {
			proxies[to.Name()] = append(proxies[to.Name()], from.Owner().Name())
		}
	})
	return proxies, err
}
