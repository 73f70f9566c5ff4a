package rest_test

import (
	"net/http"
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
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
		Expect(a.get("/proxy").body).To(ContainSubstring(`"listen_ip":"0.0.0.0","trusted_hops":2,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.2","http3":false,"alt_svc_port":0,"tags":[]`))
		Expect(a.get("/config").body).To(ContainSubstring("  listen_ip: 0.0.0.0\n  trusted_hops: 2\n  escaped_slashes: redirect\n  underscore_headers: reject\n  tls_min_version: \"1.2\"\n  http3: false\n  alt_svc_port: 0\n  services: []\n"))
		for _, path := range []string{"/proxy/dump", "/proxy/dump/gw"} {
			Expect(a.get(path).body).To(ContainSubstring(`"listen_ip":"0.0.0.0","trusted_hops":2,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.2","http3":false,"alt_svc_port":0,"tags":[]`))
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

var _ = Describe("A proxy that serves traffic", func() {
	// used is the refusal to delete the proxy gw.
	used := func(detail, more string) string {
		return conflict("in_use", "The object is in use", "/proxy/gw",
			detail+"; detach its services and stop its Envoys, or force it: ?force=true, gatehouse delete --force", more)
	}
	connected := func(ids ...int64) func(*rest.Options) {
		registry := status.NewRegistry()
		for _, id := range ids {
			registry.Connect(status.Envoy{ID: id, Proxy: "gw", Address: "10.0.0.9:" + strconv.FormatInt(4000+id, 10)})
		}
		registry.Connect(status.Envoy{ID: 100, Proxy: "edge", Address: "10.0.0.8:4000"})
		return func(o *rest.Options) { o.Live.Status = registry }
	}

	It("is not deleted with services attached, unless by force", func() {
		a := startAPI(connected())
		a.given(everything()...)
		a.given("/service", "Service_Name=web&fqdn=web.example", "/proxy/gw/service/web", "")
		refused := used(`proxy \"gw\" is in use: 2 services are attached and no Envoy is connected`, `,"referenced_by":["/service/shop","/service/web"]`)
		for _, query := range []string{"", "?force=false", "?dry_run=true"} {
			a.delete("/proxy/gw"+query).expectProblem(409, refused)
		}
		Expect(a.revision()).To(Equal(int64(8)))
		Expect(a.delete("/proxy/gw?force=true&dry_run=true").body).To(ContainSubstring(`{"action":"delete","path":"/proxy/gw","kind":"proxy"`))
		a.delete("/proxy/gw?force=true").expectWrite(200, `{"data":{"delete_core_db_proxy":{"affected_rows":1}}}`, "9")
	})

	It("is not deleted while Envoys are connected, here or elsewhere, unless by force", func() {
		elsewhere := replicas.Other{Report: &replicas.Report{
			Replica: "two:1323", Envoys: []replicas.Envoy{{Proxy: "gw", Address: "10.0.0.7:4000"}}, More: map[string]int{"gw": 3, "edge": 1},
		}}
		a := startAPI(connected(1), func(o *rest.Options) {
			o.Live.Others = func() []replicas.Other { return []replicas.Other{elsewhere} }
		})
		a.given(everything()...)
		a.delete("/proxy/gw").expectProblem(409, used(`proxy \"gw\" is in use: 1 service is attached and 5 Envoys are connected`, `,"referenced_by":["/service/shop"]`))
		Expect(a.delete("/proxy/gw/service/shop").status).To(Equal(200))
		a.delete("/proxy/gw").expectProblem(409, used(`proxy \"gw\" is in use: no service is attached and 5 Envoys are connected`, ""))
		a.delete("/proxy/gw?force=true").expectWrite(200, `{"data":{"delete_core_db_proxy":{"affected_rows":1}}}`, "8")
		a.delete("/proxy/gw").expectProblem(404, unknown("/proxy/gw", `proxy \"gw\" does not exist`))
	})

	It("is deleted by a document that prunes it, and by a rollback", func() {
		a := startAPI(connected(1))
		a.given(everything()...)
		Expect(a.post("/revision/3/rollback", "").status).To(Equal(200))
		a.get("/proxy").expectJSON(200, `{"data":{"core_db_proxy":[]}}`)
		Expect(a.post("/revision/6/rollback", "").status).To(Equal(200))
		Expect(a.putConfig("?prune=true", "version: 1\n").status).To(Equal(200))
		a.get("/proxy").expectJSON(200, `{"data":{"core_db_proxy":[]}}`)
	})

	It("is the only kind that takes force", func() {
		a := startAPI()
		a.given(everything()...)
		a.delete("/upstream/blue?force=true").expectProblem(400, invalid("/upstream/blue", "force", "unknown query parameter; known parameters are dry_run, wait, timeout, message"))
		a.delete("/proxy/gw?force=yes").expectProblem(400, invalid("/proxy/gw", "force", `\"yes\" is neither true nor false`))
	})
})
