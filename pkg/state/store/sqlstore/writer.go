package sqlstore

import (
	"crypto/rand"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// writer implements store.Writer in one transaction. It remembers what it has read and
// written: no other writer runs meanwhile.
type writer struct {
	reader
	origin store.Origin
	now    model.Time
	// parent is the previous revision.
	parent model.Mark
	// revision is this transaction's own once it has changed something, otherwise 0; id
	// is its ID.
	revision int64
	id       string
	// count counts the entries of this revision. latest are the most recent ones; the
	// first logged of them, and all earlier ones, are in the change log. bytes is the
	// size of what is logged.
	count  store.Count
	latest []store.Written
	logged int
	bytes  int
	// place has the index in latest of the last change of an object.
	place map[model.Key]int
	memory
	batch
	warnings []string
	// keyChecked says that the key is the right one; see checkedSealer.
	keyChecked bool
}

func newWriter(r reader, origin store.Origin) *writer {
	return &writer{
		reader: r, origin: origin, now: model.At(r.store.opts.Now()),
		memory: newMemory(r.store.generationSize), batch: batch{pending: map[model.Key]bool{}},
		place: map[model.Key]int{},
	}
}

// Mark implements store.Reader.
func (w *writer) Mark() (model.Mark, error) { return w.parent, nil }

// Get implements store.Reader.
func (w *writer) Get(key model.Key) (model.Object, error) {
	obj, err := w.lookUp(key)
	if err == nil && obj == nil {
		err = model.NotFoundError(key)
	}
	return copyOf(obj), err
}

// recall returns an object, or nil if it does not exist, and whether the transaction
// knows, because it has recently read it or has written it.
func (w *writer) recall(key model.Key) (obj model.Object, known bool) {
	if i, wrote := w.place[key]; wrote {
		return w.latest[i].After, true
	}
	return w.memory.recall(key)
}

// lookUp is Get for callers that do not change the result; nil means that the object
// does not exist.
func (w *writer) lookUp(key model.Key) (model.Object, error) {
	if obj, known := w.recall(key); known {
		return obj, nil
	}
	if err := w.makeRoom(); err != nil {
		return nil, err
	}
	obj, err := w.reader.Get(key)
	if model.IsKind(err, model.NotFound) {
		obj, err = nil, nil
	}
	if err == nil {
		w.young.objects[key] = obj
	}
	return obj, err
}

// List implements store.Reader.
func (w *writer) List(q store.Query) ([]model.Object, error) {
	if err := w.makeRoom(); err != nil {
		return nil, err
	}
	if w.holds(q.Kind) {
		if err := w.send(); err != nil {
			return nil, err
		}
	}
	list, err := w.reader.List(q)
	if err == nil {
		w.remember(list)
	}
	return list, err
}

// Prefetch implements store.Reader.
func (w *writer) Prefetch(keys []model.Key) error {
	unknown := map[model.Kind][]model.Key{}
	for _, key := range keys {
		if _, known := w.recall(key); !known {
			unknown[key.Kind] = append(unknown[key.Kind], key)
		}
	}
	if err := w.makeRoom(); err != nil {
		return err
	}
	for kind, keys := range unknown {
		for page := range slices.Chunk(keys, batchSize) {
			list, err := w.find(kind, page)
			if err != nil {
				return err
			}
			for _, key := range page {
				w.young.objects[key] = nil
			}
			for _, obj := range list {
				w.young.objects[obj.Key()] = obj
			}
		}
	}
	return nil
}

// ServicesOf implements store.Reader.
func (w *writer) ServicesOf(host string) ([]*model.Service, error) {
	if err := w.PrefetchHosts([]string{host}); err != nil {
		return nil, err
	}
	keys, _ := w.servicesOfHost(strings.ToLower(host))
	list := make([]*model.Service, len(keys))
	for i, key := range keys {
		svc, err := store.Get[*model.Service](w, key)
		if err != nil {
			return nil, err
		}
		list[i] = svc
	}
	return list, nil
}

// PortedServices implements store.Reader.
func (w *writer) PortedServices() ([]*model.Service, error) {
	if w.holds(model.KindService) {
		if err := w.send(); err != nil {
			return nil, err
		}
	}
	return w.reader.PortedServices()
}

// PrefetchHosts implements store.Reader.
func (w *writer) PrefetchHosts(hosts []string) error {
	var unknown []string
	for _, h := range hosts {
		if _, known := w.servicesOfHost(strings.ToLower(h)); !known {
			unknown = append(unknown, strings.ToLower(h))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	if err := w.makeRoom(); err != nil {
		return err
	}
	if w.holds(model.KindService) {
		if err := w.send(); err != nil {
			return err
		}
	}
	for page := range slices.Chunk(unknown, batchSize) {
		list, err := w.servicesOf(page)
		if err != nil {
			return err
		}
		w.rememberHosts(page, list)
	}
	return nil
}

// makeRoom forgets what was not used recently.
func (w *writer) makeRoom() error {
	if !w.full() {
		return nil
	}
	err := w.send()
	w.age()
	return err
}

// Insert implements store.Writer.
func (w *writer) Insert(obj model.Object) error {
	key := obj.Key()
	// Checked first because on Postgres a refused INSERT ends the transaction, and fn
	// may want to continue.
	stored, err := w.lookUp(key)
	if err != nil {
		return err
	}
	if stored != nil {
		return model.ExistsError(key)
	}
	if err := w.checkForeignKeys(obj); err != nil {
		return err
	}
	meta := obj.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = 0, w.now, w.now
	if err := w.seal(obj, nil); err != nil {
		return err
	}
	return w.keep(key, nil, obj)
}

// keep queues a row to be sent with others and records it. The row is a copy: a caller
// may change what it has stored.
func (w *writer) keep(key model.Key, old, obj model.Object) error {
	row := copyOf(obj)
	w.add(key, row, obj, old != nil)
	return w.record(key, old, row)
}

// checkForeignKeys makes the database's check early: the row is sent with others, too
// late for fn.
func (w *writer) checkForeignKeys(obj model.Object) error {
	keys := []model.Key{obj.Key().Owner()}
	if _, named := obj.(model.Tagged); !named {
		keys = append(keys, model.Uses(obj)...)
	}
	for _, key := range keys {
		if key == (model.Key{}) {
			continue
		}
		to, err := w.lookUp(key)
		if err != nil {
			return err
		}
		if to == nil {
			return foreignKeyError(obj.Key(), model.NotFoundError(key))
		}
	}
	return nil
}

// Restore implements store.Writer.
func (w *writer) Restore(obj model.Object) error {
	*obj.Meta().UpdateTS = w.now
	if err := w.seal(obj, nil); err != nil {
		return err
	}
	return w.keep(obj.Key(), nil, obj)
}

// seal seals the confidential values in obj.
func (w *writer) seal(obj, stored model.Object) error {
	c, ok := obj.(model.Confidential)
	if !ok {
		return nil
	}
	err := c.Seal(checkedSealer{w}, stored)
	if e, ok := errors.AsType[*model.Error](err); ok {
		e.Path = obj.Key().Path()
		return e
	}
	return err
}

// Written implements store.Writer.
func (w *writer) Written() store.Changes {
	return func(kinds ...model.Kind) iter.Seq2[store.Written, error] {
		if len(w.latest) == w.count.Total() {
			return store.ChangesOf(w.latest)(kinds...)
		}
		return func(yield func(store.Written, error) bool) {
			if err := w.flush(); err != nil {
				yield(store.Written{}, err)
				return
			}
			w.Entries(w.revision)(kinds...)(yield)
		}
	}
}

// Warn implements store.Writer.
func (w *writer) Warn(text string) { w.warnings = append(w.warnings, text) }

// Warnings implements store.Writer.
func (w *writer) Warnings() []string { return w.warnings }

// Count implements store.Writer.
func (w *writer) Count() store.Count { return w.count }

// Replace implements store.Writer.
func (w *writer) Replace(obj model.Object) error {
	key := obj.Key()
	if w.pending[key] { // its row may have no ID yet
		if err := w.send(); err != nil {
			return err
		}
	}
	old, err := w.Get(key)
	if err != nil {
		return err
	}
	meta, was := obj.Meta(), old.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = *was.ID, *was.CreateTS, *was.UpdateTS
	if err := w.seal(obj, old); err != nil {
		return err
	}
	if reflect.DeepEqual(obj, old) {
		return nil
	}
	*meta.UpdateTS = w.now
	return w.keep(key, old, obj)
}

// Remove implements store.Writer.
func (w *writer) Remove(key model.Key) error {
	if err := w.send(); err != nil {
		return err
	}
	old, err := w.Get(key)
	if err != nil {
		return err
	}
	if err := w.db().Delete(old).Error; err != nil {
		return w.failWrite(old, "removing", err)
	}
	return w.record(key, old, nil)
}

// RemoveAll implements store.Writer.
func (w *writer) RemoveAll(keys []model.Key) error {
	if err := w.send(); err != nil {
		return err
	}
	for page := range slices.Chunk(keys, batchSize) {
		objs, ids := make([]model.Object, len(page)), make([]int64, len(page))
		for i, key := range page {
			obj, err := w.Get(key)
			if err != nil {
				return err
			}
			objs[i], ids[i] = obj, *obj.Meta().ID
		}
		if err := w.db().Where("id IN ?", ids).Delete(model.New(page[0].Kind)).Error; err != nil {
			return w.failWrite(objs[0], "removing", err)
		}
		for i, key := range page {
			if err := w.record(key, objs[i], nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// record adds a change to the change log; the first one takes the next revision. The
// caller must not keep before and after.
func (w *writer) record(key model.Key, before, after model.Object) error {
	if w.revision == 0 {
		w.id = rand.Text()
		err := w.db().Raw("UPDATE revision SET revision = revision + 1, id = ? RETURNING revision", w.id).Row().Scan(&w.revision)
		if err != nil {
			return w.fail("taking a revision", err)
		}
	}
	w.change(key, before, after)
	switch {
	case before == nil:
		w.count.Created++
	case after == nil:
		w.count.Deleted++
	default:
		w.count.Updated++
	}
	w.place[key] = len(w.latest)
	w.latest = append(w.latest, store.Written{Key: key, Before: before, After: after})
	w.refer(key, before, after)
	if len(w.latest)-w.logged < batchSize {
		return w.makeRoom()
	}
	return w.flush()
}

// refer keeps the table of references consistent with what an object uses. Links have
// columns for it instead.
func (w *writer) refer(key model.Key, before, after model.Object) {
	was, is := namedKeys(before), namedKeys(after)
	if slices.Equal(was, is) {
		return
	}
	if len(was) > 0 {
		w.unreferred = append(w.unreferred, key)
	}
	for _, to := range is {
		w.references = append(w.references, reference{key.Kind, key.Text(), to.Kind, to.Text()})
	}
}

// namedKeys lists what an object names in its fields, and what it claims.
func namedKeys(obj model.Object) []model.Key {
	if _, ok := obj.(model.Tagged); !ok {
		return nil
	}
	return append(model.Uses(obj), model.Claims(obj)...)
}

// copyOf returns a copy of an object: a caller may change what it has stored.
func copyOf(obj model.Object) model.Object {
	if obj == nil {
		return nil
	}
	was := reflect.New(reflect.TypeOf(obj).Elem())
	was.Elem().Set(reflect.ValueOf(obj).Elem())
	return was.Interface().(model.Object)
}
