package sqlstore

import (
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// dialect is how a database accepts the values of a statement.
type dialect struct {
	// rows bounds the rows of one INSERT.
	rows int
	// placeholder stands for a value; its number follows if they are numbered.
	placeholder string
	numbered    bool
}

// insertion is an INSERT of many rows. GORM would build the statement again for each page.
type insertion struct {
	table   string
	columns []string
	// suffix is what follows the values.
	suffix string
}

// insert runs an INSERT of n rows. values appends the values of a row. If the suffix
// returns IDs, id receives them; otherwise it is nil.
func (w *writer) insert(into insertion, n int, values func(args []any, row int) []any, id func(row int, id int64)) error {
	for first := 0; first < n; {
		rows := min(n-first, w.store.dialect.rows)
		args := make([]any, 0, rows*len(into.columns))
		for i := range rows {
			args = values(args, first+i)
		}
		if err := w.insertSome(into, rows, args, func(row int, v int64) { id(first+row, v) }); err != nil {
			return err
		}
		first += rows
	}
	return nil
}

// insertSome inserts rows with one statement.
func (w *writer) insertSome(into insertion, rows int, args []any, id func(row int, id int64)) error {
	w.step()
	result, err := w.tx.Statement.ConnPool.QueryContext(w.context(), w.insertText(into, rows), args...)
	if err != nil {
		return err
	}
	for row := 0; err == nil && result.Next(); row++ {
		var v int64
		if err = result.Scan(&v); err == nil {
			id(row, v)
		}
	}
	return errors.Join(err, result.Err(), result.Close())
}

// insertText returns the statement for a number of rows.
func (w *writer) insertText(into insertion, rows int) string {
	var text strings.Builder
	text.WriteString(`INSERT INTO "` + into.table + `" ("` + strings.Join(into.columns, `", "`) + `") VALUES `)
	for i := range rows {
		for j := range into.columns {
			switch {
			case j > 0:
				text.WriteByte(',')
			case i > 0:
				text.WriteString(",(")
			default:
				text.WriteByte('(')
			}
			text.WriteString(w.store.dialect.placeholder)
			if w.store.dialect.numbered {
				text.WriteString(strconv.Itoa(i*len(into.columns) + j + 1))
			}
		}
		text.WriteByte(')')
	}
	return text.String() + " " + into.suffix
}

// insertRows sends new rows of one kind, either all with an ID or all without.
func (w *writer) insertRows(kind model.Kind, rows []row) error {
	t := w.store.tables[kind]
	columns, suffix := t.columns, ""
	if *rows[0].obj.Meta().ID == 0 {
		columns, suffix = t.withoutID(), "RETURNING id"
	}
	err := w.insert(t.insertion(columns, suffix), len(rows), valuesOf(columns, rows), func(i int, id int64) {
		*rows[i].obj.Meta().ID, *rows[i].from.Meta().ID = id, id
	})
	if err != nil {
		return w.failWrite(rows[0].obj, "storing", err)
	}
	return nil
}

// updateRows updates many rows at a time by inserting rows whose IDs are taken. The
// columns of the key do not change, so the database need not look for what refers to it.
func (w *writer) updateRows(kind model.Kind, rows []row) error {
	t := w.store.tables[kind]
	set := make([]string, len(t.rest))
	for i, column := range t.rest {
		set[i] = `"` + column + `" = excluded."` + column + `"`
	}
	upsert := t.insertion(t.columns, "ON CONFLICT (id) DO UPDATE SET "+strings.Join(set, ", "))
	if err := w.insert(upsert, len(rows), valuesOf(t.columns, rows), nil); err != nil {
		return w.failWrite(rows[0].obj, "replacing", err)
	}
	return nil
}

// insertEntries sends entries of the change log.
func (w *writer) insertEntries(entries []changeLog) error {
	columns := []string{"revision", "parent", "seq", "actor", "at", "request", "message", "kind", "name", "before", "after"}
	return w.insert(insertion{"change_log", columns, ""}, len(entries), func(args []any, i int) []any {
		e := &entries[i]
		return append(args, e.Revision, e.Parent, e.Seq, e.Actor, e.At, e.Request, e.Message, string(e.Kind), e.Name, e.Before, e.After)
	}, nil)
}

// insertion returns the INSERT of the table's rows.
func (t table) insertion(columns []column, suffix string) insertion {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return insertion{string(t.kind), names, suffix}
}

// withoutID returns the columns of a row whose ID the database assigns.
func (t table) withoutID() []column {
	var columns []column
	for _, c := range t.columns {
		if c.name != "id" {
			columns = append(columns, c)
		}
	}
	return columns
}

// valuesOf returns a function that appends the values of columns from rows.
func valuesOf(columns []column, rows []row) func(args []any, i int) []any {
	return func(args []any, i int) []any {
		v := reflect.ValueOf(rows[i].obj).Elem()
		for _, c := range columns {
			args = append(args, v.FieldByIndex(c.field).Interface())
		}
		return args
	}
}
