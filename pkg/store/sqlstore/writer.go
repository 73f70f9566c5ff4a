package sqlstore

import (
	"crypto/rand"
	"errors"
	"reflect"
	"slices"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// writer implements store.Writer in one transaction. It remembers what it has
// read and written: nobody else writes meanwhile.
type writer struct {
	reader
	origin store.Origin
	now    model.Time
	// parent is the revision before.
	parent model.Mark
	// revision is this transaction's own once it has changed something, else 0;
	// id is its ID.
	revision int64
	id       string
	// written are the entries of this revision, the first logged of which are
	// in the change log.
	written []store.Written
	logged  int
	memory
	batch
	// restored says that rows to be sent may have an ID.
	restored bool
	// keyChecked says that the key was found right, see checkedSealer.
	keyChecked bool
}

func newWriter(r reader, origin store.Origin) *writer {
	return &writer{
		reader: r, origin: origin, now: model.At(r.store.opts.Now()),
		memory: newMemory(),
	}
}

// Mark implements store.Reader.
func (w *writer) Mark() (model.Mark, error) { return w.parent, nil }

// Get implements store.Reader.
func (w *writer) Get(key model.Key) (model.Object, error) {
	if obj, known := w.recall(key); known {
		if obj == nil {
			return nil, model.NotFoundError(key)
		}
		return copyOf(obj), nil
	}
	obj, err := w.reader.Get(key)
	switch {
	case err == nil:
		w.objects[obj.Key()] = copyOf(obj)
	case model.IsKind(err, model.NotFound):
		w.objects[key] = nil
	}
	return obj, err
}

// List implements store.Reader.
func (w *writer) List(q store.Query) ([]model.Object, error) {
	if list, known := w.ofHost(q); known {
		return list, nil
	}
	if w.holds(q.Kind) {
		if err := w.send(); err != nil {
			return nil, err
		}
	}
	list, err := w.reader.List(q)
	if err == nil {
		w.remember(q, w.store.tables[q.Kind], list)
	}
	return list, err
}

// Insert implements store.Writer.
func (w *writer) Insert(obj model.Object) error {
	key := obj.Key()
	// Asked first because on Postgres a refused INSERT ends the transaction,
	// and fn may want to go on.
	_, err := w.Get(key)
	if err == nil {
		return model.ExistsError(key)
	}
	if !model.IsKind(err, model.NotFound) {
		return err
	}
	if err := w.checkForeignKeys(obj); err != nil {
		return err
	}
	meta := obj.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = 0, w.now, w.now
	if err := w.seal(obj, nil); err != nil {
		return err
	}
	row := copyOf(obj)
	w.add(row, obj)
	return w.record(key, nil, row)
}

// checkForeignKeys does what the database does too late for fn to know: the
// row is sent with others.
func (w *writer) checkForeignKeys(obj model.Object) error {
	keys := []model.Key{obj.Owner()}
	if _, named := obj.(model.Tagged); !named {
		keys = append(keys, obj.Uses()...)
	}
	for _, key := range keys {
		if key == (model.Key{}) {
			continue
		}
		if _, err := w.Get(key); model.IsKind(err, model.NotFound) {
			return noForeignKey(obj.Key(), err)
		} else if err != nil {
			return err
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
	w.restored = true
	row := copyOf(obj)
	w.add(row, obj)
	return w.record(obj.Key(), nil, row)
}

// seal makes what is confidential in obj unreadable.
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
func (w *writer) Written() []store.Written { return w.written }

// Replace implements store.Writer.
func (w *writer) Replace(obj model.Object) error {
	key := obj.Key()
	if row := w.objects[key]; row != nil && (*row.Meta().ID == 0 || w.restored && w.holds(key.Kind)) {
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
	if err := w.db().Select("*").Updates(obj).Error; err != nil {
		return w.failWrite(obj, "replacing", err)
	}
	return w.record(key, old, copyOf(obj))
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

// record notes a change for the change log; the first takes the next revision.
// Nobody else may hold before and after.
func (w *writer) record(key model.Key, before, after model.Object) error {
	if w.revision == 0 {
		w.id = rand.Text()
		err := w.db().Raw("UPDATE revision SET revision = revision + 1, id = ? RETURNING revision", w.id).Row().Scan(&w.revision)
		if err != nil {
			return w.fail("taking a revision", err)
		}
	}
	w.change(key, before, after)
	w.written = append(w.written, store.Written{Key: key, Before: before, After: after})
	if err := w.refer(key, before, after); err != nil {
		return err
	}
	if len(w.written)-w.logged < batchSize {
		return nil
	}
	return w.flush()
}

// refer keeps the table of references in step with what an object uses. Links
// have columns of their own for it.
func (w *writer) refer(key model.Key, before, after model.Object) error {
	if _, named := before.(model.Tagged); named && len(before.Uses()) > 0 {
		if err := w.send(); err != nil {
			return err
		}
		if err := w.db().Exec("DELETE FROM reference WHERE kind = ? AND name = ?", key.Kind, key.Text()).Error; err != nil {
			return w.fail("noting references", err)
		}
	}
	if _, named := after.(model.Tagged); named {
		for _, to := range after.Uses() {
			w.references = append(w.references, reference{key.Kind, key.Text(), to.Kind, to.Text()})
		}
	}
	return nil
}

// copyOf keeps an object as it is now: a caller may change what it has stored.
func copyOf(obj model.Object) model.Object {
	if obj == nil {
		return nil
	}
	was := reflect.New(reflect.TypeOf(obj).Elem())
	was.Elem().Set(reflect.ValueOf(obj).Elem())
	return was.Interface().(model.Object)
}
