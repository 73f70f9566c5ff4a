package rest

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/form"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// kindRevision is the word in the answers about revisions.
const kindRevision model.Kind = "revision"

func (s *server) addRevision() {
	s.get("/revision", s.listRevisions)
	s.get("/revision/:revision", s.readRevision)
	s.change(http.MethodPost, "/revision/:revision/rollback", s.rollback)
}

// listRevisions lists the newest first. Its cursor is a revision.
func (s *server) listRevisions(c *gin.Context) error {
	query, err := readQuery(c, []string{"limit", "after", objectParameter, "by", "kind", "since"})
	if err != nil {
		return err
	}
	p, err := pageOf(query, kindRevision)
	if err != nil {
		return err
	}
	q, err := s.readRevisionQuery(query)
	if err != nil {
		return err
	}
	var list []store.Revision
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		if q == (store.RevisionQuery{}) {
			list, err = r.Revisions(p.after, p.limit+1)
		} else {
			list, err = r.RevisionsOf(q, p.after, p.limit+1)
		}
		return err
	})
	if err != nil {
		return err
	}
	if len(list) > p.limit {
		list = list[:p.limit]
		linkNext(c, query, kindRevision, list[p.limit-1].Revision)
	}
	s.answerRead(c, kindRevision, notNull(list))
	return nil
}

const objectParameter = "object"

// readRevisionQuery reads which revisions to list; the zero value means all.
func (s *server) readRevisionQuery(query url.Values) (q store.RevisionQuery, err error) {
	if q.Object, err = readObjectPath(query); err != nil {
		return q, err
	}
	var errs form.Errors
	q.Actor, q.Kind = query.Get("by"), model.Kind(query.Get("kind"))
	if q.Kind != "" && !slices.Contains(model.Kinds(), q.Kind) {
		errs.Add("kind", "%q is not a kind of object or link, such as service or route_upstream", q.Kind)
	}
	if text := query.Get("since"); text != "" {
		if q.Since, err = readSince(text, s.now()); err != nil {
			errs.Add("since", "%s", err)
		}
	}
	return q, invalidFields(errs.List)
}

// maxSince bounds the time before now, which no history reaches.
const maxSince = 100 * 365 * 24 * time.Hour

// readSince reads a time, or how long before now it was.
func readSince(text string, now time.Time) (model.Time, error) {
	for _, layout := range []string{time.DateOnly, time.RFC3339} {
		if at, err := time.Parse(layout, text); err == nil {
			return model.At(at), nil
		}
	}
	ago, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 15)
		ago = time.Duration(n) * 24 * time.Hour
	}
	if err != nil || ago < 0 || ago > maxSince {
		return model.Time{}, fmt.Errorf("%q is not a date such as 2026-12-24, a time such as 2026-12-24T00:00:00Z, or how long ago, such as 24h or 7d", text)
	}
	return model.At(now.Add(-ago)), nil
}

// readObjectPath reads the path of an object, /service/shop/route/root, which need not exist any more; the zero key means
// that the query has none.
func readObjectPath(query url.Values) (model.Key, error) {
	text := query.Get(objectParameter)
	if text == "" {
		return model.Key{}, nil
	}
	var names []string
	for i, part := range strings.Split(text, "/") {
		if i > 0 && i%2 == 0 {
			names = append(names, part)
		}
	}
	for _, kind := range model.Kinds() {
		if key, ok := model.ParseKey(kind, strings.Join(names, "/")); ok && !slices.Contains(names, "") && key.Path() == text {
			return key, nil
		}
	}
	return model.Key{}, invalidFields([]model.FieldError{{
		Field: objectParameter, Message: "must be the path of an object, such as /upstream/blue or /service/shop/route/root",
	}})
}

// revisionView is a revision with what it changed.
type revisionView struct {
	Revision int64      `json:"revision"`
	At       model.Time `json:"at"`
	Actor    string     `json:"actor"`
	Request  string     `json:"request"`
	Message  string     `json:"message,omitempty"`
	Changes  changeList `json:"changes"`
}

func (s *server) readRevision(c *gin.Context) error {
	if err := noQuery(c); err != nil {
		return err
	}
	n, err := pathRevision(c)
	if err != nil {
		return err
	}
	var v revisionView
	var changes *spool
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		list, err := r.Revisions(n+1, 1)
		if err != nil {
			return err
		}
		if len(list) == 0 || list[0].Revision != n {
			return noRevision(r, n)
		}
		v = revisionView{Revision: n, At: list[0].At, Actor: list[0].Actor, Request: list[0].Request, Message: list[0].Message}
		changes, err = spoolChanges(r.Entries(n))
		return err
	})
	if err != nil {
		return err
	}
	key := s.word + "_" + string(kindRevision)
	s.writeChanges(c, http.StatusOK, map[string]any{"data": map[string]any{key: []revisionView{v}}}, changes)
	return nil
}

func (s *server) rollback(c *gin.Context) error {
	m, _, err := s.writeMode(c)
	if err != nil {
		return err
	}
	n, err := pathRevision(c)
	if err != nil {
		return err
	}
	m.rollback = true
	rows := 0
	done, err := s.write(c, m, func(w store.Writer) error {
		if now, err := w.Revision(); err != nil || n > now {
			return firstError(err, noRevision(w, n))
		}
		err := store.Rollback(w, n)
		rows = w.Count().Total()
		return err
	})
	if err != nil {
		return err
	}
	s.answerWrite(c, http.StatusOK, "rollback", kindRevision, rows, done)
	return nil
}

// pathRevision reads the number in the path.
func pathRevision(c *gin.Context) (int64, error) {
	n, err := strconv.ParseInt(c.Param("revision"), 10, 64)
	if err != nil || n < 1 {
		return 0, &model.Error{
			Kind: model.NotFound, Path: requestPath(c),
			Message: fmt.Sprintf("revision %q does not exist", shorten(c.Param("revision"))),
			Hint:    "a revision is a number, 1 or higher",
		}
	}
	return n, nil
}

// noRevision tells a revision that never was from one that was compacted.
func noRevision(r store.Reader, n int64) error {
	now, err := r.Revision()
	if err != nil {
		return err
	}
	if n > now {
		return &model.Error{
			Kind: model.NotFound, Message: fmt.Sprintf("revision %d does not exist", n),
			Hint: fmt.Sprintf("the newest is %d", now),
		}
	}
	return store.CompactedError(n)
}

func firstError(err, other error) error {
	if err != nil {
		return err
	}
	return other
}
