package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/store"
)

func (s *server) attach(c *gin.Context, kind model.Kind) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	if err := takesNoBody(c, model.New(kind)); err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	m.about = keyOf(kind, n)
	made, done, err := s.attachOnce(c, m)
	if model.IsKind(err, model.Exists) {
		// Another request made the link in the meantime: now it stands.
		made, done, err = s.attachOnce(c, m)
	}
	if err != nil {
		return err
	}
	status, rows := http.StatusOK, 0
	if made != nil {
		status, rows = http.StatusCreated, 1
		setCreated(c, m.about, made, m.dry)
	}
	s.answerWrite(c, status, "insert", kind, rows, done)
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

// attachOnce returns what was attached; nil if it was before.
func (s *server) attachOnce(c *gin.Context, m mode) (made model.Object, done written, err error) {
	done, err = s.write(c, m, func(w store.Writer) error {
		made = nil
		if err := checkExist(w, append(m.about.Owner().Way(), m.about.Attached())); err != nil {
			return err
		}
		_, err := w.Get(m.about)
		if !model.IsKind(err, model.NotFound) {
			return err
		}
		if err := store.Create(w, m.about.New()); err != nil {
			return err
		}
		made, err = w.Get(m.about.Attached())
		return err
	})
	return made, done, err
}

// linked says how to list what refers to an object, or what is attached to it.
type linked struct {
	path string
	// of is the kind of the object at the end of the path but for its last word.
	of model.Kind
	// kind is what is listed, link what refers to the object: the same where an
	// object names another in a field.
	kind, link model.Kind
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
		if err := checkExist(r, wayTo(l.of, n)); err != nil {
			return err
		}
		var objs []model.Object
		if objs, last, err = linkedPage(r, l, keyOf(l.of, n), p); err != nil {
			return err
		}
		shown, err = s.viewsOf(r, objs, p.status)
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

// linkedPage returns a page of targets and, where more follow, the ID of the last
// link of the page.
func linkedPage(r store.Reader, l linked, of model.Key, p page) (objs []model.Object, last int64, err error) {
	q := store.Query{Kind: l.link, To: []model.Key{of}, After: p.after}
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
