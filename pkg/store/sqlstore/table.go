package sqlstore

import (
	"fmt"
	"reflect"
	"strings"
	"sync"

	"gorm.io/gorm/schema"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// table is how the objects of one kind are stored.
type table struct {
	kind model.Kind
	typ  reflect.Type
	// key holds the columns of the names that make the key.
	key []string
}

// naming makes table and column names of Go names: HCPath becomes hc_path, and
// HTTPSPort, which GORM would call http_s_port, https_port.
func naming() schema.Namer {
	return schema.NamingStrategy{SingularTable: true, NameReplacer: strings.NewReplacer("HTTPS", "Https", "GlobalConfig", "Globalconfig")}
}

// tables describes every kind of the model.
func tables() (map[model.Kind]table, error) {
	var cache sync.Map
	all := map[model.Kind]table{}
	for _, kind := range model.Kinds() {
		obj := model.New(kind)
		parsed, err := schema.Parse(obj, &cache, naming())
		if err != nil {
			return nil, fmt.Errorf("describing the table of kind %q: %w", kind, err)
		}
		if parsed.Table != string(kind) {
			return nil, fmt.Errorf("describing the table of kind %q: the type is stored in %q", kind, parsed.Table)
		}
		all[kind] = table{kind: kind, typ: reflect.TypeOf(obj).Elem(), key: keyColumns(kind)}
	}
	return all, nil
}

// keyColumns are the columns of the names that make the key.
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

// where is the condition that selects the row of key, or nil when no row of
// the kind can have such a key.
func (t table) where(key model.Key) map[string]any {
	names := key.Names()
	if len(names) != len(t.key) || !storable(key.Text()) {
		return nil
	}
	where := make(map[string]any, len(names))
	for i, column := range t.key {
		where[column] = names[i]
	}
	return where
}

// newSlice returns a pointer to an empty slice of pointers to the kind's type.
func (t table) newSlice() reflect.Value {
	return reflect.New(reflect.SliceOf(reflect.PointerTo(t.typ)))
}

// objects turns what newSlice made into objects.
func objects(slice reflect.Value) []model.Object {
	slice = slice.Elem()
	list := make([]model.Object, slice.Len())
	for i := range list {
		list[i] = slice.Index(i).Interface().(model.Object)
	}
	return list
}
