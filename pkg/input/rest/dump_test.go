package rest_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The dump of a proxy", func() {
	shop := `{"service_id":1,"service_name":"shop","fqdn":"shop.example.com","create_ts":"` + timestamp + `",` +
		`"routes":[{"route_id":1,"route_name":"root","route_prefix":"/","route_upstreams":[{"upstream":{"upstream_id":1,"upstream_name":"blue",` +
		`"upstream_ip":"10.0.0.1","upstream_port":8081}}],"route_filters":[{"filter":{"filter_id":1,"filter_name":"limit",` +
		`"filter_type":"route_filter_ratelimit","filter_config":` + limitConfig + `}}]}],` +
		`"service_secrets":[{"secret":{"secret_id":1,"secret_name":"hmac","secret_type":"generic"}}],` +
		`"service_filters":[{"filter":{"filter_id":2,"filter_name":"login","filter_type":"http_filter_oidc","filter_config":` +
		strings.ReplaceAll(loginConfig, "open-sesame", "<redacted>") + `}}]}`
	limited := `{"filter":{"filter_id":1,"filter_name":"limit","filter_type":"route_filter_ratelimit","filter_config":` + limitConfig + `}}`
	gw := strings.TrimSuffix(gwJSON, "}") + `,"proxy_services":[{"service":` + shop + `}],"proxy_filters":[` + limited + `],"proxy_globalconfigs":[{"globalconfig":` +
		`{"globalconfig_id":1,"globalconfig_name":"rates","globalconfig_type":"globalconfig_ratelimit","config":` + ratesConfig + `}}]}`
	second := strings.NewReplacer(`"proxy_id":1`, `"proxy_id":2`, `"gw"`, `"second"`).Replace(strings.TrimSuffix(gwJSON, "}")) +
		`,"proxy_services":[],"proxy_filters":[],"proxy_globalconfigs":[]}`

	It("has its services with everything that they use, and its global configs", func() {
		a := startAPI()
		a.get("/proxy/dump").expectJSON(200, `{"data":{"core_db_proxy":[]}}`)
		a.given(filters()...)
		a.given("/service/shop/route/root/filter/limit", "", "/service/shop/filter/login", "", "/service/shop/secret/hmac", "",
			"/globalconfig", "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/proxy/gw/globalconfig/rates", "", "/proxy/gw/filter/limit", "", "/proxy", "Name=second")
		a.get("/service/dump/shop").expectJSON(200, `{"data":{"core_db_service":[`+shop+`]}}`)
		a.get("/proxy/dump/gw").expectJSON(200, `{"data":{"core_db_proxy":[`+gw+`]}}`)
		a.get("/proxy/dump/second").expectJSON(200, `{"data":{"core_db_proxy":[`+second+`]}}`)
		a.get("/proxy/dump").expectJSON(200, `{"data":{"core_db_proxy":[`+gw+`,`+second+`]}}`)
		Expect(a.get("/proxy/dump").body).NotTo(ContainSubstring("sealed:"))
	})

	It("is 404 for an unknown proxy", func() {
		a := startAPI()
		a.get("/proxy/dump/nope").expectProblem(404, unknown("/proxy/dump/nope", `proxy \"nope\" does not exist`))
	})
})
