package rest_test

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("Names in a path", func() {
	const rule = `; a name has 1 to 253 characters of A-Z a-z 0-9 . _ -`
	DescribeTable("are answered with 404 if they do not exist, and the answer says which", func(method, path, detail string) {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*", "/service/shop/route", "Route_Name=root&Route_prefix=/",
			"/proxy", "Name=gw", "/upstream", "Upstream_name=blue&Upstream_ip=10.0.0.1&Upstream_port=80")
		body := ""
		if method == http.MethodPost && strings.HasSuffix(path, "/route") {
			body = "Route_Name=x&Route_prefix=/"
		}
		a.do(method, path, form, strings.NewReader(body)).expectProblem(404, unknown(path, detail))
		Expect(a.revision()).To(Equal(int64(4)))
	},
		Entry(nil, "GET", "/upstream/x", `upstream \"x\" does not exist`),
		Entry(nil, "GET", "/upstream/Blue", `upstream \"Blue\" does not exist`),
		Entry(nil, "DELETE", "/upstream/x", `upstream \"x\" does not exist`),
		Entry(nil, "GET", "/upstream/x/route", `upstream \"x\" does not exist`),
		Entry(nil, "GET", "/service/x", `service \"x\" does not exist`),
		Entry(nil, "DELETE", "/service/x", `service \"x\" does not exist`),
		Entry(nil, "GET", "/service/x/proxy", `service \"x\" does not exist`),
		Entry(nil, "GET", "/service/x/route", `service \"x\" does not exist`),
		Entry(nil, "POST", "/service/x/route", `service \"x\" does not exist`),
		Entry(nil, "GET", "/service/x/route/y", `service \"x\" does not exist`),
		Entry(nil, "GET", "/service/shop/route/y", `route \"y\" of service \"shop\" does not exist`),
		Entry(nil, "DELETE", "/service/x/route/y", `service \"x\" does not exist`),
		Entry(nil, "DELETE", "/service/shop/route/y", `route \"y\" of service \"shop\" does not exist`),
		Entry(nil, "GET", "/service/x/route/y/upstream", `service \"x\" does not exist`),
		Entry(nil, "GET", "/service/shop/route/y/upstream", `route \"y\" of service \"shop\" does not exist`),
		Entry(nil, "POST", "/service/x/route/y/upstream/z", `service \"x\" does not exist`),
		Entry(nil, "POST", "/service/shop/route/y/upstream/z", `route \"y\" of service \"shop\" does not exist`),
		Entry(nil, "POST", "/service/shop/route/root/upstream/z", `upstream \"z\" does not exist`),
		Entry(nil, "DELETE", "/service/x/route/root/upstream/blue", `service \"x\" does not exist`),
		Entry(nil, "DELETE", "/service/shop/route/y/upstream/blue", `route \"y\" of service \"shop\" does not exist`),
		Entry(nil, "DELETE", "/service/shop/route/root/upstream/z", `upstream \"z\" does not exist`),
		Entry(nil, "DELETE", "/service/shop/route/root/upstream/blue", `the link from route \"shop/root\" to upstream \"blue\" does not exist`),
		Entry(nil, "GET", "/proxy/x/service", `proxy \"x\" does not exist`),
		Entry(nil, "GET", "/proxy/x/service/shop", `proxy \"x\" does not exist`),
		Entry(nil, "GET", "/proxy/gw/service/y", `service \"y\" does not exist`),
		Entry(nil, "GET", "/proxy/gw/service/shop", `the link from proxy \"gw\" to service \"shop\" does not exist`),
		Entry(nil, "POST", "/proxy/x/service/shop", `proxy \"x\" does not exist`),
		Entry(nil, "POST", "/proxy/gw/service/y", `service \"y\" does not exist`),
		Entry(nil, "DELETE", "/proxy/gw/service/shop", `the link from proxy \"gw\" to service \"shop\" does not exist`),

		Entry(nil, "GET", "/service/dump", `service \"dump\" does not exist`),
		Entry(nil, "GET", "/service/dumpster/route", `service \"dumpster\" does not exist`),
		Entry(nil, "GET", "/service/du/proxy", `service \"du\" does not exist`),

		Entry("a slash", "GET", "/service/shop%2Froute", `service \"shop/route\" does not exist`+rule),
		Entry("a slash that would address a route", "GET", "/service/shop%2Froute%2Froot", `service \"shop/route/root\" does not exist`+rule),
		Entry("a slash that would address another key", "GET", "/service/shop%2Froot/route/x", `service \"shop/root\" does not exist`+rule),
		Entry(nil, "GET", "/service/shop/route/root%2Fupstream", `route \"root/upstream\" does not exist`+rule),
		Entry(nil, "DELETE", "/upstream/a%2Fb", `upstream \"a/b\" does not exist`+rule),
		Entry(nil, "POST", "/proxy/gw/service/a%2Fb", `service \"a/b\" does not exist`+rule),
		Entry(nil, "POST", "/service/a%2Fb/route", `service \"a/b\" does not exist`+rule),
		Entry("a plus is not a space", "GET", "/upstream/a+b", `upstream \"a+b\" does not exist`+rule),
		Entry("an escaped escape is kept", "GET", "/upstream/bl%2575e", `upstream \"bl%75e\" does not exist`+rule),
		Entry("NUL", "GET", "/upstream/a%00b", `upstream \"a\\x00b\" does not exist`+rule),
		Entry("invalid UTF-8", "GET", "/upstream/a%FFb", `upstream \"a\\xffb\" does not exist`+rule),
		Entry(nil, "GET", "/upstream/%22%27%3Cb%3E", `upstream \"\\\"'<b>\" does not exist`+rule),
		Entry("two dots", "GET", "/upstream/%2E%2E", `upstream \"..\" does not exist`+rule),
	)

	It("are answered with 404 if they are too long, and are shortened there", func() {
		a := startAPI()
		got := a.get("/upstream/" + strings.Repeat("x", 5000))
		Expect(got.status).To(Equal(404))
		Expect(got.body).To(ContainSubstring(`"detail":"upstream \"xxxx`))
	})

	It("are looked up after the body is checked", func() {
		a := startAPI()
		a.post("/service/nope/route", "Route_Name=r").
			expectProblem(400, invalid("/service/nope/route", "Route_prefix", "is required"))
		a.post("/service/no%2Fpe/route", "Route_Name=r").
			expectProblem(400, invalid("/service/no%2Fpe/route", "Route_prefix", "is required"))
	})
})

var _ = Describe("Paths and methods", func() {
	notFound := func(path, detail string) string {
		return `{"type":"urn:gatehouse:problem:not_found","title":"No such path","status":404,"detail":"` + detail +
			`","instance":"` + path + `","code":"not_found"}`
	}
	DescribeTable("are answered with 404 if they are unknown", func(path, more string) {
		a := startAPI()
		a.given("/service", "Service_Name=shop&fqdn=*")
		a.get(path).expectProblem(404, notFound(path, "there is nothing at "+path+more))
	},
		Entry(nil, "/nope", ""),
		Entry(nil, "/Upstream", ""),
		Entry(nil, "/upstream%2Fblue", ""),
		Entry(nil, "/upstream/", "; paths have no slash at the end"),
		Entry(nil, "/service/shop/", "; paths have no slash at the end"),
		Entry(nil, "/service/shop/route/", "; paths have no slash at the end"),
		Entry(nil, "//service", ""),
		Entry(nil, "/service/shop/nope", ""),
	)

	DescribeTable("are answered with 405 if they do not belong together", func(method, path, allow string) {
		a := startAPI()
		got := a.do(method, path, "", nil)
		got.expectProblem(405, `{"type":"urn:gatehouse:problem:method_not_allowed","title":"The method is not allowed here","status":405,`+
			`"detail":"`+method+` is not allowed here; allowed: `+allow+`","instance":"`+path+`","code":"method_not_allowed"}`)
		Expect(got.header.Values("Allow")).To(Equal([]string{allow}))
	},
		Entry(nil, "DELETE", "/upstream", "GET, HEAD, POST"),
		Entry(nil, "OPTIONS", "/upstream", "GET, HEAD, POST"),
		Entry(nil, "BREW", "/upstream", "GET, HEAD, POST"),
		Entry(nil, "POST", "/upstream/blue", "GET, HEAD, PUT, PATCH, DELETE"),
		Entry(nil, "POST", "/service/dump/shop", "GET, HEAD"),
		Entry(nil, "PUT", "/service/s/route/r/upstream/u", "GET, HEAD, POST, DELETE"),
		Entry(nil, "POST", "/proxy/gw/service", "GET, HEAD"),
		Entry(nil, "POST", "/health", "GET, HEAD"),
	)

	It("allow HEAD, whose answer has no body", func() {
		a := startAPI()
		got := a.do(http.MethodHead, "/upstream/x", "", nil)
		Expect(got.status).To(Equal(404))
		Expect(got.header.Get("Content-Type")).To(Equal("application/problem+json"))
		Expect(got.body).To(BeEmpty())
	})

	It("may be as unusual as net/http allows", func() {
		a := startAPI()
		for _, line := range []string{"CONNECT example.com:443", "OPTIONS *", "GET *", "GET http://other/upstream?limit=0", "GET /%"} {
			conn, err := testkit.Bounded(net.Dial("tcp", strings.TrimPrefix(a.url, "http://")))
			Expect(err).NotTo(HaveOccurred())
			_, err = fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", line)
			Expect(err).NotTo(HaveOccurred())
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			Expect(err).NotTo(HaveOccurred())
			Expect(res.StatusCode).To(BeNumerically("<", 500), line)
			Expect(res.Body.Close()).To(Succeed())
			Expect(conn.Close()).To(Succeed())
		}
	})
})

var _ = Describe("Accept", func() {
	const notAcceptable = `{"type":"urn:gatehouse:problem:not_acceptable","title":"No acceptable representation","status":406,` +
		`"detail":"answers are application/json, errors application/problem+json; Accept allows neither","instance":"/service","code":"not_acceptable"}`
	DescribeTable("decides the format", func(accept string, ok bool) {
		a := startAPI()
		got := a.do(http.MethodPost, "/service", form, strings.NewReader("Service_Name=s&fqdn=*"), "Accept", accept)
		if ok {
			got.expectWrite(201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "1")
			return
		}
		got.expectProblem(406, notAcceptable)
		Expect(a.revision()).To(BeZero())
	},
		Entry(nil, "", true),
		Entry(nil, "*/*", true),
		Entry(nil, "application/*;q=0.1", true),
		Entry(nil, "application/json", true),
		Entry(nil, "Application/JSON; charset=utf-8", true),
		Entry(nil, "application/problem+json", true),
		Entry(nil, "text/html, application/xml;q=0.9, */*;q=0.8", true),
		Entry(nil, "text/html, *; q=.2", true),
		Entry(nil, "text/html", false),
		Entry(nil, "text/*, application/xml", false),
		Entry(nil, "application/json;q=0, text/html", false),
		Entry(nil, "*/*, application/json;q=0, application/problem+json;q=0", false),
		Entry(nil, "*/*;q=0", false),
		Entry(nil, "nonsense/", false),
	)
})

var _ = Describe("Health", func() {
	const ok = `{"status":"ok"}`
	notReady := func(reason string) string {
		return `{"type":"urn:gatehouse:problem:unavailable","title":"Temporarily unavailable","status":503,"detail":"not ready: ` + reason +
			`","instance":"/ready","code":"unavailable"}`
	}

	It("is ok while the process runs, and readiness while nothing prevents it", func() {
		a := startAPI()
		a.get("/health?probe=1").expectJSON(200, ok)
		a.get("/ready").expectJSON(200, ok)
		Expect(a.do(http.MethodHead, "/ready", "", nil).status).To(Equal(200))
	})

	It("reports why the process is not ready", func() {
		a := startAPI(func(o *rest.Options) {
			o.Ready = func() error { return errors.New("the first configuration is being built") }
		})
		got := a.get("/ready")
		got.expectProblem(503, notReady("the first configuration is being built"))
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		a.get("/health").expectJSON(200, ok)
	})

	It("reports that the database is unavailable", func() {
		a := startAPIThatFails()
		Expect(a.store.Close()).To(Succeed())
		a.get("/ready").expectProblem(503, notReady("the database does not answer"))
		a.get("/health").expectJSON(200, ok)
	})
})
