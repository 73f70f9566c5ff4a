package attack_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// callTry is a request to a service that allows requests below /v1/books/1, and converts them to calls.
type callTry struct {
	method, target, body string
	headers              []string
	// status is that of the answer, says a part of its body; empty means any.
	status int
	says   string
}

func callTries() []callTry {
	const one = `{"id":"1","title":"Book 1"}`
	deep := strings.Repeat(`{"a":`, 10_000)
	return []callTry{
		{target: "/v1/books/1", status: 200, says: one},
		// Another call, or another book.
		{target: "/v1/books/2", status: 403},
		{target: "/v1/books/1?id=2", status: 200, says: one},
		{target: "/v1/books/1?id=1&id=2", status: 200, says: one},
		{method: "PUT", target: "/v1/books/1?id=2", body: `{"title":"x"}`, status: 200, says: `{"id":"1","title":"x"}`},
		{target: "/v1/books/1?%69d=2", status: 400},
		{target: "/v1/books/1?delay_ms=1&i%64=2", status: 400},
		{target: "/v1/books/1?x=%69d&delay_ms=1", status: 400},
		{target: "/v1/books/1?delay_ms=%31&=&%69d", status: 200, says: one},
		{target: "/v1/books/1?ID=2", status: 400},
		{target: "/v1/books/1?id%00=2", status: 400},
		{target: "/v1/books/1?+id=2", status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"id":"2","title":"x"}`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"title":"x","id":2}`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"id":"1","title":"x"}`, status: 200, says: `{"id":"1","title":"x"}`},
		{method: "PUT", target: "/v1/books/1", body: `{"title":"x"}`, status: 200, says: `{"id":"1","title":"x"}`},
		{method: "PATCH", target: "/v1/books/1/7", body: `{"title":"x"}`, status: 200, says: `{"book":{"id":"7","title":"x"}}`},
		{method: "PATCH", target: "/v1/books/1/7", body: `{"id":"8","title":"x"}`, status: 400},
		{method: "PATCH", target: "/v1/books/1/7?book.id=8", body: `{"title":"x"}`, status: 200, says: `{"book":{"id":"7","title":"x"}}`},
		{target: "/v1/books/1/../2", status: 403},
		{target: "/v1/books/1%2f..%2f2", status: 307},
		{target: "/v1/books/1/", status: 200, says: one},
		{target: "/v1/books/1//", status: 200, says: one},
		{target: "/v1/books/1/2/3", status: 404},
		{target: "/v1/books/1:sell", status: 403},
		{target: "/shop/books/1", status: 403},
		{method: "POST", target: "/shop.Books/GetBook", body: "{}", status: 403},
		{target: "/v1/books/1", headers: []string{"X-Envoy-Original-Path: /shop.Books/AddBook", "X-Envoy-Original-Method: POST"}, status: 200, says: one},
		{method: "POST", target: "/v1/books/1", headers: []string{"X-HTTP-Method-Override: GET"}, status: 404},
		{method: "POST", target: "/v1/books/1", headers: []string{"Content-Type: application/grpc-web"}, body: "\x00\x00\x00\x00\x00", status: 404},
		// What docs/grpcjson.md says about bodies.
		{method: "PUT", target: "/v1/books/1", body: `{"id":"1","id":"2"}`, status: 200, says: `{"id":"2"}`},
		// Invalid JSON, or more than one value.
		{method: "PUT", target: "/v1/books/1", body: deep, status: 400},
		{method: "PUT", target: "/v1/books/1", body: strings.Repeat("[", 10_000), status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"title":"\ud800"}`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: "{\"title\":\"\xff\"}", status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"title":`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: `[{"title":"x"}]`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"title":"x"}{"title":"y"}`, status: 400},
		{method: "PUT", target: "/v1/books/1", body: `{"isbn":1}`, status: 200, says: `{"id":"1"}`},
		{target: "/v1/books/1?delay_ms=99999999999", status: 400},
		{target: "/v1/books/1?delay_ms.x=1", status: 400},
	}
}

var _ = Describe("A request that tries to become another call", func() {
	It("gets what its path addresses, or nothing", func(ctx SpecContext) {
		b, err := testkit.StartBooks()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(b.Close)
		gw.add(ctx, "/upstream", "Upstream_name=books", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", b.Port))
		gw.add(ctx, "/filter", "Filter_name=calls", "Filter_type=http_filter_grpcjson", fmt.Sprintf(
			`Filter_config={"descriptor_set":%q,"services":["shop.Books"]}`, base64.StdEncoding.EncodeToString(testkit.BooksSet())))
		gw.add(ctx, "/filter", "Filter_name=one", "Filter_type=vh_filter_rbac", `Filter_config={"allow":[{"paths":[{"segment":"/v1/books/1"}]}]}`)
		gw.add(ctx, "/service", "Service_Name=books", "fqdn=books.test")
		gw.add(ctx, "/service/books/route", "Route_Name=root", "Route_prefix=/")
		for _, link := range []string{"/service/books/route/root/upstream/books", "/service/books/filter/calls", "/service/books/filter/one", "/proxy/gw/service/books?wait=applied"} {
			gw.link(ctx, link)
		}
		for _, t := range some(60, callTries()) {
			if t.method == "" {
				t.method = "GET"
			}
			a := gw.raw(ctx, append([]string{t.method + " " + t.target + " HTTP/1.1", "Host: books.test", fmt.Sprint("Content-Length: ", len(t.body))},
				append(t.headers, "", t.body)...)...)
			about := fmt.Sprintf("%s %s %.100s %q: %.200s", t.method, t.target, t.body, t.headers, a.Body)
			Expect(a.Status).To(Equal(t.status), "%s", about)
			if t.says != "" {
				Expect(a.Body).To(Equal(t.says), "%s", about)
			}
		}
	}, SpecTimeout(2*time.Minute))
})
