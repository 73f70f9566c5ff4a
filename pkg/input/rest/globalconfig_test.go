package rest_test

import (
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

const (
	ratesConfig = `{"domain":"shop","descriptors":[{"key":"remote_address","rate_limit":{"unit":"second","requests_per_unit":3}}]}`
	ratesJSON   = `{"globalconfig_id":1,"globalconfig_name":"rates","globalconfig_type":"globalconfig_ratelimit","config":` + ratesConfig +
		`,"tags":[],"create_ts":"` + timestamp + `","update_ts":"` + timestamp + `"}`
	oauthConfig = `{"openid_connect":{"provider":{"authorization_endpoint":"https://l.example.com/a","token_endpoint":"https://l.example.com/t"},` +
		`"client_id":"c","client_secret":"cs","hmac_secret":"hs","redirect_url":"https://x.example.com/cb","redirect_path_matcher":"/cb"}}`
	updatedGlobalConfig = `{"data":{"update_core_db_globalconfig":{"affected_rows":1}}}`
)

var _ = Describe("Global configs", func() {
	DescribeTable("accept their configuration as text or object", func(contentType, body string) {
		a := startAPI()
		a.do(http.MethodPost, "/globalconfig", contentType, strings.NewReader(body)).
			expectWrite(201, `{"data":{"insert_core_db_globalconfig":{"affected_rows":1}}}`, "1")
		a.get("/globalconfig/rates").expectJSON(200, `{"data":{"core_db_globalconfig":[`+ratesJSON+`]}}`)
		a.get("/globalconfig").expectJSON(200, `{"data":{"core_db_globalconfig":[`+ratesJSON+`]}}`)
	},
		Entry(nil, form, "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig),
		Entry(nil, "application/json", `{"Globalconfig_name":"rates","globalconfig_type":"globalconfig_ratelimit","config":`+ratesConfig+`}`),
	)

	It("can be replaced, patched, uploaded and deleted", func() {
		a := startAPI()
		a.put("/globalconfig/rates", "globalconfig_type=globalconfig_ratelimit&config="+`{"domain":"x"}`).
			expectWrite(201, `{"data":{"insert_core_db_globalconfig":{"affected_rows":1}}}`, "1")
		contentType, body := multipartOf("@config", ratesConfig)
		a.do(http.MethodPost, "/globalconfig/rates/config", contentType, strings.NewReader(body)).expectWrite(200, updatedGlobalConfig, "2")
		a.get("/globalconfig/rates").expectJSON(200, `{"data":{"core_db_globalconfig":[`+ratesJSON+`]}}`)
		a.patch("/globalconfig/rates", "tags=x").expectWrite(200, updatedGlobalConfig, "3")
		a.delete("/globalconfig/rates").expectWrite(200, `{"data":{"delete_core_db_globalconfig":{"affected_rows":1}}}`, "4")
	})

	DescribeTable("are refused with", func(fields string, errs ...string) {
		a := startAPI()
		a.post("/globalconfig", "globalconfig_name=g&"+fields).expectProblem(400, invalid("/globalconfig", errs...))
	},
		Entry(nil, "", "globalconfig_type", "is required", "config", "is required"),
		Entry(nil, `globalconfig_type=globalconfig_accesslog&config={"only":{}}`, "config.only", "selects no request; leave it out to log all"),
		Entry(nil, `globalconfig_type=globalconfig_globals&config={"lean":"yes","log":1}`, "config.lean", "must be true or false, not a string"),
		Entry(nil, "globalconfig_type=x&config={}", "globalconfig_type", `\"x\" is not one of `+strings.Join(model.ConfigTypes(model.KindGlobalConfig), ", ")),
		Entry(nil, "globalconfig_type=globalconfig_ratelimit&config={}", "config.domain", "is required"),
		Entry(nil, `globalconfig_type=globalconfig_ratelimit&config={"domain":"d","on_error":"close","status":200}`,
			"config.on_error", `\"close\" is not one of allow, deny`, "config.status", "200 is not between 400 and 599"),
		Entry(nil, `globalconfig_type=globalconfig_ratelimit&config={"domain":"d","status":418}`, "config.status", "418 is not a status that Envoy knows"),
	)

	It("are attached to proxies", func() {
		a := startAPI()
		a.given("/proxy", "Name=gw", "/globalconfig", "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig)
		a.get("/proxy/gw/globalconfig").expectJSON(200, `{"data":{"core_db_globalconfig":[]}}`)
		a.post("/proxy/gw/globalconfig/rates", "").expectWrite(201, `{"data":{"insert_core_db_proxy_globalconfig":{"affected_rows":1}}}`, "3")
		a.post("/proxy/gw/globalconfig/rates", "").expectWrite(200, `{"data":{"insert_core_db_proxy_globalconfig":{"affected_rows":0}}}`, "3")
		a.get("/proxy/gw/globalconfig").expectJSON(200, `{"data":{"core_db_globalconfig":[`+ratesJSON+`]}}`)
		a.get("/proxy/gw/globalconfig/rates").expectJSON(200, `{"data":{"core_db_globalconfig":[`+ratesJSON+`]}}`)
		a.delete("/globalconfig/rates").expectProblem(409, conflict("in_use", "The object is in use", "/globalconfig/rates",
			`globalconfig \"rates\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/proxy/gw"]`))
		a.delete("/proxy/gw/globalconfig/rates").expectWrite(200, `{"data":{"delete_core_db_proxy_globalconfig":{"affected_rows":1}}}`, "4")
		Expect(a.delete("/globalconfig/rates").status).To(Equal(200))
	})

	It("keep the secrets that they name", func() {
		a := startAPI()
		const fields = "globalconfig_name=login&globalconfig_type=globalconfig_oauth&config=" + oauthConfig
		a.post("/globalconfig", fields).expectProblem(422, cannotWork("/globalconfig", "/globalconfig/login names /secret/cs, which does not exist; create it first",
			"config.openid_connect.client_secret", "names /secret/cs, which does not exist", "config.openid_connect.hmac_secret", "names /secret/hs, which does not exist"))
		a.given("/secret", "Secret_name=cs&Secret_value=a", "/secret", "Secret_name=hs&Secret_value=b", "/globalconfig", fields)
		for _, name := range []string{"cs", "hs"} {
			a.delete("/secret/"+name).expectProblem(409, conflict("in_use", "The object is in use", "/secret/"+name,
				`secret \"`+name+`\" is in use; detach it from the objects in referenced_by, then delete it`, `,"referenced_by":["/globalconfig/login"]`))
		}
	})
})
