package precheck

import (
	"time"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// Rules are the operator's requirements in addition to Envoy's. The zero value requires
// nothing.
type Rules struct {
	Upstreams egress.Lists
	// Lua allows filters that run scripts.
	Lua bool
	// Machine is where the program runs, and OwnAddresses where it listens. Proxies add their
	// listeners. Without places, they are not checked.
	Machine      egress.Machine
	OwnAddresses []egress.OwnAddress
	// Open reports whether every client of the API may change the configuration.
	Open func() (bool, error)
	// Now is the clock of certificates; nil means time.Now.
	Now func() time.Time
	// Unseal opens a text that was sealed for a place; nil means that texts are not
	// checked.
	Unseal func(sealed, place string) (string, error)
	// Restoring accepts what existed before, as in a rollback: certificates that have
	// expired since, or that a service had although they are not for its host.
	Restoring bool
}

func (rules Rules) now() time.Time {
	if rules.Now == nil {
		return time.Now()
	}
	return rules.Now()
}

// pageSize bounds how many objects are checked together.
const pageSize = 500

// mostKept bounds how many changes are remembered: which links a transaction added to
// objects that it created, and which of its clusters have been encoded.
const mostKept = 20_000

// Check returns an Unworkable error for the first object that cannot become a
// working configuration, and a Conflict for two that claim the same. r sees what the transaction has written.
func (rules Rules) Check(r store.Reader, written store.Changes) error {
	if err := store.CheckClaims(r, written); err != nil {
		return err
	}
	links, all, err := createdLinks(written)
	if err != nil {
		return err
	}
	c := checker{
		reader: r, rules: rules, own: &ownAddresses{}, done: map[model.Key]bool{}, counted: map[model.Key]bool{},
		links: links, refusals: pipeline.NewRouteRefusals(),
	}
	var page []store.Written
	check := func() error {
		if !all {
			c.links, c.refusals = map[model.Key][]model.Object{}, pipeline.NewRouteRefusals()
		}
		err := c.checkPage(page)
		page = page[:0]
		return err
	}
	for w, err := range written() {
		if err != nil {
			return err
		}
		if page = append(page, w); len(page) < pageSize {
			continue
		}
		if err := check(); err != nil {
			return err
		}
	}
	return check()
}

type checker struct {
	reader store.Reader
	rules  Rules
	own    *ownAddresses
	// done are the routes and services that have been checked.
	done map[model.Key]bool
	// counted are the services whose routes have been counted.
	counted map[model.Key]bool
	// links are the links of owners whose links need not be read.
	links    map[model.Key][]model.Object
	refusals pipeline.RouteRefusals

	// The following fields are for one page: what was collected, and what names its
	// secrets.
	config *model.Config
	routes map[model.Key]*model.RouteTree
	users  map[model.Key][]model.Object
}

// checkPage collects what is needed to compile the changes, and checks them.
func (c checker) checkPage(page []store.Written) error {
	if err := c.gather(page); err != nil {
		return err
	}
	for _, w := range page {
		if w.After == nil {
			continue
		}
		// This is first, because it names the field.
		if err := c.checkCertificates(w); err != nil {
			return err
		}
		if err := c.checkLogin(w); err != nil {
			return err
		}
		if err := c.checkPassword(w); err != nil {
			return err
		}
		if err := c.checkPort(w); err != nil {
			return err
		}
		if err := c.check(w.After); err != nil {
			return err
		}
	}
	return nil
}

func (c *checker) gather(page []store.Written) error {
	n := newExcerpt(c.reader, c.links)
	c.users = map[model.Key][]model.Object{}
	var owners, keys []model.Key
	for _, w := range page {
		if w.After == nil {
			continue
		}
		keys = append(keys, model.Uses(w.After)...)
		if at, is := ownerOf(w.Key); is && !c.done[at] {
			owners = append(owners, at)
		}
	}
	if err := c.reader.Prefetch(keys); err != nil {
		return err
	}
	if err := n.addOwners(owners); err != nil {
		return err
	}
	for _, w := range page {
		if err := c.gatherOne(n, w); err != nil {
			return err
		}
	}
	c.config = n.config()
	c.routes = n.routes(c.config)
	return nil
}

// gatherOne collects a change that is not checked as part of a service.
func (c *checker) gatherOne(n *excerpt, w store.Written) error {
	switch w.After.(type) {
	case *model.Upstream, *model.Filter:
		return n.try(w.After)
	case *model.Proxy:
		return n.add(w.After)
	case *model.ProxyFilter:
		return n.tryTogether(w.Key.Owner())
	case *model.Secret:
		if w.Before == nil {
			return nil // objects that name it are new too
		}
		for _, kind := range []model.Kind{model.KindUpstream, model.KindFilter} {
			users, err := c.reader.List(store.Query{Kind: kind, To: []model.Key{w.Key}})
			if err != nil {
				return err
			}
			c.users[w.Key] = append(c.users[w.Key], users...)
		}
		for _, u := range c.users[w.Key] {
			if err := n.try(u); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownerOf returns the route or service that is checked for an object, if any.
func ownerOf(key model.Key) (owner model.Key, is bool) {
	if key.Attached() != (model.Key{}) {
		key = key.Owner()
	}
	return key, key.Kind == model.KindRoute || key.Kind == model.KindService
}

func (c checker) check(obj model.Object) error {
	key := obj.Key()
	if owner, is := ownerOf(key); is {
		if c.done[owner] {
			return nil
		}
		c.done[owner] = true
		if err := refusal(owner, c.refusalOf(owner)); err != nil {
			return err
		}
		return c.copiesAt(owner)
	}
	switch o := obj.(type) {
	case *model.Upstream:
		if err := c.address(key.Path(), o); err != nil {
			return err
		}
		return c.checkAlone(o)
	case *model.Filter:
		if err := c.script(o); err != nil {
			return err
		}
		if err := c.checkAlone(o); err != nil {
			return err
		}
		return c.copiesOf(o)
	case *model.Secret:
		for _, u := range c.users[key] {
			if err := c.checkAlone(u); err != nil {
				return err
			}
		}
	case *model.ProxyFilter:
		for _, at := range trials(key.Owner()) {
			if err := refusal(key, c.refusalOf(at)); err != nil {
				return err
			}
		}
	case *model.Proxy:
		return refusal(key, pipeline.ProxyRefusal(c.config.Proxy(o.Name)))
	case *model.GlobalConfig:
		return refusal(key, pipeline.GlobalConfigRefusal(o))
	}
	return nil
}

// checkAlone checks an upstream or a filter alone.
func (c checker) checkAlone(obj model.Object) error {
	for _, at := range trials(obj.Key()) {
		if err := refusal(obj.Key(), c.refusalOf(at)); err != nil {
			return err
		}
	}
	return nil
}

// refusalOf returns why a route or service cannot work. A missing object was deleted again
// in the same transaction.
func (c checker) refusalOf(key model.Key) error {
	if key.Kind == model.KindService {
		if tree := c.config.Service(key.Name()); tree != nil {
			return pipeline.ServiceRefusal(tree)
		}
		return nil
	}
	if tree := c.routes[key]; tree != nil {
		return c.refusals.Of(tree)
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
