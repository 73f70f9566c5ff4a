package sqlstore

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// batchSize bounds the rows of one statement: SQLite allows 32766 values in it, so a
// row may have about 60.
const batchSize = 500

// keptBytes bounds the written objects that a transaction keeps in memory, as JSON;
// tests set another bound. PUT /config of 10,000 services with five routes each is
// less.
const keptBytes = 32 << 20

// batch holds rows that are sent together: with a statement for each, a large document
// would take minutes.
type batch struct {
	// created are new rows in order: each row comes before those that refer to it.
	// changed are new states of other rows, by kind.
	created []row
	changed []row
	// pending has the keys of both.
	pending map[model.Key]bool
	// unreferred are objects whose references are removed before references are
	// created.
	unreferred []model.Key
	references []reference
	// err is the error of sending them; the transaction is lost.
	err error
}

// row is an object in its stored form, and the caller's object, which gets the ID.
type row struct {
	kind      model.Kind
	obj, from model.Object
}

// reference is a row of the table of references.
type reference struct {
	Kind   model.Kind
	Name   string
	ToKind model.Kind
	ToName string
}

// changeLog is an entry of the change log.
type changeLog struct {
	Revision int64
	// Parent is the ID of the previous revision.
	Parent  string
	Seq     int
	Actor   string
	At      model.Time
	Request string
	// Message is that of the revision in its first entry, and empty in others.
	Message string
	Kind    model.Kind
	Name    string
	Before  *string
	After   *string
}

// key is the key of the object that was changed.
func (l changeLog) key() model.Key {
	key, _ := model.ParseKey(l.Kind, l.Name)
	return key
}

// size is the size of the objects, in bytes.
func (l changeLog) size() (n int) {
	for _, text := range []*string{l.Before, l.After} {
		if text != nil {
			n += len(*text)
		}
	}
	return n
}

func (b *batch) add(key model.Key, obj, from model.Object, changed bool) {
	list := &b.created
	if changed {
		list = &b.changed
	}
	*list = append(*list, row{key.Kind, obj, from})
	b.pending[key] = true
}

// holds reports whether a query of the kind would miss rows that were not sent yet.
func (b *batch) holds(kind model.Kind) bool {
	ofKind := func(r row) bool { return r.kind == kind }
	return slices.ContainsFunc(b.created, ofKind) || slices.ContainsFunc(b.changed, ofKind) ||
		slices.ContainsFunc(b.unreferred, func(k model.Key) bool { return k.Kind == kind }) ||
		slices.ContainsFunc(b.references, func(r reference) bool { return r.Kind == kind })
}

// send writes the rows and their references.
func (w *writer) send() error {
	if w.err != nil || len(w.pending)+len(w.unreferred) == 0 {
		return w.err
	}
	slices.SortStableFunc(w.changed, func(a, b row) int { return cmp.Compare(a.kind, b.kind) })
	steps := []func() error{
		func() error { return w.sendRuns(w.created, w.insertRows) },
		func() error { return w.sendRuns(w.changed, w.updateRows) },
		w.sendReferences,
	}
	for _, step := range steps {
		if w.err = step(); w.err != nil {
			return w.err
		}
	}
	w.batch = batch{pending: map[model.Key]bool{}}
	return nil
}

// sendRuns sends rows that follow each other and are of one kind together.
func (w *writer) sendRuns(rows []row, send func(kind model.Kind, rows []row) error) error {
	for len(rows) > 0 {
		first := rows[0]
		n := slices.IndexFunc(rows, func(r row) bool {
			return r.kind != first.kind || (*r.obj.Meta().ID == 0) != (*first.obj.Meta().ID == 0)
		})
		if n < 0 {
			n = len(rows)
		}
		if err := send(first.kind, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

func (w *writer) sendReferences() error {
	names := map[model.Kind][]string{}
	for _, key := range w.unreferred {
		names[key.Kind] = append(names[key.Kind], key.Text())
	}
	for kind, list := range names {
		if err := w.db().Exec("DELETE FROM reference WHERE kind = ? AND name IN ?", kind, list).Error; err != nil {
			return w.fail("noting references", err)
		}
	}
	if len(w.references) == 0 {
		return nil
	}
	return w.fail("noting references", w.db().Clauses(clause.OnConflict{DoNothing: true}).Create(w.references).Error)
}

// flush sends the rows, then their entries of the change log.
func (w *writer) flush() error {
	if err := w.send(); err != nil {
		return err
	}
	first := w.count.Total() - len(w.latest) + 1
	entries := make([]changeLog, 0, len(w.latest)-w.logged)
	for ; w.logged < len(w.latest); w.logged++ {
		e, err := w.entry(first+w.logged, w.latest[w.logged])
		if err != nil {
			return err
		}
		entries = append(entries, e)
		w.bytes += e.size()
	}
	w.err = w.fail("writing the change log", w.insertEntries(entries))
	if w.bytes > w.store.keptBytes { // too much to keep in memory: Written reads it again
		w.latest, w.logged, w.place = nil, 0, map[model.Key]int{}
	}
	return w.err
}

func (w *writer) entry(seq int, change store.Written) (changeLog, error) {
	e := changeLog{
		Revision: w.revision, Parent: w.parent.ID, Seq: seq, Actor: w.origin.Actor, At: w.now, Request: w.origin.Request,
		Kind: change.Key.Kind, Name: change.Key.Text(),
	}
	if seq == 1 {
		e.Message = w.origin.Message
	}
	for _, side := range []struct {
		obj  model.Object
		text **string
	}{{change.Before, &e.Before}, {change.After, &e.After}} {
		if side.obj == nil {
			continue
		}
		b, err := json.Marshal(side.obj)
		if err != nil {
			return e, fmt.Errorf("writing %s %q to the change log: %w", e.Kind, e.Name, err)
		}
		*side.text = new(string(b))
	}
	return e, nil
}
