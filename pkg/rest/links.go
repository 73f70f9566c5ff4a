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
	// readable links show what is attached.
	readable bool
}

// at is the path through both ends to the link itself.
func (l link) at(n names) []model.Key { return append(l.ends(n), l.make(n).Key()) }

// addLink registers attach and detach.
func (s *server) addLink(l link) {
	s.post(l.path, func(c *gin.Context) error { return s.attach(c, l) })
	s.delete(l.path, func(c *gin.Context) error { return s.deleteObject(c, l.kind, l.at) })
	if l.readable {
		s.get(l.path, func(c *gin.Context) error { return s.readAttached(c, l) })
	}
}

// readAttached shows the object at the end of the path, if it is attached.
func (s *server) readAttached(c *gin.Context, l link) error {
	target := func(n names) model.Key { ends := l.ends(n); return ends[len(ends)-1] }
	return s.readObject(c, target(nil).Kind, func(n names) []model.Key { return append(l.at(n), target(n)) })
}

func (s *server) attach(c *gin.Context, l link) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	sent, err := readBody(c)
	if err != nil {
		return err
	}
	if err := invalidFields(form.Bind(l.make(nil), sent, false)); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	m.about = l.make(n).Key()
	rows, done, err := s.attachOnce(c, l, n, m)
	if model.IsKind(err, model.Exists) {
		// Another request made the link in the meantime: now it stands.
		rows, done, err = s.attachOnce(c, l, n, m)
	}
	if err != nil {
		return err
	}
	status := http.StatusOK
	if rows > 0 {
		status = http.StatusCreated
	}
	s.answerWrite(c, status, "insert", l.kind, rows, done)
	return nil
}

func (s *server) attachOnce(c *gin.Context, l link, n names, m mode) (rows int, done written, err error) {
	done, err = s.write(c, m, func(w store.Writer) error {
		rows = 0
		if err := exist(w, l.ends(n)); err != nil {
			return err
		}
		obj := l.make(n)
		_, err := w.Get(obj.Key())
		if !model.IsKind(err, model.NotFound) {
			return err
		}
		rows = 1
		return store.Create(w, obj)
	})
	return rows, done, err
}

// linked says how to list what links lead to.
type linked struct {
	path string
	// kind is what is listed, link the kind of the links to follow.
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
		if !strings.HasPrefix(key.Name[strings.LastIndexByte(key.Name, '/')+1:], p.prefix) {
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
