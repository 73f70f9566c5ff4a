package precheck

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// excerpt is the part of the configuration around a write: objects, and what is needed
// to compile them. It becomes a configuration that is compiled like the whole one.
type excerpt struct {
	reader  store.Reader
	objects map[model.Key]model.Object
	// links contains what is attached to routes and services.
	links map[model.Key][]model.Object
}

// newExcerpt returns an excerpt. links are those of owners whose links need not be
// read.
func newExcerpt(r store.Reader, links map[model.Key][]model.Object) *excerpt {
	return &excerpt{r, map[model.Key]model.Object{}, links}
}

// createdLinks returns the routes and services that a transaction created, with the
// links that it created: they have no others. all is false if the transaction is too
// large to keep them.
func createdLinks(written store.Changes) (made map[model.Key][]model.Object, all bool, err error) {
	made = map[model.Key][]model.Object{}
	n := 0
	for w, err := range written() {
		if err != nil {
			return nil, false, err
		}
		if n++; n > mostKept {
			return nil, false, nil
		}
		if w.Before == nil && (w.Key.Kind == model.KindRoute || w.Key.Kind == model.KindService) {
			made[w.Key] = nil
			continue
		}
		owner := w.Key.Owner()
		if list, ok := made[owner]; !ok || w.Key.Attached() == (model.Key{}) {
			continue
		} else if w.After == nil {
			made[owner] = slices.DeleteFunc(list, func(l model.Object) bool { return l.Key() == w.Key })
		} else if w.Before == nil {
			made[owner] = append(list, w.After)
		}
	}
	return made, true, nil
}

// addOwners collects routes and services, with what is attached to them and to the
// services of the routes. A missing object was deleted again in the same transaction.
func (e *excerpt) addOwners(keys []model.Key) error {
	owners := map[model.Kind]map[model.Key]bool{model.KindService: {}, model.KindRoute: {}}
	for _, key := range keys {
		owners[key.Kind][key], owners[model.KindService][key.Root()] = true, true
	}
	for kind, of := range owners {
		if err := e.readLinks(kind, of); err != nil {
			return err
		}
		if err := e.prefetch(of); err != nil {
			return err
		}
	}
	for _, of := range owners {
		for owner := range of {
			if err := e.get(owner); err != nil {
				return err
			}
			if e.objects[owner] == nil {
				continue
			}
			for _, l := range e.links[owner] {
				if err := e.add(l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// readLinks reads the links of owners of one kind, unless they are known.
func (e *excerpt) readLinks(kind model.Kind, owners map[model.Key]bool) error {
	var unknown []model.Key
	for key := range owners {
		if _, known := e.links[key]; !known {
			e.links[key] = nil
			unknown = append(unknown, key)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	for _, link := range linkKinds(kind) {
		links, err := e.reader.List(store.Query{Kind: link, To: unknown})
		if err != nil {
			return err
		}
		for _, l := range links {
			e.links[l.Key().Owner()] = append(e.links[l.Key().Owner()], l)
		}
	}
	return nil
}

// prefetch reads owners and what is attached to them in one query.
func (e *excerpt) prefetch(owners map[model.Key]bool) error {
	var keys []model.Key
	for owner := range owners {
		keys = append(keys, owner)
		for _, l := range e.links[owner] {
			keys = append(keys, model.Uses(l)...)
		}
	}
	return e.reader.Prefetch(keys)
}

// linkKinds returns the kinds of links to routes, or to services for all their routes.
func linkKinds(owner model.Kind) []model.Kind {
	return slices.DeleteFunc(owner.OwnedKinds(), func(k model.Kind) bool {
		return k.Row().Attaches() == "" || owner == model.KindService && !k.Row().EveryRoute
	})
}

// add collects an object and what it uses.
func (e *excerpt) add(obj model.Object) error {
	e.objects[obj.Key()] = obj
	for _, used := range model.Uses(obj) {
		if err := e.get(used); err != nil {
			return err
		}
	}
	return nil
}

// get collects a stored object, or nothing if it does not exist.
func (e *excerpt) get(key model.Key) error {
	if e.objects[key] != nil {
		return nil
	}
	obj, err := e.reader.Get(key)
	if model.IsKind(err, model.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return e.add(obj)
}

// trials returns the route, and if possible also the service, in which an object is
// tested alone. No service has such a name.
func trials(key model.Key) []model.Key {
	service := "+" + string(key.Kind) + "+" + key.Name()
	if key.Kind == model.KindUpstream {
		return []model.Key{model.RouteKey(service, "+")}
	}
	return []model.Key{model.RouteKey(service, "+"), model.ServiceKey(service)}
}

// try puts an upstream or a filter on a plain route or service of its own. If Envoy
// refuses a route, one of the objects on it is always the reason.
func (e *excerpt) try(obj model.Object) error {
	key := trials(obj.Key())[0]
	service, route := key.Root().Name(), key.Name()
	objs := []model.Object{
		obj, &model.Service{Name: service, FQDN: "any.invalid", HTTPS: model.HTTPSBoth},
		&model.Route{Service: service, Name: route, Prefix: "/"},
	}
	switch o := obj.(type) {
	case *model.Upstream:
		objs = append(objs, &model.RouteUpstream{Service: service, Route: route, Upstream: o.Name})
	case *model.Filter:
		u := model.NewUpstream()
		u.Name, u.IP, u.Port = "+", "192.0.2.1", 80
		objs = append(objs, u, &model.RouteUpstream{Service: service, Route: route, Upstream: u.Name})
		if o.FitsOn(model.KindRoute) {
			objs = append(objs, &model.RouteFilter{Service: service, Route: route, Filter: o.Name})
		}
		if o.FitsOn(model.KindService) {
			objs = append(objs, &model.ServiceFilter{Service: service, Filter: o.Name})
		}
	}
	for _, o := range objs {
		if err := e.add(o); err != nil {
			return err
		}
	}
	return nil
}

// tryTogether puts the filters of a proxy on a service of its own with a plain route.
func (e *excerpt) tryTogether(proxy model.Key) error {
	links, err := store.List[*model.ProxyFilter](e.reader, store.Query{Kind: model.KindProxyFilter, To: []model.Key{proxy}})
	if err != nil {
		return err
	}
	key := trials(proxy)[0]
	service := key.Root().Name()
	objs := []model.Object{
		&model.Service{Name: service, FQDN: "any.invalid", HTTPS: model.HTTPSBoth},
		&model.Route{Service: service, Name: key.Name(), Prefix: "/"},
	}
	for _, l := range links {
		objs = append(objs, &model.ServiceFilter{Service: service, Filter: l.Filter})
	}
	for _, o := range objs {
		if err := e.add(o); err != nil {
			return err
		}
	}
	return nil
}

// config returns the collected objects as a configuration.
func (e *excerpt) config() *model.Config {
	change := model.Change{Full: true, Entries: make([]model.Entry, 0, len(e.objects))}
	for key, obj := range e.objects {
		change.Entries = append(change.Entries, model.Entry{Key: key, Object: obj})
	}
	config := model.NewConfig()
	config.Apply(change)
	return config
}

// routes returns the routes of config by key.
func (e *excerpt) routes(config *model.Config) map[model.Key]*model.RouteTree {
	routes := map[model.Key]*model.RouteTree{}
	for key := range e.objects {
		if key.Kind != model.KindService {
			continue
		}
		for _, r := range config.Service(key.Name()).Routes {
			routes[r.Route.Key()] = r
		}
	}
	return routes
}
