package rest_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"go.yaml.in/yaml/v3"

	contract "github.com/gatehouse-gateway/gatehouse/api"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("The console", func() {
	It("needs no token, and its page has a nonce of its own each time, which its policy allows", func() {
		a := startAPI(guarded)
		nonces := map[string]bool{}
		for range 2 {
			page := a.do("GET", "/ui/", "", nil, "Accept", "text/html")
			Expect(page.status).To(Equal(200))
			Expect(page.header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
			Expect(page.header.Get("Cache-Control")).To(Equal("no-store"))
			nonce := regexp.MustCompile(`<meta name="nonce" content="([A-Za-z0-9_-]{22})"`).FindStringSubmatch(page.body)
			Expect(nonce).To(HaveLen(2), page.body)
			nonces[nonce[1]] = true
			Expect(page.header.Get("Content-Security-Policy")).To(Equal("default-src 'none'; script-src 'self'; style-src 'self' 'nonce-" + nonce[1] +
				"'; img-src 'self' data:; font-src 'self'; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"))
			Expect(page.header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
			Expect(page.header.Get("Referrer-Policy")).To(Equal("no-referrer"))
			Expect(page.body).NotTo(MatchRegexp(`<script[^>]*>\s*[^<\s]|<style|\s(style|on[a-z]+)="`), "nothing is inline")
		}
		Expect(nonces).To(HaveLen(2))
	})

	It("has files beside the page, compressed, which a browser keeps", func() {
		a := startAPI(guarded)
		page := a.do("GET", "/ui/", "", nil, "Accept", "text/html").body
		types := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllStringSubmatch(page, -1) {
			Expect(m[1]).To(HavePrefix("./"), "below any path")
			got := a.get("/ui/" + strings.TrimPrefix(m[1], "./"))
			Expect(got.status).To(Equal(200), m[1])
			types[got.header.Get("Content-Type")] = true
			cache := "no-cache"
			if strings.HasPrefix(m[1], "./assets/") {
				cache = "public, max-age=31536000, immutable"
				expectCompressed(a, "/ui/"+strings.TrimPrefix(m[1], "./"), "")
			}
			Expect(got.header.Get("Cache-Control")).To(Equal(cache))
			Expect(got.header.Get("Content-Security-Policy")).To(ContainSubstring("frame-ancestors 'none'"))
		}
		Expect(types).To(Equal(map[string]bool{"text/javascript; charset=utf-8": true, "text/css; charset=utf-8": true, "image/svg+xml": true}))
	})

	It("has no other files", func() {
		a := startAPI(guarded)
		for name := range strings.FieldsSeq("index.html nope.js assets assets/ ../docs.go ..%2fconsole.zip assets/../index.html index.html%00") {
			Expect(a.get("/ui/"+name).status).To(Equal(404), name)
		}
		Expect(a.send("POST", "/ui/", adminToken, "a=b").status).To(Equal(405))
	})
})

var _ = Describe("The OpenAPI document as JSON", func() {
	It("says the same as the other form, in the same order, and needs no token", func() {
		a := startAPI(guarded, func(o *rest.Options) { o.SchemaWord = "acme" })
		got := a.get("/openapi.json")
		Expect(got.status).To(Equal(200))
		Expect(got.header.Get("Content-Type")).To(Equal("application/json"))
		var shown, want any
		Expect(json.Unmarshal([]byte(got.body), &shown)).To(Succeed())
		var node any
		Expect(yaml.Unmarshal([]byte(strings.ReplaceAll(string(contract.OpenAPI()), "core_db", "acme")), &node)).To(Succeed())
		text, err := json.Marshal(node)
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, &want)).To(Succeed())
		Expect(shown).To(Equal(want))
		Expect(got.body).To(MatchRegexp(`"UpstreamPatch":\{"type":"object","additionalProperties":false,"properties":\{"Upstream_name":.*?"Upstream_ip":.*?"Upstream_port"`))
		expectCompressed(a, "/openapi.json", `{"openapi":`)
		Expect(a.do("GET", "/openapi.json", "", nil, "Accept", "text/html").status).To(Equal(http.StatusNotAcceptable))
	})
})
