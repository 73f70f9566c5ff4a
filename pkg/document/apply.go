package document

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// ApplyOptions say how far a document reaches.
type ApplyOptions struct {
	// Prune deletes the objects that the document does not name.
	Prune bool
	// Tag, when set, must be carried by every object of the document but
	// routes, and limits Prune to objects that carry it.
	Tag string
	// NewProxy returns a proxy with the defaults for its name; nil means
	// model.NewProxy for every name.
	NewProxy func(name string) *model.Proxy
}

// Result counts objects and links: what Apply made, changed and deleted, and
// what the document names and was so before.
type Result struct {
	Created, Updated, Deleted, Unchanged int
	// Warnings say what the user has yet to do.
	Warnings []string
}

// Apply makes the configuration what the document says; run it in one
// transaction and give that up on an error. Of an object that is there, a field
// that the document does not have goes back to its default, which a warning
// tells; a proxy keeps what is stored in such a field, tags excepted, for it says
// where a listener is. A secret without contents keeps those that are stored. An
// error of the store names the object and its line and keeps its kind.
func Apply(w store.Writer, doc *Document, opts ApplyOptions) (Result, error) {
	a := &applier{
		w: w, opts: opts, stored: map[model.Key]model.Object{}, owned: map[model.Key][]model.Object{},
		named: map[model.Key]bool{},
	}
	if err := a.checkTags(doc); err != nil {
		return Result{}, err
	}
	before := len(w.Written())
	steps := []func(*Document) error{a.prefetch, a.detach, a.pruneOwners, a.putAll, a.attach, a.pruneUsed}
	for _, step := range steps {
		if err := step(doc); err != nil {
			return Result{}, err
		}
	}
	for _, change := range w.Written()[before:] {
		switch {
		case change.Before == nil:
			a.result.Created++
		case change.After == nil:
			a.result.Deleted++
		default:
			a.result.Updated++
		}
	}
	return a.result, nil
}

type applier struct {
	w      store.Writer
	opts   ApplyOptions
	result Result
	// stored holds the routes of the named services, and the links of all that
	// the document names, as they were; owned has the same by owner.
	stored map[model.Key]model.Object
	owned  map[model.Key][]model.Object
	// named are the objects of the document.
	named map[model.Key]bool
	// moved are the services whose host was changed.
	moved []*Item
	// resets counts the objects of which fields went back to their defaults.
	resets int
}

func (a *applier) checkTags(doc *Document) error {
	if a.opts.Tag == "" {
		return nil
	}
	var errs []model.FieldError
	for _, item := range doc.Items {
		o, tagged := item.Object.(model.Tagged)
		if !tagged || o.Key().Kind == model.KindRoute || o.TagList().Has(a.opts.Tag) || len(errs) == maxErrors {
			continue
		}
		errs = append(errs, model.FieldError{
			Field:   place(item.Line, item.At+".tags"),
			Message: fmt.Sprintf("must hold %q, the tag that this call is limited to", a.opts.Tag),
		})
	}
	if len(errs) > 0 {
		return invalid(errs)
	}
	return nil
}

// pageSize bounds what one query returns.
const pageSize = 200

// prefetch reads all that is stored under the names of the document, and what
// the named services and proxies own. It asks in pages, and the writer
// remembers the answers: a query for each object would take minutes where there
// are many.
func (a *applier) prefetch(doc *Document) error {
	names := map[model.Kind][]string{}
	for _, item := range doc.Items {
		key := item.Object.Key()
		a.named[key] = true
		for _, used := range item.Object.Uses() {
			names[used.Kind] = append(names[used.Kind], used.Name())
		}
		for kind, links := range item.Lists {
			for _, l := range links {
				link := newLink(kind, item.Object, l.Name)
				for _, end := range []model.Key{link.Owner(), link.Uses()[0]} {
					if end.Kind != model.KindRoute {
						names[end.Kind] = append(names[end.Kind], end.Name())
					}
				}
			}
		}
		if key.Kind != model.KindRoute {
			names[key.Kind] = append(names[key.Kind], key.Name())
		}
		if key.Kind == model.KindProxy {
			for _, l := range listsOf(key.Kind) {
				if err := a.read(store.Query{Kind: l.kind, Proxy: key.Name()}); err != nil {
					return err
				}
			}
		}
	}
	for kind, list := range names {
		slices.Sort(list)
		names[kind] = slices.Compact(list)
		for page := range slices.Chunk(names[kind], pageSize) {
			if _, err := a.w.List(store.Query{Kind: kind, Names: page}); err != nil {
				return err
			}
		}
	}
	return a.prefetchServices(doc, names[model.KindService])
}

func (a *applier) prefetchServices(doc *Document, names []string) error {
	var hosts, attached []string
	for _, item := range doc.Items {
		if svc, ok := item.Object.(*model.Service); ok {
			hosts = append(hosts, svc.FQDN)
			if _, there := item.Lists[model.KindProxyService]; there {
				attached = append(attached, svc.Name)
			}
		}
	}
	for page := range slices.Chunk(attached, pageSize) {
		if err := a.read(store.Query{Kind: model.KindProxyService, Services: page}); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(hosts, pageSize) {
		if _, err := a.w.List(store.Query{Kind: model.KindService, FQDNs: page}); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(names, pageSize) {
		for _, kind := range []model.Kind{
			model.KindRoute, model.KindRouteUpstream, model.KindRouteFilter, model.KindServiceFilter, model.KindServiceSecret,
		} {
			if err := a.read(store.Query{Kind: kind, Services: page}); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *applier) read(q store.Query) error {
	objs, err := a.w.List(q)
	if err != nil {
		return err
	}
	for _, o := range objs {
		if a.stored[o.Key()] != nil { // read from its other end
			continue
		}
		a.stored[o.Key()] = o
		a.owned[o.Owner()] = append(a.owned[o.Owner()], o)
		if link, ok := o.(*model.ProxyService); ok {
			service := model.ServiceKey(link.Service)
			a.owned[service] = append(a.owned[service], o)
		}
	}
	return nil
}

// detach removes the links that the lists of neither end name. It comes first, so
// that what they hold can be claimed by another or deleted.
func (a *applier) detach(doc *Document) error {
	attached := map[model.Key]bool{} // the links that have a list at both ends
	for _, item := range doc.Items {
		for _, l := range item.Lists[model.KindProxyService] {
			attached[newLink(model.KindProxyService, item.Object, l.Name).Key()] = true
		}
	}
	for _, item := range doc.Items {
		keep := map[model.Key]bool{}
		for kind, links := range item.Lists {
			for _, l := range links {
				keep[newLink(kind, item.Object, l.Name).Key()] = true
			}
		}
		for _, o := range a.owned[item.Object.Key()] {
			key := o.Key()
			if _, there := item.Lists[key.Kind]; !there || keep[key] || attached[key] || a.stored[key] == nil {
				continue
			}
			if err := a.w.Remove(key); err != nil {
				return locate(err, item.Line, item.At)
			}
			delete(a.stored, key)
		}
	}
	return nil
}

func (a *applier) putAll(doc *Document) error {
	for _, item := range doc.Items {
		if err := a.put(item); err != nil {
			return locate(err, item.Line, item.At)
		}
	}
	return a.checkHosts()
}

// put stores one object.
func (a *applier) put(item *Item) error {
	// The store writes into what it is given, and a document may be applied
	// again.
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
	a.tellResets(item, obj, stored)
	if stored == nil {
		return store.Create(a.w, obj)
	}
	if _, sealed := obj.(model.Confidential); !sealed && sameFields(obj, stored) {
		a.result.Unchanged++
		return nil
	}
	before := len(a.w.Written())
	if svc, ok := obj.(*model.Service); ok && svc.FQDN != stored.(*model.Service).FQDN {
		// Two services may exchange their hosts; checkHosts looks at the end.
		a.moved = append(a.moved, item)
		return a.w.Replace(obj)
	}
	if err := store.Replace(a.w, obj); err != nil {
		return err
	}
	if len(a.w.Written()) == before {
		a.result.Unchanged++
	}
	return nil
}

// get returns what is stored, or nil.
func (a *applier) get(key model.Key) (model.Object, error) {
	if key.Kind == model.KindRoute {
		return a.stored[key], nil
	}
	obj, err := a.w.Get(key)
	if model.IsKind(err, model.NotFound) {
		return nil, nil
	}
	return obj, err
}

// fillSecret gives a secret without contents those that are stored.
func (a *applier) fillSecret(item *Item, s *model.Secret, stored model.Object) error {
	if s.Cert != "" || s.PrivateKey != "" || s.Value != "" {
		return nil
	}
	old, _ := stored.(*model.Secret)
	if old == nil || old.Cert == "" && old.PrivateKey == "" && old.Value == "" {
		if old == nil {
			a.result.Warnings = append(a.result.Warnings, place(item.Line, item.At)+
				": nothing is stored for this secret; it was made empty, upload its contents")
		}
		return nil
	}
	seen := old.Redact().(*model.Secret)
	s.Cert, s.PrivateKey, s.Value = seen.Cert, seen.PrivateKey, seen.Value
	if errs := s.Validate(); len(errs) > 0 {
		return &model.Error{
			Kind: model.Invalid, Message: "the fields do not fit the contents that are stored for this secret",
			Hint: "nothing was changed", Fields: errs,
		}
	}
	return nil
}

// checkHosts refuses a host that another service of the same proxy has, once
// every service has its new one.
func (a *applier) checkHosts() error {
	for _, item := range a.moved {
		links, err := a.w.List(store.Query{Kind: model.KindProxyService, Service: item.Object.Key().Name()})
		if err != nil {
			return err
		}
		for _, link := range links {
			// It is there already: this checks and changes nothing.
			if err := store.Replace(a.w, link); err != nil {
				return locate(err, item.Line, item.At)
			}
		}
	}
	return nil
}

// attach makes the links that are named and not there.
func (a *applier) attach(doc *Document) error {
	done := map[model.Key]bool{} // the links that both ends may name
	for _, item := range doc.Items {
		for _, list := range listsOf(item.Object.Key().Kind) {
			for i, l := range item.Lists[list.kind] {
				link := newLink(list.kind, item.Object, l.Name)
				if done[link.Key()] {
					continue
				}
				if list.kind == model.KindProxyService {
					done[link.Key()] = true
				}
				if a.stored[link.Key()] != nil {
					a.result.Unchanged++
					continue
				}
				if err := store.Create(a.w, link); err != nil {
					return locate(err, l.Line, fmt.Sprintf("%s.%s[%d]", item.At, list.key, i))
				}
			}
		}
	}
	return nil
}

// clone returns a copy that the store may write into.
func clone(obj model.Object) model.Object {
	c := reflect.New(reflect.TypeOf(obj).Elem())
	c.Elem().Set(reflect.ValueOf(obj).Elem())
	return c.Interface().(model.Object)
}

// sameFields compares without what the store assigns, which obj then has too.
func sameFields(obj, stored model.Object) bool {
	meta, was := obj.Meta(), stored.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = *was.ID, *was.CreateTS, *was.UpdateTS
	return reflect.DeepEqual(obj, stored)
}

// locate says where in the document the cause of an error of the store is.
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
