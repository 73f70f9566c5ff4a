package rest_test

import (
	"bytes"
	"fmt"
	"mime/multipart"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

const lists = "/upstream /service /proxy /service/shop/route /filter /globalconfig /secret"

// expectNothingStored checks that only what the spec was given is there.
func (a *api) expectNothingStored(revision int64, before map[string]string) {
	GinkgoHelper()
	Expect(a.revision()).To(Equal(revision))
	Expect(a.everyList()).To(Equal(before))
}

func (a *api) everyList() map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for path := range strings.FieldsSeq(lists) {
		all[path] = a.get(path).body
	}
	return all
}

var _ = Describe("Bodies", func() {
	var multipartBody bytes.Buffer
	w := multipart.NewWriter(&multipartBody)
	for _, f := range [][2]string{{"Upstream_name", "blue"}, {"upstream_IP", "10.0.0.1"}} {
		_ = w.WriteField(f[0], f[1])
	}
	file, _ := w.CreateFormFile("Upstream_port", "port.txt")
	_, _ = file.Write([]byte("8081"))
	_ = w.Close()

	DescribeTable("mean the same in every encoding", func(contentType, body string) {
		a := startAPI()
		a.do(http.MethodPost, "/upstream", contentType, strings.NewReader(body)).
			expectWrite(201, `{"data":{"insert_core_db_upstream":{"affected_rows":1}}}`, "1")
		a.get("/upstream/blue").expectJSON(200, `{"data":{"core_db_upstream":[`+blueJSON+`]}}`)
	},
		Entry("form", form, "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=8081"),
		Entry("form, other letter case and charset", form+"; charset=UTF-8", "UPSTREAM_NAME=blue&upstream_ip=10.0.0.1&uPsTrEaM_pOrT=8081"),
		Entry("form, escaped names", form, "Upstream%5Fname=bl%75e&Upstream_ip=10.0.0.1&Upstream_port=8081&"),
		Entry("multipart with a file", w.FormDataContentType(), multipartBody.String()),
		Entry("JSON", "application/json", `{"Upstream_name":"blue","Upstream_ip":"10.0.0.1","Upstream_port":8081}`),
		Entry("JSON with a number as text, other letter case and charset", "Application/JSON; charset=utf-8",
			` {"UPSTREAM_NAME":"blue","upstream_ip":"10.0.0.1","Upstream_port":"8081"} `),
	)

	DescribeTable("accept a route configuration as text or as an object", func(contentType, body string) {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*")
		got := a.do(http.MethodPost, "/service/shop/route", contentType, strings.NewReader(body))
		Expect(got.status).To(Equal(201), got.body)
		Expect(a.get("/service/shop/route/r").body).To(ContainSubstring(`"route_config":{"match":"segment","timeouts":{"request":"1.5s"}}`))
	},
		Entry(nil, form, `Route_Name=r&Route_prefix=/&Route_config={"match":"segment","timeouts":{"request":"1.5s"}}`),
		Entry(nil, "application/json", `{"Route_Name":"r","Route_prefix":"/","Route_config":{"match":"segment","timeouts":{"request":"1.5s"}}}`),
		Entry(nil, "application/json", `{"Route_Name":"r","Route_prefix":"/","Route_config":"{\"match\":\"segment\",\"timeouts\":{\"request\":\"1.5s\"}}"}`),
	)

	It("accept every field of an upstream", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=ca", "/secret", "Secret_name=pair", "/upstream", "Upstream_name=u&Upstream_ip=backend.example.com&Upstream_port=443&Upstream_weight=0&Upstream_priority=1&Upstream_zone=a&Upstream_zone_mincount=0&Upstream_slowstart_seconds=0&Upstream_dns=logical&Upstream_dns_family=all&Upstream_dns_refreshseconds=0&Upstream_proxyprotocol=v2&Upstream_hc_path=/hc&Upstream_hc_host=h.example.com"+
			"&Upstream_hc_intervalseconds=11&Upstream_hc_timeoutseconds=12&Upstream_hc_unhealthythresholdcount=13&Upstream_hc_healthythresholdcount=14"+
			"&Upstream_strategy=maglev&Upstream_protocol=tls&Upstream_validation_cacertificate=ca&Upstream_validation_subjectname=s.example.com&Upstream_validation_altnames=spiffe://example.com/s,s.example.com&Upstream_client_certificate=pair"+
			"&Upstream_connect_timeoutseconds=15&Upstream_idle_timeoutseconds=0&Upstream_keepalive_intervalseconds=16&Upstream_max_connections=17"+
			"&Upstream_max_pending=18&Upstream_max_requests=19&Upstream_max_retries=20&Upstream_retry_budgetpercent=25&Upstream_retry_budgetmincount=7&Upstream_outlier_thresholdcount=0"+
			"&Upstream_outlier_ejectionseconds=21&Upstream_panic_thresholdpercent=50&tags=b,a")
		a.get("/upstream/u").expectJSON(200, `{"data":{"core_db_upstream":[{"upstream_id":1,"upstream_name":"u","upstream_ip":"backend.example.com",`+
			`"upstream_port":443,"upstream_weight":0,"upstream_priority":1,"upstream_zone":"a","upstream_zone_mincount":0,"upstream_slowstart_seconds":0,"upstream_dns":"logical","upstream_dns_family":"all","upstream_dns_refreshseconds":0,"upstream_proxyprotocol":"v2","upstream_hc_type":"http","upstream_hc_path":"/hc","upstream_hc_host":"h.example.com","upstream_hc_intervalseconds":11,`+
			`"upstream_hc_timeoutseconds":12,"upstream_hc_unhealthythresholdcount":13,"upstream_hc_healthythresholdcount":14,"upstream_strategy":"maglev",`+
			`"upstream_protocol":"tls","upstream_validation_cacertificate":"ca","upstream_validation_subjectname":"s.example.com","upstream_validation_altnames":"spiffe://example.com/s,s.example.com","upstream_tls_insecure":false,"upstream_client_certificate":"pair",`+
			`"upstream_connect_timeoutseconds":15,"upstream_idle_timeoutseconds":0,"upstream_keepalive_intervalseconds":16,`+
			`"upstream_max_connections":17,"upstream_max_pending":18,"upstream_max_requests":19,"upstream_max_retries":20,"upstream_retry_budgetpercent":25,"upstream_retry_budgetmincount":7,`+
			`"upstream_outlier_thresholdcount":0,"upstream_outlier_ejectionseconds":21,"upstream_panic_thresholdpercent":50,`+
			`"tags":["a","b"],"create_ts":"`+timestamp+`","update_ts":"`+timestamp+`"}]}}`)
	})

	It("accept every field of a service", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=ca", "/service", "Service_Name=shop&fqdn=shop.example.com&Https=only&Hsts_seconds=86400&Client_validation_cacertificate=ca&Certificate=auto&Public=true&tags=a")
		a.get("/service/shop").expectJSON(200, `{"data":{"core_db_service":[{"service_id":1,"service_name":"shop","fqdn":"shop.example.com",`+
			`"https":"only","hsts_seconds":86400,"hsts_subdomains":false,"client_validation_cacertificate":"ca","certificate":"auto","public":true,"mode":"http","port":0,"exempt_filters":[],"tags":["a"],"create_ts":"`+timestamp+`","update_ts":"`+timestamp+`"}]}}`)
	})

	It("accept true and false in any encoding", func() {
		a := startAPI()
		a.given("/upstream", "Upstream_name=u&Upstream_ip=::1&Upstream_port=443&Upstream_protocol=tls&Upstream_tls_insecure=true")
		Expect(a.get("/upstream/u").body).To(ContainSubstring(`"upstream_tls_insecure":true`))
		for body, want := range map[string]string{`{"Upstream_tls_insecure":false}`: "false", `{"Upstream_tls_insecure":"true"}`: "true"} {
			Expect(a.do(http.MethodPatch, "/upstream/u", "application/json", strings.NewReader(body)).status).To(Equal(200))
			Expect(a.get("/upstream/u").body).To(ContainSubstring(`"upstream_tls_insecure":` + want))
		}
	})

	It("accept every field of a proxy", func() {
		a := startAPI()
		a.given("/proxy", "Name=gw&Http_port=81&Https_port=444&Listen_ip=::1&Trusted_hops=2&Tls_min_version=1.3&Http3=true&Alt_svc_port=443")
		Expect(a.get("/proxy/gw").body).To(ContainSubstring(`"name":"gw","http_port":81,"https_port":444,"listen_ip":"::1","trusted_hops":2,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.3","http3":true,"alt_svc_port":443`))
	})

	It("are optional for an attachment, and may be empty in any encoding", func() {
		a := startAPI()
		a.given(everything()...)
		for _, contentType := range []string{"", form, "application/json", "text/plain"} {
			Expect(a.do(http.MethodPost, "/proxy/gw/service/shop", contentType, http.NoBody).status).To(Equal(200))
		}
		Expect(a.postJSON("/proxy/gw/service/shop", "{}").status).To(Equal(200))
		a.post("/proxy/gw/service/shop", "x=1").expectProblem(400, invalid("/proxy/gw/service/shop", "x", "unknown field; this call takes none"))
	})
})

var _ = Describe("Bad fields", func() {
	reject := func(path, contentType, body string, errs ...string) {
		GinkgoHelper()
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*")
		before := a.everyList()
		got := a.do(http.MethodPost, path, contentType, strings.NewReader(body))
		got.expectProblem(400, invalid(path, errs...))
		a.expectNothingStored(1, before)
	}
	rest := func(field string) string {
		all := map[string]string{"name": "Upstream_name=blue", "ip": "Upstream_ip=10.0.0.1", "port": "Upstream_port=80"}
		delete(all, field)
		return all["name"] + "&" + all["ip"] + "&" + all["port"]
	}
	name := func(n string) string { return "Upstream_name=" + n + "&" + rest("name") }
	const badName = `may contain only the characters A-Z a-z 0-9 . _ -`

	DescribeTable("are all named for a form", func(path, body string, errs ...string) { reject(path, form, body, errs...) },
		Entry(nil, "/upstream", "", "Upstream_name", "is required", "Upstream_ip", "is required", "Upstream_port", "is required"),
		Entry(nil, "/service", "", "Service_Name", "is required", "fqdn", "is required"),
		Entry(nil, "/service/shop/route", "", "Route_Name", "is required", "Route_prefix", "is required"),
		Entry(nil, "/proxy", "", "Name", "is required"),

		Entry(nil, "/upstream", "Upstream_port=abc&"+rest("port"), "Upstream_port", `\"abc\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=1.5&"+rest("port"), "Upstream_port", `\"1.5\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=&"+rest("port"), "Upstream_port", `\"\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=%2B80&"+rest("port"), "Upstream_port", `\"+80\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=0x50&"+rest("port"), "Upstream_port", `\"0x50\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=%EF%BC%98&"+rest("port"), "Upstream_port", `\"８\" is not a whole number`),
		Entry(nil, "/upstream", "Upstream_port=0&"+rest("port"), "Upstream_port", `0 is not between 1 and 65535`),
		Entry(nil, "/upstream", "Upstream_port=-1&"+rest("port"), "Upstream_port", `-1 is not between 1 and 65535`),
		Entry(nil, "/upstream", "Upstream_port=70000&"+rest("port"), "Upstream_port", `70000 is not between 1 and 65535`),
		Entry(nil, "/upstream", "Upstream_port=99999999999999999999&"+rest("port"), "Upstream_port", `\"99999999999999999999\" is far out of range`),
		Entry(nil, "/upstream", "Upstream_ip=300.1.1.1&"+rest("ip"), "Upstream_ip", `\"300.1.1.1\" is not an IPv4 address, an IPv6 address or a DNS name`),
		Entry(nil, "/upstream", "Upstream_name=a/b&Upstream_ip=no+host&Upstream_port=abc&Upstream_weight=x&Upstream_strategy=best&colour=red",
			"Upstream_name", `\"a/b\" `+badName, "Upstream_ip", `\"no host\" is not an IPv4 address, an IPv6 address or a DNS name`,
			"Upstream_port", `\"abc\" is not a whole number`, "Upstream_weight", `\"x\" is not a whole number`,
			"Upstream_strategy", `\"best\" is not one of round_robin, least_request, random, ring_hash, maglev`,
			"colour", "unknown field; known fields are Upstream_name, Upstream_ip, Upstream_port, Upstream_weight, Upstream_priority, Upstream_zone, Upstream_zone_mincount, Upstream_slowstart_seconds, Upstream_dns, Upstream_dns_family, Upstream_dns_refreshseconds, Upstream_proxyprotocol, Upstream_hc_type, Upstream_hc_path, Upstream_hc_host, "+
				"Upstream_hc_intervalseconds, Upstream_hc_timeoutseconds, Upstream_hc_unhealthythresholdcount, Upstream_hc_healthythresholdcount, "+
				"Upstream_strategy, Upstream_protocol, Upstream_validation_cacertificate, Upstream_validation_subjectname, Upstream_validation_altnames, "+
				"Upstream_tls_insecure, Upstream_client_certificate, "+
				"Upstream_connect_timeoutseconds, Upstream_idle_timeoutseconds, Upstream_keepalive_intervalseconds, "+
				"Upstream_max_connections, Upstream_max_pending, Upstream_max_requests, Upstream_max_retries, Upstream_retry_budgetpercent, Upstream_retry_budgetmincount, "+
				"Upstream_outlier_thresholdcount, Upstream_outlier_ejectionseconds, Upstream_panic_thresholdpercent, tags"),

		Entry(nil, "/upstream", name("a%2Fb"), "Upstream_name", `\"a/b\" `+badName),
		Entry(nil, "/upstream", name("a+b"), "Upstream_name", `\"a b\" `+badName),
		Entry(nil, "/upstream", name("a%25b"), "Upstream_name", `\"a%b\" `+badName),
		Entry(nil, "/upstream", name("a%22b%27"), "Upstream_name", `\"a\\\"b'\" `+badName),
		Entry(nil, "/upstream", name("%C3%BCber"), "Upstream_name", `\"über\" `+badName),
		Entry(nil, "/upstream", name("<b>"), "Upstream_name", `\"<b>\" `+badName),
		Entry(nil, "/upstream", name(".."), "Upstream_name", `\"..\" cannot be part of a URL path`),
		Entry(nil, "/upstream", name("dump"), "Upstream_name", `\"dump\" is reserved for a call of the API`),
		Entry(nil, "/upstream", name(strings.Repeat("x", 254)), "Upstream_name", `has 254 characters; at most 253 are allowed`),
		Entry(nil, "/upstream", name("a%00b"), "Upstream_name", "contains a NUL character"),
		Entry(nil, "/upstream", name("a%FFb"), "Upstream_name", "contains text that is not valid UTF-8"),
		Entry(nil, "/upstream", name("a\xffb"), "Upstream_name", "contains text that is not valid UTF-8"),
		Entry(nil, "/upstream", name("blue")+"&x%FF=1", `x\ufffd`, "the name of this field contains text that is not valid UTF-8"),
		Entry(nil, "/upstream", name("blue")+"&x%00=1", `x\u0000`, "the name of this field contains a NUL character"),

		Entry(nil, "/upstream", name("a")+"&Upstream_name=b", "Upstream_name", "is sent more than once"),
		Entry(nil, "/upstream", name("a")+"&UPSTREAM_NAME=a", "Upstream_name", "is sent more than once"),
		Entry(nil, "/upstream", name("blue")+"&Upstream_prot=1", "Upstream_prot", "unknown field; did you mean Upstream_port?"),
		Entry(nil, "/upstream", name("blue")+"&Upstream_prot=1&Upstream_prot=2", "Upstream_prot", "unknown field; did you mean Upstream_port?"),
		Entry(nil, "/upstream", name("blue")+"&=1", "", "unknown field; known fields are Upstream_name, Upstream_ip, Upstream_port, Upstream_weight, Upstream_priority, Upstream_zone, Upstream_zone_mincount, Upstream_slowstart_seconds, Upstream_dns, Upstream_dns_family, Upstream_dns_refreshseconds, Upstream_proxyprotocol, Upstream_hc_type, Upstream_hc_path, Upstream_hc_host, "+
			"Upstream_hc_intervalseconds, Upstream_hc_timeoutseconds, Upstream_hc_unhealthythresholdcount, Upstream_hc_healthythresholdcount, "+
			"Upstream_strategy, Upstream_protocol, Upstream_validation_cacertificate, Upstream_validation_subjectname, Upstream_validation_altnames, "+
			"Upstream_tls_insecure, Upstream_client_certificate, "+
			"Upstream_connect_timeoutseconds, Upstream_idle_timeoutseconds, Upstream_keepalive_intervalseconds, "+
			"Upstream_max_connections, Upstream_max_pending, Upstream_max_requests, Upstream_max_retries, Upstream_retry_budgetpercent, Upstream_retry_budgetmincount, "+
			"Upstream_outlier_thresholdcount, Upstream_outlier_ejectionseconds, Upstream_panic_thresholdpercent, tags"),

		Entry(nil, "/service", "Service_Name=copy&fqdn=a..b", "Service_Name", `\"copy\" is reserved for a call of the API`,
			"fqdn", `\"a..b\" is not a host name such as shop.example.com, *.example.com or *`),
		Entry(nil, "/service", "Service_Name=s&fqdn=", "fqdn", `is required; \"*\" matches any host`),
		Entry(nil, "/proxy", "Name=gw&Http_port=80&Https_port=80&Listen_ip=host&Trusted_hops=11&Escaped_slashes=yes&Underscore_headers=&Tls_min_version=1.1", "Https_port", "must differ from Http_port",
			"Listen_ip", `\"host\" is not an IPv4 or IPv6 address, for example 0.0.0.0`, "Trusted_hops", "11 is not between 0 and 10",
			"Escaped_slashes", `\"yes\" is not one of redirect, keep, reject`, "Underscore_headers", `\"\" is not one of reject, drop, allow`, "Tls_min_version", `\"1.1\" is not one of 1.2, 1.3`),
		Entry(nil, "/service", "Service_Name=s&fqdn=*&Https=yes&Hsts_seconds=-1&Client_validation_cacertificate=a/b", "Https", `\"yes\" is not one of both, redirect, only`,
			"Hsts_seconds", "-1 is not between 0 and 315360000", "Client_validation_cacertificate", `\"a/b\" `+badName,
			"Client_validation_cacertificate", "requires a host name in fqdn: the gateway requests client certificates by the host name that a client connects to"),
		Entry(nil, "/service", "Service_Name=s&fqdn=*&Hsts_seconds=1y", "Hsts_seconds", `\"1y\" is not a whole number`),
		Entry(nil, "/upstream", name("blue")+"&Upstream_tls_insecure=yes", "Upstream_tls_insecure", `\"yes\" is not true or false`),
		Entry(nil, "/upstream", name("blue")+"&Upstream_tls_insecure=true&Upstream_client_certificate=pair&Upstream_validation_subjectname=b.example",
			"Upstream_validation_subjectname", "needs TLS: Upstream_protocol tls or h2", "Upstream_tls_insecure", "needs TLS: Upstream_protocol tls or h2",
			"Upstream_client_certificate", "needs TLS: Upstream_protocol tls or h2"),
		Entry(nil, "/upstream", name("blue")+"&Upstream_validation_altnames=a..b,x://", "Upstream_validation_altnames", `\"a..b\" is not an IPv4 address, an IPv6 address or a DNS name`,
			"Upstream_validation_altnames", `\"x://\" is not a URI such as spiffe://example.com/shop`, "Upstream_validation_altnames", "needs TLS: Upstream_protocol tls or h2"),
		Entry(nil, "/upstream", name("blue")+"&Upstream_protocol=tls&Upstream_tls_insecure=true&Upstream_validation_altnames="+strings.Repeat("a,", 16)+"a", "Upstream_validation_altnames", "has 17 names; at most 16 are allowed",
			"Upstream_tls_insecure", "cannot be combined with Upstream_validation_altnames: one of them accepts every certificate"),
		Entry(nil, "/proxy", "Name=gw&Trusted_hops=one", "Trusted_hops", `\"one\" is not a whole number`),
		Entry(nil, "/service/shop/route", "Route_Name=r&Route_prefix=shop", "Route_prefix", `\"shop\" must start with \"/\"`),
		Entry(nil, "/service/shop/route", "Route_Name=r&Route_prefix=/&Route_config={", "Route_config", "is not a route configuration: unexpected EOF"),
		Entry(nil, "/service/shop/route", `Route_Name=r&Route_prefix=/&Route_config={"matc":1}`, "Route_config", `is not a route configuration: unknown field \"matc\"`),
		Entry(nil, "/service/shop/route", `Route_Name=r&Route_prefix=/&Route_config={"match":"exact","Match":"regex"}`, "Route_config", `has the key \"Match\" twice in one object`),
		Entry(nil, "/service/shop/route", `Route_Name=&Route_prefix=x&Route_config={"match":"near"}`, "Route_Name", "is required",
			"Route_prefix", `\"x\" must start with \"/\"`, "Route_config.match", `\"near\" is not one of prefix, segment, exact, template, regex`),
	)

	route := func(config string) string {
		return `{"Route_Name":"r","Route_prefix":"/","Route_config":` + config + `}`
	}
	const notJSON = "must be a JSON object, or text that contains one, not "
	DescribeTable("are all named for a JSON body", func(path, body string, errs ...string) {
		reject(path, "application/json", body, errs...)
	},
		Entry(nil, "/upstream", "{}", "Upstream_name", "is required", "Upstream_ip", "is required", "Upstream_port", "is required"),
		Entry(nil, "/upstream", `{"Upstream_name":7,"Upstream_ip":null,"Upstream_port":true,"Upstream_weight":[],"Upstream_protocol":{},"Upstream_strategy":["a"]}`,
			"Upstream_name", "must be text, not a number", "Upstream_ip", "must be text, not null",
			"Upstream_port", "must be a whole number, not true or false", "Upstream_weight", "must be a whole number, not an array",
			"Upstream_strategy", "must be text, not an array", "Upstream_protocol", "must be text, not an object"),
		Entry(nil, "/upstream", `{"Upstream_name":"a","Upstream_ip":"b","Upstream_port":1,"Upstream_validation_cacertificate":1,"Upstream_validation_subjectname":2}`,
			"Upstream_validation_cacertificate", "must be text, not a number", "Upstream_validation_subjectname", "must be text, not a number"),
		Entry(nil, "/upstream", `{"Upstream_name":"a","Upstream_ip":"b","Upstream_port":1.5}`, "Upstream_port", `\"1.5\" is not a whole number`),
		Entry(nil, "/upstream", `{"Upstream_name":"a","Upstream_ip":"b","Upstream_port":8e1}`, "Upstream_port", `\"8e1\" is not a whole number`),
		Entry(nil, "/upstream", `{"Upstream_name":"a","Upstream_ip":"b","Upstream_port":1e999}`, "Upstream_port", `\"1e999\" is not a whole number`),
		Entry(nil, "/upstream", `{"Upstream_name":"a","Upstream_ip":"b","Upstream_port":18446744073709551617}`, "Upstream_port", `\"18446744073709551617\" is far out of range`),
		Entry(nil, "/service", `{"Service_Name":"a","service_name":"a","fqdn":"*","fqdn":"*"}`, "Service_Name", "is sent more than once", "fqdn", "is sent more than once"),
		Entry(nil, "/service", `{"Service_Name":"a\u0000","fqdn":"\ud800"}`, "Service_Name", "contains a NUL character", "fqdn", "contains text that is not valid UTF-8"),
		Entry(nil, "/service", "{\"Service_Name\":\"a\xff\",\"fqdn\":\"*\"}", "Service_Name", "contains text that is not valid UTF-8"),
		Entry(nil, "/service", "{\"Service_Name\":\"a\",\"fqdn\":\"*\",\"b\xff\":1}", "b\ufffd", "the name of this field contains text that is not valid UTF-8"),
		Entry(nil, "/service", `{"Service_Name":"a","fqdn":"*","fqnd":1}`, "fqnd", "unknown field; did you mean fqdn?"),
		Entry(nil, "/service/shop/route", route("1"), "Route_config", notJSON+"a number"),
		Entry(nil, "/service/shop/route", route("null"), "Route_config", notJSON+"null"),
		Entry(nil, "/service/shop/route", route("[]"), "Route_config", notJSON+"an array"),
		Entry(nil, "/service/shop/route", route("false"), "Route_config", notJSON+"true or false"),
		Entry(nil, "/service/shop/route", route(`{"match":1}`), "Route_config",
			"is not a route configuration: cannot unmarshal number into Go struct field RouteConfig.match of type string"),
		Entry(nil, "/service/shop/route", route(`{"rewrite":{"host":"a","host":"b"}}`), "Route_config", `has the key \"host\" twice in one object`),
		Entry(nil, "/service/shop/route", route(`{"rewrite":{"host":"a\u0000"}}`), "Route_config", "contains a NUL character"),
		Entry("deep Route_config", "/service/shop/route", route(strings.Repeat(`{"a":`, 65)+"1"+strings.Repeat("}", 65)), "Route_config", "nests deeper than 64 levels"),
	)

	It("are limited in the answer, and so are the values that it repeats", func() {
		a := startAPI()
		var body strings.Builder
		for i := range 900 {
			fmt.Fprintf(&body, "x%d=&", i)
		}
		body.WriteString("fqdn=" + strings.Repeat("/", 500_000))
		got := a.post("/service", body.String())
		Expect(got.status).To(Equal(400))
		Expect(got.body).To(HavePrefix(`{"type":"urn:gatehouse:problem:invalid_fields"`))
		Expect(strings.Count(got.body, `"field":`)).To(Equal(100))
		Expect(got.body).To(ContainSubstring(`{"field":"Service_Name","message":"is required"},{"field":"fqdn","message":"\"//`))
		Expect(len(got.body)).To(BeNumerically("<", 22_000))
		Expect(a.revision()).To(BeZero())
	})

	It("do not include a name of 253 characters", func() {
		a := startAPI()
		long := strings.Repeat("x", 253)
		a.given("/service", "Service_Name="+long+"&fqdn=*", "/service/"+long+"/route", "Route_Name="+long+"&Route_prefix=/")
		Expect(a.get("/service/" + long + "/route/" + long).status).To(Equal(200))
	})
})

var _ = Describe("Bodies that cannot be read", func() {
	malformed := func(detail string) string {
		return `{"type":"urn:gatehouse:problem:malformed_body","title":"The body cannot be read","status":400,"detail":"` + detail +
			`","instance":"/service","code":"malformed_body"}`
	}
	unsupported := func(detail string) string {
		return `{"type":"urn:gatehouse:problem:unsupported_media_type","title":"The content type is not supported","status":415,"detail":"` + detail +
			` not supported; send application/x-www-form-urlencoded, multipart/form-data or application/json","instance":"/service","code":"unsupported_media_type"}`
	}
	const multi = "multipart/form-data; boundary=b"
	DescribeTable("are refused", func(contentType, body string, status int, want string) {
		a := startAPI()
		a.do(http.MethodPost, "/service", contentType, strings.NewReader(body)).expectProblem(status, want)
		Expect(a.revision()).To(BeZero())
	},
		Entry(nil, form, "fqdn=%zz", 400, malformed(`the form cannot be read: invalid URL escape \"%zz\"`)),
		Entry(nil, form, "fqdn=%", 400, malformed(`the form cannot be read: invalid URL escape \"%\"`)),
		Entry(nil, form, "a=1;b=2", 400, malformed("the form cannot be read: invalid semicolon separator in query")),
		Entry(nil, "application/json", " ", 400, malformed("the body is not JSON: it ends early")),
		Entry(nil, "application/json", "fqdn=*", 400, malformed("the body is not JSON: invalid character 'q' in literal false (expecting 'a')")),
		Entry(nil, "application/json", `{"fqdn":"*"`, 400, malformed("the body is not JSON: it ends early")),
		Entry(nil, "application/json", `{"fqdn":"*",}`, 400, malformed("the body is not JSON: invalid character '}' looking for beginning of object key string")),
		Entry(nil, "application/json", `{"fqdn":"*"} {}`, 400, malformed("the body continues after the JSON object")),
		Entry(nil, "application/json", `{"fqdn":"*"}}`, 400, malformed("the body continues after the JSON object")),
		Entry(nil, "application/json", `[{"fqdn":"*"}]`, 400, malformed(`the JSON body must be an object, such as {\"Name\": \"gw\"}`)),
		Entry(nil, "application/json", `null`, 400, malformed(`the JSON body must be an object, such as {\"Name\": \"gw\"}`)),
		Entry("a form of 1001 fields", form, strings.Repeat("a=1&", 1000)+"a=1", 400, malformed("the body has more than 1000 fields")),
		Entry("JSON of 1001 fields", "application/json", "{"+strings.Repeat(`"a":1,`, 1000)+`"a":1}`, 400, malformed("the body has more than 1000 fields")),
		Entry("deep JSON", "application/json", `{"a":`+strings.Repeat("[", 100_000), 400, malformed("the body is not JSON: invalid character '[' exceeded max depth")),
		Entry(nil, "multipart/form-data", "x", 400, malformed("multipart/form-data has no boundary parameter")),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data; name=fqdn\r\n\r\n*", 400, malformed("the multipart form cannot be read: unexpected EOF")),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data; name=fqdn\r\n\r\n*\r\n--b\r\nContent", 400, malformed(`the multipart form cannot be read: malformed MIME header: missing colon: \"Content\"`)),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data; name=fqdn\r\n\r\n*\r\n--b\r\n", 400, malformed("the multipart form cannot be read: EOF")),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data\r\n\r\n*\r\n--b--", 400, malformed("a part of the multipart form has no name")),
		Entry(nil, "text/plain", "fqdn=*", 415, unsupported(`content type \"text/plain\" is`)),
		Entry(nil, "application/jsonx", "{}", 415, unsupported(`content type \"application/jsonx\" is`)),
		Entry(nil, "/;", "{}", 415, unsupported(`content type \"/;\" is`)),
		Entry(nil, "", "fqdn=*", 415, unsupported(`a body without a content type is`)),
	)

	It("are refused if they are compressed", func() {
		a := startAPI()
		a.do(http.MethodPost, "/service", form, strings.NewReader("x"), "Content-Encoding", "gzip").expectProblem(415,
			`{"type":"urn:gatehouse:problem:unsupported_media_type","title":"The content type is not supported","status":415,`+
				`"detail":"Content-Encoding \"gzip\" is not supported; send the body as it is","instance":"/service","code":"unsupported_media_type"}`)
	})

	const tooLarge = `{"type":"urn:gatehouse:problem:body_too_large","title":"The body is too large","status":413,` +
		`"detail":"the body has more than 1 MiB (1048576 bytes)","instance":"/service","code":"body_too_large"}`
	DescribeTable("are refused over 1 MiB", func(contentType, start string, chunked bool) {
		a := startAPI()
		body := strings.NewReader(start + strings.Repeat("x", 2<<20-len(start)))
		var got answer
		if chunked {
			// A reader of no known length is sent in chunks.
			got = a.do(http.MethodPost, "/service", contentType, struct{ *strings.Reader }{body})
		} else {
			got = a.do(http.MethodPost, "/service", contentType, body)
		}
		got.expectProblem(413, tooLarge)
		Expect(a.revision()).To(BeZero())
		a.get("/service").expectJSON(200, `{"data":{"core_db_service":[]}}`)
	},
		Entry(nil, form, "fqdn=*&Service_Name=", false),
		Entry(nil, form, "fqdn=*&Service_Name=", true),
		Entry(nil, "application/json", `{"Service_Name":"`, false),
		Entry(nil, "application/json", `{"Service_Name":"`, true),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data; name=fqdn\r\n\r\n", false),
		Entry(nil, multi, "--b\r\nContent-Disposition: form-data; name=fqdn\r\n\r\n", true),
		Entry(nil, "text/plain", "", false),
	)

	It("are read up to 1 MiB", func() {
		a := startAPI()
		body := `{"Service_Name":"s","fqdn":"*"}` + strings.Repeat(" ", 1<<20-31)
		Expect(a.postJSON("/service", body).status).To(Equal(201))
		Expect(a.postJSON("/service", body+" ").status).To(Equal(413))
	})
})
