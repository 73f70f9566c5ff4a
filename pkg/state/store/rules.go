package store

import (
	"cmp"
	"strings"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
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

// Create stores a new, valid object. Everything it refers to must exist (NotFound names
// the first that does not), its key must be free (Exists), and it must not claim what
// another object has (Conflict).
func Create(w Writer, obj model.Object) error {
	if err := prepare(w, obj); err != nil {
		return err
	}
	if err := check(w, obj); err != nil {
		return err
	}
	return w.Insert(obj)
}

// Replace stores obj in place of the object with the same key, under the rules of
// Create.
func Replace(w Writer, obj model.Object) error {
	if err := prepare(w, obj); err != nil {
		return err
	}
	if err := check(w, obj); err != nil {
		return err
	}
	return w.Replace(obj)
}

// Put creates obj, or replaces the object with the same key.
func Put(w Writer, obj model.Object) (created bool, err error) {
	_, err = w.Get(obj.Key())
	switch {
	case err == nil:
		return false, Replace(w, obj)
	case model.IsKind(err, model.NotFound):
		return true, Create(w, obj)
	}
	return false, err
}

// prepare turns a client secret that is the name of a secret into a reference to it:
// users of the specification write either.
func prepare(w Writer, obj model.Object) error {
	f, ok := obj.(*model.Filter)
	if !ok {
		return nil
	}
	name, err := f.NameSecret(func(name string) (bool, error) {
		_, err := w.Get(model.SecretKey(name))
		if model.IsKind(err, model.NotFound) {
			return false, nil
		}
		return err == nil, err
	})
	if err == nil && name != "" {
		w.Warn(f.Key().Path() + ": client_secret is the name of secret \"" + name + "\", so the value of the secret is used, not its name")
	}
	return err
}

// check applies the rules between objects.
func check(r Reader, obj model.Object) error {
	if owner := obj.Key().Owner(); owner != (model.Key{}) {
		if _, err := r.Get(owner); err != nil {
			return err
		}
	}
	if err := checkUses(r, obj); err != nil {
		return err
	}
	if err := checkL4(r, obj); err != nil {
		return err
	}
	switch o := obj.(type) {
	case *model.ProxyService:
		return checkHostIsFree(r, o.Proxy, o.Service)
	case *model.Service:
		return checkServiceHost(r, o)
	case *model.RouteFilter:
		return checkFits(r, o.Key(), o.Filter, model.KindRoute)
	case *model.ServiceFilter:
		return checkFits(r, o.Key(), o.Filter, model.KindService)
	case *model.ProxyFilter:
		return checkFits(r, o.Key(), o.Filter, model.KindProxy)
	case *model.Filter:
		return firstOf(checkLists(r, o), checkStillFits(r, o))
	case *model.List:
		return checkListType(r, o)
	}
	return nil
}

// checkUses refuses an object that names what does not exist. The error has every field that does so.
func checkUses(r Reader, obj model.Object) error {
	var missing *model.Error
	_, named := obj.(model.Tagged)
	for _, key := range model.Uses(obj) {
		_, err := r.Get(key)
		switch {
		case err == nil:
			continue
		case !named || !model.IsKind(err, model.NotFound):
			return err
		case missing == nil:
			missing = &model.Error{
				Kind: model.Unworkable, Path: obj.Key().Path(),
				Message: obj.Key().Path() + " names " + key.Path() + ", which does not exist", Hint: "create it first",
			}
		}
		for _, field := range model.FieldsNaming(obj, key) {
			missing.Fields = append(missing.Fields, model.FieldError{Field: field, Message: "names " + key.Path() + ", which does not exist"})
		}
	}
	if missing == nil { // a nil *model.Error is not a nil error
		return nil
	}
	return missing
}

// checkFits refuses a filter whose type is not allowed in such a place (rest-api.md,
// "Filters and global configs").
func checkFits(r Reader, link model.Key, filter string, kind model.Kind) error {
	f, err := Get[*model.Filter](r, model.FilterKey(filter))
	if err != nil || f.FitsOn(kind) {
		return err
	}
	refused := &model.Error{
		Kind: model.Unworkable, Path: link.Path(),
		Message: `a filter of type "` + f.Type + `" cannot be attached to a ` + string(kind),
		Hint:    "it works for whole services; attach it to the service",
	}
	if kind == model.KindProxy {
		refused.Message += ": it " + f.ProxyRefusal()
		refused.Hint = "attach it to services or routes"
	}
	return refused
}

// checkStillFits refuses a type that is not allowed where the filter is attached.
func checkStillFits(r Reader, f *model.Filter) error {
	for link, kind := range map[model.Kind]model.Kind{
		model.KindRouteFilter: model.KindRoute, model.KindServiceFilter: model.KindService, model.KindProxyFilter: model.KindProxy,
	} {
		if f.FitsOn(kind) {
			continue
		}
		users, err := r.List(Query{Kind: link, To: []model.Key{f.Key()}, Limit: 1})
		if err != nil {
			return err
		}
		if len(users) > 0 {
			return &model.Error{
				Kind: model.Unworkable, Path: f.Key().Path(),
				Message: `filter "` + f.Name + `" is attached to ` + users[0].Key().Owner().Path() + `, where a filter of type "` + f.Type + `" cannot be attached`,
				Hint:    "detach it there first",
			}
		}
	}
	return nil
}

// checkServiceHost refuses a host or port that another service of the same proxy has.
func checkServiceHost(r Reader, svc *model.Service) error {
	old, err := Get[*model.Service](r, svc.Key())
	if model.IsKind(err, model.NotFound) {
		return nil
	}
	if err != nil || strings.EqualFold(old.FQDN, svc.FQDN) && old.Mode == svc.Mode && old.Port == svc.Port {
		return err
	}
	links, err := List[*model.ProxyService](r, Query{Kind: model.KindProxyService, To: []model.Key{svc.Key()}})
	if err != nil {
		return err
	}
	for _, l := range links {
		if err := checkPort(r, l.Proxy, svc); err != nil {
			return err
		}
		if err := checkHost(r, l.Proxy, svc); err != nil {
			return err
		}
	}
	return nil
}

// checkHostIsFree refuses to attach a service to a proxy that already serves
// its host (rest-api.md: "Two services of one proxy may not claim the same
// fqdn").
func checkHostIsFree(r Reader, proxy, service string) error {
	svc, err := Get[*model.Service](r, model.ServiceKey(service))
	if err != nil {
		return err
	}
	if err := checkPort(r, proxy, svc); err != nil {
		return err
	}
	return checkHost(r, proxy, svc)
}

func checkHost(r Reader, proxy string, svc *model.Service) error {
	if svc.IsL4() {
		return nil // see checkPort
	}
	sameHost, err := r.ServicesOf(svc.FQDN)
	if err != nil {
		return err
	}
	for _, other := range sameHost {
		if other.Name == svc.Name || other.IsL4() {
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
			Kind: model.Conflict, Path: model.ProxyServiceKey(proxy, svc.Name).Path(),
			Message: `proxy "` + proxy + `" already serves host "` + svc.FQDN + `" with service "` + other.Name + `"`,
			Hint:    "detach that service first, or change one of the two hosts",
		}
	}
	return nil
}

// Delete removes an object and everything it owns: the routes of a service, the links
// of a route, the attachments of a proxy. If others use the object, it returns an InUse
// error that lists them.
func Delete(w Writer, key model.Key) error {
	obj, err := w.Get(key)
	if err != nil {
		return err
	}
	var users []model.Object
	for _, kind := range key.Kind.UserKinds() {
		list, err := w.List(Query{Kind: kind, To: []model.Key{key}, Limit: MaxReferences - len(users)})
		if err != nil {
			return err
		}
		if users = append(users, list...); len(users) == MaxReferences {
			break
		}
	}
	if len(users) > 0 {
		e := &model.Error{
			Kind: model.InUse, Path: key.Path(),
			Message: string(key.Kind) + ` "` + key.Name() + `" is in use`,
			Hint:    "detach it from the objects in referenced_by, then delete it",
		}
		for _, u := range users {
			e.ReferencedBy = append(e.ReferencedBy, cmp.Or(u.Key().Owner(), u.Key()).Path())
		}
		return e
	}
	return removeTree(w, obj)
}

// partsPage bounds the objects of each kind that removeTree has in memory.
const partsPage = 500

func removeTree(w Writer, obj model.Object) error {
	for _, kind := range obj.Key().Kind.OwnedKinds() {
		q := Query{Kind: kind, To: []model.Key{obj.Key()}, Limit: partsPage}
		for {
			parts, err := w.List(q)
			if err != nil {
				return err
			}
			for _, part := range parts {
				if err := removeTree(w, part); err != nil {
					return err
				}
			}
			if len(parts) < partsPage { // otherwise there may be more after these
				break
			}
		}
	}
	return w.Remove(obj.Key())
}

// MaxReferences bounds the list in an InUse error.
const MaxReferences = 100
