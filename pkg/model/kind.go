package model

import "strings"

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

// Kinds lists every kind, an object before what refers to it.
func Kinds() []Kind {
	return []Kind{
		KindSecret, KindUpstream, KindFilter, KindGlobalConfig, KindService, KindRoute, KindProxy,
		KindRouteUpstream, KindRouteFilter, KindServiceFilter, KindServiceSecret, KindProxyService, KindProxyGlobalConfig,
	}
}

// Key identifies an object: its kind and the names that lead to it, joined by
// a slash (names hold none), for example {route, "shop/root"}.
type Key struct {
	Kind Kind
	Name string
}

// Path is the object's place in the REST API, for example
// /service/shop/route/root/upstream/blue.
func (k Key) Path() string {
	n := strings.Split(k.Name, "/")
	words, ok := map[Kind][]string{
		KindRoute:             {"service", "route"},
		KindRouteUpstream:     {"service", "route", "upstream"},
		KindRouteFilter:       {"service", "route", "filter"},
		KindServiceFilter:     {"service", "filter"},
		KindServiceSecret:     {"service", "secret"},
		KindProxyService:      {"proxy", "service"},
		KindProxyGlobalConfig: {"proxy", "globalconfig"},
	}[k.Kind]
	if !ok || len(words) != len(n) {
		return "/" + string(k.Kind) + "/" + k.Name
	}
	var path strings.Builder
	for i, word := range words {
		path.WriteString("/" + word + "/" + n[i])
	}
	return path.String()
}

// UpstreamKey is the key of the upstream called name.
func UpstreamKey(name string) Key { return Key{KindUpstream, name} }

// ServiceKey is the key of the service called name.
func ServiceKey(name string) Key { return Key{KindService, name} }

// RouteKey is the key of a route of service.
func RouteKey(service, route string) Key { return Key{KindRoute, service + "/" + route} }

// ProxyKey is the key of the proxy called name.
func ProxyKey(name string) Key { return Key{KindProxy, name} }

// FilterKey is the key of the filter called name.
func FilterKey(name string) Key { return Key{KindFilter, name} }

// GlobalConfigKey is the key of the global config called name.
func GlobalConfigKey(name string) Key { return Key{KindGlobalConfig, name} }

// SecretKey is the key of the secret called name.
func SecretKey(name string) Key { return Key{KindSecret, name} }

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

// New returns an empty object of a kind with the defaults set, or nil for a
// kind that does not exist.
func New(kind Kind) Object {
	switch kind {
	case KindUpstream:
		return NewUpstream()
	case KindService:
		return &Service{}
	case KindRoute:
		return &Route{}
	case KindProxy:
		return NewProxy()
	case KindFilter:
		return &Filter{}
	case KindGlobalConfig:
		return &GlobalConfig{}
	case KindSecret:
		return &Secret{}
	case KindRouteUpstream:
		return &RouteUpstream{}
	case KindRouteFilter:
		return &RouteFilter{}
	case KindServiceFilter:
		return &ServiceFilter{}
	case KindServiceSecret:
		return &ServiceSecret{}
	case KindProxyService:
		return &ProxyService{}
	case KindProxyGlobalConfig:
		return &ProxyGlobalConfig{}
	}
	return nil
}
