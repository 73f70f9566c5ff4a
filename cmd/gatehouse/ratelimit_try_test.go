package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("ratelimit test", func() {
	const answer = `{"basis":"envoys","envoys":["127.0.0.1:40112"],"code":"forwarded","message":"3 rates are met","service":"shop","route":"root","descriptors":[` +
		`{"globalconfig_name":"rates","domain":"shop","sent":true,"message":"m","entries":[{"key":"path","value":"/"},{"key":"method","value":"GET"}],` +
		`"limit":{"limit":"path > method","unit":"day","requests_per_unit":5,"unlimited":false,"shadow":false}},` +
		`{"globalconfig_name":"rates","domain":"shop","sent":true,"message":"m","entries":[{"key":"a","value":"\u001b[2J"}],"limit":{"limit":"a","requests_per_unit":0,"unlimited":true,"shadow":false}},` +
		`{"globalconfig_name":"rates","domain":"shop","sent":true,"message":"m","entries":[{"key":"b","value":"1"}],"limit":{"limit":"b","unit":"hour","requests_per_unit":7,"unlimited":false,"shadow":true}},` +
		`{"globalconfig_name":"rates","domain":"shop","sent":true,"message":"m","entries":[{"key":"c","value":"1"}]},` +
		`{"domain":"api","sent":false,"message":"d=1 is not sent: no rates","entries":[{"key":"d","value":"1"}]}]}`

	It("shows what is sent and which limits apply", func() {
		serving("GET /proxy/gw/ratelimit/test?address=192.0.2.7&header=x-a%3A+1&method=POST&url=http%3A%2F%2Fa%2Fcart", reply{200, `{"data":{"core_db_ratelimit_test":[` + answer + `]}}`, nil})
		args := []string{"ratelimit", "test", "gw", "http://a/cart", "-X", "POST", "-H", "x-a: 1", "--address", "192.0.2.7"}
		Expect(good(append(args, "-o", "table")...)).To(Equal(`3 rates are met
from: 1 Envoy: 127.0.0.1:40112

DESCRIPTOR                 DOMAIN  GLOBALCONFIG  MEETS          RATE
path=/ > method=GET        shop    rates         path > method  5 each day
a=\u001b[2J                shop    rates         a              no limit
b=1                        shop    rates         b              7 each hour, counted only
c=1                        shop    rates         nothing
d=1 is not sent: no rates  api                   not sent
`))
		Expect(good(append(args, "-o", "json")...)).To(MatchJSON(`[` + answer + `]`))
	})

	It("reports why there is no result, and why the server refuses", func() {
		serving("GET /proxy/gw/ratelimit/test?url=http%3A%2F%2Fh", reply{200, `{"data":{"x_ratelimit_test":[{"envoys":[],"message":"nothing is counted: no route","descriptors":[]}]}}`, nil})
		Expect(good("ratelimit", "test", "gw", "http://h", "-o", "table")).To(Equal(
			"nothing is counted: no route\nfrom: no Envoy is connected; this is what one should do\n"))
		serving("GET /proxy/gw/ratelimit/test?url=h", reply{400, `{"title":"Fields are missing or wrong","status":400,"detail":"1 field is missing or wrong",
"code":"invalid_fields","errors":[{"field":"url","message":"\"h\" does not begin with http:// or https://"}]}`, nil})
		got := run1("", "ratelimit", "test", "gw", "h")
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring(`url: "h" does not begin with http:// or https://`))
	})
})
