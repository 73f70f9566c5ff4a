package model

import (
	"slices"
	"strings"
)

// Key identifies an object: its kind and the names that lead to it, for example
// {route, shop, root}. It is comparable, and small, since maps have many.
type Key struct {
	Kind Kind
	// text is the names, joined by slashes, which no name holds.
	text string
}

// NewKey returns the key of a kind with these names, in the order of
// KindRow.Path: of a route that of its service and its own.
func NewKey(kind Kind, names ...string) Key {
	return Key{kind, strings.Join(names, "/")}
}

// ParseKey reads what Text wrote. ok is false if the kind does not exist, or if no
// object of the kind can have the text.
func ParseKey(kind Kind, text string) (key Key, ok bool) {
	row := kind.Row()
	return Key{kind, text}, row.New != nil && strings.Count(text, "/")+1 == row.parts()
}

// Text joins the names by slashes, as the change log has them.
func (k Key) Text() string { return k.text }

// MarshalText writes the kind and the text, for example route:shop/root.
func (k Key) MarshalText() ([]byte, error) { return []byte(string(k.Kind) + ":" + k.text), nil }

// UnmarshalText reads what MarshalText writes. A kind that this program does not
// know, as that of a newer one, becomes the zero Key.
func (k *Key) UnmarshalText(b []byte) error {
	kind, text, _ := strings.Cut(string(b), ":")
	key, ok := ParseKey(Kind(kind), text)
	if !ok {
		key = Key{}
	}
	*k = key
	return nil
}

// split returns the names, and how many there are.
func (k Key) split() (names parts, n int) {
	rest, more := k.text, k.text != ""
	for ; more && n < maxParts; n++ {
		names[n], rest, more = strings.Cut(rest, "/")
	}
	return names, n
}

// Names are the names, in the order of KindRow.Path.
func (k Key) Names() []string {
	names, n := k.split()
	return names[:n]
}

// Name is the name of the object itself, or, of a link, of what it attaches.
func (k Key) Name() string {
	return k.text[strings.LastIndexByte(k.text, '/')+1:]
}

// Part is the name of the object of a kind on the way to this one, or its own;
// empty if there is none. For example, the Part KindService of a route is the
// name of its service.
func (k Key) Part(kind Kind) string {
	row := k.Kind.Row()
	for i, word := range row.Path {
		if word == kind {
			names, _ := k.split()
			return names[i]
		}
	}
	return ""
}

// Root is the outermost object on the way to this one: the service of a route
// or of what is attached to it. An object that stands alone is its own.
func (k Key) Root() Key {
	name, _, _ := strings.Cut(k.text, "/")
	return Key{k.Kind.Row().Path[0], name}
}

// Owner is the object that this one is a part of and is deleted with. The zero
// Key means none.
func (k Key) Owner() Key {
	owner := k.Kind.Row().Owner()
	if owner == "" {
		return Key{}
	}
	return Key{owner, k.text[:max(0, strings.LastIndexByte(k.text, '/'))]}
}

// Way lists the objects that lead to this one, its owners, outermost first, and
// itself.
func (k Key) Way() []Key {
	var way []Key
	for at := k; at != (Key{}); at = at.Owner() {
		way = append(way, at)
	}
	slices.Reverse(way)
	return way
}

// Attached is what a link attaches to its owner; the zero Key for an object that
// is no link.
func (k Key) Attached() Key {
	kind := k.Kind.Row().Attaches()
	if kind == "" {
		return Key{}
	}
	return Key{kind, k.Name()}
}

// New returns an object of this key with the defaults set, or nil for a kind
// that does not exist.
func (k Key) New() Object {
	row := k.Kind.Row()
	if row.New == nil {
		return nil
	}
	names, _ := k.split()
	return row.New(names)
}

// Path is the object's place in the REST API, for example
// /service/shop/route/root/upstream/blue.
func (k Key) Path() string {
	row := k.Kind.Row()
	var path strings.Builder
	for i, name := range k.Names() {
		path.WriteString("/" + string(row.Path[i]) + "/" + name)
	}
	return path.String()
}

// UpstreamKey is the key of the upstream called name.
func UpstreamKey(name string) Key { return NewKey(KindUpstream, name) }

// ServiceKey is the key of the service called name.
func ServiceKey(name string) Key { return NewKey(KindService, name) }

// RouteKey is the key of a route of service.
func RouteKey(service, route string) Key { return NewKey(KindRoute, service, route) }

// ProxyKey is the key of the proxy called name.
func ProxyKey(name string) Key { return NewKey(KindProxy, name) }

// FilterKey is the key of the filter called name.
func FilterKey(name string) Key { return NewKey(KindFilter, name) }

// GlobalConfigKey is the key of the global config called name.
func GlobalConfigKey(name string) Key { return NewKey(KindGlobalConfig, name) }

// SecretKey is the key of the secret called name.
func SecretKey(name string) Key { return NewKey(KindSecret, name) }

// KeySetKey is the key of the key set called name.
func KeySetKey(name string) Key { return NewKey(KindKeySet, name) }

// ConsumerKey is the key of a consumer.
func ConsumerKey(name string) Key { return NewKey(KindConsumer, name) }

// APIKeyKey is the key of an API key of a set.
func APIKeyKey(set, name string) Key { return NewKey(KindAPIKey, set, name) }
