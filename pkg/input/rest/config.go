package rest

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/document"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const (
	// maxDocument bounds a configuration document, in bytes.
	maxDocument = 16 << 20
	// applyWait is how long a document waits for others.
	applyWait = 30 * time.Second
)

// addConfig registers the whole configuration as one document.
func (s *server) addConfig() {
	s.get("/config", s.readConfig)
	s.change(http.MethodPut, "/config", s.applyConfig)
}

// readConfig sends the document: YAML, unless Accept prefers JSON. It is read to
// its end first: a transaction does not wait for a client.
func (s *server) readConfig(c *gin.Context) error {
	query, err := readQuery(c, []string{"secrets", "tag", "revision"})
	if err != nil {
		return err
	}
	opts := document.WriteOptions{Tag: query.Get("tag"), Sealed: query.Get("secrets") == "sealed"}
	if query.Has("secrets") && !opts.Sealed && query.Get("secrets") != "references" {
		return invalidFields([]model.FieldError{{Field: "secrets", Message: "must be references or sealed"}})
	}
	if opts.Revision, err = isTrue(query, "revision"); err != nil {
		return err
	}
	opts.Revision = opts.Revision || !query.Has("revision")
	if opts.Sealed && !s.isAdmin(c) {
		return refusal(http.StatusForbidden, "forbidden", "The role does not allow this",
			"sealed secrets are shown to the role admin only; leave secrets=sealed out")
	}
	contentType := "application/yaml"
	if accept := strings.Join(c.Request.Header.Values("Accept"), ","); accept != "" && !accepts(accept, contentType) {
		contentType, opts.JSON = "application/json", true
	}
	if c.Request.Method == http.MethodHead {
		c.Header("Content-Type", contentType)
		return nil
	}
	leave, err := s.large.acquire(c)
	if err != nil {
		return err
	}
	defer leave()
	var answer spool
	defer func() { _ = answer.close() }() // there is nothing to lose in it
	err = s.read(c.Request.Context(), func(r store.Reader) error {
		out := bufio.NewWriterSize(&answer, paceBytes)
		if err := document.Write(out, r, opts); err != nil {
			return err
		}
		return out.Flush()
	})
	if err != nil {
		return err
	}
	s.sendSpool(c, contentType, &answer)
	return nil
}

// applied is what a document did.
type applied struct {
	DryRun    bool       `json:"dry_run,omitempty"`
	Created   int        `json:"created"`
	Updated   int        `json:"updated"`
	Deleted   int        `json:"deleted"`
	Unchanged int        `json:"unchanged"`
	Changes   changeList `json:"changes"`
	Warnings  []string   `json:"warnings"`
	// Lagging is what a wait was too short for.
	Lagging []status.Lag `json:"lagging,omitempty"`
}

func (s *server) applyConfig(c *gin.Context) error {
	m, query, err := s.writeMode(c, "prune", "tag", forceParameter, deleteParameter)
	if err != nil {
		return err
	}
	opts := document.ApplyOptions{Tag: query.Get("tag"), NewProxy: s.newProxy}
	if opts.Prune, err = isTrue(query, "prune"); err != nil {
		return err
	}
	if opts.Force, err = isTrue(query, forceParameter); err != nil {
		return err
	}
	deletes, err := isTrue(query, deleteParameter)
	switch {
	case err != nil:
		return err
	case deletes && opts.Prune:
		return invalidFields([]model.FieldError{{Field: deleteParameter, Message: "cannot be combined with prune, which deletes what the document does not name"}})
	}
	if !s.isAdmin(c) {
		opts.Prunable = store.IsTeamKind
	}
	if own := identityOf(c).team.Tags; opts.Prune && !s.isAdmin(c) && !slices.Contains(own, opts.Tag) {
		return refusal(http.StatusForbidden, "forbidden", "The role does not allow this",
			"the token may delete only what has its tags: combine prune with tag="+strings.Join(own, " or tag="))
	}
	doc, leave, err := s.takeDocument(c)
	if err != nil {
		return err
	}
	defer leave()
	var result document.Result
	m.tells = true
	done, err := s.write(c, m, func(w store.Writer) error {
		if deletes {
			result, err = document.Delete(w, doc, s.deleteOptions(opts))
		} else {
			result, err = document.Apply(w, doc, opts)
		}
		doc = nil
		return err
	}, leave)
	if err != nil {
		return err
	}
	if !m.dry {
		setRevision(c, done.revision)
	}
	s.writeChanges(c, done.statusOf(http.StatusOK), map[string]any{"data": applied{
		DryRun: m.dry, Created: result.Created, Updated: result.Updated, Deleted: result.Deleted,
		Unchanged: result.Unchanged, Warnings: notNull(result.Warnings), Lagging: done.lagging,
	}}, done.changes)
	return nil
}

// deleteParameter deletes what a document names.
const deleteParameter = "delete"

func (s *server) deleteOptions(opts document.ApplyOptions) document.DeleteOptions {
	o := document.DeleteOptions{Tag: opts.Tag, Force: opts.Force}
	if !o.Force {
		o.CheckProxy = s.checkProxyIsUnused
	}
	return o
}

// takeDocument returns the document in the body. Until leave, no other one is taken.
func (s *server) takeDocument(c *gin.Context) (doc *document.Document, leave func(), err error) {
	body, contentType, err := receiveDocument(c)
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = body.close() }() // there is nothing to lose in it
	leave, err = s.enterApply(c)
	if err != nil {
		return nil, nil, err
	}
	data, err := body.bytes()
	if err == nil {
		doc, err = document.Parse(data, contentType)
	}
	if err != nil {
		leave()
	}
	return doc, leave, err
}

// receiveDocument takes a document in, however slowly it comes, without holding
// anybody up.
func receiveDocument(c *gin.Context) (body *spool, contentType string, err error) {
	contentType = c.ContentType()
	switch contentType {
	case "", "application/yaml", "application/x-yaml", "text/yaml", "application/json":
	default:
		return nil, "", newProblem(http.StatusUnsupportedMediaType, "unsupported_media_type",
			"content type "+contentType+" is not supported; send application/yaml or application/json")
	}
	body = &spool{}
	kept := clientWriter{to: body}
	if _, err := io.Copy(&kept, http.MaxBytesReader(c.Writer, c.Request.Body, maxDocument)); err != nil {
		_ = body.close()
		if kept.err != nil {
			return nil, "", kept.err
		}
		return nil, "", bodyError(c, err, "16 MiB (16777216 bytes)")
	}
	return body, contentType, nil
}

// clientWriter remembers that it was the writing that failed, and not the client.
type clientWriter struct {
	to  io.Writer
	err error
}

func (k *clientWriter) Write(b []byte) (n int, err error) {
	n, k.err = k.to.Write(b)
	return n, k.err
}

// enterApply waits until no other document is being applied: each takes memory
// in proportion to its size. leave may be called more than once.
func (s *server) enterApply(c *gin.Context) (leave func(), err error) {
	wait := time.NewTimer(applyWait)
	defer wait.Stop()
	select {
	case s.applying <- struct{}{}:
		return sync.OnceFunc(func() { <-s.applying }), nil
	case <-c.Request.Context().Done():
		return nil, c.Request.Context().Err()
	case <-wait.C:
		c.Header("Retry-After", retryAfter)
		return nil, newProblem(http.StatusTooManyRequests, "too_many_requests",
			fmt.Sprintf("other documents are being applied, one at a time, and this one waited for more than %s; "+
				"nothing was changed; try again", applyWait))
	}
}
