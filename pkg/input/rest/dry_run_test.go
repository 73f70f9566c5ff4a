package rest_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A dry run", func() {
	// planned is its answer: each change as JSON.
	planned := func(changes ...string) string {
		return `{"data":{"changes":[` + strings.Join(changes, ",") + `],"dry_run":true}}`
	}
	DescribeTable("reports what would change and stores nothing", func(method, path, body string, changes ...string) {
		a := startAPI()
		a.given(filters()...)
		before := a.everyList()
		got := a.do(method, path+"?dry_run=true", form, strings.NewReader(body))
		got.expectJSON(200, planned(changes...))
		Expect(got.header).NotTo(Or(HaveKey("Gatehouse-Revision"), HaveKey("Etag")))
		a.expectNothingStored(9, before)

		got = a.do(method, path+"?dry_run=false", form, strings.NewReader(body))
		Expect(got.status).To(BeNumerically("<", 300), got.body)
		Expect(got.header.Get("Gatehouse-Revision")).To(Equal("10"))
	},
		Entry(nil, "POST", "/service", "Service_Name=till&fqdn=*", `{"action":"create","path":"/service/till","kind":"service",`+
			`"fields":[{"field":"service_name","after":"till"},{"field":"fqdn","after":"*"},{"field":"https","after":"both","default":true},{"field":"hsts_seconds","after":0,"default":true},{"field":"hsts_subdomains","after":false,"default":true},{"field":"client_validation_cacertificate","after":"","default":true},{"field":"certificate","after":"","default":true},{"field":"public","after":false,"default":true},{"field":"mode","after":"http","default":true},{"field":"port","after":0,"default":true},{"field":"exempt_filters","after":[],"default":true},{"field":"tags","after":[],"default":true}]}`),
		Entry(nil, "POST", "/proxy", "Name=two", `{"action":"create","path":"/proxy/two","kind":"proxy","fields":[{"field":"name","after":"two"},`+
			`{"field":"http_port","after":8080,"default":true},{"field":"https_port","after":8443,"default":true},{"field":"listen_ip","after":"0.0.0.0","default":true},{"field":"trusted_hops","after":0,"default":true},{"field":"escaped_slashes","after":"redirect","default":true},{"field":"underscore_headers","after":"reject","default":true},{"field":"tls_min_version","after":"1.2","default":true},{"field":"http3","after":false,"default":true},{"field":"alt_svc_port","after":0,"default":true},{"field":"tags","after":[],"default":true}]}`),
		Entry(nil, "PUT", "/service/shop", "fqdn=*&tags=a", `{"action":"update","path":"/service/shop","kind":"service",`+
			`"fields":[{"field":"fqdn","before":"shop.example.com","after":"*"},{"field":"tags","before":[],"after":["a"]}]}`),
		Entry(nil, "PATCH", "/upstream/blue", "Upstream_port=81", `{"action":"update","path":"/upstream/blue","kind":"upstream",`+
			`"fields":[{"field":"upstream_port","before":8081,"after":81}]}`),
		Entry(nil, "DELETE", "/service/shop/route/root/upstream/blue", "", `{"action":"delete","path":"/service/shop/route/root/upstream/blue","kind":"route_upstream",`+
			`"fields":[{"field":"service_name","before":"shop"},{"field":"route_name","before":"root"},{"field":"upstream_name","before":"blue"}]}`),
		Entry(nil, "DELETE", "/service/shop/route/root", "", `{"action":"delete","path":"/service/shop/route/root/upstream/blue","kind":"route_upstream",`+
			`"fields":[{"field":"service_name","before":"shop"},{"field":"route_name","before":"root"},{"field":"upstream_name","before":"blue"}]}`,
			`{"action":"delete","path":"/service/shop/route/root","kind":"route","fields":[{"field":"service_name","before":"shop"},{"field":"route_name","before":"root"},`+
				`{"field":"route_prefix","before":"/"},{"field":"route_config","before":{},"default":true},{"field":"tags","before":[],"default":true}]}`),
		Entry(nil, "POST", "/service/shop/filter/limit", "", `{"action":"create","path":"/service/shop/filter/limit","kind":"service_filter",`+
			`"fields":[{"field":"service_name","after":"shop"},{"field":"filter_name","after":"limit"}]}`),
		Entry(nil, "POST", "/service/copy/shop/till", "", `{"action":"create","path":"/service/till","kind":"service",`+
			`"fields":[{"field":"service_name","after":"till"},{"field":"fqdn","after":"shop.example.com"},{"field":"https","after":"both","default":true},{"field":"hsts_seconds","after":0,"default":true},{"field":"hsts_subdomains","after":false,"default":true},{"field":"client_validation_cacertificate","after":"","default":true},{"field":"certificate","after":"","default":true},{"field":"public","after":false,"default":true},{"field":"mode","after":"http","default":true},{"field":"port","after":0,"default":true},{"field":"exempt_filters","after":[],"default":true},{"field":"tags","after":[],"default":true}]}`),
		Entry(nil, "POST", "/revision/8/rollback", "", `{"action":"delete","path":"/filter/login","kind":"filter","fields":[{"field":"filter_name","before":"login"},`+
			`{"field":"filter_type","before":"http_filter_oidc"},{"field":"filter_config","before":`+
			strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>")+`},{"field":"tags","before":[],"default":true}]}`),
		Entry(nil, "POST", "/filter/login/config", "Filter_config="+strings.ReplaceAll(loginConfig, "open", "shut"),
			`{"action":"update","path":"/filter/login","kind":"filter","fields":[{"field":"filter_config","before":`+
				strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>")+`,"after":`+strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>")+`}]}`),
	)

	It("of nothing changes nothing", func() {
		a := startAPI()
		a.given(everything()...)
		a.put("/service/shop?dry_run=true", "fqdn=shop.example.com").expectJSON(200, planned())
		a.post("/proxy/gw/service/shop?dry_run=true", "").expectJSON(200, planned())
	})

	// link is the change that makes a link of those fields and values.
	link := func(path, kind string, fields ...string) string {
		var list []string
		for i := 0; i < len(fields); i += 2 {
			list = append(list, `{"field":"`+fields[i]+`","after":"`+fields[i+1]+`"}`)
		}
		return `{"action":"create","path":"` + path + `","kind":"` + kind + `","fields":[` + strings.Join(list, ",") + `]}`
	}
	root := func(service string) []string {
		path := "/service/" + service + "/route/root"
		return []string{
			`{"action":"create","path":"` + path + `","kind":"route","fields":[{"field":"service_name","after":"` + service + `"},{"field":"route_name","after":"root"},` +
				`{"field":"route_prefix","after":"/"},{"field":"route_config","after":{},"default":true},{"field":"tags","after":[],"default":true}]}`,
			link(path+"/upstream/blue", "route_upstream", "service_name", service, "route_name", "root", "upstream_name", "blue"),
			link(path+"/filter/limit", "route_filter", "service_name", service, "route_name", "root", "filter_name", "limit"),
		}
	}
	DescribeTable("of a copy lists everything that is copied", func(path string, changes []string) {
		a := startAPI()
		a.given(filters()...)
		a.given("/service/shop/route/root/filter/limit", "", "/service/shop/filter/login", "", "/service/shop/secret/hmac", "",
			"/service", "Service_Name=other&fqdn=other.example.com")
		before := a.everyList()
		got := a.post(path+"?dry_run=true", "")
		got.expectJSON(200, planned(changes...))
		Expect(got.header).NotTo(HaveKey("Gatehouse-Revision"))
		a.expectNothingStored(13, before)
		Expect(a.post(path, "").status).To(Equal(201))
		Expect(a.post(path+"?dry_run=true", "").status).To(Equal(409))
	},
		Entry(nil, "/service/deepcopy/shop/till", slices.Concat([]string{
			`{"action":"create","path":"/service/till","kind":"service","fields":[{"field":"service_name","after":"till"},` +
				`{"field":"fqdn","after":"shop.example.com"},{"field":"https","after":"both","default":true},{"field":"hsts_seconds","after":0,"default":true},{"field":"hsts_subdomains","after":false,"default":true},{"field":"client_validation_cacertificate","after":"","default":true},{"field":"certificate","after":"","default":true},{"field":"public","after":false,"default":true},{"field":"mode","after":"http","default":true},{"field":"port","after":0,"default":true},{"field":"exempt_filters","after":[],"default":true},{"field":"tags","after":[],"default":true}]}`,
		}, root("till"), []string{
			link("/service/till/filter/login", "service_filter", "service_name", "till", "filter_name", "login"),
			link("/service/till/secret/hmac", "service_secret", "service_name", "till", "secret_name", "hmac"),
		})),
		Entry(nil, "/service/copyroute/shop/other/route/root", root("other")),
	)

	It("of an upload stores nothing, and shows no key", func() {
		a, p := startAPI(), newPair("shop.example.com")
		a.given("/secret", "Secret_name=shop", "/filter", `Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"path":"x"}]}`,
			"/globalconfig", `globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config={"domain":"old"}`)
		before := a.everyList()
		upload := func(path string, pairs ...string) answer {
			GinkgoHelper()
			contentType, body := multipartOf(pairs...)
			return a.do(http.MethodPost, path, contentType, strings.NewReader(body))
		}
		quoted, err := json.Marshal(p.cert)
		Expect(err).NotTo(HaveOccurred())
		update := func(path, kind, fields string) string {
			return `{"action":"update","path":"` + path + `","kind":"` + kind + `","fields":[` + fields + `]}`
		}
		isTLS := `{"field":"secret_type","before":"","after":"tls"}`
		of := func(field, after string) string { return `{"field":"` + field + `","before":"","after":` + after + `}` }
		upload("/secret/shop/key?dry_run=true", "@Secret_key", p.key).expectJSON(200,
			planned(update("/secret/shop", "secret", isTLS+","+of("secret_key", `"<redacted>"`))))
		upload("/secret/shop/cert?dry_run=true", "@Secret_cert", p.cert).expectJSON(200,
			planned(update("/secret/shop", "secret", isTLS+","+of("secret_cert", string(quoted))+","+of("fingerprint", `"`+p.fingerprint+`"`)+
				","+of("subject", `"CN=shop.example.com"`)+`,{"field":"not_after","before":null,"after":"2027-02-03T04:05:06.000000+00:00"}`)))
		upload("/filter/limit/config?dry_run=true", "@Filter_config", limitConfig).expectJSON(200,
			planned(update("/filter/limit", "filter", `{"field":"filter_config","before":{"descriptors":[{"path":"x"}]},"after":`+limitConfig+`}`)))
		upload("/globalconfig/rates/config?dry_run=true", "@config", `{"domain":"new"}`).expectJSON(200,
			planned(update("/globalconfig/rates", "globalconfig", `{"field":"config","before":{"domain":"old"},"after":{"domain":"new"}}`)))
		a.expectNothingStored(3, before)
		Expect(a.stored()).NotTo(ContainSubstring(core(p.cert)))
		a.expectNoSecret(core(p.key))

		By("a refusal is the same")
		Expect(upload("/secret/shop/key?dry_run=true", "@Secret_key", "hunter2").status).To(Equal(400))
		Expect(upload("/secret/x/key?dry_run=true", "@Secret_key", p.key).status).To(Equal(404))
		Expect(upload("/secret/shop/key?dry_run=yes", "@Secret_key", p.key).status).To(Equal(400))
		a.expectNothingStored(3, before)
		By("the upload is then stored")
		upload("/secret/shop/key", "@Secret_key", p.key).expectWrite(200, updatedSecret, "4")
	})

	It("shows no secret", func() {
		a := startAPI()
		got := a.post("/secret?dry_run=true", "Secret_name=s&Secret_value=open-sesame")
		Expect(got.body).To(And(ContainSubstring(`{"field":"secret_value","after":"<redacted>"}`), Not(ContainSubstring("sesame"))))
		Expect(a.revision()).To(BeZero())
		Expect(a.stored()).NotTo(ContainSubstring("open-sesame"))
	})

	It("fails like the write", func() {
		a := startAPI()
		a.given(everything()...)
		a.post("/service?dry_run=true", "Service_Name=shop&fqdn=*").expectProblem(409, conflict("already_exists", "The name is taken", "/service",
			`service \"shop\" already exists; choose another name, or delete the existing one first`, ""))
		Expect(a.delete("/upstream/blue?dry_run=true").status).To(Equal(409))
		Expect(a.delete("/upstream/red?dry_run=true").status).To(Equal(404))
		for _, v := range []string{"1", "", "TRUE"} {
			a.delete("/proxy/gw?dry_run="+v).expectProblem(400, invalid("/proxy/gw", "dry_run", `\"`+v+`\" is neither true nor false`))
		}
		a.do(http.MethodGet, "/proxy/gw?dry_run=true", "", nil).expectProblem(400, invalid("/proxy/gw", "dry_run", "unknown query parameter; this call takes none"))
		Expect(a.revision()).To(Equal(int64(6)))
	})
})
