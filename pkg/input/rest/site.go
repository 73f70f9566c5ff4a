package rest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/gin-gonic/gin"
)

// sitePolicy makes a browser load nothing from elsewhere, and run no script that is a part of a page.
const sitePolicy = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// picturePolicy is for a picture that is opened by itself, which has styles of its own and runs nothing.
const picturePolicy = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"

// notFoundPage is the page of the site for what does not exist.
const notFoundPage = "404.html"

// openZip returns files that the program was built with by their names; without any, none.
func openZip(zipped []byte) (map[string]*zip.File, error) {
	if len(zipped) == 0 {
		return nil, nil
	}
	archive, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	if err != nil {
		return nil, fmt.Errorf("files in the program: %w; build it again", err)
	}
	files := map[string]*zip.File{}
	for _, file := range archive.File {
		files[file.Name] = file
	}
	return files, nil
}

// serveSite answers with a file of the documentation, or with the page that says that there is none.
func (s *server) serveSite(c *gin.Context, site map[string]*zip.File, name string) error {
	if name == "" || strings.HasSuffix(name, "/") {
		name += "index.html"
	}
	policy := sitePolicy
	if path.Ext(name) == ".svg" {
		policy = picturePolicy
	}
	file := site[name]
	if site == nil && name == "index.html" {
		content, err := docsFiles.ReadFile("docs/missing.html")
		if err != nil {
			return err
		}
		s.sendSite(c, policy, "text/html; charset=utf-8", content)
		return nil
	}
	if file == nil || contentTypeOf(name) == "" {
		return s.noPage(c, site[notFoundPage])
	}
	content, err := siteFile(c, file)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	s.sendSite(c, policy, contentTypeOf(name), content)
	return nil
}

func (s *server) sendSite(c *gin.Context, policy, contentType string, content []byte) {
	c.Header("Content-Security-Policy", policy)
	c.Header("X-Content-Type-Options", "nosniff")
	serveFile(c, contentType, askFirst, content)
}

// noPage answers a browser with the page of the site, and others as everywhere in the API.
func (s *server) noPage(c *gin.Context, page *zip.File) error {
	if page == nil || !strings.Contains(strings.Join(c.Request.Header.Values("Accept"), ","), "text/html") {
		s.noRoute(c)
		return nil
	}
	content, err := siteFile(c, page)
	if err != nil {
		return err
	}
	c.Header("Content-Security-Policy", sitePolicy)
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Content-Length", strconv.Itoa(len(content)))
	c.Data(http.StatusNotFound, "text/html; charset=utf-8", content)
	return nil
}

// siteFile returns a file of the site, with the compressed bytes of the zip if the client accepts them; it then sets
// the header that says it.
func siteFile(c *gin.Context, file *zip.File) ([]byte, error) {
	if file.Method != zip.Deflate || !acceptsGzip(c) {
		return zipFile(file)
	}
	raw, err := file.OpenRaw()
	if err != nil {
		return nil, err
	}
	// A member of RFC 1952 without a name and a time, around the same deflated bytes.
	content := bytes.NewBuffer([]byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255})
	if _, err := io.Copy(content, raw); err != nil {
		return nil, err
	}
	end := binary.LittleEndian.AppendUint32(nil, file.CRC32)
	end = binary.LittleEndian.AppendUint32(end, uint32(file.UncompressedSize64)) //nolint:gosec // modulo 2^32, as there
	return append(content.Bytes(), end...), nil
}

func zipFile(file *zip.File) ([]byte, error) {
	r, err := file.Open()
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }() // nothing is written
	return io.ReadAll(r)
}
