package rest_test

import (
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

const (
	blueJSON = `{"upstream_id":1,"upstream_name":"blue","upstream_ip":"10.0.0.1","upstream_port":8081,"upstream_weight":100,` +
		`"upstream_priority":0,"upstream_zone":"","upstream_zone_mincount":0,"upstream_slowstart_seconds":0,"upstream_dns":"strict","upstream_dns_family":"v4_preferred","upstream_dns_refreshseconds":5,"upstream_proxyprotocol":"none",` +
		`"upstream_hc_type":"http","upstream_hc_path":"","upstream_hc_host":"","upstream_hc_intervalseconds":5,"upstream_hc_timeoutseconds":2,` +
		`"upstream_hc_unhealthythresholdcount":3,"upstream_hc_healthythresholdcount":2,"upstream_strategy":"round_robin",` +
		`"upstream_protocol":"http","upstream_validation_cacertificate":"","upstream_validation_subjectname":"","upstream_validation_altnames":"","upstream_tls_insecure":false,"upstream_client_certificate":"",` +
		`"upstream_connect_timeoutseconds":5,"upstream_idle_timeoutseconds":4,"upstream_keepalive_intervalseconds":30,` +
		`"upstream_max_connections":4096,"upstream_max_pending":4096,"upstream_max_requests":4096,"upstream_max_retries":4096,"upstream_retry_budgetpercent":0,"upstream_retry_budgetmincount":3,` +
		`"upstream_outlier_thresholdcount":3,"upstream_outlier_ejectionseconds":3,"upstream_panic_thresholdpercent":0,` +
		`"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
	shopJSON = `{"service_id":1,"service_name":"shop","fqdn":"shop.example.com","https":"both","hsts_seconds":0,"hsts_subdomains":false,"client_validation_cacertificate":"","certificate":"","public":false,"mode":"http","port":0,"exempt_filters":[],"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
	rootJSON = `{"route_id":1,"service_name":"shop","route_name":"root","route_prefix":"/","route_config":{},` +
		`"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
	gwJSON = `{"proxy_id":1,"name":"gw","http_port":8080,"https_port":8443,"listen_ip":"0.0.0.0","trusted_hops":0,"escaped_slashes":"redirect","underscore_headers":"reject","tls_min_version":"1.2","http3":false,"alt_svc_port":0,` +
		`"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
)

// everything makes one object of each kind, linked.
func everything() []string {
	return []string{
		"/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=8081",
		"/service", "Service_Name=shop&fqdn=shop.example.com",
		"/service/shop/route", "Route_Name=root&Route_prefix=/",
		"/proxy", "Name=gw",
		"/service/shop/route/root/upstream/blue", "",
		"/proxy/gw/service/shop", "",
	}
}

var _ = Describe("Answers", func() {
	It("match the specification for its calls, each with the revision that contains the change", func() {
		a := startAPI()
		a.post("/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=8081&Upstream_hc_path=/healthz&Upstream_weight=100").
			expectWrite(201, `{"data":{"insert_core_db_upstream":{"affected_rows":1}}}`, "1")
		a.post("/service", "Service_Name=shop&fqdn=*").
			expectWrite(201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "2")
		a.post("/service/shop/route", "Route_Name=root&Route_prefix=/").
			expectWrite(201, `{"data":{"insert_core_db_route":{"affected_rows":1}}}`, "3")
		a.post("/service/shop/route/root/upstream/blue", "").
			expectWrite(201, `{"data":{"insert_core_db_route_upstream":{"affected_rows":1}}}`, "4")
		a.post("/proxy", "Name=gw").
			expectWrite(201, `{"name":"gw"}`, "5")
		a.post("/proxy/gw/service/shop", "").
			expectWrite(201, `{"data":{"insert_core_db_proxy_service":{"affected_rows":1}}}`, "6")
		a.get("/service/dump/shop").expectJSON(200, `{"data":{"core_db_service":[{"service_id":1,"service_name":"shop","fqdn":"*",`+
			`"create_ts":"2026-11-21T08:07:39.123456+00:00","routes":[{"route_id":1,"route_name":"root","route_prefix":"/",`+
			`"route_upstreams":[{"upstream":{"upstream_id":1,"upstream_name":"blue","upstream_ip":"10.0.0.1","upstream_port":8081}}],`+
			`"route_filters":[]}],"service_secrets":[],"service_filters":[]}]}}`)
	})

	It("report that a link existed already", func() {
		a := startAPI()
		a.given(everything()...)
		a.post("/service/shop/route/root/upstream/blue", "").
			expectWrite(200, `{"data":{"insert_core_db_route_upstream":{"affected_rows":0}}}`, "6")
		a.post("/proxy/gw/service/shop", "").
			expectWrite(200, `{"data":{"insert_core_db_proxy_service":{"affected_rows":0}}}`, "6")
		Expect(a.revision()).To(Equal(int64(6)))
	})

	DescribeTable("show objects", func(path, body string) {
		a := startAPI()
		a.given(everything()...)
		a.get(path).expectJSON(200, body)

		head := a.do(http.MethodHead, path, "", nil)
		Expect(head.status).To(Equal(200))
		Expect(head.body).To(BeEmpty())
		Expect(head.header).To(HaveKeyWithValue("Content-Type", []string{"application/json"}))
		Expect(head.header.Get("Content-Length")).To(Equal(a.get(path).header.Get("Content-Length")))
	},
		Entry(nil, "/upstream", `{"data":{"core_db_upstream":[`+blueJSON+`]}}`),
		Entry(nil, "/upstream/blue", `{"data":{"core_db_upstream":[`+blueJSON+`]}}`),
		Entry(nil, "/upstream/bl%75e", `{"data":{"core_db_upstream":[`+blueJSON+`]}}`),
		Entry(nil, "/upstream/blue/route", `{"data":{"core_db_route":[`+rootJSON+`]}}`),
		Entry(nil, "/service", `{"data":{"core_db_service":[`+shopJSON+`]}}`),
		Entry(nil, "/service/shop", `{"data":{"core_db_service":[`+shopJSON+`]}}`),
		Entry(nil, "/service/shop/route", `{"data":{"core_db_route":[`+rootJSON+`]}}`),
		Entry(nil, "/service/shop/route/root", `{"data":{"core_db_route":[`+rootJSON+`]}}`),
		Entry(nil, "/service/shop/route/root/upstream", `{"data":{"core_db_upstream":[`+blueJSON+`]}}`),
		Entry(nil, "/service/shop/proxy", `{"data":{"core_db_proxy":[`+gwJSON+`]}}`),
		Entry(nil, "/proxy", `{"data":{"core_db_proxy":[`+gwJSON+`]}}`),
		Entry(nil, "/proxy/gw", `{"data":{"core_db_proxy":[`+gwJSON+`]}}`),
		Entry(nil, "/proxy/gw/service", `{"data":{"core_db_service":[`+shopJSON+`]}}`),
		Entry(nil, "/proxy/gw/service/shop", `{"data":{"core_db_service":[`+shopJSON+`]}}`),
	)

	DescribeTable("show an empty list as one", func(path, key string) {
		a := startAPI()
		a.given("/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=8081",
			"/service", "Service_Name=shop&fqdn=*", "/service/shop/route", "Route_Name=root&Route_prefix=/", "/proxy", "Name=gw")
		a.get(path).expectJSON(200, `{"data":{"`+key+`":[]}}`)
	},
		Entry(nil, "/upstream?name=x", "core_db_upstream"),
		Entry(nil, "/service?name=x", "core_db_service"),
		Entry(nil, "/proxy?name=x", "core_db_proxy"),
		Entry(nil, "/service/shop/route?name=x", "core_db_route"),
		Entry(nil, "/upstream/blue/route", "core_db_route"),
		Entry(nil, "/service/shop/route/root/upstream", "core_db_upstream"),
		Entry(nil, "/service/shop/proxy", "core_db_proxy"),
		Entry(nil, "/proxy/gw/service", "core_db_service"),
	)

	It("count what was deleted", func() {
		a := startAPI()
		a.given(everything()...)
		a.delete("/proxy/gw/service/shop").expectWrite(200, `{"data":{"delete_core_db_proxy_service":{"affected_rows":1}}}`, "7")
		a.delete("/service/shop/route/root/upstream/blue").expectWrite(200, `{"data":{"delete_core_db_route_upstream":{"affected_rows":1}}}`, "8")
		a.delete("/service/shop/route/root").expectWrite(200, `{"data":{"delete_core_db_route":{"affected_rows":1}}}`, "9")
		a.delete("/upstream/blue").expectWrite(200, `{"data":{"delete_core_db_upstream":{"affected_rows":1}}}`, "10")
		a.delete("/service/shop").expectWrite(200, `{"data":{"delete_core_db_service":{"affected_rows":1}}}`, "11")
		a.delete("/proxy/gw").expectWrite(200, `{"data":{"delete_core_db_proxy":{"affected_rows":1}}}`, "12")
		a.get("/upstream").expectJSON(200, `{"data":{"core_db_upstream":[]}}`)
	})

	It("include what is deleted together with the object", func() {
		a := startAPI()
		a.given(everything()...)
		a.delete("/proxy/gw?force=true").expectWrite(200, `{"data":{"delete_core_db_proxy":{"affected_rows":1}}}`, "7")
		a.delete("/service/shop").expectWrite(200, `{"data":{"delete_core_db_service":{"affected_rows":1}}}`, "8")
		a.get("/upstream/blue/route").expectJSON(200, `{"data":{"core_db_route":[]}}`)
	})

	It("use the schema word of the settings", func() {
		a := startAPI(func(o *rest.Options) { o.SchemaWord = "acme" })
		a.post("/service", "Service_Name=shop&fqdn=*").expectWrite(201, `{"data":{"insert_acme_service":{"affected_rows":1}}}`, "1")
		a.get("/service?name=x").expectJSON(200, `{"data":{"acme_service":[]}}`)
		a.delete("/service/shop").expectWrite(200, `{"data":{"delete_acme_service":{"affected_rows":1}}}`, "2")
	})

	It("keep text as it was sent", func() {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*",
			"/service/shop/route", `Route_Name=r&Route_prefix=/<a>%26%27%25`)
		Expect(a.get("/service/shop/route/r").body).To(ContainSubstring(`"route_prefix":"/<a>&'%"`))
	})

	It("use the defaults that a gateway sets for its own proxy", func() {
		a := startAPI(func(o *rest.Options) {
			o.NewProxy = func(name string) *model.Proxy {
				p := model.NewProxy()
				if name == "own" {
					p.HTTPPort = 9080
				}
				return p
			}
		})
		a.given("/proxy", "name=own", "/proxy", "name=other&http_port=81")
		Expect(a.get("/proxy/own").body).To(ContainSubstring(`"http_port":9080,"https_port":8443`))
		Expect(a.get("/proxy/other").body).To(ContainSubstring(`"http_port":81,"https_port":8443`))
	})
})

var _ = Describe("The dump of a service", func() {
	It("has routes in order of creation and upstreams in order of attachment", func() {
		a := startAPI()
		a.given(
			"/upstream", "Upstream_name=a&Upstream_ip=10.0.0.1&Upstream_port=1",
			"/upstream", "Upstream_name=b&Upstream_ip=2001:db8::1&Upstream_port=2",
			"/service", "Service_Name=other&fqdn=other.example.com",
			"/service", "Service_Name=shop&fqdn=*.example.com",
			"/service/other/route", "Route_Name=z&Route_prefix=/z",
			"/service/shop/route", "Route_Name=z&Route_prefix=/",
			"/service/shop/route", "Route_Name=empty&Route_prefix=/empty",
			"/service/other/route/z/upstream/a", "",
			"/service/shop/route/z/upstream/b", "",
			"/service/shop/route/z/upstream/a", "")
		a.get("/service/dump/shop").expectJSON(200, `{"data":{"core_db_service":[{"service_id":2,"service_name":"shop","fqdn":"*.example.com",`+
			`"create_ts":"`+timestamp+`","routes":[`+
			`{"route_id":2,"route_name":"z","route_prefix":"/","route_upstreams":[`+
			`{"upstream":{"upstream_id":2,"upstream_name":"b","upstream_ip":"2001:db8::1","upstream_port":2}},`+
			`{"upstream":{"upstream_id":1,"upstream_name":"a","upstream_ip":"10.0.0.1","upstream_port":1}}],"route_filters":[]},`+
			`{"route_id":3,"route_name":"empty","route_prefix":"/empty","route_upstreams":[],"route_filters":[]}],`+
			`"service_secrets":[],"service_filters":[]}]}}`)
	})

	It("has empty lists, not null", func() {
		a := startAPI()
		a.given("/service", "Service_Name=route&fqdn=*")
		a.get("/service/dump/route").expectJSON(200, `{"data":{"core_db_service":[{"service_id":1,"service_name":"route","fqdn":"*",`+
			`"create_ts":"`+timestamp+`","routes":[],"service_secrets":[],"service_filters":[]}]}}`)
	})

	It("is 404 for an unknown service", func() {
		a := startAPI()
		a.get("/service/dump/nope").expectProblem(404, unknown("/service/dump/nope", `service \"nope\" does not exist`))
	})
})

func unknown(path, detail string) string {
	return `{"type":"urn:gatehouse:problem:unknown_name","title":"A name does not exist","status":404,` +
		`"detail":"` + detail + `","instance":"` + path + `","code":"unknown_name"}`
}
