package sqlstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// writer implements store.Writer in one transaction.
type writer struct {
	reader
	origin store.Origin
	now    model.Time
	// revision is this transaction's own once it has changed something, else 0.
	revision int64
	// written are the entries of this revision.
	written []store.Written
}

// changeLog is an entry of the change log.
type changeLog struct {
	Revision int64
	Seq      int
	Actor    string
	At       model.Time
	Request  string
	Kind     model.Kind
	Name     string
	Before   *string
	After    *string
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
	meta := obj.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = 0, w.now, w.now
	return w.insert(obj)
}

// Restore implements store.Writer.
func (w *writer) Restore(obj model.Object) error {
	*obj.Meta().UpdateTS = w.now
	return w.insert(obj)
}

func (w *writer) insert(obj model.Object) error {
	if err := w.seal(obj, nil); err != nil {
		return err
	}
	if err := w.tx.Create(obj).Error; err != nil {
		return w.failWrite(obj, "storing", err)
	}
	return w.record(obj.Key(), nil, obj)
}

// seal makes what is confidential in obj unreadable.
func (w *writer) seal(obj, stored model.Object) error {
	c, ok := obj.(model.Confidential)
	if !ok {
		return nil
	}
	err := c.Seal(w.store.opts.Sealer, stored)
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
	if err := w.tx.Select("*").Updates(obj).Error; err != nil {
		return w.failWrite(obj, "replacing", err)
	}
	return w.record(key, old, obj)
}

// Remove implements store.Writer.
func (w *writer) Remove(key model.Key) error {
	old, err := w.Get(key)
	if err != nil {
		return err
	}
	if err := w.tx.Delete(old).Error; err != nil {
		return w.failWrite(old, "removing", err)
	}
	return w.record(key, old, nil)
}

// refer keeps the table of references in step with what an object uses. Links
// have columns of their own for it.
func (w *writer) refer(key model.Key, before, after model.Object) error {
	for _, obj := range []model.Object{before, after} {
		if _, named := obj.(model.Tagged); !named {
			continue
		}
		for _, to := range obj.Uses() {
			var err error
			if obj == before {
				err = w.tx.Exec("DELETE FROM reference WHERE kind = ? AND name = ?", key.Kind, key.Name).Error
			} else {
				err = w.tx.Exec("INSERT INTO reference (kind, name, to_kind, to_name) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
					key.Kind, key.Name, to.Kind, to.Name).Error
			}
			if err != nil {
				return w.fail("noting references", err)
			}
		}
	}
	return nil
}

// record adds an entry to the change log; the first takes the next revision.
func (w *writer) record(key model.Key, before, after model.Object) error {
	if w.revision == 0 {
		err := w.tx.Raw("UPDATE revision SET revision = revision + 1 RETURNING revision").Row().Scan(&w.revision)
		if err != nil {
			return w.fail("taking a revision", err)
		}
	}
	if err := w.refer(key, before, after); err != nil {
		return err
	}
	w.written = append(w.written, store.Written{Key: key, Before: copyOf(before), After: copyOf(after)})
	entry := changeLog{
		Revision: w.revision, Seq: len(w.written), Actor: w.origin.Actor, At: w.now, Request: w.origin.Request,
		Kind: key.Kind, Name: key.Name,
	}
	for _, side := range []struct {
		obj  model.Object
		text **string
	}{{before, &entry.Before}, {after, &entry.After}} {
		if side.obj == nil {
			continue
		}
		b, err := json.Marshal(side.obj)
		if err != nil {
			return fmt.Errorf("writing %s %q to the change log: %w", key.Kind, key.Name, err)
		}
		*side.text = new(string(b))
	}
	return w.fail("writing the change log", w.tx.Create(&entry).Error)
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
