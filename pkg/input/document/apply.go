package document

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// ApplyOptions say which objects a document affects.
type ApplyOptions struct {
	// Prune deletes the objects that the document does not name.
	Prune bool
	// Prunable says which kinds Prune deletes; nil means all.
	Prunable func(model.Kind) bool
	// Tag, if set, must be a tag of every object of the document except routes and
	// keys, and limits Prune to objects that have it.
	Tag string
	// NewProxy returns a proxy with the defaults for its name; nil means model.NewProxy
	// for every name.
	NewProxy func(name string) *model.Proxy
	// Force overwrites what was changed after the revision that the document comes from.
	Force bool
}

// Result counts objects and links: those that Apply created, updated and deleted, and
// those that were already as the document says.
type Result struct {
	Created, Updated, Deleted, Unchanged int
	// Warnings say what the user still has to do.
	Warnings []string
}

// Apply makes the configuration what the document says. Run it in one transaction, and
// roll that back on an error. If the document lacks a field of a stored object, the
// field is reset to its default, and a warning says so. A proxy keeps the stored value
// of such a field (except tags), because it says where a listener is. A secret without
// contents keeps the stored ones. An error of the store names the object and its line
// and keeps its kind.
func Apply(w store.Writer, doc *Document, opts ApplyOptions) (Result, error) {
	a := &applier{w: w, opts: opts, named: map[model.Key]bool{}, done: map[model.Key]bool{}}
	for _, item := range doc.Items {
		a.named[item.Object.Key()] = true
	}
	if err := a.checkTags(doc); err != nil {
		return Result{}, err
	}
	before := w.Count()
	steps := []func(*Document) error{a.compare, a.detach, a.pruneOwners, a.putAll, a.attach, a.pruneUsed, a.checkBase}
	for _, step := range steps {
		if err := step(doc); err != nil {
			return Result{}, err
		}
	}
	done := w.Count()
	a.result.Created = done.Created - before.Created
	a.result.Updated = done.Updated - before.Updated
	a.result.Deleted = done.Deleted - before.Deleted
	return a.result, nil
}

type applier struct {
	w      store.Writer
	opts   ApplyOptions
	result Result
	// named are the objects of the document.
	named map[model.Key]bool
	// different are the items that the steps after compare work on. there are those of
	// them whose object is stored.
	different, there []*Item
	// done are the links with a list at both ends that were already handled.
	done map[model.Key]bool
	// moved are the services whose host has changed.
	moved []*Item
	// resets counts the objects with fields that were reset to their defaults.
	resets int
}

func (a *applier) checkTags(doc *Document) error {
	if a.opts.Tag == "" {
		return nil
	}
	var errs []model.FieldError
	for _, item := range doc.Items {
		o, tagged := item.Object.(model.Tagged)
		if !tagged || isPart(o.Key().Kind) || o.TagList().Has(a.opts.Tag) || len(errs) == maxErrors {
			continue
		}
		errs = append(errs, model.FieldError{
			Field:   place(item.Line, item.At+".tags"),
			Message: fmt.Sprintf("must have %q, the tag that this call is limited to", a.opts.Tag),
		})
	}
	if len(errs) > 0 {
		return invalid(errs)
	}
	return nil
}

// pageSize bounds what is read for one step: each step goes through the document in
// pages, and the writer remembers what was read for the page. A query for each of many
// objects would take minutes.
const pageSize = 200

// each calls fn with each object that q selects.
func (a *applier) each(q store.Query, fn func(model.Object)) error {
	for q.Limit = 5 * pageSize; ; {
		objs, err := a.w.List(q)
		if err != nil {
			return err
		}
		for _, o := range objs {
			fn(o)
			q.After = *o.Meta().ID
		}
		if len(objs) < q.Limit {
			return nil
		}
	}
}

// detach removes the links that no list at either end names. It comes first, so that
// others can claim what they hold, or it can be deleted.
func (a *applier) detach(doc *Document) error {
	attached := map[model.Key]bool{} // the links that have a list at both ends
	for _, item := range doc.Items {
		for _, l := range item.Lists[model.KindProxyService] {
			attached[linkKey(model.KindProxyService, item.Object.Key(), l.Name)] = true
		}
	}
	for page := range slices.Chunk(a.there, pageSize) {
		unlisted, err := a.unlistedLinks(page, attached)
		if err != nil {
			return err
		}
		for _, item := range page {
			for _, key := range unlisted[item.Object.Key()] {
				err := a.w.Remove(key)
				if model.IsKind(err, model.NotFound) { // removed from its other end
					continue
				}
				if err != nil {
					return locate(err, item.Line, item.At)
				}
			}
		}
	}
	return nil
}

// unlistedLinks returns the links that no list names, by the object that has the list.
func (a *applier) unlistedLinks(page []*Item, attached map[model.Key]bool) (map[model.Key][]model.Key, error) {
	found, listed := map[model.Key][]model.Key{}, map[model.Key]bool{}
	for _, item := range page {
		for kind, links := range item.Lists {
			for _, l := range links {
				listed[linkKey(kind, item.Object.Key(), l.Name)] = true
			}
		}
	}
	err := a.links(page, func(of, link model.Key) {
		if !listed[link] && !attached[link] {
			found[of] = append(found[of], link)
		}
	})
	return found, err
}

// links calls fn with the links that belong to the lists of items, and with the item of
// each.
func (a *applier) links(items []*Item, fn func(of, link model.Key)) error {
	for _, kind := range []model.Kind{model.KindService, model.KindRoute, model.KindProxy} {
		for _, list := range listsOf(kind) {
			var ends []model.Key
			for _, item := range items {
				if _, there := item.Lists[list.kind]; there && item.Object.Key().Kind == kind {
					ends = append(ends, item.Object.Key())
				}
			}
			if len(ends) == 0 {
				continue
			}
			err := a.each(store.Query{Kind: list.kind, To: ends}, func(link model.Object) {
				of := link.Key().Owner()
				if of.Kind != kind { // the only link that both ends may name
					of = link.Key().Attached()
				}
				fn(of, link.Key())
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) putAll(*Document) error {
	for page := range slices.Chunk(a.different, pageSize) {
		var keys []model.Key
		for _, item := range page {
			keys = append(keys, requiredKeys(item.Object)...)
		}
		if err := a.w.Prefetch(keys); err != nil {
			return err
		}
		for _, item := range page {
			if err := a.put(item); err != nil {
				return locate(err, item.Line, item.At)
			}
		}
	}
	return a.checkHosts()
}

// requiredKeys lists an object and the objects that the rules of the store check for
// it.
func requiredKeys(obj model.Object) []model.Key {
	keys := append(model.Uses(obj), obj.Key())
	if owner := obj.Key().Owner(); owner != (model.Key{}) {
		keys = append(keys, owner)
	}
	return keys
}

// put stores one object.
func (a *applier) put(item *Item) error {
	// The store writes into its argument, and a document may be applied again.
	obj := clone(item.Object)
	stored, err := a.get(obj.Key())
	if err != nil {
		return err
	}
	if secret, ok := obj.(*model.Secret); ok {
		if err := a.fillSecret(item, secret, stored); err != nil {
			return err
		}
	}
	if proxy, ok := obj.(*model.Proxy); ok {
		if err := a.fillProxy(item, proxy, stored); err != nil {
			return err
		}
	}
	a.warnResets(item, obj, stored)
	if stored == nil {
		return store.Create(a.w, obj)
	}
	if _, sealed := obj.(model.Confidential); !sealed && sameFields(obj, stored) {
		a.result.Unchanged++
		return nil
	}
	before := a.w.Count()
	if svc, ok := obj.(*model.Service); ok && svc.FQDN != stored.(*model.Service).FQDN {
		// Two services may exchange their hosts; checkHosts checks the result.
		a.moved = append(a.moved, item)
		return a.w.Replace(obj)
	}
	if err := store.Replace(a.w, obj); err != nil {
		return err
	}
	if a.w.Count() == before {
		a.result.Unchanged++
	}
	return nil
}

// get returns the stored object, or nil.
func (a *applier) get(key model.Key) (model.Object, error) {
	obj, err := a.w.Get(key)
	if model.IsKind(err, model.NotFound) {
		return nil, nil
	}
	return obj, err
}

// fillSecret copies the stored contents to a secret without contents.
func (a *applier) fillSecret(item *Item, s *model.Secret, stored model.Object) error {
	if s.Cert != "" || s.PrivateKey != "" || s.Value != "" {
		return nil
	}
	old, _ := stored.(*model.Secret)
	if old == nil || old.Cert == "" && old.PrivateKey == "" && old.Value == "" {
		if old == nil {
			a.result.Warnings = append(a.result.Warnings, place(item.Line, item.At)+
				": nothing is stored for this secret; it was created empty: upload its contents")
		}
		return nil
	}
	seen := old.Redact().(*model.Secret)
	s.Cert, s.PrivateKey, s.Value = seen.Cert, seen.PrivateKey, seen.Value
	if errs := s.Validate(); len(errs) > 0 {
		return &model.Error{
			Kind: model.Invalid, Message: "the fields do not match the stored contents of this secret",
			Hint: "nothing was changed", Fields: errs,
		}
	}
	return nil
}

// checkHosts refuses a host that another service of the same proxy has, after every
// service has its new host.
func (a *applier) checkHosts() error {
	for _, item := range a.moved {
		links, err := a.w.List(store.Query{Kind: model.KindProxyService, To: []model.Key{item.Object.Key()}})
		if err != nil {
			return err
		}
		for _, link := range links {
			// The link exists: this checks it and changes nothing.
			if err := store.Replace(a.w, link); err != nil {
				return locate(err, item.Line, item.At)
			}
		}
	}
	return nil
}

// wish is a link that a list names.
type wish struct {
	link model.Object
	line int
	at   string
}

// attach creates the links that are named and do not exist.
func (a *applier) attach(*Document) error {
	var page []wish
	for _, item := range a.different {
		for _, list := range listsOf(item.Object.Key().Kind) {
			for i, l := range item.Lists[list.kind] {
				key := linkKey(list.kind, item.Object.Key(), l.Name)
				if a.isDone(key) {
					continue
				}
				page = append(page, wish{key.New(), l.Line, fmt.Sprintf("%s.%s[%d]", item.At, list.key, i)})
				if len(page) < pageSize {
					continue
				}
				if err := a.attachPage(page); err != nil {
					return err
				}
				page = page[:0]
			}
		}
	}
	return a.attachPage(page)
}

func (a *applier) attachPage(page []wish) error {
	var keys []model.Key
	for _, wish := range page {
		keys = append(keys, requiredKeys(wish.link)...)
	}
	if err := a.w.Prefetch(keys); err != nil {
		return err
	}
	if err := a.prefetchHosts(page); err != nil {
		return err
	}
	for _, wish := range page {
		stored, err := a.get(wish.link.Key())
		if err != nil {
			return err
		}
		if stored != nil {
			a.result.Unchanged++
			continue
		}
		if err := store.Create(a.w, wish.link); err != nil {
			return locate(err, wish.line, wish.at)
		}
	}
	return nil
}

// prefetchHosts reads which other services have the hosts of the services that are to
// be attached to proxies.
func (a *applier) prefetchHosts(page []wish) error {
	var hosts []string
	for _, wish := range page {
		link, ok := wish.link.(*model.ProxyService)
		if !ok {
			continue
		}
		there, err := a.get(link.Key())
		if err != nil {
			return err
		}
		svc, err := a.get(model.ServiceKey(link.Service))
		if err != nil {
			return err
		}
		if there == nil && svc != nil {
			hosts = append(hosts, svc.(*model.Service).FQDN)
		}
	}
	return a.w.PrefetchHosts(hosts)
}

// clone returns a copy that the store may write into.
func clone(obj model.Object) model.Object {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem())
	return c.Interface().(model.Object)
}

// sameFields compares two objects without the fields that the store assigns. obj has
// the stored ones afterwards.
func sameFields(obj, stored model.Object) bool {
	meta, was := obj.Meta(), stored.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = *was.ID, *was.CreateTS, *was.UpdateTS
	return reflect.DeepEqual(obj, stored)
}

// locate adds the place in the document to an error of the store.
func locate(err error, line int, at string) error {
	where := place(line, at)
	e, ok := errors.AsType[*model.Error](err)
	if !ok {
		return fmt.Errorf("applying %s: %w", where, err)
	}
	if e.Kind == model.Unavailable {
		return err
	}
	located := *e
	located.Message = where + ": " + e.Message
	located.Fields = nil
	for _, f := range e.Fields {
		f.Field = place(line, at+"."+lowerField(f.Field))
		located.Fields = append(located.Fields, f)
	}
	return &located
}
