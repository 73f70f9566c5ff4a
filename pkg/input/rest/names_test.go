package rest_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/migrated"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit/postgres"
)

// hostile are texts that a store, a path or an answer could take for more than
// text.
func hostile() []string {
	return []string{
		`'; DROP TABLE service; --`, `"quoted"`, `back\slash`, `ünïcödé 漢字 🚪`, `100%`, `%s%d%n`, `%2e%2e%2f`, `../../etc/passwd`, "two\nlines\r\n",
		`<script>alert(1)</script>`, `a_b%c`, `$1 ? :name {{.}}`, "tab\tand\u00a0space", `\u0000`, strings.Repeat("x", 300),
	}
}

var _ = Describe("Names and values", func() {
	specs := func(start func() *api) {
		It("keep text as it was sent", func() {
			a := start()
			a.given("/service", "Service_Name=shop&fqdn=*")
			for _, text := range hostile() {
				quoted, err := json.Marshal(text)
				Expect(err).NotTo(HaveOccurred())
				got := a.put("/filter/f", "Filter_type=route_filter_ratelimit&Filter_config="+
					url.QueryEscape(`{"descriptors":[{"generic_key":{"descriptor_value":`+string(quoted)+`}}]}`))
				Expect(got.status).To(BeNumerically("<", 300), got.body)
				var read struct {
					Data struct {
						Filters []struct {
							Config struct {
								Descriptors []map[string]map[string]string `json:"descriptors"`
							} `json:"filter_config"`
						} `json:"core_db_filter"`
					} `json:"data"`
				}
				Expect(json.Unmarshal([]byte(a.get("/filter/f").body), &read)).To(Succeed())
				Expect(read.Data.Filters[0].Config.Descriptors[0]["generic_key"]["descriptor_value"]).To(Equal(text))
			}
		})

		It("are refused unless they are a single path segment", func() {
			a := start()
			a.given("/service", "Service_Name=shop&fqdn=*")
			for _, text := range hostile() {
				got := a.post("/service", url.Values{"Service_Name": {text}, "fqdn": {"*"}}.Encode())
				Expect(got.status).To(Equal(400), text)
				Expect(got.body).To(ContainSubstring(`"field":"Service_Name"`))
				for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodPatch, http.MethodDelete} {
					path := "/service/" + url.PathEscape(text)
					body := ""
					if method == http.MethodPut || method == http.MethodPatch {
						body = "fqdn=*"
					}
					Expect(a.do(method, path, form, strings.NewReader(body)).status).To(Equal(404), method+" "+path)
				}
				for _, list := range []string{"name", "tag"} {
					a.get("/service?"+list+"="+url.QueryEscape(text)).expectJSON(200, `{"data":{"core_db_service":[]}}`)
				}
			}
			Expect(a.revision()).To(Equal(int64(1)))
		})

		It("have 1 to 253 characters", func() {
			a := start()
			longest := strings.Repeat("n", 253)
			for _, path := range []string{"/service/" + longest, "/service/" + longest + "/route/" + longest, "/upstream/" + longest, "/proxy/" + longest} {
				got := a.put(path, map[bool]string{true: "Route_prefix=/", false: map[string]string{
					"/s": "fqdn=*", "/u": "Upstream_ip=::1&Upstream_port=1", "/p": "",
				}[path[:2]]}[strings.Contains(path, "/route/")])
				Expect(got.status).To(Equal(201), got.body)
				Expect(a.get(path).status).To(Equal(200))
				Expect(a.put(path+"n", "fqdn=*").status).To(Equal(404))
			}
			a.given("/service/"+longest+"/route/"+longest+"/upstream/"+longest, "", "/proxy/"+longest+"/service/"+longest, "")
			Expect(a.get("/service/dump/" + longest).body).To(ContainSubstring(`"upstream_name":"` + longest + `"`))
			Expect(a.post("/service", "fqdn=*&Service_Name="+longest+"n").body).To(ContainSubstring(`"code":"invalid_fields"`))
		})

		It("differ by letter case, and dots are ordinary characters", func() {
			a := start()
			for _, name := range []string{"shop", "SHOP", "Shop", "...", "-", "_", "0"} {
				Expect(a.post("/service", "fqdn=*&Service_Name="+name).status).To(Equal(201))
				Expect(a.get("/service/" + name).body).To(ContainSubstring(`"service_name":"` + name + `"`))
			}
			Expect(a.walk("/service?name=S", "service_name")).To(Equal([][]string{{"SHOP", "Shop"}}))
			Expect(a.walk("/service?name=_", "service_name")).To(Equal([][]string{{"_"}}))
		})
	}

	Context("on SQLite", func() { specs(func() *api { return startAPI() }) })

	Context("on Postgres", Ordered, func() {
		var server *postgres.Server
		BeforeAll(func(ctx SpecContext) {
			var err error
			server, err = postgres.Start(ctx, GinkgoT().TempDir())
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(func() error { return server.Stop() })
		})
		databases := 0
		specs(func() *api {
			databases++
			name := "spec_" + string(rune('a'+databases))
			url, err := migrated.Postgres(GinkgoT().Context(), server, name)
			Expect(err).NotTo(HaveOccurred())
			return serve(url)
		})
	})
})
