package rest

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// addObjects registers every call of a kind of objects with a name of their own.
func (s *server) addObjects(kind model.Kind) {
	list, one := listOf(kind), pathOf(kind)
	s.get(list, func(c *gin.Context) error { return s.listObjects(c, kind) })
	s.change(http.MethodPost, list, func(c *gin.Context) error { return s.createObject(c, kind) })
	s.get(one, func(c *gin.Context) error {
		return s.readObject(c, kind, func(n names) []model.Key { return wayTo(kind, n) })
	})
	s.change(http.MethodPut, one, func(c *gin.Context) error { return s.putObject(c, kind) })
	s.change(http.MethodPatch, one, func(c *gin.Context) error { return s.patchObject(c, kind, nil) })
	s.change(http.MethodDelete, one, func(c *gin.Context) error { return s.deleteObject(c, kind, nil) })
}

// addUpload registers a call that changes some fields of an object, which may
// come as files.
func (s *server) addUpload(kind model.Kind, word string, fields ...string) {
	s.change(http.MethodPost, pathOf(kind)+"/"+word, func(c *gin.Context) error { return s.patchObject(c, kind, fields) })
}

func (s *server) listObjects(c *gin.Context, kind model.Kind) error {
	var own []string
	if kind == model.KindSecret {
		own = []string{endParameter}
	}
	p, query, err := readPage(c, kind, own...)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	way := wayTo(kind, n)
	owners := way[:len(way)-1]
	q := store.Query{Kind: kind, NamePrefix: p.prefix, Tag: p.tag, After: p.after, Limit: p.limit + 1}
	if query.Has(endParameter) {
		if q.EndsBefore, err = readEnd(query.Get(endParameter), s.now()); err != nil {
			return err
		}
	}
	if len(owners) > 0 {
		q.To = owners[len(owners)-1:]
	}
	var shown []any
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := checkExist(r, owners); err != nil {
			return err
		}
		objs, err := r.List(q)
		if err != nil {
			return err
		}
		if len(objs) > p.limit {
			objs = objs[:p.limit]
			linkNext(c, query, kind, *objs[p.limit-1].Meta().ID)
		}
		shown, err = s.viewsOf(r, objs, p.status)
		return err
	})
	if err != nil {
		return err
	}
	s.answerRead(c, kind, shown)
	return nil
}

func (s *server) createObject(c *gin.Context, kind model.Kind) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	n, badName := pathNames(c)
	obj := s.newObject(kind, n, sent)
	secret := makeKeySecret(obj, sent)
	if err := invalidFields(form.Bind(obj, sent, true)); err != nil {
		return err
	}
	if badName != nil {
		return badName
	}
	done, err := s.write(c, m, func(w store.Writer) error { return store.Create(w, obj) })
	if err != nil {
		return err
	}
	if secret != nil {
		done.key = obj.(*model.APIKey).Text(secret)
	}
	setCreated(c, obj.Key(), obj, m.dry)
	if kind == model.KindProxy && !m.dry { // gateway-control-api.md has an answer of its own
		body := map[string]any{"name": obj.Key().Name()}
		if len(done.lagging) > 0 {
			body["data"] = map[string]any{lagging: done.lagging}
		}
		setRevision(c, done.revision)
		s.writeJSON(c, done.statusOf(http.StatusCreated), "application/json", body)
		return nil
	}
	s.answerWrite(c, http.StatusCreated, "insert", kind, 1, done)
	return nil
}

// readObject answers with the object at the end of the path.
func (s *server) readObject(c *gin.Context, kind model.Kind, at func(names) []model.Key) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var obj model.Object
	var shown []any
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		path := at(n)
		if err := checkExist(r, path[:len(path)-1]); err != nil {
			return err
		}
		if obj, err = r.Get(path[len(path)-1]); err != nil {
			return err
		}
		shown, err = s.viewsOf(r, []model.Object{obj}, true)
		return err
	})
	if err != nil {
		return err
	}
	if isCurrent(c, obj) {
		c.Status(http.StatusNotModified)
		return nil
	}
	s.answerRead(c, kind, shown)
	return nil
}

// putObject makes the object at the end of the path, or replaces all of it.
func (s *server) putObject(c *gin.Context, kind model.Kind) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	n, badName := pathNames(c)
	if badName != nil {
		return badName
	}
	sent, bad := withName(kind, n, sent)
	obj := s.newObject(kind, n, sent)
	if err := invalidFields(append(bad, form.Bind(obj, sent, true)...)); err != nil {
		return err
	}
	made := false
	m.about = obj.Key()
	done, err := s.write(c, m, func(w store.Writer) error {
		path := wayTo(kind, n)
		if err := checkExist(w, path[:len(path)-1]); err != nil {
			return err
		}
		if err := checkPrecondition(c, w, obj.Key()); err != nil {
			return err
		}
		made, err = store.Put(w, obj)
		return err
	})
	if err != nil {
		return err
	}
	status, verb := http.StatusOK, "update"
	setETag(c, obj, m.dry)
	if made {
		status, verb = http.StatusCreated, "insert"
		setCreated(c, obj.Key(), obj, m.dry)
	}
	s.answerWrite(c, status, verb, kind, 1, done)
	return nil
}

// withName adds the name of the path to the fields sent. A name that was sent
// must be the same: objects are not renamed.
func withName(kind model.Kind, n names, sent []form.Value) ([]form.Value, []model.FieldError) {
	name := form.Fields(kind)[0].Name
	for _, v := range sent {
		if !strings.EqualFold(v.Name, name) {
			continue
		}
		if v.Shape == form.IsText && v.Text == n[kind] {
			return sent, nil
		}
		return sent, []model.FieldError{{
			Field: name, Message: fmt.Sprintf("must be %q as in the path, or be omitted: a name cannot be changed", n[kind]),
		}}
	}
	return append(sent, form.Value{Name: name, Shape: form.IsText, Text: n[kind]}), nil
}

// patchObject changes the fields sent of the object at the end of the path.
// only restricts them, and one of them is needed; nil means any.
func (s *server) patchObject(c *gin.Context, kind model.Kind, only []string) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	if err := checkFields(sent, only); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	sent, bad := withName(kind, n, sent)
	rows := min(1, len(sent)-1) // nothing but the name is nothing to change
	path := wayTo(kind, n)
	m.about = path[len(path)-1]
	var obj model.Object
	done, err := s.write(c, m, func(w store.Writer) error {
		if err := checkExist(w, path[:len(path)-1]); err != nil {
			return err
		}
		if obj, err = w.Get(path[len(path)-1]); err != nil {
			return err
		}
		if err := checkPrecondition(c, w, obj.Key()); err != nil {
			return err
		}
		if err := invalidFields(append(bad, form.Bind(obj, sent, false)...)); err != nil {
			return err
		}
		return store.Replace(w, obj)
	})
	if err != nil {
		return err
	}
	setETag(c, obj, m.dry)
	s.answerWrite(c, http.StatusOK, "update", kind, rows, done)
	return nil
}

func checkFields(sent []form.Value, only []string) error {
	if only == nil {
		return nil
	}
	var errs form.Errors
	for _, v := range sent {
		if !slices.ContainsFunc(only, func(name string) bool { return strings.EqualFold(name, v.Name) }) {
			errs.Add(v.Name, "unknown field; this call takes %s", strings.Join(only, " and "))
		}
	}
	if len(sent) == 0 {
		errs.Add(only[0], "is required")
	}
	return invalidFields(errs.List)
}

// checkExist returns the NotFound error of the first key that does not exist.
func checkExist(r store.Reader, keys []model.Key) error {
	for _, key := range keys {
		if _, err := r.Get(key); err != nil {
			return err
		}
	}
	return nil
}

// views is what a reader may see of objects; an empty list is not null.
func views(objs []model.Object) []any {
	list := make([]any, len(objs))
	for i, obj := range objs {
		list[i] = view(obj)
	}
	return list
}

func view(obj model.Object) any {
	if s, ok := obj.(*model.Secret); ok {
		return viewSecret(s)
	}
	return model.RedactObject(obj)
}

// notNull makes an empty list of nil, which JSON would show as null.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
