package model

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
	KindRouteUpstream     Kind = "route_upstream"
	KindRouteFilter       Kind = "route_filter"
	KindServiceFilter     Kind = "service_filter"
	KindServiceSecret     Kind = "service_secret"
	KindProxyService      Kind = "proxy_service"
	KindProxyGlobalConfig Kind = "proxy_globalconfig"
)

// KindRow describes one kind.
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
}

// maxParts is the most names that make a key.
const maxParts = 3

// table has a row for each kind, an object before what refers to it. It is an
// array, so that a call allocates nothing.
func table() [13]KindRow {
	type names = [maxParts]string
	return [...]KindRow{
		{KindSecret, [maxParts]Kind{KindSecret}, func(n names) Object { return &Secret{Name: n[0]} }},
		{KindUpstream, [maxParts]Kind{KindUpstream}, func(n names) Object { u := NewUpstream(); u.Name = n[0]; return u }},
		{KindFilter, [maxParts]Kind{KindFilter}, func(n names) Object { return &Filter{Name: n[0]} }},
		{KindGlobalConfig, [maxParts]Kind{KindGlobalConfig}, func(n names) Object { return &GlobalConfig{Name: n[0]} }},
		{KindService, [maxParts]Kind{KindService}, func(n names) Object { return &Service{Name: n[0]} }},
		{KindRoute, [maxParts]Kind{KindService, KindRoute}, func(n names) Object { return &Route{Service: n[0], Name: n[1]} }},
		{KindProxy, [maxParts]Kind{KindProxy}, func(n names) Object { p := NewProxy(); p.Name = n[0]; return p }},
		{KindRouteUpstream, [maxParts]Kind{KindService, KindRoute, KindUpstream}, func(n names) Object {
			return &RouteUpstream{Service: n[0], Route: n[1], Upstream: n[2]}
		}},
		{KindRouteFilter, [maxParts]Kind{KindService, KindRoute, KindFilter}, func(n names) Object {
			return &RouteFilter{Service: n[0], Route: n[1], Filter: n[2]}
		}},
		{KindServiceFilter, [maxParts]Kind{KindService, KindFilter}, func(n names) Object {
			return &ServiceFilter{Service: n[0], Filter: n[1]}
		}},
		{KindServiceSecret, [maxParts]Kind{KindService, KindSecret}, func(n names) Object {
			return &ServiceSecret{Service: n[0], Secret: n[1]}
		}},
		{KindProxyService, [maxParts]Kind{KindProxy, KindService}, func(n names) Object {
			return &ProxyService{Proxy: n[0], Service: n[1]}
		}},
		{KindProxyGlobalConfig, [maxParts]Kind{KindProxy, KindGlobalConfig}, func(n names) Object {
			return &ProxyGlobalConfig{Proxy: n[0], GlobalConfig: n[1]}
		}},
	}
}

// Row returns the row of the kind. A kind that is not in the table has one with
// its own name in the path and without New.
func (k Kind) Row() KindRow {
	for _, row := range table() {
		if row.Kind == k {
			return row
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

// Kinds lists every kind, an object before what refers to it.
func Kinds() []Kind {
	rows := table()
	kinds := make([]Kind, len(rows))
	for i, row := range rows {
		kinds[i] = row.Kind
	}
	return kinds
}

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
	// Owner is the object that this one is a part of and is deleted with.
	// The zero Key means none.
	Owner() Key
	// Uses lists the objects that this one needs; they cannot be deleted
	// while it is there.
	Uses() []Key
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
