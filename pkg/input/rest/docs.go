package rest

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
	"github.com/swaggest/swgui/v5/static"

	"github.com/gatehouse-gateway/gatehouse/api"
)

// docsFiles are the page that shows the OpenAPI document and what starts the
// viewer in it; the viewer is in static.FS.
//
//go:embed docs
var docsFiles embed.FS

// docsPolicy makes a browser load nothing from elsewhere. The viewer needs
// styles in attributes and pictures in its style sheet.
const docsPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// addDocs registers the OpenAPI document and the page for it. They need no
// token: they are the same in every copy of the program.
func (s *server) addDocs() {
	document := bytes.ReplaceAll(api.OpenAPI(), []byte("core_db"), []byte(s.word))
	s.get("/openapi.yaml", func(c *gin.Context) error {
		serveFile(c, "application/yaml", document)
		return nil
	})
	s.get("/docs", func(c *gin.Context) error { return s.serveDocs(c, "index.html") })
	s.get("/docs/:asset", func(c *gin.Context) error { return s.serveDocs(c, c.Param("asset")) })
}

func (s *server) serveDocs(c *gin.Context, name string) error {
	contentType := map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8",
		".js": "text/javascript; charset=utf-8", ".png": "image/png",
	}[path.Ext(name)]
	content, ok, err := docsFile(c, name)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	if !ok || contentType == "" {
		s.noRoute(c)
		return nil
	}
	c.Header("Content-Security-Policy", docsPolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	serveFile(c, contentType, content)
	return nil
}

// docsFile returns a file of the page, compressed where it is kept so and the
// client takes it so; it then sets the header that says it.
func docsFile(c *gin.Context, name string) (content []byte, ok bool, err error) {
	if content, err = docsFiles.ReadFile("docs/" + name); err == nil {
		return content, true, nil
	}
	if content, err = static.FS.ReadFile(name); err == nil {
		return content, true, nil
	}
	if content, err = static.FS.ReadFile(name + ".gz"); err != nil {
		return nil, false, nil //nolint:nilerr // there is no such file
	}
	c.Header("Vary", "Accept-Encoding")
	if strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		c.Header("Content-Encoding", "gzip")
		return content, true, nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, false, err
	}
	content, err = io.ReadAll(plain)
	return content, true, err
}

// serveFile answers with content, unless the client has it already.
func serveFile(c *gin.Context, contentType string, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	c.Header("ETag", tag)
	c.Header("Cache-Control", "no-cache") // use it only after asking whether it is current
	if matches(c.Request.Header.Values("If-None-Match"), tag) {
		c.Status(http.StatusNotModified)
		return
	}
	c.Header("Content-Length", strconv.Itoa(len(content))) // for HEAD too
	c.Data(http.StatusOK, contentType, content)
}
