package rest_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func stale(path, detail string) string {
	return `{"type":"urn:gatehouse:problem:precondition_failed","title":"A precondition failed","status":412,"detail":"` + detail +
		`","instance":"` + path + `","code":"precondition_failed"}`
}

var _ = Describe("Preconditions", func() {
	const isStale = " does not match If-Match; read it again, then repeat the change"

	It("identify the state of an object by an ETag", func() {
		a := startAPI()
		made := a.put("/service/shop", "fqdn=a.example.com").header.Get("ETag")
		Expect(made).To(MatchRegexp(`^"[0-9a-f]{32}"$`))
		Expect(a.get("/service/shop").header.Values("ETag")).To(Equal([]string{made}))
		Expect(a.do(http.MethodHead, "/service/shop", "", nil).header.Get("ETag")).To(Equal(made))
		Expect(a.get("/service").header).NotTo(HaveKey("Etag"))

		changed := a.patch("/service/shop", "fqdn=b.example.com").header.Get("ETag")
		Expect(changed).NotTo(Or(BeEmpty(), Equal(made)))
		Expect(a.get("/service/shop").header.Get("ETag")).To(Equal(changed))
		Expect(a.put("/service/shop", "fqdn=b.example.com").header.Get("ETag")).To(Equal(changed))
		Expect(a.put("/service/shop", "fqdn=a.example.com").header.Get("ETag")).To(Equal(made)) // the clock stands still
	})

	It("return 304 if the client has the current state", func() {
		a := startAPI()
		a.given(everything()...)
		for _, path := range []string{"/service/shop", "/service/shop/route/root", "/proxy/gw/service/shop"} {
			tag := a.get(path).header.Get("ETag")
			for _, sent := range []string{tag, "W/" + tag, `"x", ` + tag, "*"} {
				got := a.do(http.MethodGet, path, "", nil, "If-None-Match", sent)
				Expect(got.status).To(Equal(304))
				Expect(got.body).To(BeEmpty())
				Expect(got.header.Get("ETag")).To(Equal(tag))
			}
			Expect(a.do(http.MethodGet, path, "", nil, "If-None-Match", `"x"`).status).To(Equal(200))
		}
	})

	DescribeTable("refuse a write to an outdated state", func(method, path, body, name string) {
		a := startAPI()
		a.given(everything()...)
		a.given("/upstream", "Upstream_name=free&Upstream_ip=::1&Upstream_port=1")
		for _, tag := range []string{`"x"`, "x", "", `"`} {
			a.do(method, path, form, strings.NewReader(body), "If-Match", tag).expectProblem(412, stale(path, name+isStale))
		}
		Expect(a.revision()).To(Equal(int64(7)))
		got := a.do(method, path, form, strings.NewReader(body), "If-Match", `"x", `+a.get(path).header.Get("ETag"))
		Expect(got.status).To(Equal(200), got.body)
		Expect(a.revision()).To(Equal(int64(8)))
	},
		Entry(nil, "PUT", "/upstream/free", "Upstream_ip=::2&Upstream_port=1", "/upstream/free"),
		Entry(nil, "PATCH", "/upstream/free", "Upstream_port=2", "/upstream/free"),
		Entry(nil, "DELETE", "/upstream/free", "", "/upstream/free"),
		Entry(nil, "PUT", "/service/shop/route/root", "Route_prefix=/x", "/service/shop/route/root"),
		Entry(nil, "DELETE", "/service/shop/route/root", "", "/service/shop/route/root"),
	)

	It("accept * for an object that exists", func() {
		a := startAPI()
		a.put("/service/shop", "fqdn=*", "If-Match", "*").expectProblem(412, stale("/service/shop", "/service/shop"+isStale))
		a.put("/service/shop", "fqdn=*", "If-None-Match", "*").
			expectWrite(201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "1")
		a.put("/service/shop", "fqdn=x", "If-None-Match", "*").
			expectProblem(412, stale("/service/shop", "/service/shop already exists, which If-None-Match excludes"))
		a.put("/service/shop", "fqdn=x", "If-Match", "*").expectWrite(200, `{"data":{"update_core_db_service":{"affected_rows":1}}}`, "2")
		a.do(http.MethodDelete, "/service/shop", "", nil, "If-Match", "*").
			expectWrite(200, `{"data":{"delete_core_db_service":{"affected_rows":1}}}`, "3")
	})

	It("let only one of two simultaneous writers succeed", func() {
		a := startAPI()
		a.given("/upstream", "Upstream_name=blue&Upstream_ip=::1&Upstream_port=1")
		tag := a.get("/upstream/blue").header.Get("ETag")
		Expect(atOnce(8, func() answer { return a.patch("/upstream/blue", "Upstream_port=2", "If-Match", tag) })).
			To(Equal(map[string]int{"OK": 1, "Precondition Failed": 7}))
		Expect(a.revision()).To(Equal(int64(2)))
	})

	It("apply to a dry run too", func() {
		a := startAPI()
		a.given("/upstream", "Upstream_name=blue&Upstream_ip=::1&Upstream_port=1")
		a.patch("/upstream/blue?dry_run=true", "Upstream_port=2", "If-Match", `"x"`).
			expectProblem(412, stale("/upstream/blue", "/upstream/blue"+isStale))
		Expect(a.patch("/upstream/blue?dry_run=true", "Upstream_port=2").header).NotTo(HaveKey("Etag"))
	})

	It("notice a change that reads do not show", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=s&Secret_value=one")
		tag := a.get("/secret/s").header.Get("ETag")
		a.patch("/secret/s", "Secret_value=two")
		Expect(a.get("/secret/s").header.Get("ETag")).NotTo(Equal(tag))
		a.patch("/secret/s", "Secret_value=one", "If-Match", tag).expectProblem(412, stale("/secret/s", "/secret/s"+isStale))
	})
})
