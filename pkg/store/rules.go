package store

import (
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
)

// Get returns one object as its own type.
func Get[T model.Object](r Reader, key model.Key) (T, error) {
	obj, err := r.Get(key)
	if err != nil {
		var none T
		return none, err
	}
	return obj.(T), nil
}

// List returns the objects that q selects as their own type.
func List[T model.Object](r Reader, q Query) ([]T, error) {
	objs, err := r.List(q)
	if err != nil {
		return nil, err
	}
	list := make([]T, len(objs))
	for i, o := range objs {
		list[i] = o.(T)
	}
	return list, nil
}

// Create stores a new, valid object. What it refers to must exist (NotFound
// names the first that does not), its key must be free (Exists), and it must
// not claim what another has (Conflict).
func Create(w Writer, obj model.Object) error {
	if owner := obj.Owner(); owner != (model.Key{}) {
		if _, err := w.Get(owner); err != nil {
			return err
		}
	}
	for _, key := range obj.Uses() {
		if _, err := w.Get(key); err != nil {
			return err
		}
	}
	if l, ok := obj.(*model.ProxyService); ok {
		if err := checkHostIsFree(w, l.Proxy, l.Service); err != nil {
			return err
		}
	}
	return w.Insert(obj)
}

// checkHostIsFree refuses to attach a service to a proxy that already serves
// its host (rest-api.md: "Two services of one proxy may not claim the same
// fqdn").
func checkHostIsFree(r Reader, proxy, service string) error {
	svc, err := Get[*model.Service](r, model.ServiceKey(service))
	if err != nil {
		return err
	}
	sameHost, err := List[*model.Service](r, Query{Kind: model.KindService, FQDN: svc.FQDN})
	if err != nil {
		return err
	}
	for _, other := range sameHost {
		if other.Name == service {
			continue
		}
		_, err := r.Get(model.ProxyServiceKey(proxy, other.Name))
		if model.IsKind(err, model.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		return &model.Error{
			Kind: model.Conflict, Path: model.ProxyServiceKey(proxy, service).Path(),
			Message: `proxy "` + proxy + `" already serves host "` + svc.FQDN + `" with service "` + other.Name + `"`,
			Hint:    "detach that service first, or change one of the two hosts",
		}
	}
	return nil
}

// Delete removes an object and all that it owns: the routes of a service, the
// links of a route, the attachments of a proxy. An object that others use is
// an InUse error that lists them.
func Delete(w Writer, key model.Key) error {
	obj, err := w.Get(key)
	if err != nil {
		return err
	}
	users, err := list(w, usedBy(key))
	if err != nil {
		return err
	}
	if len(users) > 0 {
		e := &model.Error{
			Kind: model.InUse, Path: key.Path(),
			Message: string(key.Kind) + ` "` + key.Name + `" is in use`,
			Hint:    "detach it from what referenced_by lists, then delete it",
		}
		for _, u := range users {
			e.ReferencedBy = append(e.ReferencedBy, u.Owner().Path())
		}
		return e
	}
	return removeTree(w, obj)
}

func removeTree(w Writer, obj model.Object) error {
	parts, err := list(w, ownedBy(obj.Key()))
	if err != nil {
		return err
	}
	for _, part := range parts {
		if err := removeTree(w, part); err != nil {
			return err
		}
	}
	return w.Remove(obj.Key())
}

// usedBy selects the links that need the object to stay. The zero Query means
// that nothing can.
func usedBy(key model.Key) Query {
	switch key.Kind {
	case model.KindUpstream:
		return Query{Kind: model.KindRouteUpstream, Upstream: key.Name, Limit: maxReferences}
	case model.KindService:
		return Query{Kind: model.KindProxyService, Service: key.Name, Limit: maxReferences}
	}
	return Query{}
}

// maxReferences bounds the list in an InUse error.
const maxReferences = 100

// ownedBy selects what is deleted together with the object.
func ownedBy(key model.Key) Query {
	switch key.Kind {
	case model.KindService:
		return Query{Kind: model.KindRoute, Service: key.Name}
	case model.KindRoute:
		service, route, _ := strings.Cut(key.Name, "/")
		return Query{Kind: model.KindRouteUpstream, Service: service, Route: route}
	case model.KindProxy:
		return Query{Kind: model.KindProxyService, Proxy: key.Name}
	}
	return Query{}
}

func list(r Reader, q Query) ([]model.Object, error) {
	if q.Kind == "" {
		return nil, nil
	}
	return r.List(q)
}
