package rest

import (
	"net/http"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// kind says how objects with a name of their own are read and found.
type kind[T model.Object] struct {
	kind model.Kind
	// base is the path of the list; an object is at base + "/:" + kind.
	base string
	// fields are the form fields, in the order of documentation.
	fields []field[T]
	// make returns an object with its defaults and what the path says.
	make func(names, []value) T
	// at lists the objects that the path of an object leads through, the
	// object itself last.
	at func(names) []model.Key
	// siblings restricts the list to the objects below its path; nil means
	// all of the kind.
	siblings func(names) store.Query
	// created is the answer to POST; nil means the count of rows.
	created func(T) any
}

// addObjects registers list, create, read and delete of a kind.
func addObjects[T model.Object](s *server, k kind[T]) {
	one := k.base + "/:" + string(k.kind)
	s.get(k.base, func(c *gin.Context) error { return listObjects(s, c, k) })
	s.post(k.base, func(c *gin.Context) error { return createObject(s, c, k) })
	s.get(one, func(c *gin.Context) error { return s.readObject(c, k.kind, k.at) })
	s.delete(one, func(c *gin.Context) error { return s.deleteObject(c, k.kind, k.at) })
}

func listObjects[T model.Object](s *server, c *gin.Context, k kind[T]) error {
	p, query, err := readPage(c, k.kind)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	q := store.Query{}
	if k.siblings != nil {
		q = k.siblings(n)
	}
	q.Kind, q.NamePrefix, q.After, q.Limit = k.kind, p.prefix, p.after, p.limit+1
	var objs []model.Object
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		path := k.at(n)
		if err := exist(r, path[:len(path)-1]); err != nil {
			return err
		}
		objs, err = r.List(q)
		return err
	})
	if err != nil {
		return err
	}
	if len(objs) > p.limit {
		objs = objs[:p.limit]
		linkNext(c, query, k.kind, *objs[p.limit-1].Meta().ID)
	}
	s.answerRead(c, k.kind, notNull(objs))
	return nil
}

func createObject[T model.Object](s *server, c *gin.Context, k kind[T]) error {
	if err := noQuery(c); err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	n, badName := pathNames(c)
	obj := k.make(n, sent)
	if err := invalidFields(bind(k.fields, obj, sent, true)); err != nil {
		return err
	}
	if badName != nil {
		return badName
	}
	revision, err := s.write(c, func(w store.Writer) error { return store.Create(w, obj) })
	if err != nil {
		return err
	}
	if k.created != nil {
		setRevision(c, revision)
		s.writeJSON(c, http.StatusCreated, "application/json", k.created(obj))
		return nil
	}
	s.answerWrite(c, http.StatusCreated, "insert", k.kind, 1, revision)
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
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		path := at(n)
		if err := exist(r, path[:len(path)-1]); err != nil {
			return err
		}
		obj, err = r.Get(path[len(path)-1])
		return err
	})
	if err != nil {
		return err
	}
	s.answerRead(c, kind, []model.Object{obj})
	return nil
}

// deleteObject deletes the object, or the link, at the end of the path.
func (s *server) deleteObject(c *gin.Context, kind model.Kind, at func(names) []model.Key) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	revision, err := s.write(c, func(w store.Writer) error {
		path := at(n)
		if err := exist(w, path[:len(path)-1]); err != nil {
			return err
		}
		return store.Delete(w, path[len(path)-1])
	})
	if err != nil {
		return err
	}
	s.answerWrite(c, http.StatusOK, "delete", kind, 1, revision)
	return nil
}

// exist returns the NotFound error of the first key that is not there.
func exist(r store.Reader, keys []model.Key) error {
	for _, key := range keys {
		if _, err := r.Get(key); err != nil {
			return err
		}
	}
	return nil
}

// notNull makes an empty list of nil, which JSON would show as null.
func notNull[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
