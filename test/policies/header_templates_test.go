package policies_test

import (
	"encoding/json"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("Headers with values of the request", func() {
	// changing returns a world whose service shop sets x-a to a template, of requests or answers.
	changing := func(of, value string) *world {
		GinkgoHelper()
		p := headers()
		text, err := json.Marshal(value)
		Expect(err).NotTo(HaveOccurred())
		p.config = `{"template":true,"` + of + `":{"set":{"x-a":` + string(text) + `},"add":{"x-b":"100%%"}}}`
		w := newWorld(p)
		w.attach(onShop)
		return w
	}

	DescribeTable("are set for upstreams", func(value, want string, header ...string) {
		a := changing("request", value).send(request{path: "/shop?b=c", header: header})
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.seen.Get("X-A")).To(MatchRegexp("^" + want + "$"))
		Expect(a.seen.Get("X-B")).To(Equal("100%"))
	},
		Entry("a header", "%REQ(x-user)%@%REQ(:authority)%", "alice@shop.test", "X-User: alice"),
		Entry("one that stands in", "%REQ(x-user?x-client)%", "bob", "X-Client: bob"),
		Entry("one that is not there", "%REQ(x-user)%", "", "X-A: mallory"),
		Entry("its own value, that the client sent", "%REQ(x-a)%,b", "a,b", "X-A: a"),
		Entry("the first of two", "%REQ(x-user)%", "alice", "X-User: alice", "X-User: bob"),
		Entry("one that is there without a value", "%REQ(x-user?x-client)%", "", "X-User: ", "X-Client: bob"),
		Entry("one that is not there, with text", "user=%REQ(x-user)%", "user="),
		Entry("one that looks like a command", "%REQ(x-user)%", "%REQ\\(x-secret\\)%", "X-User: %REQ(x-secret)%", "X-Secret: s"),
		Entry("the request line", "%REQ(:method)% %REQ(:path)% %REQ(:scheme)% %PROTOCOL%", "GET /shop\\?b=c http HTTP/1.1"),
		Entry("the client", "%DOWNSTREAM_REMOTE_ADDRESS_WITHOUT_PORT%", "127.0.0.1"),
		Entry("the time", "%START_TIME(%s.%3f)% %START_TIME%", `\d{10}\.\d{3} \d{4}-\d\d-\d\dT.*Z`),
		Entry("what only TLS has", "%DOWNSTREAM_TLS_VERSION%%DOWNSTREAM_PEER_SUBJECT%%DOWNSTREAM_PEER_FINGERPRINT_256%%REQUESTED_SERVER_NAME%", ""),
		Entry("a long one, cut", "%REQ(x-long)%", "a{1000}a{24}", "X-Long: "+strings.Repeat("a", 2000)),
		Entry("a long one, cut elsewhere", "%REQ(x-long):4096%", strings.Repeat("a{1000}", 4)+"a{96}", "X-Long: "+strings.Repeat("a", 5000)),
	)

	It("are set for clients", func() {
		w := changing("response", "%RESPONSE_CODE% %RESP(content-length)% %REQ(x-request-id)%")
		Expect(w.send(request{}).header.Get("X-A")).To(MatchRegexp(`^200 \d+ [0-9a-f-]{36}$`))
		Expect(w.send(request{path: "/empty"}).header.Get("X-A")).To(HavePrefix("503 "))
	})
})
