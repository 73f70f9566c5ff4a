package rest_test

import (
	"net/http"
	"os"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	limitConfig = `{"descriptors":[{"remote_address":"client"}]}`
	loginConfig = `{"client_id":"shop","client_secret":"open-sesame","authorization_endpoint":"https://login.example.com/auth",` +
		`"token_endpoint":"https://login.example.com/token","redirect_uri":"https://shop.example.com/callback","cookie_secret":"hmac"}`
	insertFilter  = `{"data":{"insert_core_db_filter":{"affected_rows":1}}}`
	updatedFilter = `{"data":{"update_core_db_filter":{"affected_rows":1}}}`
	limitJSON     = `{"filter_id":1,"filter_name":"limit","filter_type":"route_filter_ratelimit","filter_config":` + limitConfig +
		`,"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
)

// filters creates everything and a filter for each place.
func filters() []string {
	return append(everything(),
		"/filter", "Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config="+limitConfig,
		"/secret", "Secret_name=hmac&Secret_value=0123456789",
		"/filter", "Filter_name=login&Filter_type=http_filter_oidc&Filter_config="+loginConfig)
}

// stored is all that the database files hold.
func (a *api) stored() string {
	GinkgoHelper()
	var all strings.Builder
	for _, suffix := range []string{"", "-wal"} {
		b, err := os.ReadFile(a.file + suffix)
		if suffix == "" || !os.IsNotExist(err) {
			Expect(err).NotTo(HaveOccurred())
		}
		all.Write(b)
	}
	return all.String()
}

var _ = Describe("Filters", func() {
	DescribeTable("accept their configuration as text, object or file", func(contentType, body string) {
		a := startAPI()
		a.do(http.MethodPost, "/filter", contentType, strings.NewReader(body)).expectWrite(201, insertFilter, "1")
		a.get("/filter/limit").expectJSON(200, `{"data":{"core_db_filter":[`+limitJSON+`]}}`)
		a.get("/filter").expectJSON(200, `{"data":{"core_db_filter":[`+limitJSON+`]}}`)
	},
		Entry(nil, form, "Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config= "+limitConfig),
		Entry(nil, "application/json", `{"Filter_name":"limit","Filter_type":"route_filter_ratelimit","Filter_config":`+limitConfig+`}`),
		Entry(nil, "application/json", `{"Filter_name":"limit","Filter_type":"route_filter_ratelimit","Filter_config":"{\"descriptors\":[{\"remote_address\":\"client\"}]}"}`),
	)

	It("keep the name of their type that was written, long or short", func() {
		a := startAPI()
		short := strings.Replace(limitJSON, "route_filter_ratelimit", "ratelimit", 1)
		a.given("/filter", "Filter_name=limit&Filter_type=ratelimit&Filter_config="+limitConfig)
		a.get("/filter/limit").expectJSON(200, `{"data":{"core_db_filter":[`+short+`]}}`)
		a.patch("/filter/limit", "Filter_type=route_filter_ratelimit").expectWrite(200, updatedFilter, "2")
		a.get("/filter/limit").expectJSON(200, `{"data":{"core_db_filter":[`+limitJSON+`]}}`)
	})

	It("seal their secrets, whatever name of the type was written", func() {
		a := startAPI()
		a.given("/secret", "Secret_name=hmac&Secret_value=0123456789", "/filter", "Filter_name=login&Filter_type=oidc&Filter_config="+loginConfig)
		Expect(a.stored()).NotTo(ContainSubstring("open-sesame"))
		Expect(a.get("/filter/login").body).To(ContainSubstring(`"client_secret":"` + model.Redacted + `"`))
	})

	It("accept their configuration as an upload", func() {
		a := startAPI()
		a.given("/filter", `Filter_name=limit&Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"path":"x"}]}`)
		contentType, body := multipartOf("@Filter_config", limitConfig+"\n")
		a.do(http.MethodPost, "/filter/limit/config", contentType, strings.NewReader(body)).expectWrite(200, updatedFilter, "2")
		a.get("/filter/limit").expectJSON(200, `{"data":{"core_db_filter":[`+limitJSON+`]}}`)
		a.post("/filter/limit/config", "Filter_config="+limitConfig).expectWrite(200, updatedFilter, "2")
		a.post("/filter/limit/config", "").expectProblem(400, invalid("/filter/limit/config", "Filter_config", "is required"))
		a.post("/filter/limit/config", "Filter_type=x").expectProblem(400, invalid("/filter/limit/config", "Filter_type", "unknown field; this call takes Filter_config"))
		a.post("/filter/x/config", "Filter_config={}").expectProblem(404, unknown("/filter/x/config", `filter \"x\" does not exist`))
	})

	DescribeTable("are refused with", func(fields string, errs ...string) {
		a := startAPI()
		a.post("/filter", "Filter_name=f&"+fields).expectProblem(400, invalid("/filter", errs...))
		Expect(a.revision()).To(BeZero())
	},
		Entry(nil, "", "Filter_type", "is required"),
		Entry("no known type", "Filter_type=x", "Filter_type", `\"x\" is not one of `+strings.Join(model.ConfigTypes(model.KindFilter), ", ")),
		Entry("a misspelled type", "Filter_type=cros", "Filter_type",
			`\"cros\" is not one of `+strings.Join(model.ConfigTypes(model.KindFilter), ", ")+"; did you mean cors?"),
		Entry("the prefix of another type", "Filter_type=http_filter_cors", "Filter_type",
			`\"http_filter_cors\" is not one of `+strings.Join(model.ConfigTypes(model.KindFilter), ", ")+"; did you mean vh_filter_cors?"),
		Entry(nil, `Filter_type=route_filter_headers&Filter_config={"request":{"set":{"Host":"a",":path":"/","x-a":"","x b":"c","Content-Length":"1"},"remove":["x-forwarded-for","X-Envoy-Internal","te","x-c","X-C"]}}`,
			"Filter_config.request.set.:path", `\":path\" cannot be changed; the rewrite of Route_config changes path and host`,
			"Filter_config.request.set.Content-Length", `\"Content-Length\" belongs to the connection and cannot be changed`,
			"Filter_config.request.set.Host", `\"Host\" cannot be changed; the rewrite of Route_config changes path and host`,
			"Filter_config.request.set.x b", `\"x b\" is not an HTTP token`,
			"Filter_config.request.set.x-a", "is empty; use remove to remove a header",
			"Filter_config.request.remove", `\"x-forwarded-for\" is set by the gateway and cannot be changed`,
			"Filter_config.request.remove", `\"X-Envoy-Internal\" is set by the gateway and cannot be changed`,
			"Filter_config.request.remove", `\"te\" belongs to the connection and cannot be changed`,
			"Filter_config.request.remove", `\"X-C\" is named twice`),
		Entry(nil, `Filter_type=route_filter_headers&Filter_config={"response":{"set":{"Forwarded":"a","x-real-ip":"b","server":"c"},"add":{"x-tail":"a "}}}`,
			"Filter_config.response.set.Forwarded", `\"Forwarded\" is set by the gateway and cannot be changed`,
			"Filter_config.response.set.x-real-ip", `\"x-real-ip\" is set by the gateway and cannot be changed`,
			"Filter_config.response.add.x-tail", "ends in a space or contains a control character, which a header value cannot",
			"Filter_config.response", `\"server\" is set by the gateway and cannot be changed`),
		Entry("too many headers", `Filter_type=route_filter_headers&Filter_config={"request":{"remove":["`+strings.Join(numbered("x", 0, 51), `","`)+`"]}}`,
			"Filter_config.request", "changes 51 headers; a filter may change at most 50, because receivers refuse messages with too many"),
		Entry(nil, `Filter_type=route_filter_headers&Filter_config={"response":{}}`,
			"Filter_config", `changes no header; set request or response, such as {\"request\":{\"set\":{\"x-team\":\"shop\"}}}`),
		Entry(nil, `Filter_type=route_filter_headers&Filter_config={"request":{"replace":{}}}`, "Filter_config", `unknown field \"replace\"`),
		Entry(nil, "Filter_type=http_filter_healthcheck&Filter_config={}", "Filter_type", `\"http_filter_healthcheck\" is not supported yet`),
		Entry(nil, "Filter_type=route_filter_circuitbreakers&Filter_config={}", "Filter_type",
			`\"route_filter_circuitbreakers\" is not a filter: set the upstream's fields Upstream_max_connections, Upstream_max_pending, Upstream_max_requests and Upstream_max_retries`),
		Entry(nil, "Filter_type=route_filter_outlierdetection&Filter_config={}", "Filter_type",
			`\"route_filter_outlierdetection\" is not a filter: set the upstream's fields Upstream_outlier_thresholdcount, Upstream_outlier_ejectionseconds and Upstream_panic_thresholdpercent`),
		Entry(nil, "Filter_type=route_filter_ratelimit&Filter_config=[]", "Filter_config", "must be a JSON object"),
		Entry(nil, "Filter_type=route_filter_ratelimit", "Filter_config.descriptors",
			`must be a list of at least one descriptor, such as [{\"remote_address\":\"client\"}]`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"a":1,"A":2}`, "Filter_config", `has the key \"A\" twice in one object`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"claim":"a..b"}]}`, "Filter_config.descriptors[0].claim.name", `\"a..b\" is not the name of a claim, such as email or realm_access.roles`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"descriptors":[{"remote_address":"a","generic_key":""},{"path":{"header_name":"x"}}]}`,
			"Filter_config.descriptors[0].generic_key.descriptor_value", "is required", "Filter_config.descriptors[1].path.header_name", "is not a field of path"),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"ip","limit":"5"}`,
			"Filter_config.limit", `\"5\" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`,
			"Filter_config.per", `\"ip\" must be client, api_client, consumer, header:NAME, claim:NAME or all`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"header:a b","limit":"5/minutes"}`,
			"Filter_config.limit", `\"5/minutes\" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`,
			"Filter_config.per", `\"a b\" is not an HTTP token`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"claim:a b","limit":"-1/minute"}`,
			"Filter_config.limit", `\"-1/minute\" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`,
			"Filter_config.per", `\"a b\" is not the name of a claim, such as email or realm_access.roles`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"all","limit":"4294967296/day"}`, "Filter_config.limit",
			`\"4294967296/day\" must be a number, a slash and a unit, such as 5/minute; units are second, minute, hour, day, week, month, year`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"all","limit":"5/day","domain":"shop"}`, "Filter_config",
			"has domain together with per and limit; use either the short form or domain and descriptors"),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"per":"all","limit":"5/day","status":503}`, "Filter_config", `unknown field \"status\"`),
		Entry(nil, `Filter_type=route_filter_ratelimit&Filter_config={"domain":"stated-by-filters","descriptors":[{"path":"x"}]}`, "Filter_config.domain",
			`\"stated-by-filters\" is the domain of filters that state their own limit; choose another name`),
		Entry(nil, `Filter_type=http_filter_oidc&Filter_config={"issuer":"x"}`, "Filter_config.client_id", "is required",
			"Filter_config.client_secret", "is required", "Filter_config.redirect_uri", "is required", "Filter_config.cookie_secret", "is required",
			"Filter_config.issuer", `\"x\" is not a URL such as https://login.example.com/token`),
		Entry(nil, "Filter_type=route_filter_ratelimit&Filter_config="+limitConfig+"&x=1", "x",
			"unknown field; known fields are Filter_name, Filter_type, Filter_config, tags"),
	)

	DescribeTable("are attached where they fit", func(path, kind, filter string) {
		a := startAPI()
		a.given(filters()...)
		list := path[:strings.LastIndexByte(path, '/')]
		a.get(list).expectJSON(200, `{"data":{"core_db_filter":[]}}`)
		Expect(a.get(path).status).To(Equal(404))
		a.post(path, "").expectWrite(201, `{"data":{"insert_core_db_`+kind+`":{"affected_rows":1}}}`, "10")
		a.post(path, "").expectWrite(200, `{"data":{"insert_core_db_`+kind+`":{"affected_rows":0}}}`, "10")
		Expect(a.get(path).body).To(ContainSubstring(`"filter_name":"` + filter + `"`))
		Expect(a.get(list).body).To(Equal(a.get(path).body))

		a.delete("/filter/"+filter).expectProblem(409, conflict("in_use", "The object is in use", "/filter/"+filter,
			`filter \"`+filter+`\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["`+strings.TrimSuffix(list, "/filter")+`"]`))
		a.delete(path).expectWrite(200, `{"data":{"delete_core_db_`+kind+`":{"affected_rows":1}}}`, "11")
		Expect(a.delete(path).status).To(Equal(404))
		a.delete("/filter/"+filter).expectWrite(200, `{"data":{"delete_core_db_filter":{"affected_rows":1}}}`, "12")
	},
		Entry(nil, "/service/shop/route/root/filter/limit", "route_filter", "limit"),
		Entry(nil, "/service/shop/filter/limit", "service_filter", "limit"),
		Entry(nil, "/service/shop/filter/login", "service_filter", "login"),
	)

	It("are not attached where they do not fit", func() {
		a := startAPI()
		a.given(filters()...)
		const path = "/service/shop/route/root/filter/login"
		a.post(path, "").expectProblem(422, cannotWork(path, `a filter of type \"http_filter_oidc\" cannot be attached to a route; `+
			`it works for whole services; attach it to the service`))
		a.given("/service/shop/route/root/filter/limit", "")
		a.put("/filter/limit", "Filter_type=http_filter_oidc&Filter_config="+loginConfig).expectProblem(422, cannotWork("/filter/limit",
			`filter \"limit\" is attached to /service/shop/route/root, where a filter of type \"http_filter_oidc\" cannot be attached; detach it there first`))
		Expect(a.revision()).To(Equal(int64(10)))
	})

	It("are detached when the route or the service is deleted", func() {
		a := startAPI()
		a.given(filters()...)
		a.given("/service/shop/route/root/filter/limit", "", "/service/shop/filter/login", "")
		Expect(a.delete("/service/shop/route/root").status).To(Equal(200))
		Expect(a.delete("/filter/limit").status).To(Equal(200))
		Expect(a.delete("/filter/login").status).To(Equal(409))
		Expect(a.delete("/proxy/gw?force=true").status).To(Equal(200))
		Expect(a.delete("/service/shop").status).To(Equal(200))
		Expect(a.delete("/filter/login").status).To(Equal(200))
	})

	It("never show a secret, and keep it if it comes back redacted", func() {
		a := startAPI()
		a.given(filters()...)
		shown := strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>")
		Expect(a.get("/filter/login").body).To(ContainSubstring(`"filter_config":` + shown + `,"tags"`))
		Expect(a.stored()).NotTo(ContainSubstring("open-sesame"))

		revision := a.revision()
		a.put("/filter/login", "Filter_type=http_filter_oidc&Filter_config="+shown).expectWrite(200, updatedFilter, "9")
		Expect(a.revision()).To(Equal(revision)) // nothing is different
		a.post("/filter/login/config", "Filter_config="+strings.Replace(shown, `"shop"`, `"till"`, 1)).expectWrite(200, updatedFilter, "10")
		a.get("/revision/10").expectJSON(200, `{"data":{"core_db_revision":[{"revision":10,"at":"`+timestamp+`","actor":"api","request":"POST /filter/login/config",`+
			`"changes":[{"action":"update","path":"/filter/login","kind":"filter","fields":[{"field":"filter_config","before":`+shown+
			`,"after":`+strings.Replace(shown, `"shop"`, `"till"`, 1)+`}]}]}]}}`)

		a.post("/filter", "Filter_name=other&Filter_type=http_filter_oidc&Filter_config="+shown).expectProblem(400,
			`{"type":"urn:gatehouse:problem:invalid_fields","title":"Fields are missing or wrong","status":400,"detail":"a secret cannot be stored; see errors",`+
				`"instance":"/filter","code":"invalid_fields","errors":[{"field":"Filter_config.client_secret","message":"is <redacted>, but no value is stored that it could stand for; write the secret itself, or apply what GET /config?secrets=sealed returns"}]}`)
	})

	It("require the secret that they name", func() {
		a := startAPI()
		a.post("/filter", "Filter_name=login&Filter_type=http_filter_oidc&Filter_config="+loginConfig).
			expectProblem(422, cannotWork("/filter", "/filter/login names /secret/hmac, which does not exist; create it first",
				"Filter_config.cookie_secret", "names /secret/hmac, which does not exist"))
		a.post("/filter", `Filter_name=ask&Filter_type=http_filter_extauthz&Filter_config={"upstream":"nobody"}`).
			expectProblem(422, cannotWork("/filter", "/filter/ask names /upstream/nobody, which does not exist; create it first",
				"Filter_config.upstream", "names /upstream/nobody, which does not exist"))
		a.given(filters()...)
		a.delete("/secret/hmac").expectProblem(409, conflict("in_use", "The object is in use", "/secret/hmac",
			`secret \"hmac\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/filter/login"]`))
		Expect(a.put("/filter/login", "Filter_type=route_filter_ratelimit&Filter_config="+limitConfig).status).To(Equal(200))
		Expect(a.delete("/secret/hmac").status).To(Equal(200))
	})
})

var _ = Describe("Filters that answer", func() {
	It("are limited to one for each service and route", func() {
		a := startAPI(checked)
		a.given(everything()...)
		a.given(
			"/filter", `Filter_name=gone&Filter_type=route_filter_redirect&Filter_config={"path":"/new"}`,
			"/filter", `Filter_name=ok&Filter_type=route_filter_directresponse&Filter_config={"body":"ok"}`,
			"/service/shop/filter/gone", "", "/service/shop/route/root/filter/ok", "",
		)
		revision := a.revision()
		for link, why := range map[string]string{
			"/service/shop/filter/ok":              "/service/shop cannot become a working configuration: the service has filters gone and ok, of which only one can answer",
			"/service/shop/route/root/filter/gone": "/service/shop/route/root cannot become a working configuration: the route has filters gone and ok, of which only one can answer",
		} {
			got := a.post(link, "")
			Expect(got.status).To(Equal(422), link)
			Expect(got.body).To(ContainSubstring(why))
		}
		Expect(a.revision()).To(Equal(revision))
	})
})

var _ = Describe("Filters that decide which requests are allowed", func() {
	It("are limited to one for each service and route, for tokens or a login", func() {
		a := startAPI(checked)
		a.given(everything()...)
		const tokens = `{"issuer":"https://issuer.test"}`
		a.given(
			"/filter", "Filter_name=one&Filter_type=http_filter_jwt&Filter_config="+tokens,
			"/filter", "Filter_name=two&Filter_type=http_filter_jwt&Filter_config="+tokens,
			"/secret", "Secret_name=words&Secret_value=0123456789abcdef",
			"/filter", `Filter_name=staff&Filter_type=http_filter_oidc&Filter_config={"issuer":"https://issuer.test","client_id":"a","client_secret":{"secret":"words"},"cookie_secret":"words","redirect_uri":"/callback"}`,
			"/service/shop/filter/one", "", "/service/shop/route/root/filter/one", "",
		)
		revision := a.revision()
		const which = ", of which only one can decide which requests are allowed (attach the other one to a route),"
		for link, why := range map[string]string{
			"/service/shop/filter/two":            "the service has filters one and two" + which,
			"/service/shop/filter/staff":          "the service has filters one and staff" + which,
			"/service/shop/route/root/filter/two": "the route has filters one and two" + which,
		} {
			got := a.post(link, "")
			Expect(got.status).To(Equal(422), link)
			Expect(got.body).To(ContainSubstring(why))
		}
		Expect(a.revision()).To(Equal(revision))
	})
})
