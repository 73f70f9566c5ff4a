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

// pageSize bounds the objects that are checked together.
const pageSize = 500

// Check returns an Unworkable error for the first object that cannot become a
// working configuration. r sees what the transaction has written.
func (rules Rules) Check(r store.Reader, written store.Changes) error {
	c := checker{reader: r, rules: rules, own: &ownPlaces{}, done: map[model.Key]bool{}}
	var page []store.Written
	for w, err := range written() {
		if err != nil {
			return err
		}
		if page = append(page, w); len(page) < pageSize {
			continue
		}
		if err := c.read(page); err != nil {
			return err
		}
		if err := c.checkAll(page); err != nil {
			return err
		}
		page = page[:0]
	}
	if c.attachments == nil { // the page is all that was written
		c.attachments = createdRoutes(page)
	} else if err := c.read(page); err != nil {
		return err
	}
	return c.checkAll(page)
}

type checker struct {
	reader store.Reader
	rules  Rules
	own    *ownPlaces
	// done are the routes that were checked.
	done map[model.Key]bool
	// attachments has the upstreams of routes, where they need not be read.
	attachments map[model.Key][]model.Key
}

// createdRoutes returns the routes that a transaction created, with the upstreams that
// it has attached: they have no other.
func createdRoutes(written []store.Written) map[model.Key][]model.Key {
	made := map[model.Key][]model.Key{}
	for _, w := range written {
		switch {
		case w.Before == nil && w.Key.Kind == model.KindRoute:
			made[w.Key] = nil
		case w.Before == nil && w.Key.Kind == model.KindRouteUpstream:
			if attached, ok := made[w.After.Key().Owner()]; ok {
				made[w.After.Key().Owner()] = append(attached, model.Uses(w.After)...)
			}
		case w.After == nil && w.Key.Kind == model.KindRouteUpstream:
			if attached, ok := made[w.Before.Key().Owner()]; ok {
				gone := w.Before.Key().Attached()
				made[w.Before.Key().Owner()] = slices.DeleteFunc(attached, func(k model.Key) bool { return k == gone })
			}
		}
	}
	return made
}

// read reads what the check of a page needs, and lets go what that of the page
// before did.
func (c *checker) read(page []store.Written) error {
	c.attachments = map[model.Key][]model.Key{}
	var routes, keys []model.Key
	for _, w := range page {
		if w.After == nil {
			continue
		}
		keys = append(keys, model.Uses(w.After)...)
		if key, is := routeOf(w.After); is && !c.done[key] {
			if _, known := c.attachments[key]; !known {
				c.attachments[key] = nil
				routes = append(routes, key)
			}
		}
	}
	if len(routes) > 0 {
		links, err := c.reader.List(store.Query{Kind: model.KindRouteUpstream, To: routes})
		if err != nil {
			return err
		}
		for _, l := range links {
			c.attachments[l.Key().Owner()] = append(c.attachments[l.Key().Owner()], model.Uses(l)...)
			keys = append(keys, model.Uses(l)...)
		}
	}
	return c.reader.Prefetch(append(keys, routes...))
}

func (c checker) checkAll(page []store.Written) error {
	for _, w := range page {
		if w.After == nil {
			continue
		}
		if err := c.check(w.After); err != nil {
			return err
		}
	}
	return nil
}

// routeOf is the route that is checked for an object, if one is.
func routeOf(obj model.Object) (model.Key, bool) {
	switch obj.(type) {
	case *model.Route:
		return obj.Key(), true
	case *model.RouteUpstream, *model.RouteFilter:
		return obj.Key().Owner(), true
	}
	return model.Key{}, false
}

func (c checker) check(obj model.Object) error {
	if key, is := routeOf(obj); is {
		if c.done[key] {
			return nil
		}
		c.done[key] = true
		return c.route(key)
	}
	key := obj.Key()
	switch o := obj.(type) {
	case *model.Upstream:
		if err := c.address(o); err != nil {
			return err
		}
		return c.upstream(o)
	case *model.Secret:
		return c.secret(o)
	case *model.Service:
		return refusal(key, engine.ServiceRefusal(o))
	case *model.Proxy:
		return refusal(key, engine.ProxyRefusal(o))
	case *model.GlobalConfig:
		return refusal(key, engine.GlobalConfigRefusal(o))
	}
	return nil
}

func refusal(key model.Key, why error) error {
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
	return refusal(key, engine.RouteRefusal(tree))
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
	attached, err := c.upstreamsOf(key)
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

// upstreamsOf lists the upstreams of a route.
func (c checker) upstreamsOf(route model.Key) ([]model.Key, error) {
	if keys, ok := c.attachments[route]; ok {
		return keys, nil
	}
	links, err := c.reader.List(store.Query{
		Kind: model.KindRouteUpstream, To: []model.Key{route},
	})
	var keys []model.Key
	for _, l := range links {
		keys = append(keys, model.Uses(l)...)
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
	return refusal(u.Key(), engine.RouteRefusal(tree))
}

// secret tries the upstreams whose certificates are checked with it.
func (c checker) secret(s *model.Secret) error {
	users, err := store.List[*model.Upstream](c.reader, store.Query{Kind: model.KindUpstream, To: []model.Key{s.Key()}})
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
	for _, key := range model.Uses(u) {
		ca, err := store.Get[*model.Secret](c.reader, key)
		if err != nil {
			return err
		}
		tree.Authorities[ca.Name] = ca
	}
	return nil
}
