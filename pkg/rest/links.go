package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

// link says how a link between two objects is made and found by its path.
type link struct {
	kind model.Kind
	// path ends with the name of the object that is attached.
	path string
	make func(names) model.Object
	// ends lists the objects that the path leads through, the attached one
	// last.
	ends func(names) []model.Key
}

// at is the path through both ends to the link itself.
func (l link) at(n names) []model.Key { return append(l.ends(n), l.make(n).Key()) }

// attached is the object at the end of the path. A read of the link shows it,
// with its ETag.
func (l link) attached(n names) model.Key { ends := l.ends(n); return ends[len(ends)-1] }

// addLink registers attach, detach, and the read of what is attached.
func (s *server) addLink(l link) {
	s.post(l.path, func(c *gin.Context) error { return s.attach(c, l) })
	s.delete(l.path, func(c *gin.Context) error { return s.deleteObject(c, l.kind, l.at, l.attached) })
	s.get(l.path, func(c *gin.Context) error {
		return s.readObject(c, l.attached(nil).Kind, func(n names) []model.Key { return append(l.at(n), l.attached(n)) })
	})
}

func (s *server) attach(c *gin.Context, l link) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	if err := takesNoBody(c, l.make(nil)); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	m.about = l.make(n).Key()
	made, done, err := s.attachOnce(c, l, n, m)
	if model.IsKind(err, model.Exists) {
		// Another request made the link in the meantime: now it stands.
		made, done, err = s.attachOnce(c, l, n, m)
	}
	if err != nil {
		return err
	}
	status, rows := http.StatusOK, 0
	if made != nil {
		status, rows = http.StatusCreated, 1
		setCreated(c, m.about, made, m.dry)
	}
	s.answerWrite(c, status, "insert", l.kind, rows, done)
	return nil
}

// takesNoBody refuses a body with fields. Some clients send null, or an object
// without any, where they have nothing to send.
func takesNoBody(c *gin.Context, obj model.Object) error {
	sent, err := readBodyOrNull(c)
	if err != nil {
		return err
	}
	return invalidFields(form.Bind(obj, sent, false))
}

// attachOnce returns what was attached; nil where it was before.
func (s *server) attachOnce(c *gin.Context, l link, n names, m mode) (made model.Object, done written, err error) {
	done, err = s.write(c, m, func(w store.Writer) error {
		made = nil
		if err := exist(w, l.ends(n)); err != nil {
			return err
		}
		obj := l.make(n)
		_, err := w.Get(obj.Key())
		if !model.IsKind(err, model.NotFound) {
			return err
		}
		if err := store.Create(w, obj); err != nil {
			return err
		}
		made, err = w.Get(l.attached(n))
		return err
	})
	return made, done, err
}

// linked says how to list what links lead to.
type linked struct {
	path string
	// kind is what is listed, link the kind of the links to follow; the same
	// where an object names another in a field.
	kind, link model.Kind
	// from lists the objects that the path leads through; all must exist.
	from func(names) []model.Key
	// links selects the links.
	links func(names) store.Query
	// target is the object at the other end of a link.
	target func(model.Object) model.Key
}

func (s *server) addLinked(l linked) {
	s.get(l.path, func(c *gin.Context) error { return s.listLinked(c, l) })
}

// addUsers registers the list of the objects of a kind that name the object at
// the end of a path in a field of theirs.
func (s *server) addUsers(path string, kind model.Kind, at func(names) []model.Key) {
	s.addLinked(linked{
		path: path, kind: kind, link: kind, from: at, target: model.Object.Key,
		links: func(n names) store.Query { return store.Query{Uses: at(n)[0]} },
	})
}

// listLinked lists objects in the order in which they were attached. Its
// cursor is the ID of a link.
func (s *server) listLinked(c *gin.Context, l linked) error {
	p, query, err := readPage(c, l.link)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var shown []any
	var last int64
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := exist(r, l.from(n)); err != nil {
			return err
		}
		var objs []model.Object
		if objs, last, err = follow(r, l, n, p); err != nil {
			return err
		}
		shown, err = s.viewsOf(r, l.kind, objs, p.status)
		return err
	})
	if err != nil {
		return err
	}
	if last > 0 {
		linkNext(c, query, l.link, last)
	}
	s.answerRead(c, l.kind, shown)
	return nil
}

// follow returns a page of targets and, where more follow, the ID of the last
// link of the page.
func follow(r store.Reader, l linked, n names, p page) (objs []model.Object, last int64, err error) {
	q := l.links(n)
	q.Kind, q.After = l.link, p.after
	if p.prefix == "" && p.tag == "" {
		q.Limit = p.limit + 1 // else the objects decide how many to look at
	}
	links, err := r.List(q)
	if err != nil {
		return nil, 0, err
	}
	var lastID int64
	for _, link := range links {
		key := l.target(link)
		if !strings.HasPrefix(key.Name(), p.prefix) {
			continue
		}
		obj, err := r.Get(key)
		if err != nil {
			return nil, 0, err
		}
		if t, ok := obj.(model.Tagged); ok && p.tag != "" && !t.TagList().Has(p.tag) {
			continue
		}
		if len(objs) == p.limit {
			return objs, lastID, nil
		}
		objs, lastID = append(objs, obj), *link.Meta().ID
	}
	return objs, 0, nil
}

// usedByLink is the object that a link attaches.
func usedByLink(l model.Object) model.Key { return l.Uses()[0] }
