package rest

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
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
	// also follows in the same list; nil means that nothing does. It leaves out what has
	// a link of the kind unlinked to the object.
	also     *linked
	unlinked model.Kind
}

func (s *server) addLinked(l linked) {
	s.get(l.path, func(c *gin.Context) error { return s.listLinked(c, l) })
}

// listLinked lists objects in the order in which they were attached. Its
// cursor is the ID of a link.
func (s *server) listLinked(c *gin.Context, l linked) error {
	if l.also != nil {
		if _, err := readCursor(l.also.link, c.Query("after")); err == nil {
			l = *l.also
		}
	}
	p, query, err := readPage(c, l.link)
	if err != nil {
		return err
	}
	n, err := pathNames(c)
	if err != nil {
		return err
	}
	var shown []any
	var next linkedCursor
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if err := checkExist(r, wayTo(l.of, n)); err != nil {
			return err
		}
		var objs []model.Object
		if objs, next, err = unionPage(r, l, keyOf(l.of, n), p); err != nil {
			return err
		}
		shown, err = s.viewsOf(r, objs, p.status)
		return err
	})
	if err != nil {
		return err
	}
	if next.more {
		linkNext(c, query, next.kind, next.last)
	}
	s.answerRead(c, l.kind, shown)
	return nil
}

// linkedCursor is the last link of a page, and whether more follow.
type linkedCursor struct {
	kind model.Kind
	last int64
	more bool
}

// unionPage is linkedPage for a list that another one may follow.
func unionPage(r store.Reader, l linked, of model.Key, p page) ([]model.Object, linkedCursor, error) {
	objs, at, err := linkedPage(r, l, of, p)
	if err != nil || at.more || l.also == nil {
		return objs, at, err
	}
	p.after, p.limit = 0, p.limit-len(objs)
	if p.limit == 0 {
		p.limit = 1
		rest, _, err := linkedPage(r, *l.also, of, p)
		at.more = len(rest) > 0
		return objs, at, err
	}
	rest, behind, err := linkedPage(r, *l.also, of, p)
	return append(objs, rest...), behind, err
}

// linkedPage returns a page of targets.
func linkedPage(r store.Reader, l linked, of model.Key, p page) (objs []model.Object, at linkedCursor, err error) {
	q := store.Query{Kind: l.link, To: []model.Key{of}, After: p.after}
	at.kind = l.link
	if p.prefix == "" && p.tag == "" && l.unlinked == "" {
		q.Limit = p.limit + 1 // else the objects decide how many to look at
	}
	links, err := r.List(q)
	if err != nil {
		return nil, at, err
	}
	for _, link := range links {
		key := l.target(link)
		if !strings.HasPrefix(key.Name(), p.prefix) {
			continue
		}
		if l.unlinked != "" {
			_, err := r.Get(model.NewKey(l.unlinked, key.Name(), of.Name()))
			if err == nil {
				continue
			}
			if !model.IsKind(err, model.NotFound) {
				return nil, at, err
			}
		}
		obj, err := r.Get(key)
		if err != nil {
			return nil, at, err
		}
		if t, ok := obj.(model.Tagged); ok && p.tag != "" && !t.TagList().Has(p.tag) {
			continue
		}
		if len(objs) == p.limit {
			at.more = true
			return objs, at, nil
		}
		objs, at.last = append(objs, obj), *link.Meta().ID
	}
	return objs, at, nil
}
