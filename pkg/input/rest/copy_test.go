package rest_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Copies", func() {
	const insertService = `{"data":{"insert_core_db_service":{"affected_rows":1}}}`
	given := func() *api {
		a := startAPI()
		a.given(filters()...)
		a.given("/service/shop/route", "Route_Name=second&Route_prefix=/x&tags=t",
			"/service/shop/route/root/filter/limit", "", "/service/shop/filter/login", "", "/service/shop/secret/hmac", "")
		Expect(a.patch("/service/shop", "tags=red").status).To(Equal(200)) // revision 14
		return a
	}

	It("of a service contain the service only", func() {
		a := given()
		a.post("/service/copy/shop/till", "").expectWrite(201, insertService, "15")
		a.get("/service/till").expectJSON(200, `{"data":{"core_db_service":[{"service_id":2,"service_name":"till","fqdn":"shop.example.com","https":"both","hsts_seconds":0,"hsts_subdomains":false,"client_validation_cacertificate":"","certificate":"","public":false,"mode":"http","port":0,"exempt_filters":[],"tags":["red"],`+
			`"create_ts":"`+timestamp+`","update_ts":"`+timestamp+`"}]}}`)
		for _, list := range []string{"route", "filter", "secret", "proxy"} {
			Expect(a.get("/service/till/" + list).body).To(HaveSuffix(":[]}}"))
		}
	})

	It("of a service with everything below it have its routes and links, to the same upstreams, filters and secrets, and no proxy", func() {
		a := given()
		a.post("/service/deepcopy/shop/till", "").expectWrite(201, insertService, "15")
		upstreams := a.get("/upstream").body
		a.get("/service/dump/till").expectJSON(200, `{"data":{"core_db_service":[{"service_id":2,"service_name":"till","fqdn":"shop.example.com","create_ts":"`+timestamp+`",`+
			`"routes":[{"route_id":3,"route_name":"root","route_prefix":"/","route_upstreams":[{"upstream":{"upstream_id":1,"upstream_name":"blue",`+
			`"upstream_ip":"10.0.0.1","upstream_port":8081}}],"route_filters":[{"filter":{"filter_id":1,"filter_name":"limit",`+
			`"filter_type":"route_filter_ratelimit","filter_config":`+limitConfig+`}}]},`+
			`{"route_id":4,"route_name":"second","route_prefix":"/x","route_upstreams":[],"route_filters":[]}],`+
			`"service_secrets":[{"secret":{"secret_id":1,"secret_name":"hmac","secret_type":"generic"}}],`+
			`"service_filters":[{"filter":{"filter_id":2,"filter_name":"login","filter_type":"http_filter_oidc","filter_config":`+
			strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>")+`}}]}]}}`)
		a.get("/service/till/proxy").expectJSON(200, `{"data":{"core_db_proxy":[]}}`)
		Expect(a.get("/upstream").body).To(Equal(upstreams))
	})

	It("of a route can be created in another service, with their links", func() {
		a := given()
		a.given("/service", "Service_Name=till&fqdn=till.example.com")
		a.post("/service/copyroute/shop/till/route/root", "").expectWrite(201, `{"data":{"insert_core_db_route":{"affected_rows":1}}}`, "16")
		Expect(a.get("/service/till/route").body).To(ContainSubstring(`[{"route_id":3,"service_name":"till","route_name":"root"`))
		Expect(a.get("/service/till/route/root/upstream").body).To(ContainSubstring(`"upstream_name":"blue"`))
		Expect(a.get("/service/till/route/root/filter").body).To(ContainSubstring(`"filter_name":"limit"`))
	})

	It("have the fields that are sent, in the same revision", func() {
		a := given()
		a.post("/service/copyroute/shop/shop/route/root", "Route_Name=third&Route_prefix=/third").
			expectWrite(201, `{"data":{"insert_core_db_route":{"affected_rows":1}}}`, "15")
		Expect(a.get("/service/shop/route/third").body).To(ContainSubstring(`"route_name":"third","route_prefix":"/third"`))
		Expect(a.get("/service/shop/route/third/upstream").body).To(ContainSubstring(`"upstream_name":"blue"`))
		Expect(a.get("/service/shop/route/third/filter").body).To(ContainSubstring(`"filter_name":"limit"`))
		a.post("/service/deepcopy/shop/till", "fqdn=till.example").expectWrite(201, insertService, "16")
		Expect(a.get("/service/till").body).To(ContainSubstring(`"fqdn":"till.example"`))
		Expect(a.get("/service/shop").body).To(ContainSubstring(`"fqdn":"shop.example.com"`))
		a.post("/upstream/copy/blue/green", "Upstream_port=1").expectWrite(201, insertUpstream, "17")
		Expect(a.get("/upstream/green").body).To(ContainSubstring(`"upstream_port":1,`))
	})

	DescribeTable("refuse what is wrong, and copy nothing", func(path, sent, field, message string) {
		a := given()
		before := a.get("/config").body
		answer := a.post(path, sent)
		Expect(answer.status).To(Equal(400), answer.body)
		Expect(answer.body).To(ContainSubstring(`{"field":"` + field + `","message":"` + message))
		Expect(a.get("/config").body).To(Equal(before))
	},
		Entry(nil, "/upstream/copy/blue/green", "Upstream_port=0", "Upstream_port", "0 is"),
		Entry(nil, "/upstream/copy/blue/green", "Upstream_name=red", "Upstream_name", `must be \"green\" as in the path`),
		Entry(nil, "/service/deepcopy/shop/till", "Service_Name=x", "Service_Name", `must be \"till\" as in the path`),
		Entry(nil, "/service/copyroute/shop/shop/route/root", "Route_Name=a/b", "Route_Name", ""),
		Entry(nil, "/service/copyroute/shop/shop/route/root", "Route_nam=x", "Route_nam", "unknown field; did you mean Route_Name?"),
	)

	It("of an upstream have all its fields", func() {
		a := given()
		a.post("/upstream/copy/blue/green", "").expectWrite(201, insertUpstream, "15")
		copied := strings.NewReplacer(`"upstream_id":1`, `"upstream_id":2`, `"blue"`, `"green"`).Replace(blueJSON)
		a.get("/upstream/green").expectJSON(200, `{"data":{"core_db_upstream":[`+copied+`]}}`)
	})

	DescribeTable("are refused", func(path string, status int, part string) {
		a := given()
		a.given("/service", "Service_Name=till&fqdn=till.example.com", "/service/till/route", "Route_Name=root&Route_prefix=/")
		got := a.post(path, "")
		Expect(got.status).To(Equal(status), got.body)
		Expect(got.body).To(ContainSubstring(part))
		Expect(a.revision()).To(Equal(int64(16)))
	},
		Entry(nil, "/service/copy/x/y", 404, `service \"x\" does not exist`),
		Entry(nil, "/service/copy/shop/till", 409, `service \"till\" already exists`),
		Entry(nil, "/service/deepcopy/shop/shop", 409, `service \"shop\" already exists`),
		Entry(nil, "/service/deepcopy/x/y", 404, `service \"x\" does not exist`),
		Entry(nil, "/service/copy/shop/dump", 400, `\"dump\" is reserved`),
		Entry(nil, "/service/deepcopy/shop/a%2Fb", 404, `\"a/b\" does not exist`),
		Entry(nil, "/service/copyroute/x/till/route/root", 404, `service \"x\" does not exist`),
		Entry(nil, "/service/copyroute/shop/x/route/root", 404, `service \"x\" does not exist`),
		Entry(nil, "/service/copyroute/shop/till/route/x", 404, `route \"x\" of service \"shop\" does not exist`),
		Entry(nil, "/service/copyroute/shop/till/route/root", 409, `route \"root\" of service \"till\" already exists`),
		Entry(nil, "/upstream/copy/x/y", 404, `upstream \"x\" does not exist`),
		Entry(nil, "/upstream/copy/blue/blue", 409, `upstream \"blue\" already exists`),
		Entry(nil, "/upstream/copy/blue/copy", 400, `\"copy\" is reserved`),
	)
})
