package rest_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The trusted hops of a proxy", func() {
	hops := func(a *api) string {
		GinkgoHelper()
		_, rest, found := strings.Cut(a.get("/proxy/gw").body, `"trusted_hops":`)
		Expect(found).To(BeTrue())
		n, _, _ := strings.Cut(rest, ",")
		return n
	}

	It("can be set by every write, and are in every read", func() {
		a := startAPI()
		a.given("/proxy", "Name=gw&Trusted_hops=2") // 1
		Expect(hops(a)).To(Equal("2"))
		Expect(a.get("/proxy").body).To(ContainSubstring(`"listen_ip":"0.0.0.0","trusted_hops":2,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.2","tags":[]`))
		Expect(a.get("/config").body).To(ContainSubstring("  listen_ip: 0.0.0.0\n  trusted_hops: 2\n  escaped_slashes: redirect\n  underscore_headers: reject\n  tls_min_version: \"1.2\"\n  services: []\n"))
		for _, path := range []string{"/proxy/dump", "/proxy/dump/gw"} {
			Expect(a.get(path).body).To(ContainSubstring(`"listen_ip":"0.0.0.0","trusted_hops":2,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.2","tags":[]`))
		}
		Expect(a.patch("/proxy/gw", "TRUSTED_HOPS=3").status).To(Equal(200)) // 2
		Expect(hops(a)).To(Equal("3"))
		Expect(a.patch("/proxy/gw", "Http_port=81").status).To(Equal(200)) // 3
		Expect(hops(a)).To(Equal("3"))
		Expect(a.put("/proxy/gw", "Http_port=81").status).To(Equal(200)) // 4
		Expect(hops(a)).To(Equal("0"))
		got := a.do(http.MethodPut, "/proxy/gw", "application/json", strings.NewReader(`{"trusted_hops":"10"}`)) // 5
		Expect(got.status).To(Equal(200), got.body)
		Expect(hops(a)).To(Equal("10"))
		got = a.putConfig("", "version: 1\nproxies:\n- {name: gw, trusted_hops: 1}\n") // 6
		Expect(got.status).To(Equal(200), got.body)
		Expect(hops(a)).To(Equal("1"))
		a.get("/revision/6").expectJSON(200, `{"data":{"core_db_revision":[{"revision":6,"at":"`+timestamp+`","actor":"api","request":"PUT /config",`+
			`"changes":[{"action":"update","path":"/proxy/gw","kind":"proxy","fields":[{"field":"trusted_hops","before":10,"after":1}]}]}]}}`)
		Expect(a.post("/revision/2/rollback", "").status).To(Equal(200))
		Expect(hops(a)).To(Equal("3"))
	})

	It("are refused in a document with their line", func() {
		a := startAPI()
		got := a.putConfig("", "version: 1\nproxies:\n- name: gw\n  trusted_hops: 11\n")
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(ContainSubstring(`line 4`))
		Expect(got.body).To(ContainSubstring(`11 is not between 0 and 10`))
	})
})
