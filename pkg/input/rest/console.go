package rest

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/rand"
	_ "embed" // for the bundle
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/gin-gonic/gin"
	"go.yaml.in/yaml/v3"

	"github.com/gatehouse-gateway/gatehouse/api"
)

// consoleFiles are the files of the console as a zip (ADR 0130): make console writes it.
//
//go:embed console/console.zip
var consoleFiles []byte

const (
	// consolePage is the page that loads the rest.
	consolePage = "index.html"
	// consoleNonce is where that page has the nonce of its answer.
	consoleNonce = "%NONCE%"
	// consolePolicy makes a browser run nothing but files of the console, load nothing from elsewhere, and show it in
	// no frame. Libraries add style elements, with the nonce.
	consolePolicy = "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-%s'; img-src 'self' data:; font-src 'self'; " +
		"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)

// addConsole registers the console and what it reads before anybody has signed in. Its files need no token: they are
// the same in every copy of the program.
func (s *server) addConsole() {
	files, err := openZip(consoleFiles)
	if err != nil { // the API works without it
		s.log.Error("console cannot be read", "err", err)
	}
	s.get("/ui", func(c *gin.Context) error { return redirectTo(c, "ui/") })
	s.get("/ui/*file", func(c *gin.Context) error {
		name := strings.TrimPrefix(c.Param("file"), "/")
		if name == "" {
			return s.serveConsolePage(c, files[consolePage])
		}
		switch "/ui/" + name {
		case sessionPath:
			return s.readSession(c)
		case beginPath, endPath:
			c.Header("Allow", http.MethodPost)
			s.noMethod(c)
			return nil
		}
		return s.serveConsole(c, files[name], name)
	})
	document := sync.OnceValues(func() (plain, packed []byte) {
		plain, err := jsonOf(bytes.ReplaceAll(api.OpenAPI(), []byte("core_db"), []byte(s.word)))
		if err != nil {
			panic("converting the OpenAPI document: " + err.Error()) // it is a part of the program
		}
		return plain, gzipped(plain)
	})
	s.get("/openapi.json", func(c *gin.Context) error {
		content, packed := document()
		if acceptsGzip(c) {
			content = packed
		}
		serveFile(c, "application/json", askFirst, content)
		return nil
	})
}

// redirectTo sends a browser to a place beside the path of the request. It is relative, so that it also works where
// somebody in front of the API removes the beginning of the path.
func redirectTo(c *gin.Context, place string) error {
	c.Header("Location", place)
	c.Status(http.StatusFound)
	return nil
}

// serveConsolePage answers with the page, whose nonce no other answer has.
func (s *server) serveConsolePage(c *gin.Context, file *zip.File) error {
	if file == nil {
		s.noRoute(c)
		return nil
	}
	page, err := zipFile(file)
	if err != nil {
		return fmt.Errorf("reading %q: %w", file.Name, err)
	}
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails; see its documentation
	nonce := base64.RawURLEncoding.EncodeToString(random)
	page = bytes.ReplaceAll(page, []byte(consoleNonce), []byte(nonce))
	c.Header("Content-Security-Policy", fmt.Sprintf(consolePolicy, nonce))
	c.Header("Cache-Control", "no-store")
	setConsoleHeaders(c)
	c.Header("Content-Length", strconv.Itoa(len(page))) // for HEAD too
	c.Data(http.StatusOK, "text/html; charset=utf-8", page)
	return nil
}

// serveConsole answers with another file. The name of one in assets changes with its content.
func (s *server) serveConsole(c *gin.Context, file *zip.File, name string) error {
	if file == nil || contentTypeOf(name) == "" || name == consolePage {
		s.noRoute(c)
		return nil
	}
	content, err := siteFile(c, file)
	if err != nil {
		return fmt.Errorf("reading %q: %w", name, err)
	}
	c.Header("Content-Security-Policy", picturePolicy)
	setConsoleHeaders(c)
	cache := askFirst
	if strings.HasPrefix(name, "assets/") {
		cache = "public, max-age=31536000, immutable"
	}
	serveFile(c, contentTypeOf(name), cache, content)
	return nil
}

func setConsoleHeaders(c *gin.Context) {
	c.Header("X-Content-Type-Options", "nosniff")
	c.Header("Referrer-Policy", "no-referrer")
	c.Header("Cross-Origin-Opener-Policy", "same-origin")
}

func gzipped(content []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = w.Write(content) // a buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

// jsonOf returns a document of YAML as JSON, with its keys in the same order: forms show fields in it.
func jsonOf(document []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err := writeJSONNode(&out, &root)
	return out.Bytes(), err
}

func writeJSONNode(out *bytes.Buffer, n *yaml.Node) error {
	switch n.Kind {
	case yaml.DocumentNode:
		return writeJSONNode(out, n.Content[0])
	case yaml.MappingNode, yaml.SequenceNode:
		return writeJSONList(out, n)
	default:
		var value any
		if err := n.Decode(&value); err != nil {
			return err
		}
		text, err := json.Marshal(value)
		out.Write(text)
		return err
	}
}

func writeJSONList(out *bytes.Buffer, n *yaml.Node) error {
	begin, end, step := byte('['), byte(']'), 1
	if n.Kind == yaml.MappingNode {
		begin, end, step = '{', '}', 2
	}
	out.WriteByte(begin)
	for i := 0; i < len(n.Content); i += step {
		if i > 0 {
			out.WriteByte(',')
		}
		if step == 2 {
			key, err := json.Marshal(n.Content[i].Value)
			if err != nil {
				return err
			}
			out.Write(append(key, ':'))
		}
		if err := writeJSONNode(out, n.Content[i+step-1]); err != nil {
			return err
		}
	}
	out.WriteByte(end)
	return nil
}
