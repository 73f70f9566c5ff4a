package sqlstore

import (
	"encoding/json"
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
	// seq counts the entries of this revision.
	seq int
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
	if err := w.tx.Create(obj).Error; err != nil {
		return w.failWrite(obj, "storing", err)
	}
	return w.record(key, nil, obj)
}

// Replace implements store.Writer.
func (w *writer) Replace(obj model.Object) error {
	key := obj.Key()
	old, err := w.Get(key)
	if err != nil {
		return err
	}
	meta, was := obj.Meta(), old.Meta()
	*meta.ID, *meta.CreateTS, *meta.UpdateTS = *was.ID, *was.CreateTS, *was.UpdateTS
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

// record adds an entry to the change log; the first takes the next revision.
func (w *writer) record(key model.Key, before, after model.Object) error {
	if w.revision == 0 {
		err := w.tx.Raw("UPDATE revision SET revision = revision + 1 RETURNING revision").Row().Scan(&w.revision)
		if err != nil {
			return w.fail("taking a revision", err)
		}
	}
	w.seq++
	entry := changeLog{
		Revision: w.revision, Seq: w.seq, Actor: w.origin.Actor, At: w.now, Request: w.origin.Request,
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
