package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("The name of an object", func() {
	const empty = `{"data":{"core_db_status":[{"replica":"one:1323","revision":2,"built_revision":1,"proxies":[],"waiting_nodes":[],"conditions":[]}]}}`

	DescribeTable("may have its kind before it",
		func(call string, args ...string) {
			serving(call, reply{200, empty, nil})
			Expect(good(append([]string{"status"}, args...)...)).To(ContainSubstring(`"replica": "one:1323"`))
		},
		Entry(nil, "GET /proxy/gw/status", "gw"),
		Entry(nil, "GET /proxy/gw/status", "proxy/gw"),
		Entry(nil, "GET /proxy/gw/status", "proxies", "gw"),
		Entry("also one that is called like a kind", "GET /proxy/proxy/status", "proxy"),
		Entry("and not that of another kind", "GET /proxy/service/status", "service"),
	)

	DescribeTable("may have its kind before it in every command that takes one",
		func(detail string, args ...string) {
			serving("GET /status", reply{200, empty, nil})
			Expect(run1("x", args...).stderr).To(ContainSubstring(detail))
		},
		Entry(nil, "GET /proxy/gw/explain", "explain", "proxy/gw", "http://a/"),
		Entry(nil, "GET /proxy/gw/explain", "explain", "proxy", "gw", "http://a/"),
		Entry(nil, "GET /proxy/gw/ratelimit/test", "ratelimit", "test", "proxy/gw", "http://a/"),
		Entry(nil, "POST /service/shop/login/test", "login", "test", "service/shop"),
		Entry(nil, "/secret/shop", "secret", "set", "secret/shop", "--value", "-"),
		Entry(nil, "/secret/shop", "secret", "set", "secret", "shop", "--value", "-"),
		Entry("not of another kind", "/proxy/service%2Fgw/explain", "explain", "service/gw", "http://a/"),
	)
})
