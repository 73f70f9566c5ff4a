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
  http3: false
  alt_svc_port: 0
  services:
  - shop
  filters: []
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
		got := a.get("/config?revision=false")
		Expect(got.status).To(Equal(200))
		Expect(got.header.Get("Content-Type")).To(Equal("application/yaml"))
		Expect(got.body).To(Equal(wholeDocument))
		asJSON := a.do(http.MethodGet, "/config?revision=false", "", nil, "Accept", "application/json")
		Expect(asJSON.header.Get("Content-Type")).To(Equal("application/json"))
		Expect(asJSON.body).To(HavePrefix(`{`))
	})

	It("applied to an empty store reads back the same, and then changes nothing", func() {
		a := startAPI()
		first := a.putConfig("", wholeDocument)
		Expect(first.status).To(Equal(200), first.body)
		Expect(first.header.Get("Gatehouse-Revision")).To(Equal("1"))
		Expect(first.body).To(HavePrefix(`{"data":{"created":6,"updated":0,"deleted":0,"unchanged":0,"changes":[{"action":"create","path":"/upstream/blue",`))
		Expect(a.get("/config?revision=false").body).To(Equal(wholeDocument))
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
		Expect(a.get("/config?revision=false").body).To(Equal(wholeDocument))
	})

	It("deletes only on request", func() {
		a := startAPI()
		a.given(everything()...)
		a.putConfig("", "version: 1\n").
			expectWrite(200, `{"data":{"created":0,"updated":0,"deleted":0,"unchanged":0,"changes":[],"warnings":[]}}`, "6")
		got := a.putConfig("?prune=true", "version: 1\n")
		Expect(got.body).To(HavePrefix(`{"data":{"created":0,"updated":0,"deleted":6,"unchanged":0,`))
		Expect(a.get("/config?revision=false").body).To(Equal("version: 1\n"))
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

var _ = Describe("A document that names its revision", func() {
	// dumped is an API with everything, and its document of revision 6.
	dumped := func() (*api, string) {
		a := startAPI()
		a.given(everything()...)
		dump := a.get("/config")
		Expect(dump.body).To(MatchRegexp(`^version: 1\nrevision: "6-[0-9a-zA-Z]+"\nupstreams:\n`))
		return a, dump.body
	}
	refused := func(detail string, fields ...string) string {
		more := ""
		for i := 0; i < len(fields); i += 2 {
			more += `,{"field":"` + fields[i] + `","message":"` + fields[i+1] + `"}`
		}
		if more != "" {
			more = `,"errors":[` + more[1:] + `]`
		}
		return conflict("conflict", "It conflicts with the current state", "/config",
			detail+"; read it again and repeat the edit, or overwrite these changes: ?force=true, gatehouse apply --force", more)
	}
	const changed = "the document changes what was changed after revision 6, from which it comes; nothing was changed"

	It("is refused if it undoes what others did since, unless by force", func() {
		a, dump := dumped()
		Expect(a.patch("/upstream/blue", "Upstream_port=9").status).To(Equal(200))  // 7
		Expect(a.patch("/upstream/blue", "Upstream_port=10").status).To(Equal(200)) // 8
		Expect(a.delete("/proxy/gw/service/shop").status).To(Equal(200))            // 9
		edited := strings.Replace(dump, "fqdn: shop.example.com", "fqdn: new.example.com", 1)
		want := refused(changed, "/proxy/gw/service/shop", "changed in revision 9 by api: DELETE /proxy/gw/service/shop",
			"/upstream/blue", "changed in revision 8 by api: PATCH /upstream/blue")
		for _, query := range []string{"", "?dry_run=true", "?force=false"} {
			a.putConfig(query, edited).expectProblem(409, want)
		}
		Expect(a.revision()).To(Equal(int64(9)))
		Expect(a.putConfig("?force=true", edited).status).To(Equal(200))
		Expect(a.get("/upstream/blue").body).To(ContainSubstring(`"upstream_port":8081`))
	})

	It("is refused if it recreates what was deleted, or prunes what was created since", func() {
		a, dump := dumped()
		Expect(a.delete("/proxy/gw/service/shop").status).To(Equal(200)) // 7
		Expect(a.delete("/proxy/gw").status).To(Equal(200))              // 8
		a.putConfig("", dump).expectProblem(409, refused(changed, "/proxy/gw", "changed in revision 8 by api: DELETE /proxy/gw",
			"/proxy/gw/service/shop", "changed in revision 7 by api: DELETE /proxy/gw/service/shop"))
		a, dump = dumped()
		a.given("/upstream", "Upstream_name=new&Upstream_ip=10.0.0.3&Upstream_port=1")
		a.putConfig("?prune=true", dump).expectProblem(409, refused(changed, "/upstream/new", "changed in revision 7 by api: POST /upstream"))
		Expect(a.putConfig("", dump).status).To(Equal(200))
	})

	It("is applied if others changed something else, or the same in the same way", func() {
		a, dump := dumped()
		a.given("/upstream", "Upstream_name=new&Upstream_ip=10.0.0.3&Upstream_port=1")
		edited := strings.Replace(dump, "upstream_port: 8081", "upstream_port: 9", 1)
		a.putConfig("", edited).expectWrite(200, `{"data":{"created":0,"updated":1,"deleted":0,"unchanged":5,"changes":[{"action":"update","path":"/upstream/blue",`+
			`"kind":"upstream","fields":[{"field":"upstream_port","before":8081,"after":9}]}],"warnings":[]}}`, "8")
		a.putConfig("", edited).expectWrite(200, `{"data":{"created":0,"updated":0,"deleted":0,"unchanged":6,"changes":[],"warnings":[]}}`, "8")
	})

	It("of another gateway is applied with a warning", func() {
		_, dump := dumped()
		a := startAPI()
		got := a.putConfig("", dump)
		Expect(got.status).To(Equal(200), got.body)
		Expect(got.body).To(ContainSubstring(`"created":6,`))
		Expect(got.body).To(ContainSubstring(`"warnings":["the document comes from revision 6 of another gateway, or of a time before a restore: nothing was compared with what changed since"]`))
	})

	DescribeTable("may not name anything else", func(text string) {
		a := startAPI()
		got := a.putConfig("", "version: 1\nrevision: "+text+"\n")
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`{"field":"line 2: revision","message":"must be a revision as gatehouse dump writes it; without this line, nothing is compared"}`))
	},
		Entry(nil, "6"),
		Entry(nil, "-6-a"),
		Entry(nil, "x-a"),
		Entry(nil, "[6-a]"),
		Entry(nil, "99999999999999999999-a"),
	)
})

var _ = Describe("A document that is deleted", func() {
	It("takes what it names away in an order that works, and nothing else", func() {
		a := startAPI()
		a.given(everything()...)
		a.given("/upstream", "Upstream_name=other&Upstream_ip=10.0.0.9&Upstream_port=1")
		before := a.get("/config").body
		preview := a.putConfig("?delete=true&dry_run=true", wholeDocument)
		Expect(preview.status).To(Equal(200), preview.body)
		Expect(preview.body).To(ContainSubstring(`"action":"delete","path":"/service/shop/route/root"`))
		Expect(a.get("/config").body).To(Equal(before))
		done := a.putConfig("?delete=true&message=gone", wholeDocument)
		Expect(done.status).To(Equal(200), done.body)
		Expect(done.body).To(ContainSubstring(`"created":0,"updated":0,"deleted":6,"unchanged":0`))
		Expect(a.get("/config?revision=false").body).To(MatchRegexp(`(?s)^version: 1\nupstreams:\n- upstream_name: other\n  upstream_ip: 10.0.0.9\n  upstream_port: 1\n$`))
		By("again, there is nothing to do")
		Expect(a.putConfig("?delete=true", wholeDocument).body).To(ContainSubstring(`"deleted":0`))
	})

	It("takes what names others in a field away before these", func() {
		a := startAPI()
		const named = "version: 1\nkeysets:\n- {keyset_name: k}\nfilters:\n- {filter_name: f, filter_type: http_filter_apikey, filter_config: {keys: k}}\n"
		Expect(a.putConfig("", named).status).To(Equal(200))
		Expect(a.putConfig("?delete=true", named).body).To(ContainSubstring(`"deleted":2`))
	})

	It("is refused as a whole if others need what it names", func() {
		a := startAPI()
		a.given(everything()...)
		before := a.get("/config").body
		got := a.putConfig("?delete=true", "version: 1\nupstreams:\n- {upstream_name: blue, upstream_ip: 10.0.0.1, upstream_port: 1}\n")
		Expect(got.status).To(Equal(409))
		Expect(got.body).To(And(ContainSubstring(`line 3: upstreams[\"blue\"]: upstream \"blue\" is in use`), ContainSubstring(`"referenced_by":["/service/shop/route/root"]`)))
		got = a.putConfig("?delete=true", "version: 1\nproxies:\n- {name: gw}\n")
		Expect(got.status).To(Equal(409))
		Expect(got.body).To(ContainSubstring(`line 3: proxies[\"gw\"]: proxy \"gw\" is in use: 1 service is attached`))
		got = a.putConfig("?delete=true&tag=x", "version: 1\nservices:\n- {service_name: shop, fqdn: a.example, proxies: [gw], tags: [x]}\n")
		Expect(got.status).To(Equal(409))
		Expect(got.body).To(ContainSubstring(`does not have the tag`))
		got = a.putConfig("?delete=true&prune=true", "version: 1\n")
		got.expectProblem(400, invalid("/config", "delete", "cannot be combined with prune, which deletes what the document does not name"))
		Expect(a.get("/config").body).To(Equal(before))
		Expect(a.putConfig("?delete=true&force=true", "version: 1\nproxies:\n- {name: gw}\n").status).To(Equal(200))
	})

	It("is refused if it comes from a revision before the last change", func() {
		a := startAPI()
		a.given(everything()...)
		old := a.get("/config").body
		Expect(a.patch("/upstream/blue", "Upstream_weight=7").status).To(Equal(200))
		got := a.putConfig("?delete=true", old)
		Expect(got.status).To(Equal(409))
		Expect(got.body).To(ContainSubstring(`"field":"/upstream/blue"`))
		Expect(a.putConfig("?delete=true&force=true", old).status).To(Equal(200))
	})
})
