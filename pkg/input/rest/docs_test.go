package rest_test

import (
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
		page := a.do("GET", "/docs", "", nil, "Accept", "text/html")
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
			"/docs/swagger-ui.css": "text/css; charset=utf-8", "/docs/swagger-ui-bundle.js": "text/javascript; charset=utf-8",
			"/docs/start.js": "text/javascript; charset=utf-8", "/docs/favicon-32x32.png": "image/png",
		}))
		Expect(a.get("/docs/start.js").body).To(ContainSubstring(`url: "/openapi.yaml"`))
	})

	It("is compressed if the client accepts it", func() {
		a := startAPI()
		a.client.Transport.(*http.Transport).DisableCompression = true
		plain := a.get("/docs/swagger-ui.css")
		Expect(plain.header).NotTo(HaveKey("Content-Encoding"))
		Expect(plain.body).To(HavePrefix(".swagger-ui{"))
		zipped := a.do("GET", "/docs/swagger-ui.css", "", nil, "Accept-Encoding", "br, gzip")
		Expect(zipped.header.Get("Content-Encoding")).To(Equal("gzip"))
		Expect(zipped.body).To(HavePrefix("\x1f\x8b"))
		Expect(zipped.header.Get("ETag")).NotTo(Equal(plain.header.Get("ETag")))
		Expect(a.do("GET", "/docs/swagger-ui.css", "", nil, "If-None-Match", plain.header.Get("ETag")).status).To(Equal(304))
	})

	It("has no other files", func() {
		a := startAPI()
		for name := range strings.FieldsSeq("nope.js swagger-ui.css.gz embed.go .. ..%2Fdocs.go index.html%00 .js") {
			Expect(a.get("/docs/"+name).status).To(Equal(404), name)
		}
	})
})

var _ = Describe("The root of the API", func() {
	const links = `{"name":"Gatehouse","docs":"/docs","openapi":"/openapi.yaml","config":"/config","status":"/status","ready":"/ready"}`

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

	It("is a page for a browser, which loads nothing", func() {
		a := startAPI(guarded)
		page := a.do("GET", "/", "", nil, "Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8")
		Expect(page.status).To(Equal(200))
		Expect(page.header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
		Expect(page.header.Get("Vary")).To(Equal("Accept"))
		Expect(page.header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
		Expect(page.header.Get("Content-Security-Policy")).To(Equal("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"))
		var to []string
		for _, m := range regexp.MustCompile(`href="([^"]*)"`).FindAllStringSubmatch(page.body, -1) {
			to = append(to, m[1])
		}
		Expect(to).To(Equal([]string{"/docs", "/openapi.yaml", "/config", "/status", "/ready"}))
	})

	It("links to pages that exist", func() {
		a := startAPI()
		for _, path := range []string{"/docs", "/openapi.yaml", "/config", "/status", "/ready"} {
			Expect(a.get(path).status).To(Equal(200), path)
		}
	})
})
