package main

import (
	"strconv"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// cartExplained is an answer with everything in it.
const cartExplained = `{"data":{"core_db_explain":[{"basis":"envoys","envoys":["127.0.0.1:40112"],"code":"forwarded","message":"service shop, route cart: POST h/v2 goes to blue+green",
"request":{"method":"POST","host":"h","path":"/cart"},"service":"shop","route":"cart",
"steps":[{"code":"listener","message":"listener http-0.0.0.0:8080 accepts the connection"},{"code":"route","message":"route cart is the first that matches"}],
"hosts":[{"service":"shop","domain":"h","kind":"exact","chosen":true,"message":"is the best match and takes the request"},
{"service":"rest","domain":"*","kind":"any","chosen":false,"message":"matches too, but exact h wins, and no other service is tried"}],
"routes":[{"route":"gold","matches":false,"checks":[{"code":"path_prefix","holds":true,"message":"path \"/cart\" begins with \"/\""},{"code":"header","holds":false,"message":"header x-tier is missing; it must be \"gold\""}]},
{"route":"cart","matches":true,"checks":[{"code":"path_exact","holds":true,"message":"path \"/cart\" is \"/cart\""}]}],
"filters":[{"name":"envoy.filters.http.ratelimit","message":"checks 1 of 2 descriptors in domain 1/edge","from":["/proxy/gw/filter/all","/service/shop/filter/rates"],"descriptors":[
{"sent":true,"message":"method=POST","entries":[{"key":"method","value":"POST"}]},{"sent":false,"message":"is not sent: header x-key is missing","entries":[]}]},
{"name":"envoy.filters.http.router","message":"forwards the request, or answers as the route says"}],
"forward":{"host":"h","path":"/v2","timeout":"none","idle_timeout":"5m0s","retries":{"attempts":2,"on":"connect-failure"},
"clusters":[{"name":"blue+green","weight":1,"policy":"round_robin","health_check":false,"endpoints":[
{"upstream":"blue","address":"10.0.0.1","port":80,"weight":300,"percent":75},{"upstream":"green","address":"10.0.0.2","port":80,"weight":100,"percent":25}]}]},
"envoy":{"listener":"http-0.0.0.0:8080","route_configuration":"gatehouse","virtual_host":"shop","route":"cart","clusters":["blue+green"]}}]}}`

var _ = Describe("gatehouse explain", func() {
	It("shows the path of a request as a tree", func() {
		f := serving("GET /proxy/gw/explain?address=192.0.2.7&header=x-a%3A+1&header=Host%3A+h&method=POST&url=http%3A%2F%2Fa%2Fcart", reply{status: 200, body: cartExplained})
		out := good("explain", "gw", "http://a/cart", "-X", "POST", "-H", "x-a: 1", "-H", "Host: h", "--address", "192.0.2.7", "-o", "table", "--all")
		Expect(f.calls).To(HaveLen(1))
		Expect(out).To(Equal(`service shop, route cart: POST h/v2 goes to blue+green (forwarded)
from: 1 Envoy: 127.0.0.1:40112
steps:
  listener http-0.0.0.0:8080 accepts the connection
  route cart is the first that matches
hosts:
  + h: service shop is the best match and takes the request
  - *: service rest matches too, but exact h wins, and no other service is tried
routes:
  - gold
      + path "/cart" begins with "/"
      - header x-tier is missing; it must be "gold"
  + cart
      + path "/cart" is "/cart"
filters:
  envoy.filters.http.ratelimit checks 1 of 2 descriptors in domain 1/edge (/proxy/gw/filter/all, /service/shop/filter/rates)
      + method=POST
      - is not sent: header x-key is missing
  envoy.filters.http.router forwards the request, or answers as the route says
upstream sees: POST /v2, Host: h
upstreams:
   75.0%  blue 10.0.0.1:80 (cluster blue+green)
   25.0%  green 10.0.0.2:80 (cluster blue+green)
timeouts: request none, idle 5m0s; retries: 2 on connect-failure
envoy: listener "http-0.0.0.0:8080", route configuration "gatehouse", virtual host "shop", route "cart", clusters ["blue+green"]
`))
	})

	It("reports immediately which filters the server does not know", func() {
		body := strings.Replace(cartExplained, `"forward":{"host"`, `"unknown_filters":["a","b"],"forward":{"host"`, 1)
		for _, more := range [][]string{nil, {"--all"}} {
			serving("GET /proxy/gw/explain?url=http%3A%2F%2Fa%2F", reply{status: 200, body: body})
			out := good(append([]string{"explain", "gw", "http://a/", "-o", "table"}, more...)...)
			Expect(strings.Split(out, "\n")[1]).To(Equal("not known: filter a, b; the answer may be different"))
		}
	})

	It("shows the certificates for an https URL", func() {
		body := strings.Replace(cartExplained, `"service":"shop"`, `"tls":{"server_name":"h","min_version":"1.2","max_version":"1.3","alpn":["h2","http/1.1"],
"certificates":[{"secret":"h-2026","service":"shop","kind":"exact","names":["h","www.h"],"key_type":"ECDSA","not_after":"2027-02-03T04:05:06Z","fingerprint":"00","message":"answers"}],
"other_certificates":[{"secret":"all","kind":"wildcard","names":["*.h"],"key_type":"RSA","not_after":"2026-12-24T00:00:00Z","fingerprint":"01","message":"loses"}]},"service":"shop"`, 1)
		body = strings.Replace(body, `"envoy":{"listener":"http-0.0.0.0:8080"`, `"envoy":{"listener":"https-0.0.0.0:8443","filter_chain":"any"`, 1)
		body = strings.Replace(body, `{"code":"route","message"`, `{"code":"tls","message":"with TLS"},{"code":"certificate","message":"the certificate of secret h-2026 answers"},`+
			`{"code":"certificate","message":"all loses"},{"code":"client_certificate","message":"the client has to show one"},{"code":"route","message"`, 1)
		path := "GET /proxy/gw/explain?url=https%3A%2F%2Fh%2Fcart"
		serving(path, reply{status: 200, body: body})
		out := good("explain", "gw", "https://h/cart", "-o", "table", "--all")
		Expect(out).To(ContainSubstring("\ncertificates:\n  + secret h-2026 (ECDSA, ends 2027-02-03): h, www.h\n  - secret all (RSA, ends 2026-12-24): *.h\nhosts:\n"))
		Expect(out).To(ContainSubstring(`envoy: listener "https-0.0.0.0:8443", filter chain "any", route configuration`))
		serving(path, reply{status: 200, body: body})
		lines := strings.Split(good("explain", "gw", "https://h/cart", "-o", "table"), "\n")
		Expect(lines[2:5]).To(Equal([]string{"  the certificate of secret h-2026 answers", "  the client has to show one", "host: h of service shop, before 1 other that matches"}))
	})

	It("says where a certificate comes from, and what is wrong with it", func() {
		path := "GET /proxy/gw/explain?url=https%3A%2F%2Fh%2Fcart"
		certificate := func(more string) string {
			return strings.Replace(cartExplained, `"service":"shop"`, `"tls":{"server_name":"h","min_version":"1.2","max_version":"1.3","alpn":["h2"],`+
				`"certificates":[{"secret":"automatic:h","service":"shop","kind":"exact","names":["h"],"key_type":"ECDSA","not_after":"2027-02-03T04:05:06Z",`+
				`"fingerprint":"00","message":"answers",`+more+`}]},"service":"shop"`, 1)
		}
		for more, want := range map[string]string{
			`"source":"secret","days_left":60`: "written as a secret, 60 days left",
			`"source":"file","days_left":-1`:   "from the directory of certificates, -1 days left",
			`"source":"automatic","host":"h","days_left":1,"error":"caa: no","advice":"change it"`: "ordered by the gateway for h, 1 day left; " +
				"the last attempt failed: caa: no -> change it",
			`"source":"placeholder","host":"h","days_left":2`: "signed by the gateway itself until there is one for h, 2 days left",
		} {
			serving(path, reply{status: 200, body: certificate(more)})
			Expect(good("explain", "gw", "https://h/cart", "-o", "table")).To(ContainSubstring("\n  it is " + want + "\n"))
			serving(path, reply{status: 200, body: certificate(more)})
			Expect(good("explain", "gw", "https://h/cart", "-o", "table", "--all")).To(ContainSubstring("\n    " + want + "\n"))
		}
	})

	Describe("an answer longer than a screen", func() {
		const path = "GET /proxy/gw/explain?url=http%3A%2F%2Fh%2Fx"
		// long has n of everything.
		long := func(n int) string {
			many := func(format string) string {
				list := make([]string, n)
				for i := range list {
					list[i] = strings.ReplaceAll(format, "#", strconv.Itoa(i))
				}
				return strings.Join(list, ",")
			}
			return `{"data":{"core_db_explain":[{"basis":"envoys","envoys":["127.0.0.1:40112"],"code":"forwarded","message":"it goes to blue","status":200,
"request":{"method":"GET","host":"h","path":"/x"},"service":"shop","route":"cart",
"steps":[{"code":"listener","message":"listener a accepts the connection"},` + many(`{"code":"path","message":"path # is read"}`) + `],
"hosts":[` + many(`{"service":"s#","domain":"d#","kind":"exact","chosen":false,"message":"matches too"}`) + `],
"routes":[` + many(`{"route":"r#","matches":false,"checks":[{"code":"header","holds":false,"message":"no x-#"}]}`) + `,
{"route":"cart","matches":true,"checks":[{"code":"path_prefix","holds":true,"message":"path begins"}]}],
"later_routes":[` + many(`{"route":"l#","matches":true,"message":"would match, but comes later","checks":[]}`) + `],"more_routes":7,
"filters":[{"name":"limits","message":"asks","descriptors":[` + many(`{"sent":true,"message":"key#","entries":[]}`) + `]}],
"forward":{"host":"h","path":"/x","timeout":"none","idle_timeout":"5m0s","clusters":[{"name":"blue","endpoints":[` +
				many(`{"upstream":"u#","address":"10.0.0.1","port":8#,"percent":1}`) + `]}]},"envoy":{"listener":"a"}}]}}`
		}

		It("is cut to what matters", func() {
			serving(path, reply{status: 200, body: long(40)})
			out := good("explain", "gw", "http://h/x", "-o", "table")
			Expect(out).To(Equal(`it goes to blue (forwarded)
from: 1 Envoy: 127.0.0.1:40112
answer: 200
  path 0 is read
  path 1 is read
host: d0 of service s0, before 39 others that match
routes:
  38 others before
  - r38: no x-38
  - r39: no x-39
  + cart: path begins
    l0 would match, but comes later
    l1 would match, but comes later
    45 others behind it
rate limit: key0
rate limit: key1
upstream sees: GET /x, Host: h
upstreams:
    1.0%  u0 10.0.0.1:80 (cluster blue)
    1.0%  u1 10.0.0.1:81 (cluster blue)
    1.0%  u2 10.0.0.1:82 (cluster blue)
  and 37 more
timeouts: request none, idle 5m0s; retries: none
(24 of 297 lines; --all shows everything)
`))
			Expect(strings.Count(out, "\n")).To(Equal(24))
		})

		It("is shown in full on request", func() {
			serving(path, reply{status: 200, body: long(40)})
			out := good("explain", "gw", "http://h/x", "-o", "table", "--all")
			Expect(strings.Count(out, "\n")).To(Equal(297))
			Expect(out).To(ContainSubstring("  and 7 more\n"))
			Expect(good("explain", "gw", "http://h/x", "-o", "json")).To(ContainSubstring(`"message": "path 39 is read"`))
		})

		It("has a few lines for each of several answers", func() {
			one := `{"envoys":["127.0.0.1:1"],"code":"no_host","message":"` + strings.Repeat("long ", 100) + `","status":404}`
			serving(path, reply{status: 200, body: `{"data":{"core_db_explain":[` + one + strings.Repeat(","+one, 20) + `]}}`})
			out := good("explain", "gw", "http://h/x", "-o", "table")
			lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
			Expect(lines).To(HaveLen(17))
			Expect([]rune(lines[0])).To(HaveLen(240))
			Expect(lines[15]).To(Equal("and 16 groups of Envoys in other states"))
		})
	})

	It("prints the answers as data", func() {
		serving("GET /proxy/gw/explain?url=http%3A%2F%2Fh%2F", reply{status: 200, body: `{"data":{"other_explain":[{"code":"no_host","status":404}]}}`})
		Expect(good("explain", "gw", "http://h/", "-o", "json")).To(Equal(`[
  {
    "code": "no_host",
    "status": 404
  }
]
`))
	})

	It("reports why the server refuses", func() {
		serving("GET /proxy/gw/explain?url=h", reply{status: 400, body: `{"title":"Fields are missing or wrong","status":400,"detail":"1 field is missing or wrong",
"code":"invalid_fields","errors":[{"field":"url","message":"\"h\" does not begin with http:// or https://"}]}`})
		got := run1("", "explain", "gw", "h")
		Expect(got.code).To(Equal(1))
		Expect(got.stderr).To(ContainSubstring(`url: "h" does not begin with http:// or https://`))
	})
})
