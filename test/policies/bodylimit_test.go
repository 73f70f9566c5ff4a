package policies_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func bodyLimit() policy {
	const preflight = "Access-Control-Request-Method: PUT"
	ten, fifty := strings.Repeat("a", 10), strings.Repeat("a", 50)
	return policy{
		kind: "route_filter_bodylimit", filter: "envoy.filters.http.buffer", denies: 413, twins: true,
		config:  `{"bytes":10}`,
		changed: `{"bytes":100,"decompress":true}`,
		requests: []request{
			{what: "a body", method: "POST", body: fifty, off: "200", on: "413", changed: "200", both: "200"},
			{what: "a body that is just as long", method: "POST", body: ten, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a large body", method: "PUT", body: fifty + fifty + "a", off: "200", on: "413", changed: "413", both: "413"},
			{what: "a body of a GET", body: fifty, off: "200", on: "413", changed: "200", both: "200"},
			{what: "none", off: "200", on: "200", changed: "200", both: "200"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", preflight}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a body for a route without upstreams", method: "POST", path: "/empty", body: fifty, off: "503", on: "413", changed: "503", both: "413"},
			{what: "a redirect", host: "moved.test", method: "POST", body: fifty, off: "308", on: "308", changed: "308", both: "308"},
			{what: "a path that no route has", path: "/nowhere", method: "POST", body: fifty, off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.bytes", "0 is not between 1 and 104857600"},
			{`{"bytes":104857601}`, "Filter_config.bytes", "104857601 is not between 1 and 104857600"},
			{`{"bytes":"10MB"}`, "Filter_config.bytes", "must be a whole number, not a string"},
			{`{"bytes":10,"unpack":true}`, "Filter_config", `unknown field "unpack"`},
		},
	}
}

var _ = Describe("A limit for bodies that an external server also receives", func() {
	DescribeTable("applies as without the server, and so does the server's own", func(server policy, config string, tooLarge ...int) {
		server.config = config
		w := newWorld(server)
		w.attach(onShop)
		for i, limit := range []string{`{"bytes":10}`, `{"bytes":100}`, `{"bytes":100,"decompress":true}`} {
			name := fmt.Sprint("limit-", i)
			w.post("/filter", "Filter_name="+name, "Filter_type=route_filter_bodylimit", "Filter_config="+limit)
			w.attach("/service/shop/filter/" + name)
			Expect(w.postBody(strings.Repeat("a", tooLarge[i]-1))).To(Equal(http.StatusOK), limit)
			Expect(w.postBody(strings.Repeat("a", tooLarge[i]))).To(Equal(http.StatusRequestEntityTooLarge), limit)
			w.detach("/service/shop/filter/" + name)
		}
	},
		Entry("over HTTP", extAuthz(), `{"upstream":"auth","body_bytes":1000,"timeout":"5s"}`, 11, 101, 101),
		Entry("over gRPC", extAuthz(), `{"upstream":"auth-grpc","protocol":"grpc","body_bytes":1000,"timeout":"5s"}`, 11, 101, 101),
		Entry("with a smaller limit", extAuthz(), `{"upstream":"auth","body_bytes":50,"timeout":"5s"}`, 11, 51, 51),
		Entry("processed as a whole", extProc(), `{"upstream":"processor","request_body":"buffered"}`, 11, 101, 101),
		Entry("processed piece by piece", extProc(), `{"upstream":"processor","request_body":"streamed"}`, 11, 101, 101),
	)
})
