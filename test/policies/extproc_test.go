package policies_test

import (
	"fmt"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// startProcessor runs an external processor with the upstream processor.
func startProcessor(w *world) {
	GinkgoHelper()
	p, err := testkit.StartProcessor()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	w.processor = p
	w.post("/upstream", "Upstream_name=processor", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", p.Port))
}

func extProc() policy {
	preflight := []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}
	return policy{
		kind: "http_filter_extproc", filter: "envoy.filters.http.ext_proc", denies: http.StatusServiceUnavailable, given: startProcessor,
		config:  `{"upstream":"processor","on_error":"deny"}`,
		changed: `{"upstream":"processor","request_headers":true,"response_headers":true,"request_body":"buffered","response_body":"none"}`,
		// says are the headers that the processor has set: in the request and, after the bar, in
		// the answer.
		says: func(a answer) string {
			return fmt.Sprint(a.status, " ", a.seen.Get("X-Processed"), "|", a.header.Get("X-Done"))
		},
		requests: []request{
			{what: "a plain one", off: "200 |", on: "200 yes|", changed: "200 yes|yes", both: "200 yes|yes"},
			{what: "a preflight", method: "OPTIONS", header: preflight, off: "200 |", on: "200 yes|", changed: "200 yes|yes", both: "200 yes|yes"},
			{what: "one that the processor answers", reason: "other", header: []string{"X-Deny: 401"}, asked: true, off: "200 |", on: "401 |", changed: "401 |", both: "401 |"},
			{what: "a route without upstreams", path: "/empty", off: "503 |", on: "503 |", changed: "503 |yes", both: "503 |"},
			{what: "a redirect", host: "moved.test", off: "301 |", on: "301 |", changed: "301 |yes", both: "301 |"},
			{what: "a redirect that the processor answers", reason: "other", host: "moved.test", header: []string{"X-Deny: 403"}, asked: true, off: "301 |", on: "403 |", changed: "403 |", both: "403 |"},
			{what: "a path that no route has", path: "/nowhere", off: "404 |", on: "404 |", changed: "404 |", both: "404 |"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.upstream", "is required"},
			{`{"upstream":"processor","request_headers":false}`, "Filter_config", "sends nothing to the processor; set at least one of request_headers, response_headers, request_body and response_body"},
			{`{"upstream":"processor","request_body":"all"}`, "Filter_config.request_body", `"all" is not one of none, buffered, streamed`},
			{`{"upstream":"processor","on_error":"open"}`, "Filter_config.on_error", `"open" is not one of deny, allow`},
			{`{"upstream":"processor","timeout":"1s"}`, "Filter_config", `unknown field "timeout"`},
		},
	}
}

var _ = Describe("An external processor", func() {
	processing := func(config string) *world {
		GinkgoHelper()
		p := extProc()
		p.config = config
		w := newWorld(p)
		w.attach(onShop)
		return w
	}
	const away = "the external processor is not available\n"

	It("answers with a status and a body of its own", func() {
		a := processing(`{"upstream":"processor"}`).send(request{header: []string{"X-Deny: 401", "Accept: text/html"}})
		Expect(a.status).To(Equal(http.StatusUnauthorized))
		Expect(a.body).To(Equal("the processor says no\n"), "this is no login of the gateway")
	})

	DescribeTable("stops requests while it is unavailable, unless on_error says so", func(header string) {
		for onError, want := range map[string]string{"deny": "503 " + away, "allow": "200 "} {
			w := processing(fmt.Sprintf(`{"upstream":"processor","on_error":%q}`, onError))
			if header == "X-Away: 1" {
				w.processor.Close()
			}
			a := w.send(request{header: []string{header}})
			if a.seen != nil {
				a.body = a.seen.Get("X-Processed")
			}
			Expect(fmt.Sprint(a.status, " ", a.body)).To(Equal(want), onError)
		}
	}, Entry("away", "X-Away: 1"), Entry("too slow", "X-Delay: 20s"), Entry("broken", "X-Deny: 500"))

	DescribeTable("changes bodies", func(mode string) {
		w := processing(fmt.Sprintf(`{"upstream":"processor","request_headers":false,"response_body":%q}`, mode))
		a := w.send(request{})
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.body).To(ContainSubstring(`"BACKEND":"BLUE"`))
	}, Entry("as a whole", "buffered"), Entry("piece by piece", "streamed"))

	It("receives bodies of at most 32 KiB as a whole, and larger ones piece by piece", func() {
		w := processing(`{"upstream":"processor","request_body":"buffered"}`)
		Expect(w.postBody(strings.Repeat("a", 32<<10))).To(Equal(http.StatusOK))
		Expect(w.postBody(strings.Repeat("a", 100<<10))).To(Equal(http.StatusRequestEntityTooLarge))
		w.configure(`{"upstream":"processor","request_body":"streamed"}`)
		Expect(w.postBody(strings.Repeat("a", 100<<10))).To(Equal(http.StatusOK))
	})

	It("cannot change where a request is sent or how it is parsed", func() {
		w := processing(`{"upstream":"processor","request_body":"buffered"}`)
		for _, set := range []string{":path=/admin", ":authority=else.test", "host=else.test", ":method=DELETE", "content-length=5", "transfer-encoding=chunked", "x-forwarded-for=192.0.2.1", "x-envoy-retry-on=5xx"} {
			a := w.send(request{header: []string{"X-Set: " + set}})
			Expect(a.status).To(Equal(http.StatusOK), set)
			Expect(a.body).To(ContainSubstring(`"Method":"GET","Path":"/shop","Host":"shop.test"`), set)
			Expect(a.seen["X-Forwarded-For"]).NotTo(ContainElement("192.0.2.1"), set)
			Expect(a.seen).NotTo(HaveKey("X-Envoy-Retry-On"), set)
		}
	})
})
