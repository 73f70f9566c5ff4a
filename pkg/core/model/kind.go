package model

import "slices"

// Kind names a sort of object or link. Its text is the word used in response
// keys (`insert_core_db_<kind>`), in the change log and as the table name.
type Kind string

// The kinds of the specification. Links are kinds of their own: attaching is
// creating one, detaching is deleting it.
const (
	KindUpstream          Kind = "upstream"
	KindService           Kind = "service"
	KindRoute             Kind = "route"
	KindProxy             Kind = "proxy"
	KindFilter            Kind = "filter"
	KindGlobalConfig      Kind = "globalconfig"
	KindSecret            Kind = "secret"
	KindKeySet            Kind = "keyset"
	KindAPIKey            Kind = "key"
	KindConsumer          Kind = "consumer"
	KindList              Kind = "list"
	KindRouteUpstream     Kind = "route_upstream"
	KindRouteFilter       Kind = "route_filter"
	KindServiceFilter     Kind = "service_filter"
	KindServiceSecret     Kind = "service_secret"
	KindProxyService      Kind = "proxy_service"
	KindProxyFilter       Kind = "proxy_filter"
	KindProxyGlobalConfig Kind = "proxy_globalconfig"
)

// KindRow describes one kind. All that is the same for every kind goes by it: the
// paths, the columns of the tables, who owns and who uses whom, and what a change
// reaches.
type KindRow struct {
	Kind Kind
	// Path lists the kinds of the objects whose names make the key, outermost
	// first. They are the words of the path in the REST API and, but for the
	// object's own name, the columns of the table. The last one is the kind itself,
	// or, of a link, the kind of what it attaches; the one before it is the owner.
	Path [maxParts]Kind
	// New returns an object of the names that make its key, in the order of Path,
	// with the defaults set.
	New func(names [maxParts]string) Object
	// Names are the kinds of the objects that one of this kind may name in a field.
	Names [4]Kind
	// Everywhere says that an object that is attached to none holds for all.
	Everywhere bool
	// EveryRoute says of a link to a service that each route of the service holds
	// what it attaches.
	EveryRoute bool
}

// maxParts is the most names that make a key.
const maxParts = 3

// parts are the names that make a key.
type parts = [maxParts]string

// path is KindRow.Path.
type path = [maxParts]Kind

// table has a row for each kind, an object before what refers to it.
var table = [...]KindRow{ //nolint:gochecknoglobals // never written: a constant
	{Kind: KindSecret, Path: path{KindSecret}, New: func(n parts) Object { return &Secret{Name: n[0]} }},
	{
		Kind: KindUpstream, Path: path{KindUpstream}, Names: [4]Kind{KindSecret},
		New: func(n parts) Object { u := NewUpstream(); u.Name = n[0]; return u },
	},
	{Kind: KindKeySet, Path: path{KindKeySet}, New: func(n parts) Object { return &KeySet{Name: n[0]} }},
	{
		Kind: KindAPIKey, Path: path{KindKeySet, KindAPIKey},
		New: func(n parts) Object { return &APIKey{KeySet: n[0], Name: n[1]} },
	},
	{Kind: KindConsumer, Path: path{KindConsumer}, New: func(n parts) Object { return &Consumer{Name: n[0]} }},
	{Kind: KindList, Path: path{KindList}, New: func(n parts) Object { return &List{Name: n[0]} }},
	{
		Kind: KindFilter, Path: path{KindFilter}, Names: [4]Kind{KindSecret, KindUpstream, KindKeySet, KindList},
		New: func(n parts) Object { return &Filter{Name: n[0]} },
	},
	{
		Kind: KindGlobalConfig, Path: path{KindGlobalConfig}, Names: [4]Kind{KindSecret, KindUpstream}, Everywhere: true,
		New: func(n parts) Object { return &GlobalConfig{Name: n[0]} },
	},
	{
		Kind: KindService, Path: path{KindService}, Names: [4]Kind{KindSecret},
		New: func(n parts) Object { s := NewService(); s.Name = n[0]; return s },
	},
	{
		Kind: KindRoute, Path: path{KindService, KindRoute},
		New: func(n parts) Object { return &Route{Service: n[0], Name: n[1]} },
	},
	{Kind: KindProxy, Path: path{KindProxy}, New: func(n parts) Object { p := NewProxy(); p.Name = n[0]; return p }},
	{
		Kind: KindRouteUpstream, Path: path{KindService, KindRoute, KindUpstream},
		New: func(n parts) Object { return &RouteUpstream{Service: n[0], Route: n[1], Upstream: n[2]} },
	},
	{
		Kind: KindRouteFilter, Path: path{KindService, KindRoute, KindFilter},
		New: func(n parts) Object { return &RouteFilter{Service: n[0], Route: n[1], Filter: n[2]} },
	},
	{
		Kind: KindServiceFilter, Path: path{KindService, KindFilter}, EveryRoute: true,
		New: func(n parts) Object { return &ServiceFilter{Service: n[0], Filter: n[1]} },
	},
	{
		Kind: KindServiceSecret, Path: path{KindService, KindSecret},
		New: func(n parts) Object { return &ServiceSecret{Service: n[0], Secret: n[1]} },
	},
	{
		Kind: KindProxyService, Path: path{KindProxy, KindService},
		New: func(n parts) Object { return &ProxyService{Proxy: n[0], Service: n[1]} },
	},
	{
		Kind: KindProxyFilter, Path: path{KindProxy, KindFilter},
		New: func(n parts) Object { return &ProxyFilter{Proxy: n[0], Filter: n[1]} },
	},
	{
		Kind: KindProxyGlobalConfig, Path: path{KindProxy, KindGlobalConfig},
		New: func(n parts) Object { return &ProxyGlobalConfig{Proxy: n[0], GlobalConfig: n[1]} },
	},
}

// Row returns the row of the kind. A kind that is not in the table has one with
// its own name in the path and without New.
func (k Kind) Row() KindRow {
	for i := range table {
		if table[i].Kind == k {
			return table[i]
		}
	}
	return KindRow{Kind: k, Path: [maxParts]Kind{k}}
}

// parts is the number of names that make a key.
func (r KindRow) parts() int {
	n := 0
	for n < maxParts && r.Path[n] != "" {
		n++
	}
	return n
}

// Attaches is the kind of what a link attaches; empty for a kind of objects.
func (r KindRow) Attaches() Kind {
	if last := r.Path[r.parts()-1]; last != r.Kind {
		return last
	}
	return ""
}

// StartsWith reports whether the key of one of this kind begins with the names of the other path.
func (r KindRow) StartsWith(other [maxParts]Kind) bool {
	for i, kind := range other {
		if kind != "" && r.Path[i] != kind {
			return false
		}
	}
	return true
}

// Owner is the kind of the object that one of this kind is a part of and is
// deleted with; empty for a kind that stands alone.
func (r KindRow) Owner() Kind {
	if n := r.parts(); n > 1 {
		return r.Path[n-2]
	}
	return ""
}

// OwnedKinds lists the kinds of what is a part of an object of the kind.
func (k Kind) OwnedKinds() []Kind {
	return kindsWhere(func(r KindRow) bool { return r.Owner() == k })
}

// UserKinds lists the kinds that need an object of the kind to stay: the links that
// attach it, then the objects that may name it in a field.
func (k Kind) UserKinds() []Kind {
	return append(kindsWhere(func(r KindRow) bool { return r.Attaches() == k }),
		kindsWhere(func(r KindRow) bool { return slices.Contains(r.Names[:], k) })...)
}

func kindsWhere(is func(KindRow) bool) []Kind {
	var kinds []Kind
	for _, row := range table {
		if is(row) {
			kinds = append(kinds, row.Kind)
		}
	}
	return kinds
}

// Kinds lists every kind, an object before what refers to it.
func Kinds() []Kind { return kindsWhere(func(KindRow) bool { return true }) }

// New returns an empty object of a kind with the defaults set, or nil for a
// kind that does not exist.
func New(kind Kind) Object {
	return Key{Kind: kind}.New()
}

// Object is a configuration object or a link between two.
type Object interface {
	Key() Key
	// Meta points at the fields that the store assigns.
	Meta() Meta
	// Validate reports every bad field, or nothing.
	Validate() []FieldError
}

// Namer is an object that may name others in its fields: those of KindRow.Names.
type Namer interface {
	Object
	Names() []Key
}

// Uses lists the objects that this one needs, which cannot be deleted while it is
// there: what a link attaches, or what the fields name.
func Uses(obj Object) []Key { return uses(obj.Key(), obj) }

func uses(key Key, obj Object) []Key {
	if attached := key.Attached(); attached != (Key{}) {
		return []Key{attached}
	}
	if namer, ok := obj.(Namer); ok {
		return namer.Names()
	}
	return nil
}

// Tagged is an object that carries tags: every one with a name of its own.
type Tagged interface {
	Object
	TagList() *Tags
}

// Meta points at the fields of an object that the store assigns.
type Meta struct {
	// ID is unique within the kind and grows in order of creation.
	ID                 *int64
	CreateTS, UpdateTS *Time
}
