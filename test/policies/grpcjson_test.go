package policies_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// booksConfig returns a configuration with additional keys.
func booksConfig(more string) string {
	return fmt.Sprintf(`{"descriptor_set":%q,"services":["shop.Books"]%s}`, base64.StdEncoding.EncodeToString(testkit.BooksSet()), more)
}

func grpcJSON() policy {
	const unknown = "404 Could not resolve "
	return policy{
		kind: "http_filter_grpcjson", filter: "envoy.filters.http.grpc_json_transcoder", given: startBooks,
		config: booksConfig(``),
		changed: booksConfig(`,"auto_mapping":true,"unknown_paths":"pass","unknown_query_parameters":"ignore","convert_grpc_status":false,
			"print_options":{"always_print_primitive_fields":true,"preserve_proto_field_names":true,"stream_newline_delimited":true}`),
		// says is the status with the body, except what the server echoes.
		says: func(a answer) string {
			if a.seen != nil || a.body == "" {
				return fmt.Sprint(a.status)
			}
			return fmt.Sprint(a.status, " ", strings.TrimSpace(a.body))
		},
		requests: []request{
			{
				what: "a call", path: "/shop/books/1", off: "200", on: `200 {"id":"1","title":"Book 1"}`,
				changed: `200 {"id":"1","title":"Book 1","in_stock":false}`, both: `200 {"id":"1","title":"Book 1","in_stock":false}`,
			},
			{
				what: "a call with a body", method: "POST", path: "/shop/books", header: []string{"Content-Type: application/json"}, body: `{"title":"New","inStock":true}`,
				off: "200", on: `200 {"title":"New","inStock":true}`, changed: `200 {"id":"0","title":"New","in_stock":true}`, both: `200 {"id":"0","title":"New","in_stock":true}`,
			},
			{
				what: "a stream", path: "/shop/books?delay_ms=1", off: "200", on: `200 [{"id":"1","title":"Book 1"},{"id":"2","title":"Book 2"}]`,
				changed: `200 {"id":"1","title":"Book 1","in_stock":false}` + "\n" + `{"id":"2","title":"Book 2","in_stock":false}`,
				both:    `200 {"id":"1","title":"Book 1","in_stock":false}` + "\n" + `{"id":"2","title":"Book 2","in_stock":false}`,
			},
			{
				what: "a call that fails", path: "/shop/books/404", asked: true, off: "200", on: `404 {"code":5,"message":"no book has the id 404"}`,
				changed: "404", both: "404",
			},
			{
				what: "a value that does not fit", path: "/shop/books/one", asked: true, off: "200", on: `400 id: invalid value "one" for type TYPE_INT64`,
				changed: `400 id: invalid value "one" for type TYPE_INT64`, both: `400 id: invalid value "one" for type TYPE_INT64`,
			},
			{
				what: "a query parameter that is no field", path: "/shop/books/1?utm=x", off: "200", on: `400 Could not find field "utm" in the type "shop.Query".`,
				changed: `200 {"id":"1","title":"Book 1","in_stock":false}`, both: `200 {"id":"1","title":"Book 1","in_stock":false}`,
			},
			{
				what: "a query parameter with an escaped name", reason: "direct_response", path: "/shop/books/1?%69d=2", off: "200", on: "400 the name of a query parameter is escaped",
				changed: "400 the name of a query parameter is escaped", both: "400 the name of a query parameter is escaped",
			},
			{what: "a query parameter in place of the path", path: "/shop/books/1?id=2", off: "200", on: `200 {"id":"1","title":"Book 1"}`, changed: `200 {"id":"1","title":"Book 1","in_stock":false}`, both: `200 {"id":"1","title":"Book 1","in_stock":false}`},
			{what: "a path that no rule has", path: "/shop/nowhere", off: "200", on: unknown + "/shop/nowhere to a method.", changed: "200", both: "200"},
			{what: "a method that no rule has", method: "DELETE", path: "/shop/books/1", off: "200", on: unknown + "/shop/books/1 to a method.", changed: "200", both: "200"},
			{
				what: "a method of the service without a rule", method: "POST", path: "/shop.Books/CheckBook", header: []string{"Content-Type: application/json"}, body: `{"id":"2"}`,
				off: "200", on: unknown + "/shop.Books/CheckBook to a method.",
				changed: `200 {"id":"2","title":"","in_stock":false}`, both: `200 {"id":"2","title":"","in_stock":false}`,
			},
			{
				what: "a preflight", method: "OPTIONS", path: "/shop/books/1", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: GET"},
				off: "200", on: unknown + "/shop/books/1 to a method.", changed: "200", both: "200",
			},
			{what: "a route without upstreams", path: "/empty", off: "503 this service is not available", on: "503 this service is not available", changed: "503 this service is not available", both: "503 this service is not available"},
			{what: "a redirect", host: "moved.test", path: "/shop/books/1", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/v1/books/1", off: "404 nothing is served for this host and path", on: "404 nothing is served for this host and path", changed: "404 nothing is served for this host and path", both: "404 nothing is served for this host and path"},
		},
		refusals: []refusal{
			{`{"services":["a.B"]}`, "Filter_config.descriptor_set", "is required; make it with protoc --include_imports --descriptor_set_out=FILE, and encode FILE in base64"},
			{`{"descriptor_set":"CgA=","services":[]}`, "Filter_config.services", `is required; name the services that requests call, such as ["shop.Books"]`},
			{`{"descriptor_set":"a-b","services":["a.B"]}`, "Filter_config.descriptor_set", "is not base64: illegal base64 data at input byte 1"},
			{`{"descriptor_set":"CgA=","services":["a.B","a.B"]}`, "Filter_config.services", `names "a.B" twice`},
			{`{"descriptor_set":"CgA=","services":[".a.B"]}`, "Filter_config.services", `".a.B" is not the full name of a service, such as shop.Books`},
			{`{"descriptor_set":"CgA=","services":["a.B"],"unknown_paths":"ignore"}`, "Filter_config.unknown_paths", `"ignore" is not one of reject, pass`},
			{`{"descriptor_set":"CgA=","services":["a.B"],"unknown_query_parameters":"pass"}`, "Filter_config.unknown_query_parameters", `"pass" is not one of reject, ignore`},
			{`{"descriptor_set":"CgA=","services":["a.B"],"max_request_body_size":0}`, "Filter_config.max_request_body_size", "0 is not between 1 and 104857600"},
			{`{"descriptor_set":"CgA=","services":["a.B"],"print":{}}`, "Filter_config", `unknown field "print"`},
		},
	}
}

var _ = Describe("Calls with JSON", func() {
	calling := func(more string) *world {
		GinkgoHelper()
		p := grpcJSON()
		p.config = booksConfig(more)
		w := newWorld(p)
		w.attach(onShop)
		return w
	}

	It("are refused with the fault in the descriptor set, before anything is stored", func() {
		w := newWorld(grpcJSON())
		a, err := w.api.Post(limit(), "/filter/f/config", `Filter_config={"descriptor_set":"CgA=","services":["shop.Books"]}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		a, err = w.api.Post(limit(), "/filter/f/config", "Filter_config="+strings.ReplaceAll(booksConfig(``), "shop.Books", "shop.Shelves"))
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring("descriptor_set has no service shop.Shelves; it has shop.Books"))
		a, err = w.api.Get(limit(), "/filter/f")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Body).To(ContainSubstring("shop.Books"))
	})

	It("keep the route of their path, even if another route has the path of the call", func() {
		w := calling(``)
		w.post("/filter", "Filter_name=nobody", "Filter_type=vh_filter_ipaccess", `Filter_config={"deny":["127.0.0.1"]}`)
		w.post("/service/shop/route", "Route_Name=calls", "Route_prefix=/shop.Books/", `Route_config={"timeouts":{"request":"1s"}}`)
		w.attach("/service/shop/route/calls/filter/nobody")
		Expect(w.send(request{method: "POST", path: "/shop.Books/GetBook"}).status).To(Equal(http.StatusForbidden))
		a := w.send(request{path: "/shop/books/3"})
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.body).To(Equal(`{"id":"3","title":"Book 3"}`))
	})

	It("have messages of up to 4 MiB, or as large as the filter allows", func() {
		w := calling(``)
		large := request{method: "POST", path: "/shop/books", header: []string{"Content-Type: application/json"}, body: `{"title":"` + strings.Repeat("a", 200_000) + `"}`}
		a := w.send(large)
		Expect(a.status).To(Equal(http.StatusOK), "%.100s", a.body)
		Expect(a.body).To(Equal(large.body))
		w.configure(booksConfig(`,"max_request_body_size":1000,"max_response_body_size":100000`))
		Expect(w.send(large).status).To(Equal(http.StatusRequestEntityTooLarge))
		Expect(w.send(request{path: "/shop/books/90000"}).status).To(Equal(http.StatusOK))
		Expect(w.send(request{path: "/shop/books/200000"}).status).To(Equal(http.StatusInternalServerError))
	})

	It("are not possible on a route that rewrites paths, which cannot have such a filter", func() {
		w := calling(``)
		w.post("/service/shop/route", "Route_Name=rewritten", "Route_prefix=/shop/old", `Route_config={"rewrite":{"prefix":"/shop/books"}}`)
		w.post("/service/shop/route/rewritten/upstream/green?wait=applied")
		a := w.send(request{path: "/shop/old/1"})
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.body).To(ContainSubstring(`"Path":"/shop/books/1"`))
		refused, err := w.api.Post(limit(), "/service/shop/route/rewritten/filter/g")
		Expect(err).NotTo(HaveOccurred())
		Expect(refused.Status).To(Equal(http.StatusUnprocessableEntity), refused.Body)
		Expect(refused.Body).To(ContainSubstring("the route has filter g, a http_filter_grpcjson, and rewrites paths in its Route_config"))
	})
})
