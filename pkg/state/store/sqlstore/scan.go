package sqlstore

import (
	"database/sql"
	"errors"
	"reflect"
	"strings"

	"gorm.io/gorm"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// read runs a query for rows of a table. GORM makes the statement, but does not fill
// the rows: setting the fields of each row would double the time.
func (s *Store) read(tx *gorm.DB, t table) ([]model.Object, error) {
	rows, err := tx.Table(string(t.kind)).Select(s.selection(t)).Rows()
	if err != nil {
		return nil, err
	}
	row := reflect.New(t.typ).Elem()
	into := make([]any, len(t.columns))
	for i, c := range t.columns {
		into[i] = destination(row.FieldByIndex(c.field))
	}
	var list []model.Object
	for err == nil && rows.Next() {
		row.SetZero()
		err = rows.Scan(into...)
		obj := reflect.New(t.typ)
		obj.Elem().Set(row)
		list = append(list, obj.Interface().(model.Object))
	}
	if err = errors.Join(err, rows.Err(), rows.Close()); err != nil {
		return nil, err
	}
	return list, nil
}

// selection returns the list of the columns of a table. Times are selected as text if
// the driver would try one format after the other: Time knows which it is.
func (s *Store) selection(t table) string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
		if c.isTime && s.timesAreText {
			names[i] = "CAST(" + c.name + " AS TEXT)"
		}
	}
	return strings.Join(names, ", ")
}

// destination returns where the column of a field is read into.
func destination(field reflect.Value) any {
	switch to := field.Addr().Interface().(type) {
	case *int:
		return number[int]{to}
	case *int64:
		return number[int64]{to}
	default:
		return to
	}
}

// number reads an integer; database/sql would write it as text and parse that.
type number[T int | int64] struct{ to *T }

// Scan implements sql.Scanner.
func (n number[T]) Scan(src any) error {
	if v, ok := src.(int64); ok {
		*n.to = T(v)
		return nil
	}
	var v sql.NullInt64
	err := v.Scan(src)
	*n.to = T(v.Int64)
	return err
}
