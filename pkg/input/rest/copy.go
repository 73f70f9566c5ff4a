package rest

import (
	"fmt"
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// nameOfCopy is the place in a path of the name that a copy gets.
const nameOfCopy model.Kind = "copy"

// addCopy registers the calls that copy. Their words are reserved names.
func (s *server) addCopy() {
	s.copies("/upstream/copy/:upstream/:copy", model.KindUpstream, copyUpstream)
	s.copies("/service/copy/:service/:copy", model.KindService, func(w store.Writer, n names, sent []form.Value) (model.Object, error) {
		svc, err := copyService(w, n, sent)
		if err != nil {
			return nil, err
		}
		return svc, warnNoLogin(w, n[model.KindService], n[nameOfCopy])
	})
	s.copies("/service/deepcopy/:service/:copy", model.KindService, deepCopyService)
	s.copies("/service/copyroute/:service/:copy/route/:route", model.KindRoute, func(w store.Writer, n names, sent []form.Value) (model.Object, error) {
		r, err := copyRoute(w, n[model.KindService], n[nameOfCopy], n[model.KindRoute], sent)
		if err != nil {
			return nil, err
		}
		return r, warnNoLogin(w, n[model.KindService], n[nameOfCopy])
	})
}

// copies registers a call. fn returns the copy, in which the fields sent are not those of the original.
func (s *server) copies(path string, kind model.Kind, fn func(store.Writer, names, []form.Value) (model.Object, error)) {
	s.change(http.MethodPost, path, func(c *gin.Context) error {
		m, _, err := s.writeMode(c)
		if err != nil {
			return err
		}
		sent, err := readBodyOrNull(c)
		if err != nil {
			return err
		}
		n, err := pathNames(c)
		if err != nil {
			return err
		}
		var made model.Object
		done, err := s.write(c, m, func(w store.Writer) error {
			made, err = fn(w, n, sent)
			return err
		})
		if err != nil {
			return err
		}
		setCreated(c, made.Key(), made, m.dry)
		s.answerWrite(c, http.StatusCreated, "insert", kind, 1, done)
		return nil
	})
}

// createCopy stores a copy under a name that nobody has checked yet.
func createCopy(w store.Writer, obj model.Object, sent []form.Value) (model.Object, error) {
	name := obj.Key()
	bad := form.Bind(obj, sent, false)
	if obj.Key() != name {
		bad = append(bad, model.FieldError{
			Field: form.Fields(name.Kind)[0].Name, Message: fmt.Sprintf("must be %q as in the path, or be omitted", name.Name()),
		})
	}
	if err := invalidFields(bad); err != nil {
		return nil, err
	}
	return obj, store.Create(w, obj)
}

func copyUpstream(w store.Writer, n names, sent []form.Value) (model.Object, error) {
	u, err := store.Get[*model.Upstream](w, model.UpstreamKey(n[model.KindUpstream]))
	if err != nil {
		return nil, err
	}
	u.Name = n[nameOfCopy]
	return createCopy(w, u, sent)
}

// copyService copies the service alone.
func copyService(w store.Writer, n names, sent []form.Value) (model.Object, error) {
	svc, err := store.Get[*model.Service](w, model.ServiceKey(n[model.KindService]))
	if err != nil {
		return nil, err
	}
	svc.Name = n[nameOfCopy]
	return createCopy(w, svc, sent)
}

// deepCopyService copies the service with its routes and with every link to
// upstreams, filters and secrets, which are shared and not copied. The copy is
// attached to no proxy.
func deepCopyService(w store.Writer, n names, sent []form.Value) (model.Object, error) {
	svc, err := copyService(w, n, sent)
	if err != nil {
		return nil, err
	}
	from, to := n[model.KindService], n[nameOfCopy]
	routes, err := store.List[*model.Route](w, store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey(from)}})
	if err != nil {
		return nil, err
	}
	for _, r := range routes {
		if _, err := copyRoute(w, from, to, r.Name, nil); err != nil {
			return nil, err
		}
	}
	return svc, copyLinks(w, svc.Key(), model.ServiceKey(from))
}

// copyRoute copies a route with its links. The fields sent may have another name for the copy.
func copyRoute(w store.Writer, from, to, name string, sent []form.Value) (model.Object, error) {
	if _, err := w.Get(model.ServiceKey(from)); err != nil {
		return nil, err
	}
	r, err := store.Get[*model.Route](w, model.RouteKey(from, name))
	if err != nil {
		return nil, err
	}
	r.Service = to
	if err := invalidFields(form.Bind(r, sent, false)); err != nil {
		return nil, err
	}
	if err := store.Create(w, r); err != nil {
		return nil, err
	}
	return r, copyLinks(w, r.Key(), model.RouteKey(from, name))
}

// warnNoLogin says that what was copied requires no login any more.
func warnNoLogin(w store.Writer, from, to string) error {
	links, err := store.List[*model.ServiceFilter](w,
		store.Query{Kind: model.KindServiceFilter, To: []model.Key{model.ServiceKey(from)}})
	if err != nil {
		return err
	}
	for _, l := range links {
		f, err := store.Get[*model.Filter](w, model.FilterKey(l.Filter))
		if err != nil {
			return err
		}
		if f.TypeName() != model.FilterOIDC {
			continue
		}
		there := model.NewKey(model.KindServiceFilter, to, l.Filter)
		if _, err := w.Get(there); model.IsKind(err, model.NotFound) {
			w.Warn(there.Owner().Path() + " does not require the login of " + l.Key().Owner().Path() + ": POST " + there.Path() +
				" attaches it")
		} else if err != nil {
			return err
		}
	}
	return nil
}

// copyLinks makes the links of a service or a route for another one as well.
func copyLinks(w store.Writer, to, from model.Key) error {
	for _, kind := range from.Kind.OwnedKinds() {
		if kind.Row().Attaches() == "" {
			continue
		}
		links, err := w.List(store.Query{Kind: kind, To: []model.Key{from}})
		if err != nil {
			return err
		}
		for _, l := range links {
			if err := store.Create(w, model.NewKey(kind, to.Text(), l.Key().Attached().Name()).New()); err != nil {
				return err
			}
		}
	}
	return nil
}
