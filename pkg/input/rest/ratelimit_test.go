package rest_test

import (
	"context"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("What rate limits have counted", func() {
	// counting has each limit named like its domain on the wire.
	counting := func(o *rest.Options) {
		o.Live.RateLimits = func(_ context.Context, domains []*limits.Domain) (list []inspect.RateLimitCounts) {
			for _, d := range domains {
				list = append(list, inspect.RateLimitCounts{
					Counted: true, Limits: []inspect.RateLimit{{Limit: d.Wire(), Hits: 7, Near: 1, Over: 2, Shadow: 2}},
					Top: []inspect.RateLimited{{Limit: d.Wire(), Value: "remote_address=192.0.2.7", Shadow: true, Over: 2, Error: 1}},
				})
			}
			return list
		}
	}
	const path = "/proxy/gw/ratelimit"
	counts := func(name, domain, limit string) string {
		return fmt.Sprintf(`{"globalconfig_name":%q,"domain":%q,"counted":true,"limits":[{"limit":%q,"hits":7,"near":1,"over":2,"shadow":2}],`+
			`"top":[{"limit":%q,"value":"remote_address=192.0.2.7","shadow":true,"over":2,"error":1}]}`, name, domain, limit, limit)
	}

	It("comes from the first global config of each domain that applies to the proxy", func() {
		a := startAPI(open, counting)
		a.given("/proxy", "Name=gw", "/proxy", "Name=other")
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[]}}`)
		a.given(
			"/globalconfig", `globalconfig_name=d&globalconfig_type=globalconfig_ratelimit&config={"domain":"api","descriptors":[]}`,
			"/globalconfig", "globalconfig_name=c&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/globalconfig", "globalconfig_name=b&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/globalconfig", "globalconfig_name=a&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig,
			"/proxy/other/globalconfig/a", "", "/proxy/gw/globalconfig/c", "",
		)
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[`+counts("b", "shop", "3/shop")+`,`+counts("d", "api", "1/api")+`]}}`)
		a.get("/proxy/other/ratelimit").expectJSON(200, `{"data":{"core_db_ratelimit":[`+counts("a", "shop", "4/shop")+`,`+counts("d", "api", "1/api")+`]}}`)
	})

	rates := func(a *api) {
		a.given("/proxy", "Name=gw", "/globalconfig", "globalconfig_name=b&globalconfig_type=globalconfig_ratelimit&config="+ratesConfig)
	}

	It("is not known if nothing counts", func() {
		a := startAPI(open)
		rates(a)
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[{"globalconfig_name":"b","domain":"shop","counted":false,"limits":[],"top":null}]}}`)
	})

	It("includes the engines that were called, the limits that they do not distinguish, and why there are no values", func() {
		a := startAPI(open, func(o *rest.Options) {
			o.Live.RateLimits = func(context.Context, []*limits.Domain) []inspect.RateLimitCounts {
				return []inspect.RateLimitCounts{{
					Counted: true, Note: "no values", Limits: []inspect.RateLimit{{Limit: "a > b > c", With: []string{"a > b > d"}, Hits: 1}},
					Engines: []inspect.RateLimitEngine{{URL: "http://one/metrics", Address: "10.0.0.1:80"}, {URL: "http://two/metrics", Error: "no such host"}},
				}}
			}
		})
		rates(a)
		a.get(path).expectJSON(200, `{"data":{"core_db_ratelimit":[{"globalconfig_name":"b","domain":"shop","counted":true,"note":"no values",`+
			`"limits":[{"limit":"a > b > c","with":["a > b > d"],"hits":1,"near":0,"over":0,"shadow":0}],"top":null,`+
			`"engines":[{"url":"http://one/metrics","address":"10.0.0.1:80"},{"url":"http://two/metrics","error":"no such host"}]}]}}`)
	})

	It("requires a proxy that exists, and takes no parameter", func() {
		a := startAPI(open)
		a.given("/proxy", "Name=gw")
		a.get("/proxy/no/ratelimit").expectProblem(404, unknown("/proxy/no/ratelimit", `proxy \"no\" does not exist`))
		Expect(a.get(path + "?x=1").status).To(Equal(400))
	})
})
