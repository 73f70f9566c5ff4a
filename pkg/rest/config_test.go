package rest_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const wholeDocument = `version: 1
upstreams:
- upstream_name: blue
  upstream_ip: 10.0.0.1
  upstream_port: 8081
services:
- service_name: shop
  fqdn: shop.example.com
  filters: []
  secrets: []
  routes:
  - route_name: root
    route_prefix: /
    upstreams:
    - blue
    filters: []
proxies:
- name: gw
  http_port: 8080
  https_port: 8443
  listen_ip: 0.0.0.0
  trusted_hops: 0
  escaped_slashes: redirect
  underscore_headers: reject
  tls_min_version: "1.2"
  services:
  - shop
  globalconfigs: []
`

func (a *api) putConfig(query, body string) answer {
	GinkgoHelper()
	return a.do(http.MethodPut, "/config"+query, "application/yaml", strings.NewReader(body))
}

var _ = Describe("The configuration document", func() {
	It("can be read as a whole, as YAML or JSON", func() {
		a := startAPI()
		a.given(everything()...)
		got := a.get("/config")
		Expect(got.status).To(Equal(200))
		Expect(got.header.Get("Content-Type")).To(Equal("application/yaml"))
		Expect(got.body).To(Equal(wholeDocument))
		asJSON := a.do(http.MethodGet, "/config", "", nil, "Accept", "application/json")
		Expect(asJSON.header.Get("Content-Type")).To(Equal("application/json"))
		Expect(asJSON.body).To(HavePrefix(`{`))
	})

	It("applied to an empty store reads back the same, and then changes nothing", func() {
		a := startAPI()
		first := a.putConfig("", wholeDocument)
		Expect(first.status).To(Equal(200), first.body)
		Expect(first.header.Get("Gatehouse-Revision")).To(Equal("1"))
		Expect(first.body).To(HavePrefix(`{"data":{"created":6,"updated":0,"deleted":0,"unchanged":0,"changes":[{"action":"create","path":"/upstream/blue",`))
		Expect(a.get("/config").body).To(Equal(wholeDocument))
		a.putConfig("", wholeDocument).
			expectWrite(200, `{"data":{"created":0,"updated":0,"deleted":0,"unchanged":6,"changes":[],"warnings":[]}}`, "1")
		Expect(a.revision()).To(Equal(int64(1)))
	})

	It("reports what would change without writing", func() {
		a := startAPI()
		a.given(everything()...)
		a.putConfig("?dry_run=true", strings.Replace(wholeDocument, "8081", "8082", 1)).expectJSON(200,
			`{"data":{"dry_run":true,"created":0,"updated":1,"deleted":0,"unchanged":5,"changes":[{"action":"update","path":"/upstream/blue",`+
				`"kind":"upstream","fields":[{"field":"upstream_port","before":8081,"after":8082}]}],"warnings":[]}}`)
		Expect(a.get("/config").body).To(Equal(wholeDocument))
	})

	It("deletes only on request", func() {
		a := startAPI()
		a.given(everything()...)
		a.putConfig("", "version: 1\n").
			expectWrite(200, `{"data":{"created":0,"updated":0,"deleted":0,"unchanged":0,"changes":[],"warnings":[]}}`, "6")
		got := a.putConfig("?prune=true", "version: 1\n")
		Expect(got.body).To(HavePrefix(`{"data":{"created":0,"updated":0,"deleted":6,"unchanged":0,`))
		Expect(a.get("/config").body).To(Equal("version: 1\n"))
	})

	It("changes nothing if one object is bad, and names it and its line", func() {
		a := startAPI()
		got := a.putConfig("", strings.Replace(wholeDocument, "8081", "80810", 1))
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`"field":"line 5: upstreams[\"blue\"].upstream_port","message":"80810 is not between 1 and 65535"`))
		Expect(a.revision()).To(Equal(int64(0)))
	})

	It("can be limited by tag", func() {
		a := startAPI()
		a.given("/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=1&tags=x", "/upstream", "Upstream_name=green&Upstream_ip=10.0.0.1&Upstream_port=1")
		Expect(a.get("/config?tag=x").body).To(And(ContainSubstring("blue"), Not(ContainSubstring("green"))))
	})

	DescribeTable("requires valid parameters and bodies", func(query, contentType, body string, status int) {
		a := startAPI()
		Expect(a.do(http.MethodPut, "/config"+query, contentType, strings.NewReader(body)).status).To(Equal(status))
		Expect(a.revision()).To(Equal(int64(0)))
	},
		Entry(nil, "?prune=yes", "application/yaml", "version: 1\n", 400),
		Entry(nil, "", "text/plain", "version: 1\n", 415),
		Entry(nil, "", "application/json", "version: 1\n", 400),
		Entry("too large", "", "application/yaml", strings.Repeat("#", 16<<20+1), 413),
	)

	It("requires a known way to show secrets", func() {
		Expect(startAPI().get("/config?secrets=all").status).To(Equal(400))
	})
})
