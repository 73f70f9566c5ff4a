package rest_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/rest"
)

var _ = Describe("What rate limits have counted", func() {
	counting := func(o *rest.Options) {
		o.RateLimits = func(g *model.GlobalConfig) ([]rest.RateLimit, []rest.RateLimited) {
			return []rest.RateLimit{{Limit: g.Name, Hits: 7, Near: 1, Over: 2, Shadow: 2}},
				[]rest.RateLimited{{Limit: g.Name, Value: "remote_address=192.0.2.7", Shadow: true, Over: 2, Error: 1}}
		}
	}
	const (
		path = "/proxy/gw/ratelimit"
		b    = `{"globalconfig_name":"b","domain":"shop","counted":true,"limits":[{"limit":"b","hits":7,"near":1,"over":2,"shadow":2}],` +
			`"top":[{"limit":"b","value":"remote_address=192.0.2.7","shadow":true,"over":2,"error":1}]}`
	)

	It("is that of the first global config that holds for the proxy", func() {
		a := startAPI(open, counting)
		a.given("/proxy", "Name=gw", "/proxy", "Name=other")
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[]}}`)
		a.given(
			"/globalconfig", "globalconfig_name=c&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/globalconfig", "globalconfig_name=b&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/globalconfig", "globalconfig_name=a&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/proxy/other/globalconfig/a", "", "/proxy/gw/globalconfig/c", "",
		)
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[`+b+`]}}`)
		Expect(a.get("/proxy/other/ratelimit").body).To(ContainSubstring(`"globalconfig_name":"a"`))
	})

	It("is not known where another process counts", func() {
		a := startAPI(open)
		a.given("/proxy", "Name=gw", "/globalconfig", "globalconfig_name=b&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig)
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[{"globalconfig_name":"b","domain":"shop","counted":false,"limits":[],"top":[]}]}}`)
	})

	It("is of a proxy that exists, and takes no parameter", func() {
		a := startAPI(open)
		a.given("/proxy", "Name=gw")
		a.get("/proxy/no/ratelimit").expectProblem(404, unknown("/proxy/no/ratelimit", `proxy \"no\" does not exist`))
		Expect(a.get(path + "?x=1").status).To(Equal(400))
	})
})
