package main

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("status", func() {
	const all = `{"replica":"one:1323","revision":9,"built_revision":9,"proxies":[{"proxy":"alone","envoys":[]},{"proxy":"gw","envoys":[` +
		`{"address":"10.1.0.1:4000","version":"1.39.3","connected_ts":"T","applied_revision":9,"state":"current","waiting":[],"refused":[],"types":[]},` +
		`{"address":"10.1.0.2:4000","version":"1.39.3","connected_ts":"T","applied_revision":5,"state":"refused",` +
		`"waiting":[{"object":"/service/late","for":[{"cluster":"a+b","objects":["/upstream/a","/upstream/b"]}],"since":"T1","until":"T2"}],` +
		`"refused":[{"objects":["/service/shop"],"message":"bad \u001b regex","type":"route","resource":"shop","revision":7,"at":"T3"}],"types":[]}]}],` +
		`"waiting_nodes":[{"node":"edge","address":"10.1.0.3:4000","version":"1.39.3","connected_ts":"T","create":"POST /proxy with Name=edge"}],` +
		`"rate_limits":"limits.example:18001","ratelimit_engines":[{"address":"10.1.0.9:4000","connected_ts":"T","state":"current"},` +
		`{"address":"10.1.0.9:4001","connected_ts":"T","state":"refused","refused":{"revision":9,"at":"T3","resources":1,"message":"no such unit"}}],` +
		`"conditions":[{"path":"/service/shop/route/root","code":"NoUpstream","message":"the route has no upstream"}]}`

	It("shows the Envoys and what is not live", func() {
		serving("GET /status", reply{200, `{"data":{"core_db_status":[` + all + `]}}`, nil})
		Expect(good("status", "-o", "table")).To(Equal(`one:1323: revision 9 is stored, Envoys get revision 9
rate limits: limits.example:18001

PROXY  ENVOY          VERSION  APPLIED  BEHIND  STATE
alone                                           no Envoy is connected
gw     10.1.0.1:4000  1.39.3   9        0       current
gw     10.1.0.2:4000  1.39.3   5        4       refused
edge   10.1.0.3:4000  1.39.3                    there is no such proxy; to create it: POST /proxy with Name=edge

RATE-LIMIT ENGINE  STATE    BECAUSE
10.1.0.9:4000      current
10.1.0.9:4001      refused  no such unit

REFUSED        BY             IN ENVOY'S WORDS
/service/shop  10.1.0.2:4000  bad \u001b regex

WAITING        ENVOY          FOR                      UNTIL
/service/late  10.1.0.2:4000  /upstream/a /upstream/b  T2

NOT LIVE AS WRITTEN       WHY
/service/shop/route/root  NoUpstream  the route has no upstream
`))
		Expect(good("status")).To(MatchJSON(all))
	})

	It("shows the proven identity of each Envoy, and the name that it says", func() {
		serving("GET /status", reply{200, `{"data":{"core_db_status":[{"replica":"one:1323","revision":1,"built_revision":1,"conditions":[],"proxies":[{"proxy":"gw","envoys":[` +
			`{"address":"10.1.0.1:4000","version":"1.39.3","connected_ts":"T","identity":"token laptop","applied_revision":1,"state":"current"},` +
			`{"address":"10.1.0.2:4000","version":"1.39.3","connected_ts":"T","instance":"host-7","applied_revision":1,"state":"current"}]}],` +
			`"waiting_nodes":[{"node":"edge","address":"10.1.0.3:4000","version":"1.39.3","connected_ts":"T","identity":"token edge","create":"POST /proxy"}]}]}}`, nil})
		Expect(good("status", "-o", "table")).To(Equal(`one:1323: revision 1 is stored, Envoys get revision 1

PROXY  ENVOY          VERSION  APPLIED  BEHIND  STATE                                              IDENTITY      INSTANCE
gw     10.1.0.1:4000  1.39.3   1        0       current                                            token laptop
gw     10.1.0.2:4000  1.39.3   1        0       current                                                          host-7
edge   10.1.0.3:4000  1.39.3                    there is no such proxy; to create it: POST /proxy  token edge
`))
	})

	It("shows one proxy, and no empty sections", func() {
		serving("GET /proxy/gw/status", reply{200, `{"data":{"other_word_status":[{"replica":"one:1323","revision":2,"built_revision":1,"proxies":[],"waiting_nodes":[],"conditions":[]}]}}`, nil})
		Expect(good("status", "gw", "-o", "table")).To(Equal("one:1323: revision 2 is stored, Envoys get revision 1\n"))
		Expect(good("status", "gw", "-o", "yaml")).To(HavePrefix("built_revision: 1\n"))
		Expect(run1("", "status", "nope")).To(Equal(result{1, "", "gatehouse: GET /proxy/nope/status: no such path (404 not_found)\n"}))
	})

	It("shows the upstreams that fail", func() {
		serving("GET /status", reply{200, `{"data":{"core_db_status":[{"replica":"one:1323","revision":1,"built_revision":1,"proxies":[],"waiting_nodes":[],"conditions":[],
"upstreams":[{"object":"/upstream/blue","proxy":"gw","cluster":"blue+green","address":"127.0.0.1:9","health":"failing","health_reason":"connection_refused","health_message":"connection refused","envoys":[]},
{"proxy":"gw","cluster":"long+1f","address":"127.0.0.1:10","health":"unhealthy","health_message":"no","envoys":[]}],"more_upstreams":3}]}}`, nil})
		Expect(good("status", "-o", "table")).To(Equal(`one:1323: revision 1 is stored, Envoys get revision 1

UPSTREAM            ADDRESS       PROXY  IS         BECAUSE
/upstream/blue      127.0.0.1:9   gw     failing    connection refused
in cluster long+1f  127.0.0.1:10  gw     unhealthy  no
and 3 more
`))
	})

	It("is shown below the fields of an object", func() {
		f := serving("GET /service/shop", reply{200, `{"data":{"core_db_service":[{"service_name":"shop","fqdn":"x","status":{"conditions":[` +
			`{"code":"Accepted","status":false,"message":"no logins"},{"code":"Quarantined","status":true,"message":"no logins","path":"/service/shop/filter/login"}],` +
			`"lagging":[{"proxy":"gw","reason":"not_connected","message":"no Envoy"}]}}]}}`, nil})
		for _, kind := range []string{"route", "filter", "secret", "proxy"} {
			f.answers["GET /service/shop/"+kind+"?limit=21"] = reply{200, `{"data":{"core_db_x":[]}}`, nil}
		}
		Expect(good("get", "service", "shop", "-o", "table")).To(Equal(`service_name         shop
fqdn                 x
routes
attached to proxies
filters
secrets

CONDITION    HOLDS  MESSAGE
Accepted     no     no logins
Quarantined  yes    no logins (/service/shop/filter/login)

PROXY  ENVOY  LAGS           BECAUSE
gw            not_connected  no Envoy
`))
	})
})
