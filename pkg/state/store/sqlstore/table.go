package sqlstore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"gorm.io/gorm/schema"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// table is how the objects of one kind are stored.
type table struct {
	kind model.Kind
	typ  reflect.Type
	// key has the columns of the names that make the key, rest those that an object may
	// change.
	key, rest []string
	// columns are key and rest.
	columns []column
}

// column is a column and the field that it is read into.
type column struct {
	name   string
	field  []int
	isTime bool
}

// namingStrategy derives table and column names from Go names: HCPath becomes hc_path, and
// HTTPSPort, which GORM would call http_s_port, https_port. The type of a kind, and a field that
// names an object of it, become the word of the kind: KeySet becomes keyset.
func namingStrategy() schema.Namer {
	words := []string{"HTTPS", "Https"}
	for _, kind := range model.Kinds() {
		if word := string(kind); kind.Row().Attaches() == "" {
			words = append(words, reflect.TypeOf(model.New(kind)).Elem().Name(), strings.ToUpper(word[:1])+word[1:])
		}
	}
	return schema.NamingStrategy{SingularTable: true, NameReplacer: strings.NewReplacer(words...)}
}

// tables describes every kind of the model.
func tables() (map[model.Kind]table, error) {
	var cache sync.Map
	all := map[model.Kind]table{}
	for _, kind := range model.Kinds() {
		obj := model.New(kind)
		parsed, err := schema.Parse(obj, &cache, namingStrategy())
		if err != nil {
			return nil, fmt.Errorf("describing the table of kind %q: %w", kind, err)
		}
		if parsed.Table != string(kind) {
			return nil, fmt.Errorf("describing the table of kind %q: the type is stored in %q", kind, parsed.Table)
		}
		t := table{kind: kind, typ: reflect.TypeOf(obj).Elem(), key: keyColumns(kind)}
		t.rest = slices.DeleteFunc(slices.Clone(parsed.DBNames), func(column string) bool {
			return column == "id" || column == "create_ts" || slices.Contains(t.key, column)
		})
		for _, name := range parsed.DBNames {
			f := parsed.FieldsByDBName[name]
			t.columns = append(t.columns, column{name, f.StructField.Index, f.IndirectFieldType == reflect.TypeFor[model.Time]()})
		}
		all[kind] = t
	}
	return all, nil
}

// keyColumns returns the columns of the names that make the key.
func keyColumns(kind model.Kind) []string {
	var columns []string
	for _, word := range kind.Row().Path {
		switch word {
		case "":
		case kind:
			columns = append(columns, "name")
		default:
			columns = append(columns, string(word))
		}
	}
	return columns
}

// where returns the condition that selects the row of key, or nil if no row of the kind
// can have such a key.
func (t table) where(key model.Key) map[string]any {
	names := key.Names()
	if len(names) != len(t.key) || !isStorable(key.Text()) {
		return nil
	}
	where := make(map[string]any, len(names))
	for i, column := range t.key {
		where[column] = names[i]
	}
	return where
}

// keyCondition returns the condition for the rows that have one of some keys in these
// columns, with its values. It is empty if no row can have one. It is a join: only then
// does SQLite look up pairs in an index; for "(a, b) IN" it reads the whole table.
func (t table) keyCondition(columns []string, keys []model.Key) (condition string, values []any) {
	row := "(?" + strings.Repeat(", ?", len(columns)-1) + ")"
	var rows, same []string
	for _, key := range keys {
		names := key.Names()
		if len(names) != len(columns) || !isStorable(key.Text()) {
			continue
		}
		rows = append(rows, row)
		for _, name := range names {
			values = append(values, name)
		}
	}
	if len(rows) == 1 {
		return fmt.Sprintf("(%s) = %s", strings.Join(columns, ", "), row), values
	}
	for i, column := range columns {
		same = append(same, fmt.Sprintf("its.%s = wanted.column%d", column, i+1))
	}
	return fmt.Sprintf("id IN (SELECT its.id FROM (VALUES %s) AS wanted JOIN %s AS its ON %s)",
		strings.Join(rows, ", "), t.kind, strings.Join(same, " AND ")), values
}

// refersTo returns the condition that selects the objects that refer to one of some
// objects of one kind, with its values. It is empty if nothing can refer to them. The key
// of a part and of a link has the names of what it refers to; references of other objects
// are in the table of references.
func (t table) refersTo(keys []model.Key) (condition string, values []any) {
	to := keys[0].Kind
	if path := t.kind.Row().Path; t.kind != to && slices.Contains(path[:], to) {
		var columns []string
		for _, word := range to.Row().Path {
			if word != "" {
				columns = append(columns, string(word))
			}
		}
		return t.keyCondition(columns, keys)
	}
	var names []string
	for _, key := range keys {
		if isStorable(key.Text()) {
			names = append(names, key.Text())
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return "name IN (SELECT name FROM reference WHERE kind = ? AND to_kind = ? AND to_name IN ?)", []any{t.kind, to, names}
}
