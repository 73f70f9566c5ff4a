package model

import "strings"

// Kind names a sort of object or link. Its text is the word used in response
// keys (`insert_core_db_<kind>`), in the change log and as the table name.
type Kind string

// The kinds of the specification. Links are kinds of their own: attaching is
// creating one, detaching is deleting it.
const (
	KindUpstream      Kind = "upstream"
	KindService       Kind = "service"
	KindRoute         Kind = "route"
	KindProxy         Kind = "proxy"
	KindRouteUpstream Kind = "route_upstream"
	KindProxyService  Kind = "proxy_service"
)

// Kinds lists every kind, an object before what refers to it.
func Kinds() []Kind {
	return []Kind{KindUpstream, KindService, KindRoute, KindProxy, KindRouteUpstream, KindProxyService}
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
	switch {
	case k.Kind == KindRoute && len(n) == 2:
		return "/service/" + n[0] + "/route/" + n[1]
	case k.Kind == KindRouteUpstream && len(n) == 3:
		return "/service/" + n[0] + "/route/" + n[1] + "/upstream/" + n[2]
	case k.Kind == KindProxyService && len(n) == 2:
		return "/proxy/" + n[0] + "/service/" + n[1]
	}
	return "/" + string(k.Kind) + "/" + k.Name
}

// UpstreamKey is the key of the upstream called name.
func UpstreamKey(name string) Key { return Key{KindUpstream, name} }

// ServiceKey is the key of the service called name.
func ServiceKey(name string) Key { return Key{KindService, name} }

// RouteKey is the key of a route of service.
func RouteKey(service, route string) Key { return Key{KindRoute, service + "/" + route} }

// ProxyKey is the key of the proxy called name.
func ProxyKey(name string) Key { return Key{KindProxy, name} }

// RouteUpstreamKey is the key of the link from a route to an upstream.
func RouteUpstreamKey(service, route, upstream string) Key {
	return Key{KindRouteUpstream, service + "/" + route + "/" + upstream}
}

// ProxyServiceKey is the key of the link from a proxy to a service.
func ProxyServiceKey(proxy, service string) Key { return Key{KindProxyService, proxy + "/" + service} }

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
	case KindRouteUpstream:
		return &RouteUpstream{}
	case KindProxyService:
		return &ProxyService{}
	}
	return nil
}
