package rest_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/inspect"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

var _ = Describe("A test of rate limits", func() {
	const at = "/proxy/gw/ratelimit/test?url=http://shop.test/"
	// answering is an API that explains every request so.
	answering := func(list ...inspect.Explained) *api {
		GinkgoHelper()
		a := startAPI(open, func(o *rest.Options) {
			o.Live.Explain = func(_ context.Context, proxy string, _ explain.Request) ([]inspect.Explained, error) {
				Expect(proxy).To(Equal("gw"))
				return list, nil
			}
		})
		a.given("/proxy", "Name=gw")
		a.given("/globalconfig", "globalconfig_name=rates&globalconfig_type=globalconfig_ratelimit&config={\"domain\":\"shop.eu\"}")
		return a
	}
	forwarded := func(filters ...explain.Filter) inspect.Explained {
		return inspect.Explained{Answer: explain.Answer{Code: "forwarded", Service: "shop", Route: "root", Filters: filters}}
	}
	entries := []explain.Entry{{Key: "path", Value: "/"}}
	met := explain.Descriptor{
		Domain: "1/shop-eu", Sent: true, Message: "path=/ meets path: 5 each day", Entries: entries,
		Limit: &explain.Limit{Limit: "path", Unit: "day", RequestsPerUnit: 5},
	}

	It("shows what is sent and which limits apply", func() {
		first := forwarded(explain.Filter{Name: "a", Descriptors: []explain.Descriptor{met, {Domain: "1/shop-eu", Message: "is not sent", Entries: []explain.Entry{}}}},
			explain.Filter{Name: "b", Descriptors: []explain.Descriptor{{Domain: "2/gone/api", Sent: true, Message: "meets no rate", Entries: entries}}},
			explain.Filter{Name: "c", Descriptors: []explain.Descriptor{{Domain: "1/api", Unknown: true, Message: "no rates", Entries: entries}}})
		first.Envoys = []string{"127.0.0.1:40001"}
		answering(first, forwarded()).get(at).expectJSON(200, `{"data":{"core_db_ratelimit_test":[`+
			`{"basis":"envoys","envoys":["127.0.0.1:40001"],"code":"forwarded","message":"1 rate is met","service":"shop","route":"root","descriptors":[`+
			`{"globalconfig_name":"rates","domain":"shop.eu","sent":true,"message":"path=/ meets path: 5 each day","entries":[{"key":"path","value":"/"}],`+
			`"limit":{"limit":"path","unit":"day","requests_per_unit":5,"unlimited":false,"shadow":false}},`+
			`{"globalconfig_name":"rates","domain":"shop.eu","sent":false,"message":"is not sent","entries":[]},`+
			`{"domain":"gone/api","sent":true,"message":"meets no rate","entries":[{"key":"path","value":"/"}]},`+
			`{"domain":"1/api","sent":false,"message":"no rates","entries":[{"key":"path","value":"/"}]}]},`+
			`{"basis":"wanted","envoys":[],"code":"forwarded","message":"nothing is counted: route root has no rate limit","service":"shop","route":"root","descriptors":[]}]}}`)
	})

	DescribeTable("has a summary", func(want string, list ...explain.Descriptor) {
		Expect(answering(forwarded(explain.Filter{Descriptors: list})).get(at).body).To(ContainSubstring(`"message":"` + want + `"`))
	},
		Entry(nil, "2 rates are met", met, met),
		Entry(nil, "nothing is counted: no descriptor meets a rate", explain.Descriptor{Domain: "1/shop-eu", Message: "m", Entries: entries}),
	)

	It("reports why nothing is counted if the gateway answers", func() {
		a := answering(inspect.Explained{Answer: explain.Answer{Code: "no_route", Message: "no route matches"}})
		Expect(a.get(at).body).To(ContainSubstring(`"code":"no_route","message":"nothing is counted: no route matches","descriptors":[]`))
	})

	It("reports which filters are unknown", func() {
		e := forwarded(explain.Filter{Descriptors: []explain.Descriptor{met}})
		e.UnknownFilters = []string{"envoy.filters.http.lua"}
		Expect(answering(e).get(at).body).To(ContainSubstring(
			`"message":"1 rate is met; the filter envoy.filters.http.lua is not known, so it may be different"`))
	})

	It("accepts and refuses the same as explain", func() {
		a := answering(forwarded())
		a.get("/proxy/gw/ratelimit/test?url=shop&header=x").expectProblem(400, invalid("/proxy/gw/ratelimit/test",
			"url", `\"shop\" does not begin with http:// or https://, or tcp://, tls:// or udp:// for a connection`, "header", `\"x\" is not of the form \"name: value\"`))
		Expect(a.get(at + "&method=POST&header=a%3A+b&header=c%3A+d&address=::1").status).To(Equal(200))
		got, _ := a.call("GET", "/proxy/nobody/ratelimit/test?url=http://a/", "", nil)
		Expect(got.status).To(Equal(404))
	})
})
