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

// docsFiles are the site of the documentation as a zip, if the program was built with it; the page instead; and in
// "api" the page that shows the OpenAPI document and what starts the viewer in it. The viewer is in static.FS.
//
//go:embed docs
var docsFiles embed.FS

// viewerPolicy makes a browser load nothing from elsewhere. The viewer needs
// styles in attributes and pictures in its style sheet.
const viewerPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// contentTypeOf returns the content type of a file of the documentation; empty means that it is none.
func contentTypeOf(name string) string {
	return map[string]string{
		".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml",
		".js": "text/javascript; charset=utf-8", ".png": "image/png", ".webp": "image/webp", ".json": "application/json",
	}[path.Ext(name)]
}

// addDocs registers the OpenAPI document, its viewer and the documentation. They need no token: they are the same in
// every copy of the program.
func (s *server) addDocs(zipped []byte) {
	document := bytes.ReplaceAll(api.OpenAPI(), []byte("core_db"), []byte(s.word))
	s.get("/openapi.yaml", func(c *gin.Context) error {
		serveFile(c, "application/yaml", askFirst, document)
		return nil
	})
	if zipped == nil {
		zipped, _ = docsFiles.ReadFile("docs/site.zip") // without it, there is none
	}
	site, err := openZip(zipped)
	if err != nil { // the API works without it
		s.log.Error("documentation cannot be read", "error", err)
	}
	to := func(place string) handler {
		return func(c *gin.Context) error {
			c.Redirect(http.StatusPermanentRedirect, place)
			return nil
		}
	}
	s.get("/docs", to("/docs/"))
	s.get("/docs/*file", func(c *gin.Context) error {
		name := strings.TrimPrefix(c.Param("file"), "/")
		if name == "api" {
			return to("/docs/api/")(c)
		}
		if asset, ok := strings.CutPrefix(name, "api/"); ok {
			return s.serveViewer(c, asset)
		}
		return s.serveSite(c, site, name)
	})
}

// serveViewer answers with a file of the page that shows the OpenAPI document.
func (s *server) serveViewer(c *gin.Context, name string) error {
	if name == "" {
		name = "index.html"
	}
	content, ok, err := viewerFile(c, name)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	if !ok || contentTypeOf(name) == "" {
		s.noRoute(c)
		return nil
	}
	c.Header("Content-Security-Policy", viewerPolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	serveFile(c, contentTypeOf(name), askFirst, content)
	return nil
}

// viewerFile returns a file of the viewer, compressed where it is kept so and the
// client takes it so; it then sets the header that says it.
func viewerFile(c *gin.Context, name string) (content []byte, ok bool, err error) {
	if content, err = docsFiles.ReadFile("docs/api/" + name); err == nil {
		return content, true, nil
	}
	if content, err = static.FS.ReadFile(name); err == nil {
		return content, true, nil
	}
	if content, err = static.FS.ReadFile(name + ".gz"); err != nil {
		return nil, false, nil //nolint:nilerr // there is no such file
	}
	if acceptsGzip(c) {
		return content, true, nil
	}
	plain, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, false, err
	}
	content, err = io.ReadAll(plain)
	return content, true, err
}

// acceptsGzip reports whether the answer may be compressed, and says so in its headers.
func acceptsGzip(c *gin.Context) bool {
	c.Header("Vary", "Accept-Encoding")
	if !strings.Contains(c.GetHeader("Accept-Encoding"), "gzip") {
		return false
	}
	c.Header("Content-Encoding", "gzip")
	return true
}

// askFirst makes a client use what it has only after asking whether it is current.
const askFirst = "no-cache"

// serveFile answers with content, unless the client has it already.
func serveFile(c *gin.Context, contentType, cache string, content []byte) {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:16]) + `"`
	c.Header("ETag", tag)
	c.Header("Cache-Control", cache)
	if matches(c.Request.Header.Values("If-None-Match"), tag) {
		c.Status(http.StatusNotModified)
		return
	}
	c.Header("Content-Length", strconv.Itoa(len(content))) // for HEAD too
	c.Data(http.StatusOK, contentType, content)
}
