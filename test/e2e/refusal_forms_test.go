package e2e_test

import (
	"encoding/json"
	"net/http"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A refusal, by the Accept of the client,", Ordered, ContinueOnFailure, func() {
	const (
		chrome = "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"
		axios  = "Accept: application/json, text/plain, */*"
	)
	var (
		g  *testkit.Gatehouse
		gw gateway
	)

	BeforeAll(func() {
		g, gw, _ = shop("--access-log", "json")
		post(gw.api, "/upstream", "Upstream_name=dead", "Upstream_ip=127.0.0.1", "Upstream_port=1")
		for name, filter := range map[string]string{
			"ids":    `"http_filter_requestid","Filter_config":{"take_over":true,"echo":true}`,
			"fixed":  `"route_filter_directresponse","Filter_config":{"status":503,"body":"mine\n"}`,
			"users":  `"http_filter_basicauth","Filter_config":{"users":[{"name":"a","password":"correct-horse-battery"}]}`,
			"nobody": `"vh_filter_ipaccess","Filter_config":{"deny":["127.0.0.0/8"]}`,
			"rate":   `"route_filter_ratelimit","Filter_config":{"per":"all","limit":"1/hour"}`,
			"closed": `"vh_filter_maintenance","Filter_config":{"retry_after":60}`,
			"words":  `"vh_filter_maintenance","Filter_config":{"body":"back at <b>ten</b>\n"}`,
		} {
			a, err := gw.api.Do(limit(), http.MethodPost, "/filter", "application/json", `{"Filter_name":"`+name+`","Filter_type":`+filter+`}`)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		}
		for _, name := range []string{"own", "users", "nobody", "closed", "words"} {
			post(gw.api, "/service", "Service_Name="+name, "fqdn="+name+".test")
			addRoute(gw.api, name, "root", "/", "", "blue")
			post(gw.api, "/service/"+name+"/filter/ids")
			if name != "own" {
				post(gw.api, "/service/"+name+"/filter/"+name)
			}
		}
		addRoute(gw.api, "own", "empty", "/empty", "")
		addRoute(gw.api, "own", "dead", "/dead", "", "dead")
		addRoute(gw.api, "own", "fixed", "/fixed", "")
		post(gw.api, "/service/own/route/fixed/filter/fixed")
		addRoute(gw.api, "own", "limited", "/limited", "", "blue")
		post(gw.api, "/service/own/route/limited/filter/rate")
		for _, name := range []string{"users", "nobody", "closed", "words", "own"} {
			post(gw.api, "/proxy/gw/service/"+name+"?wait=applied")
		}
		remove(gw.api, "/proxy/gw/service/shop?wait=applied") // the service for all hosts
		gw.expect("own.test", "/limited", "blue")
	})

	page := func(status, text, id string) string {
		return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Error ` + status + `</title>
</head>
<body>
<h1>Error ` + status + `</h1>
<p>` + text + `</p>
<p>Request ID: <code>` + id + `</code></p>
</body>
</html>
`
	}

	DescribeTable("has one of three forms", func(host, target string, status int, text string, headers map[string]string) {
		ask := func(accept string) reply {
			GinkgoHelper()
			a := gw.get(host, target, accept, "X-Request-Id: order-17")
			Expect(a.Status).To(Equal(status), a.Body)
			for name, value := range headers {
				Expect(a.Header.Values(name)).To(Equal([]string{value}), "%s of %s", name, accept)
			}
			return a
		}
		a := ask("Accept: */*")
		Expect(a.Body).To(Equal(text + "\n"))
		Expect(a.Header.Get("Content-Type")).To(Equal("text/plain"))
		a = ask(chrome)
		Expect(a.Body).To(ContainSubstring("<p>" + text + "</p>\n"))
		Expect(a.Header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"))
		Expect(a.Header.Get("Cache-Control")).To(Equal("no-store"))
		Expect(a.Header.Get("Content-Security-Policy")).To(Equal("default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"))
		Expect(a.Header.Get("X-Content-Type-Options")).To(Equal("nosniff"))
		Expect(a.Header.Get("Referrer-Policy")).To(Equal("no-referrer"))
		a = ask(axios)
		var problem map[string]any
		Expect(json.Unmarshal([]byte(a.Body), &problem)).To(Succeed(), a.Body)
		Expect(problem).To(And(HaveKeyWithValue("title", text), HaveKeyWithValue("status", float64(status)), HaveKey("request_id"), HaveLen(3)))
		Expect(a.Header.Get("Content-Type")).To(Equal("application/problem+json"))
		Expect(a.Header.Get("Cache-Control")).To(Equal("no-store"))
	},
		Entry("for an unknown host", "other.test", "/", 404, "nothing is served for this host and path", nil),
		Entry("of a route without upstreams", "own.test", "/empty", 503, "this service is not available", nil),
		Entry("where nothing listens", "own.test", "/dead", 503, "the service is not available at the moment", nil),
		Entry("of a limit", "own.test", "/limited", 429, "the limit for this route is reached", nil),
		Entry("of a password", "users.test", "/", 401, "a valid user name and password are required",
			map[string]string{"WWW-Authenticate": `Basic realm="gateway", charset="UTF-8"`}),
		Entry("of an address", "nobody.test", "/", 403, "requests from this address are not allowed here", nil),
		Entry("of maintenance", "closed.test", "/", 503, "this service is closed for maintenance", map[string]string{"Retry-After": "60"}),
		Entry("of a Host that is not one", "a b", "/", 400, "the Host must be one host name or address, optionally with a port", nil),
	)

	DescribeTable("has the form for", func(contentType string, header ...string) {
		Expect(gw.get("users.test", "/", header...).Header.Get("Content-Type")).To(Equal(contentType))
	},
		Entry("Chrome", "text/html; charset=utf-8", chrome),
		Entry("fetch of a program for JSON problems", "application/problem+json", "Accept: application/problem+json"),
		Entry("axios", "application/problem+json", axios),
		Entry("curl", "text/plain", "Accept: */*"),
		Entry("a client that says nothing", "text/plain"),
		Entry("a client of another type of JSON", "text/plain", "Accept: application/geo+json"),
		Entry("both, in two lines", "text/html; charset=utf-8", "Accept: application/json", "Accept: text/html"),
		Entry("gRPC", "application/grpc", "Content-Type: application/grpc"),
		Entry("gRPC that accepts pages", "application/grpc", "Content-Type: application/grpc+proto", chrome),
		Entry("gRPC that accepts JSON", "application/grpc", "Content-Type: application/grpc", axios),
	)

	It("is a line of text for gRPC, whatever it accepts", func() {
		for _, accept := range []string{"Accept: */*", chrome, axios} {
			a := gw.get("own.test", "/dead", "Content-Type: application/grpc", accept)
			Expect(a.Header.Get("Grpc-Message")).To(Equal("the service is not available at the moment%0A"), accept)
		}
		Expect(gw.get("closed.test", "/", "Content-Type: application/grpc", chrome).Header.Get("Grpc-Message")).To(Equal("closed for maintenance"))
	})

	It("is a small page with the request ID", func() {
		Expect(gw.get("users.test", "/", chrome, "X-Request-Id: order-17").Body).To(Equal(
			page("401", "a valid user name and password are required", "order-17")))
	})

	It("leads to the line in the log", func() {
		var problem map[string]any
		Expect(json.Unmarshal([]byte(gw.get("other.test", "/json", axios).Body), &problem)).To(Succeed())
		_, fields := lineOf(g, "/json")
		Expect(fields["request_id"]).To(Equal(problem["request_id"]))
		body := gw.get("other.test", "/page", chrome).Body
		_, fields = lineOf(g, "/page")
		Expect(body).To(Equal(page("404", "nothing is served for this host and path", fields["request_id"].(string))))
	})

	DescribeTable("contains no markup of a client", func(id, shown string) {
		a := gw.get("users.test", "/", chrome, "X-Request-Id: "+id)
		Expect(a.Body).To(Equal(page("401", "a valid user name and password are required", "none")))
		a = gw.get("users.test", "/", axios, "X-Request-Id: "+id)
		var problem map[string]any
		Expect(json.Unmarshal([]byte(a.Body), &problem)).To(Succeed(), a.Body)
		Expect(problem).To(HaveKeyWithValue("request_id", shown))
	},
		Entry("script", "<script>alert(1)</script>", "<script>alert(1)</script>"),
		Entry("quotes", `"><b>'\`, `"><b>'\`),
		Entry("an entity", "&lt;b&gt;", "&lt;b&gt;"),
		Entry("a command of Envoy", "%REQ(COOKIE)%", "%REQ(COOKIE)%"),
		Entry("bytes that are not UTF-8", "\xff\xfe", "ÿþ"),
	)

	It("stays as an operator wrote it", func() {
		for _, accept := range []string{"Accept: */*", chrome, axios} {
			a := gw.get("own.test", "/fixed", accept)
			Expect(a.Body).To(Equal("mine\n"), accept)
			Expect(a.Header.Get("Content-Type")).To(Equal("text/plain"), accept)
			a = gw.get("words.test", "/", accept)
			Expect(a.Body).To(Equal("back at <b>ten</b>\n"), accept)
			Expect(a.Header.Get("Content-Type")).To(Equal("text/plain"), accept)
		}
	})

	It("is a page of the operator's own, whose values are not markup", func() {
		config := `{"globalconfig_name":"page","globalconfig_type":"globalconfig_refusals","config":{"html":"<b>100% {status}</b> %REQ(COOKIE)% {x} {title} {request_id}"}}`
		a, err := gw.api.Do(limit(), http.MethodPost, "/globalconfig?wait=applied", "application/json", config)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
		body := func(id string) func() string {
			return func() string { return gw.get("users.test", "/", chrome, "Cookie: a=b", "X-Request-Id: "+id).Body }
		}
		Eventually(body("order-17")).Should(Equal("<b>100% 401</b> %REQ(COOKIE)% {x} a valid user name and password are required order-17"))
		Expect(body("<i>")()).To(HaveSuffix(" required none"))
		Expect(gw.get("users.test", "/", chrome).Header.Get("Content-Security-Policy")).To(HavePrefix("default-src 'none'; style-src 'unsafe-inline'; "))
		Expect(gw.get("users.test", "/").Body).To(Equal("a valid user name and password are required\n"))
		remove(gw.api, "/globalconfig/page?wait=applied")
		Eventually(body("order-17")).Should(Equal(page("401", "a valid user name and password are required", "order-17")))
	})

	It("has no body for HEAD", func() {
		for _, accept := range []string{"Accept: */*", chrome, axios} {
			a, err := gw.send(http.MethodHead, "users.test", "/", accept)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusUnauthorized), accept)
			Expect(a.Body).To(BeEmpty(), accept)
		}
	})
})
