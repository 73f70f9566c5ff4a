package rest_test

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	contract "github.com/gatehouse-gateway/gatehouse/api"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("The OpenAPI document", func() {
	It("is served unchanged", func() {
		a := startAPI()
		got := a.get("/openapi.yaml")
		Expect(got.status).To(Equal(200))
		Expect(got.header.Get("Content-Type")).To(Equal("application/yaml"))
		Expect(got.body).To(Equal(string(contract.OpenAPI())))
		Expect(a.do("GET", "/openapi.yaml", "", nil, "If-None-Match", got.header.Get("ETag")).status).To(Equal(304))
		Expect(a.do("GET", "/openapi.yaml", "", nil, "If-None-Match", `"other"`).status).To(Equal(200))
		Expect(a.do("GET", "/openapi.yaml", "", nil, "Accept", "application/yaml").status).To(Equal(200))
		Expect(a.do("GET", "/openapi.yaml", "", nil, "Accept", "application/json").status).To(Equal(406))

		head := a.do("HEAD", "/openapi.yaml", "", nil)
		Expect(head.status).To(Equal(200))
		Expect(head.header.Get("Content-Length")).To(Equal(got.header.Get("Content-Length")))
	})

	It("has the schema word of the settings", func() {
		a := startAPI(func(o *rest.Options) { o.SchemaWord = "acme" })
		body := a.get("/openapi.yaml").body
		Expect(body).To(ContainSubstring("insert_acme_upstream"))
		Expect(body).NotTo(ContainSubstring("core_db"))
	})
})

var _ = Describe("The page for the OpenAPI document", func() {
	const policy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
		"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

	It("needs no token, and does not let the browser load anything from other sites", func() {
		a := startAPI(guarded)
		page := a.do("GET", "/docs/api/", "", nil, "Accept", "text/html")
		Expect(page.status).To(Equal(200))
		Expect(page.header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
		Expect(page.header.Get("Content-Security-Policy")).To(Equal(policy))

		files := map[string]string{}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
			got := a.get(m[1])
			Expect(got.status).To(Equal(200), m[1])
			Expect(got.header.Get("Content-Security-Policy")).To(Equal(policy))
			files[m[1]] = got.header.Get("Content-Type")
		}
		Expect(files).To(Equal(map[string]string{
			"/docs/api/swagger-ui.css": "text/css; charset=utf-8", "/docs/api/swagger-ui-bundle.js": "text/javascript; charset=utf-8",
			"/docs/api/start.js": "text/javascript; charset=utf-8", "/docs/api/favicon-32x32.png": "image/png",
		}))
		Expect(a.get("/docs/api/start.js").body).To(ContainSubstring(`url: "/openapi.yaml"`))
	})

	It("is compressed if the client accepts it", func() {
		a := startAPI()
		expectCompressed(a, "/docs/api/swagger-ui.css", ".swagger-ui{")
	})

	It("has no other files", func() {
		a := startAPI()
		for name := range strings.FieldsSeq("nope.js swagger-ui.css.gz embed.go .. ..%2Fdocs.go ../site.zip ..%2fmissing.html index.html%00 .js index.html/") {
			Expect(a.get("/docs/api/"+name).status).To(Equal(404), name)
		}
	})
})

// expectCompressed expects that a file is compressed if the client accepts it, and that each form has its ETag.
func expectCompressed(a *api, path, prefix string) {
	GinkgoHelper()
	a.client.Transport.(*http.Transport).DisableCompression = true
	plain := a.get(path)
	Expect(plain.header).NotTo(HaveKey("Content-Encoding"))
	Expect(plain.header.Get("Vary")).To(Equal("Accept-Encoding"))
	Expect(plain.body).To(HavePrefix(prefix))
	zipped := a.do("GET", path, "", nil, "Accept-Encoding", "br, gzip")
	Expect(zipped.header.Get("Content-Encoding")).To(Equal("gzip"))
	unzipped, err := gzip.NewReader(strings.NewReader(zipped.body))
	Expect(err).NotTo(HaveOccurred())
	content, err := io.ReadAll(unzipped)
	Expect(err).NotTo(HaveOccurred())
	Expect(string(content)).To(Equal(plain.body))
	Expect(zipped.header.Get("ETag")).NotTo(Equal(plain.header.Get("ETag")))
	Expect(a.do("GET", path, "", nil, "If-None-Match", plain.header.Get("ETag")).status).To(Equal(304))
	Expect(a.do("GET", path, "", nil, "If-None-Match", zipped.header.Get("ETag"), "Accept-Encoding", "gzip").status).To(Equal(304))
	head := a.do("HEAD", path, "", nil, "Accept-Encoding", "gzip")
	Expect(head.body).To(BeEmpty())
	Expect(head.header.Get("Content-Length")).To(Equal(fmt.Sprint(len(zipped.body))))
}

// site is a documentation of a few files, as a zip.
func site(files map[string]string) []byte {
	GinkgoHelper()
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for name, content := range files {
		w, err := archive.Create(name)
		Expect(err).NotTo(HaveOccurred())
		_, err = w.Write([]byte(content))
		Expect(err).NotTo(HaveOccurred())
	}
	Expect(archive.Close()).To(Succeed())
	return out.Bytes()
}

var _ = Describe("The documentation", func() {
	const policy = "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
	with := func(files map[string]string) func(*rest.Options) {
		return func(o *rest.Options) { o.Site = site(files) }
	}
	pages := map[string]string{
		"index.html": "<h1>start</h1>", "404.html": "<h1>nothing here</h1>", "adr/index.html": "<h1>decisions</h1>",
		"assets/main.css": strings.Repeat("a{}", 1000), "assets/main.js": "1", "search/search_index.json": "{}",
		"concepts.svg": "<svg/>", "secret.txt": "x",
	}

	It("needs no token, and has types and a policy that loads nothing from other sites", func() {
		a := startAPI(guarded, with(pages))
		for path, want := range map[string][3]string{
			"/docs/":                         {"<h1>start</h1>", "text/html; charset=utf-8", policy},
			"/docs/index.html":               {"<h1>start</h1>", "text/html; charset=utf-8", policy},
			"/docs/adr/":                     {"<h1>decisions</h1>", "text/html; charset=utf-8", policy},
			"/docs/assets/main.js":           {"1", "text/javascript; charset=utf-8", policy},
			"/docs/search/search_index.json": {"{}", "application/json", policy},
			"/docs/concepts.svg":             {"<svg/>", "image/svg+xml", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"},
		} {
			got := a.get(path)
			Expect(got.status).To(Equal(200), path)
			Expect([3]string{got.body, got.header.Get("Content-Type"), got.header.Get("Content-Security-Policy")}).To(Equal(want), path)
			Expect(got.header.Get("X-Content-Type-Options")).To(Equal("nosniff"), path)
			Expect(got.header.Get("Cache-Control")).To(Equal("no-cache"), path)
		}
	})

	It("is at the path with a slash", func() {
		a := startAPI(with(pages))
		for path, to := range map[string]string{"/docs": "/docs/", "/docs/api": "/docs/api/"} {
			got := a.get(path)
			Expect(got.status).To(Equal(308))
			Expect(got.header.Get("Location")).To(Equal(to))
		}
	})

	It("is compressed if the client accepts it", func() {
		expectCompressed(startAPI(with(pages)), "/docs/assets/main.css", "a{}a{}")
	})

	It("has a page for what does not exist, which only a browser gets", func() {
		a := startAPI(with(pages))
		for name := range strings.FieldsSeq("nope nope.html adr assets/ secret.txt .. ../site.zip ..%2Fsite.zip site.zip missing.html index.html%00 %2e%2e/go.mod //") {
			got := a.do("GET", "/docs/"+name, "", nil, "Accept", "text/html,*/*;q=0.8")
			Expect(got.status).To(Equal(404), name)
			Expect(got.body).To(Equal("<h1>nothing here</h1>"), name)
			Expect(got.header.Get("Content-Security-Policy")).To(Equal(policy), name)
			Expect(a.get("/docs/"+name).header.Get("Content-Type")).To(Equal("application/problem+json"), name)
		}
	})

	It("is missing in a program that was built without it, which says how to get it", func() {
		a := startAPI(func(o *rest.Options) { o.Site = []byte{} })
		got := a.get("/docs/")
		Expect(got.status).To(Equal(200))
		Expect(got.body).To(And(ContainSubstring("make docs build"), ContainSubstring(`href="/docs/api/"`)))
		Expect(got.header.Get("Content-Security-Policy")).To(Equal(policy))
		Expect(a.do("GET", "/docs/routing.html", "", nil, "Accept", "text/html").status).To(Equal(404))
	})

	It("is told to be broken, and the API works", func() {
		a := startAPIThatFails(func(o *rest.Options) { o.Site = []byte("PK") })
		Expect(a.log.String()).To(ContainSubstring("documentation cannot be read"))
		Expect(a.get("/docs/").body).To(ContainSubstring("make docs build"))
		Expect(a.get("/health").status).To(Equal(200))
	})
})

var _ = Describe("The root of the API", func() {
	const links = `{"name":"Gatehouse","console":"/ui/","docs":"/docs","openapi":"/openapi.yaml","config":"/config","status":"/status","ready":"/ready"}`

	It("links to the documentation, without a token", func() {
		a := startAPI(guarded)
		got := a.get("/")
		got.expectJSON(200, links)
		Expect(got.header.Get("Vary")).To(Equal("Accept"))
		for _, accept := range []string{"*/*", "application/json", "application/json, text/html;q=0"} {
			a.do("GET", "/", "", nil, "Accept", accept).expectJSON(200, links)
		}
		Expect(a.do("HEAD", "/", "", nil).status).To(Equal(200))
		Expect(a.do("GET", "/", "", nil, "Accept", "image/png").status).To(Equal(406))
	})

	It("sends a browser to the console, beside the path that it asked for", func() {
		a := startAPI(guarded)
		page := a.do("GET", "/", "", nil, "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
		Expect(page.status).To(Equal(302))
		Expect(page.header.Get("Location")).To(Equal("ui/"), "relative, for a path prefix")
		Expect(page.header.Get("Vary")).To(Equal("Accept"))
		slash := a.get("/ui")
		Expect([]any{slash.status, slash.header.Get("Location")}).To(Equal([]any{302, "ui/"}))
	})

	It("links to pages that exist", func() {
		a := startAPI()
		for _, path := range []string{"/ui/", "/docs/", "/docs/api/", "/openapi.yaml", "/config", "/status", "/ready"} {
			Expect(a.get(path).status).To(Equal(200), path)
		}
	})
})
