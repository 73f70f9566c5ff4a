package sqlstore

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"gorm.io/gorm/clause"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// batchSize bounds the rows of one statement: SQLite takes 32766 values in it,
// so that a row may have some 60.
const batchSize = 500

// batch holds new rows that are sent together: a statement for each would make
// a large document take minutes.
type batch struct {
	rows       []newRow
	references []reference
	// err is what went wrong when they were sent; the transaction is lost.
	err error
}

// newRow is a row to be inserted, and the caller's object, which gets the ID.
type newRow struct {
	kind       model.Kind
	row, given model.Object
}

// reference is a row of that table.
type reference struct {
	Kind   model.Kind
	Name   string
	ToKind model.Kind
	ToName string
}

// changeLog is an entry of the change log.
type changeLog struct {
	Revision int64
	// Parent is the ID of the revision before.
	Parent  string
	Seq     int
	Actor   string
	At      model.Time
	Request string
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

func (b *batch) add(row, given model.Object) {
	b.rows = append(b.rows, newRow{row.Key().Kind, row, given})
}

// holds reports whether a query of the kind would miss something.
func (b *batch) holds(kind model.Kind) bool {
	return slices.ContainsFunc(b.rows, func(r newRow) bool { return r.kind == kind }) ||
		slices.ContainsFunc(b.references, func(r reference) bool { return r.Kind == kind })
}

// send inserts the rows. They go in order, so that one comes before what
// refers to it.
func (w *writer) send() error {
	if w.err != nil {
		return w.err
	}
	rest := w.rows
	w.rows = nil
	for len(rest) > 0 {
		kind := rest[0].kind
		n := 1
		for n < len(rest) && rest[n].kind == kind {
			n++
		}
		if w.err = w.sendRows(kind, rest[:n]); w.err != nil {
			return w.err
		}
		rest = rest[n:]
	}
	if len(w.references) > 0 {
		w.err = w.fail("noting references", w.db().Clauses(clause.OnConflict{DoNothing: true}).Create(w.references).Error)
		w.references = nil
	}
	return w.err
}

// sendRows inserts rows of one kind.
func (w *writer) sendRows(kind model.Kind, rows []newRow) error {
	slice := w.store.tables[kind].newSlice()
	for _, r := range rows {
		slice.Elem().Set(reflect.Append(slice.Elem(), reflect.ValueOf(r.row)))
	}
	if err := w.db().Create(slice.Interface()).Error; err != nil {
		return w.failWrite(rows[0].row, "storing", err)
	}
	for _, r := range rows {
		*r.given.Meta().ID = *r.row.Meta().ID
	}
	return nil
}

// flush sends the rows, then their entries of the change log.
func (w *writer) flush() error {
	if err := w.send(); err != nil {
		return err
	}
	entries := make([]changeLog, 0, len(w.written)-w.logged)
	for ; w.logged < len(w.written); w.logged++ {
		e, err := w.entry(w.logged+1, w.written[w.logged])
		if err != nil {
			return err
		}
		entries = append(entries, e)
	}
	if len(entries) > 0 {
		w.err = w.fail("writing the change log", w.db().Create(entries).Error)
	}
	return w.err
}

func (w *writer) entry(seq int, change store.Written) (changeLog, error) {
	e := changeLog{
		Revision: w.revision, Parent: w.parent.ID, Seq: seq, Actor: w.origin.Actor, At: w.now, Request: w.origin.Request,
		Kind: change.Key.Kind, Name: change.Key.Text(),
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
