package rest

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// revisionHeader carries the revision that contains a write.
const revisionHeader = "Gatehouse-Revision"

// jsonText is v as JSON, without a final line feed and with HTML characters as
// they are: text is returned as it was sent.
func jsonText(v any) []byte {
	var body bytes.Buffer
	enc := json.NewEncoder(&body)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		// No answer of this package can fail to encode, and what is stored was
		// encoded before.
		panic("encoding answer: " + err.Error())
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// writeJSON answers with v as JSON.
func (s *server) writeJSON(c *gin.Context, status int, contentType string, v any) {
	text := jsonText(v)
	if len(text) > largeAnswer && isRead(c.Request.Method) {
		leave, err := s.large.acquire(c)
		if err != nil {
			s.fail(c, err)
			return
		}
		defer leave()
	}
	c.Header("Content-Length", strconv.Itoa(len(text))) // for HEAD too
	c.Data(status, contentType, text)
}

// sendSpool sends an answer that was made before.
func (s *server) sendSpool(c *gin.Context, contentType string, answer *spool) {
	s.send(c, contentType, answer.size, answer.send)
}

// send sends an answer of that many bytes.
func (s *server) send(c *gin.Context, contentType string, size int64, send func(io.Writer) error) {
	c.Header("Content-Type", contentType)
	c.Header("Content-Length", strconv.FormatInt(size, 10))
	if err := send(c.Writer); err != nil {
		s.log.DebugContext(c.Request.Context(), "answer cut off", "path", requestPath(c), "err", err)
		panic(http.ErrAbortHandler) // the client must not take a part for the whole
	}
}

// answer writes {"data":{"<key>":v}}.
func (s *server) answer(c *gin.Context, key string, v any) {
	s.writeJSON(c, http.StatusOK, "application/json", map[string]any{"data": map[string]any{key: v}})
}

func (s *server) answerRead(c *gin.Context, kind model.Kind, v any) {
	if shown, ok := v.([]any); ok {
		s.live.AddHealth(c.Request.Context(), blocksOf(shown))
	}
	s.answer(c, s.word+"_"+string(kind), v)
}

// answerWrite says how many rows a verb (insert, update, delete) changed, and
// the revision that holds the change; of a dry run, what would change.
func (s *server) answerWrite(c *gin.Context, status int, verb string, kind model.Kind, rows int, done written) {
	if done.dry {
		s.writeChanges(c, http.StatusOK, map[string]any{"data": map[string]any{
			"dry_run": true, "changes": changeList{},
		}}, done.changes)
		return
	}
	setRevision(c, done.revision)
	data := map[string]any{verb + "_" + s.word + "_" + string(kind): map[string]int{"affected_rows": rows}}
	if len(done.lagging) > 0 {
		data[lagging] = done.lagging
	}
	if done.key != "" {
		data["key"] = done.key
		c.Header("Cache-Control", "no-store")
	}
	s.writeJSON(c, done.statusOf(status), "application/json", map[string]any{"data": data})
}

func setRevision(c *gin.Context, revision int64) {
	c.Header(revisionHeader, strconv.FormatInt(revision, 10))
}

// checkAccept refuses a request whose Accept allows no answer of the call,
// before anything is done (RFC 9110 section 12.5.1).
func (s *server) checkAccept(c *gin.Context) {
	accept := strings.Join(c.Request.Header.Values("Accept"), ",")
	offered := contentTypes(c.FullPath())
	if strings.TrimSpace(accept) == "" || accepts(accept, "application/problem+json") ||
		slices.ContainsFunc(offered, func(mediaType string) bool { return accepts(accept, mediaType) }) {
		return
	}
	s.writeProblem(c, newProblem(http.StatusNotAcceptable, "not_acceptable",
		"answers are "+strings.Join(offered, " or ")+", errors application/problem+json; Accept allows neither"))
	c.Abort()
}

// contentTypes lists the content types of the call at a path of the router.
func contentTypes(path string) []string {
	switch path {
	case "/":
		return []string{"application/json", "text/html"}
	case "/config":
		return []string{"application/yaml", "application/json"}
	case "/openapi.yaml":
		return []string{"application/yaml"}
	case "/metrics":
		return []string{"text/plain", "application/openmetrics-text"}
	case "/events":
		return []string{eventStream}
	case "/ui":
		return []string{"text/html"}
	case "/ui/*file":
		return []string{"text/css", "text/javascript", "image/svg+xml", "text/html", "application/json"}
	case "/docs":
		return []string{"text/html"}
	case "/docs/*file":
		return []string{"text/css", "text/javascript", "image/png", "image/webp", "image/svg+xml", "application/json", "text/html"}
	}
	return []string{"application/json"}
}

// accepts reports whether the most specific range of accept that matches
// mediaType has a weight above 0.
func accepts(accept, mediaType string) bool {
	// "*" alone is sent by old Java clients.
	family, _, _ := strings.Cut(mediaType, "/")
	ranges := []string{"*", "*/*", family + "/*", mediaType}
	best, ok := -1, false
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		if at := slices.Index(ranges, name); at > best {
			q, err := strconv.ParseFloat(params["q"], 64)
			best, ok = at, err != nil || q > 0
		}
	}
	return ok
}
