package precheck

import (
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/engine"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// Rules are what the operator asks of objects beyond what Envoy does. The zero
// value asks for nothing.
type Rules struct {
	Upstreams egress.Lists
	// Machine is where the program runs, and Places where it listens; proxies
	// add theirs. Without places nothing is said of them.
	Machine egress.Machine
	Places  []egress.Place
	// Open reports whether everybody who reaches the API may change it.
	Open func() (bool, error)
}

// Check returns an Unworkable error for the first object that cannot become a
// working configuration. r sees what the transaction has written.
func (rules Rules) Check(r store.Reader, written []store.Written) error {
	c := checker{reader: r, rules: rules, own: &ownPlaces{}, done: map[model.Key]bool{}, made: madeRoutes(written)}
	for _, w := range written {
		if w.After == nil {
			continue
		}
		if err := c.check(w.After); err != nil {
			return err
		}
	}
	return nil
}

type checker struct {
	reader store.Reader
	rules  Rules
	own    *ownPlaces
	done   map[model.Key]bool
	// made holds the routes that this transaction has made with the upstreams
	// that it has attached: they have no other.
	made map[model.Key][]model.Key
}

func madeRoutes(written []store.Written) map[model.Key][]model.Key {
	made := map[model.Key][]model.Key{}
	for _, w := range written {
		switch {
		case w.Before == nil && w.Key.Kind == model.KindRoute:
			made[w.Key] = nil
		case w.Before == nil && w.Key.Kind == model.KindRouteUpstream:
			if attached, ok := made[w.After.Owner()]; ok {
				made[w.After.Owner()] = append(attached, w.After.Uses()...)
			}
		case w.After == nil && w.Key.Kind == model.KindRouteUpstream:
			if attached, ok := made[w.Before.Owner()]; ok {
				gone := w.Before.Uses()[0]
				made[w.Before.Owner()] = slices.DeleteFunc(attached, func(k model.Key) bool { return k == gone })
			}
		}
	}
	return made
}

func (c checker) check(obj model.Object) error {
	key := obj.Key()
	switch o := obj.(type) {
	case *model.RouteUpstream:
		key = o.Owner()
	case *model.RouteFilter:
		key = o.Owner()
	}
	if c.done[key] {
		return nil
	}
	c.done[key] = true
	switch o := obj.(type) {
	case *model.Route, *model.RouteUpstream, *model.RouteFilter:
		return c.route(key)
	case *model.Upstream:
		if err := c.address(o); err != nil {
			return err
		}
		return c.upstream(o)
	case *model.Secret:
		return c.secret(o)
	case *model.Service:
		return refused(key, engine.ServiceRefusal(o))
	case *model.Proxy:
		return refused(key, engine.ProxyRefusal(o))
	case *model.GlobalConfig:
		return refused(key, engine.GlobalConfigRefusal(o))
	}
	return nil
}

func refused(key model.Key, why error) error {
	if why == nil {
		return nil
	}
	return &model.Error{
		Kind: model.Unworkable, Path: key.Path(),
		Message: key.Path() + " cannot become a working configuration: " + why.Error(),
	}
}

// route checks a route with all that is attached to it.
func (c checker) route(key model.Key) error {
	tree, err := c.tree(key)
	if tree == nil {
		return err
	}
	return refused(key, engine.RouteRefusal(tree))
}

// tree reads a route with its upstreams; nil is one that was deleted again in
// the same transaction.
func (c checker) tree(key model.Key) (*model.RouteTree, error) {
	route, err := store.Get[*model.Route](c.reader, key)
	if model.IsKind(err, model.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	attached, err := c.attached(key)
	if err != nil {
		return nil, err
	}
	tree := &model.RouteTree{Route: route, Authorities: map[string]*model.Secret{}}
	for _, name := range attached {
		u, err := store.Get[*model.Upstream](c.reader, name)
		if err != nil {
			return nil, err
		}
		if err := c.add(tree, u); err != nil {
			return nil, err
		}
	}
	return tree, nil
}

// attached lists the upstreams of a route.
func (c checker) attached(route model.Key) ([]model.Key, error) {
	if keys, ok := c.made[route]; ok {
		return keys, nil
	}
	links, err := c.reader.List(store.Query{
		Kind: model.KindRouteUpstream, Service: route.Part(model.KindService), Route: route.Name(),
	})
	var keys []model.Key
	for _, l := range links {
		keys = append(keys, l.Uses()...)
	}
	return keys, err
}

// upstream tries the upstream behind a plain route: what makes a cluster bad is
// always one of its upstreams.
func (c checker) upstream(u *model.Upstream) error {
	tree := &model.RouteTree{
		Route:       &model.Route{Service: "check", Name: "check", Prefix: "/"},
		Authorities: map[string]*model.Secret{},
	}
	if err := c.add(tree, u); err != nil {
		return err
	}
	return refused(u.Key(), engine.RouteRefusal(tree))
}

// secret tries the upstreams whose certificates are checked with it.
func (c checker) secret(s *model.Secret) error {
	users, err := store.List[*model.Upstream](c.reader, store.Query{Kind: model.KindUpstream, Uses: s.Key()})
	if err != nil {
		return err
	}
	for _, u := range users {
		if err := c.upstream(u); err != nil {
			return err
		}
	}
	return nil
}

func (c checker) add(tree *model.RouteTree, u *model.Upstream) error {
	tree.Upstreams = append(tree.Upstreams, u)
	for _, key := range u.Uses() {
		ca, err := store.Get[*model.Secret](c.reader, key)
		if err != nil {
			return err
		}
		tree.Authorities[ca.Name] = ca
	}
	return nil
}
