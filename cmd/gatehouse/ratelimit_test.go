package main

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("ratelimit top", func() {
	const counts = `{"globalconfig_name":"rates","domain":"shop","counted":true,"limits":[{"limit":"remote_address","unit":"minute","requests_per_unit":5,"resets_in":65,"routes":["shop/root","blog/*"],"more_routes":3,"hits":120,"near":9,"over":20,"shadow":3}],` +
		`"top":[{"limit":"remote_address","value":"remote_address=192.0.2.7","shadow":false,"over":17,"error":1},` +
		`{"limit":"user","value":"user=\u001b[2J","shadow":true,"over":3,"error":0}]}`
	answers := func(proxy, list string) {
		serving("GET /proxy/"+proxy+"/ratelimit", reply{200, `{"data":{"core_db_ratelimit":[` + list + `]}}`, nil})
	}

	It("shows the limits and which clients are limited", func() {
		answers("gw", counts)
		Expect(good("ratelimit", "top", "-o", "table")).To(Equal(`rates: domain shop

LIMIT           RATE      TIME LEFT  ROUTES                        HITS  NEAR  OVER  LET THROUGH
remote_address  5/minute  1m5s       shop/root, blog/* and 3 more  120   9     20    3

LIMITED                   RATE      TIME LEFT  ROUTES                        OVER  BY
remote_address=192.0.2.7  5/minute  1m5s       shop/root, blog/* and 3 more  17    remote_address
user=\u001b[2J                                                               3     user            let through
`))
		Expect(good("ratelimit", "top")).To(MatchJSON(`[` + counts + `]`))
	})

	It("reports what other engines do not disclose, and which engines those are", func() {
		answers("gw", `{"globalconfig_name":"rates","domain":"shop","counted":true,"note":"no values","limits":[`+
			`{"limit":"a > b > c","with":["a > b > d","e"],"hits":3,"near":2,"over":1,"shadow":0}],"top":null,`+
			`"engines":[{"url":"http://one/metrics","address":"10.0.0.1:80"},{"url":"http://one/metrics","address":"10.0.0.2:80","error":"refused"},`+
			`{"url":"http://two/metrics","error":"no such host"}]}`)
		Expect(good("ratelimit", "top", "-o", "table")).To(Equal(`rates: domain shop

LIMIT                      RATE  TIME LEFT  ROUTES  HITS  NEAR  OVER  LET THROUGH
a > b > c + a > b > d + e                           3     2     1     0

no values

NOT IN THE NUMBERS  ADDRESS      BECAUSE
http://one/metrics  10.0.0.2:80  refused
http://two/metrics               no such host
`))
	})

	It("reports that no engine counts", func() {
		answers("edge", `{"globalconfig_name":"rates","domain":"shop","counted":false,"note":"nobody counts","limits":[],"top":null}`)
		Expect(good("ratelimit", "top", "edge", "-o", "table")).To(Equal("rates: domain shop\nnobody counts\n"))
	})

	DescribeTable("writes the time left", func(seconds int, want string) {
		answers("gw", fmt.Sprintf(`{"globalconfig_name":"rates","domain":"shop","counted":true,"limits":[{"limit":"a","resets_in":%d,"hits":0,"near":0,"over":0,"shadow":0}],"top":[]}`, seconds))
		Expect(good("ratelimit", "top", "-o", "table")).To(MatchRegexp(`\na +` + want + ` +0 +0 +0 +0\n`))
	},
		Entry(nil, 1, "1s"), Entry(nil, 60, "1m0s"), Entry(nil, 3600, "1h0m"), Entry(nil, 86399, "23h59m"), Entry(nil, 604800, "7d0h"),
	)

	It("reports that there is no limit", func() {
		answers("gw", "")
		Expect(good("ratelimit", "top", "-o", "table")).To(Equal("the proxy has no rate limits\n"))
	})
})
