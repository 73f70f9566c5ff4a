package policies_test

import (
	"encoding/base64"
	"fmt"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func grpcWeb() policy {
	const path, list = "/shop.Books/GetBook", "/shop.Books/ListBooks"
	binary := []string{"Content-Type: application/grpc-web+proto", "X-Grpc-Web: 1"}
	text := []string{"Content-Type: application/grpc-web-text", "Accept: application/grpc-web-text", "X-Grpc-Web: 1"}
	one, missing := frame(message("Query", `{"id":1}`)), frame(message("Query", `{"id":404}`))
	// same returns a request with the same answer in all cases with the filter.
	same := func(r request, off, on string) request {
		r.off, r.on, r.changed, r.both = off, on, on, on
		return r
	}
	return policy{
		kind: "http_filter_grpcweb", filter: "envoy.filters.http.grpc_web", given: startBooks, config: `{}`, changed: `{}`,
		// says is the status, with the frames of an answer, and the error in its headers.
		says: func(a answer) string {
			kind, body := a.header.Get("Content-Type"), a.body
			if !strings.HasPrefix(kind, "application/grpc-web") {
				return fmt.Sprint(a.status)
			}
			if strings.HasPrefix(kind, "application/grpc-web-text") {
				body = decodeText(body)
			}
			return fmt.Sprint(a.status, " ", kind, " ", strings.Join(readFrames(body), "|"), a.header.Get("Grpc-Status"), a.header.Get("Grpc-Message"))
		},
		requests: []request{
			same(request{what: "a call", method: "POST", path: path, header: binary, body: one}, "200", "200 application/grpc-web+proto Book 1|grpc-status:0"),
			same(request{what: "a call as text", method: "POST", path: path, header: text, body: base64.StdEncoding.EncodeToString([]byte(one))},
				"200", "200 application/grpc-web-text+proto Book 1|grpc-status:0"),
			same(request{what: "a stream", method: "POST", path: list, header: binary, body: frame(message("Query", `{}`))},
				"200", "200 application/grpc-web+proto Book 1|Book 2|grpc-status:0"),
			same(request{what: "a stream as text", method: "POST", path: list, header: text, body: base64.StdEncoding.EncodeToString([]byte(frame(message("Query", `{}`))))},
				"200", "200 application/grpc-web-text+proto Book 1|Book 2|grpc-status:0"),
			same(request{what: "a call that fails", method: "POST", path: path, header: binary, body: missing}, "200", "200 application/grpc-web+proto grpc-message:no book has the id 404,grpc-status:5"),
			same(request{what: "a method that no service has", method: "POST", path: "/shop.Books/Sell", header: binary, body: one},
				"200", "200 application/grpc-web+proto grpc-message:unknown method Sell for service shop.Books,grpc-status:12"),
			same(request{what: "text that is none", reason: "other", method: "POST", path: path, header: text, body: "%%%", asked: true},
				"200", "400 application/grpc-web-text+proto 13the request is malformed%0A"),
			same(request{what: "what is not gRPC-Web"}, "200", "200"),
			same(request{what: "another kind of gRPC-Web", method: "POST", path: path, header: []string{"Content-Type: application/grpc-web+json"}, body: "{}"}, "200", "200"),
			same(request{what: "a preflight", method: "OPTIONS", path: path, header: []string{"Origin: https://a.test", "Access-Control-Request-Method: POST"}}, "200", "200"),
			same(request{what: "a route without upstreams", method: "POST", path: "/empty", header: binary, body: one}, "503", "503"),
			same(request{what: "a redirect", host: "moved.test", method: "POST", path: path, header: binary, body: one}, "308", "308"),
			same(request{what: "a path that no route has", method: "POST", path: "/nowhere", header: binary, body: one}, "404", "404"),
		},
		refusals: []refusal{
			{`{"text":true}`, "Filter_config", `unknown field "text"`},
			{`[]`, "Filter_config", "must be a JSON object"},
		},
	}
}

var _ = Describe("A gRPC-Web page", func() {
	It("of another origin reads the answer and its status, with the recipe of docs/grpcweb.md", func() {
		p := grpcWeb()
		p.given = startCalls
		w := newWorld(p)
		w.post("/filter", "Filter_name=pages", "Filter_type=vh_filter_cors", `Filter_config={"origins":["https://app.test"],"methods":["POST"],`+
			`"headers":["content-type","x-grpc-web","x-user-agent","grpc-timeout","authorization"],"expose":["grpc-status","grpc-message","grpc-status-details-bin"],"max_age":600}`)
		w.attach(onShop, "/service/shop/filter/pages")
		call := p.requests[0]
		call.header = append([]string{"Origin: https://app.test"}, call.header...)

		preflight := w.send(request{method: "OPTIONS", path: call.path, header: []string{
			"Origin: https://app.test", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: content-type,x-grpc-web,x-user-agent",
		}})
		Expect(preflight.status).To(Equal(200))
		Expect(preflight.header.Get("Access-Control-Allow-Origin")).To(Equal("https://app.test"))
		Expect(preflight.header.Get("Access-Control-Allow-Headers")).To(ContainSubstring("x-grpc-web"))

		a := w.send(call)
		Expect(p.tell(a)).To(Equal("200 application/grpc-web+proto Book 1|grpc-status:0,grpc-message:"))
		Expect(a.header.Get("Access-Control-Allow-Origin")).To(Equal("https://app.test"))
		failed := p.requests[4]
		failed.header = call.header
		a = w.send(failed)
		Expect(p.tell(a)).To(Equal("200 application/grpc-web+proto 5no book has the id 404"), "its status is in headers")
		Expect(a.header.Get("Access-Control-Expose-Headers")).To(Equal("grpc-status, grpc-message, grpc-status-details-bin"))
	})

	It("receives what the gateway refuses as an ordinary answer", func() {
		p := grpcWeb()
		w := newWorld(p)
		w.post("/filter", "Filter_name=nobody", "Filter_type=vh_filter_ipaccess", `Filter_config={"deny":["127.0.0.1"]}`)
		w.attach(onShop, "/service/shop/filter/nobody")
		a := w.send(p.requests[0])
		Expect(a.status).To(Equal(403))
		Expect(a.header.Get("Content-Type")).To(HavePrefix("text/plain"))
		Expect(a.header).NotTo(HaveKey("Grpc-Status"))
	})
})
