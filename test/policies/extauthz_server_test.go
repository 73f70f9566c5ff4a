package policies_test

import (
	"fmt"
	"net"
	"net/http"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("An authorization server", func() {
	const plain, called = `{"upstream":"auth","upstream_headers":["x-user"],"timeout":"5s"}`, `{"upstream":"auth-grpc","protocol":"grpc","timeout":"5s"}`
	// asking returns a world with an http_filter_extauthz f with the configuration on
	// service shop.
	asking := func(config string) *world {
		GinkgoHelper()
		p := extAuthz()
		p.config = config
		w := newWorld(p)
		w.attach(onShop)
		return w
	}
	const away = "the authorization server is not available\n"

	DescribeTable("can refuse with an answer of its own", func(config string) {
		w := asking(config)
		a := w.send(request{header: []string{"X-Deny: 401", "Accept: text/html"}})
		Expect(a.status).To(Equal(http.StatusUnauthorized))
		Expect(a.body).To(Equal("the server says no\n"), "this is no login of the gateway")
		Expect(a.header.Get("WWW-Authenticate")).To(Equal(`Bearer realm="shop"`))
		a = w.send(request{header: []string{"X-Deny: 302", "X-Answer: Set-Cookie=a=1"}})
		Expect(a.status).To(Equal(http.StatusFound))
		Expect(a.header.Get("Location")).To(Equal("https://login.test/?rd=/shop"))
		Expect(a.header["Set-Cookie"]).To(Equal([]string{"a=1"}))
	}, Entry("over HTTP", plain), Entry("over gRPC", called))

	DescribeTable("lets nobody in while it is unavailable, unless on_error says so", func(config string, header ...string) {
		for onError, want := range map[string]string{"deny": "503 " + away, "allow": "200 true"} {
			w := asking(fmt.Sprintf(`%s,"on_error":%q}`, strings.TrimSuffix(config, "}"), onError))
			Expect(w.send(request{}).status).To(Equal(http.StatusOK))
			if len(header) == 0 {
				Expect(w.auth.Close()).To(Succeed())
			}
			a := w.send(request{header: header})
			what := a.body
			if a.seen != nil {
				what = a.seen.Get("X-Envoy-Auth-Failure-Mode-Allowed")
			}
			Expect(fmt.Sprint(a.status, " ", what)).To(Equal(want), onError)
		}
	},
		Entry("away over HTTP", plain), Entry("away over gRPC", called),
		Entry("too slow over HTTP", `{"upstream":"auth","timeout":"2s"}`, "X-Delay: 20s"), Entry("too slow over gRPC", `{"upstream":"auth-grpc","protocol":"grpc","timeout":"2s"}`, "X-Delay: 20s"),
		Entry("broken over HTTP", plain, "X-Deny: 500"), Entry("broken over gRPC", called, "X-Deny: 500"),
	)

	It("lets nobody in if it uses another protocol", func() {
		w := asking(plain)
		w.post("/upstream", "Upstream_name=confused", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", fmt.Sprint("Upstream_port=", w.auth.HTTP))
		w.configure(`{"upstream":"confused","protocol":"grpc"}`)
		Expect(w.send(request{}).body).To(Equal(away))
		w.post("/upstream", "Upstream_name=baffled", "Upstream_ip=127.0.0.1", fmt.Sprint("Upstream_port=", w.auth.GRPC))
		w.configure(`{"upstream":"baffled"}`)
		Expect(w.send(request{}).body).To(Equal(away))
	})

	It("is called at the configured path, with all headers", func() {
		w := asking(plain)
		for config, want := range map[string]string{
			`{"upstream":"auth"}`: "/shop/a?b=c", `{"upstream":"auth","path_prefix":"/authz/"}`: "/authz/shop/a?b=c", `{"upstream":"auth","path":"/check"}`: "/check",
			`{"upstream":"auth-grpc","protocol":"grpc"}`: "/shop/a?b=c",
		} {
			w.configure(config)
			w.auth.Asked()
			Expect(w.send(request{path: "/shop/a?b=c", method: "DELETE", header: []string{"Cookie: c=1", "X-Forwarded-Uri: /public", "X-Forwarded-Method: GET", "X-Forwarded-Host: else.test"}}).status).To(Equal(http.StatusOK))
			asked := w.auth.Asked()
			Expect(asked).To(HaveLen(1))
			Expect([]string{asked[0].Method, asked[0].Host, asked[0].Path, asked[0].Headers.Get("Cookie")}).To(Equal([]string{"DELETE", "shop.test", want, "c=1"}))
			if strings.Contains(config, "grpc") {
				Expect(asked[0].Headers).NotTo(Or(HaveKey("X-Forwarded-Uri"), HaveKey("X-Forwarded-Method")), config)
			} else {
				Expect([]string{asked[0].Headers.Get("X-Forwarded-Uri"), asked[0].Headers.Get("X-Forwarded-Method"), asked[0].Headers.Get("X-Forwarded-Host")}).To(Equal([]string{"/shop/a?b=c", "DELETE", "shop.test"}))
			}
		}
	})

	It("receives only the listed headers, with those of the gateway", func() {
		w := asking(plain)
		send := request{path: "/shop/a?b=c", method: "POST", header: []string{"Cookie: c=1", "Authorization: Bearer t", "Accept: text/x", "X-Forwarded-Uri: /public", "X-Real-Ip: 9.9.9.9"}}
		for _, upstream := range []string{`"auth","path":"/check"`, `"auth","path":"/check","body_bytes":10`} {
			w.configure(`{"upstream":` + upstream + `,"request_headers":["Authorization","x-none"]}`)
			w.auth.Asked()
			Expect(w.send(send).status).To(Equal(http.StatusOK))
			asked := w.auth.Asked()
			Expect(asked).To(HaveLen(1))
			Expect([]string{asked[0].Method, asked[0].Host, asked[0].Path}).To(Equal([]string{"POST", "shop.test", "/check"}))
			delete(asked[0].Headers, "Content-Length") // what frames the call
			Expect(asked[0].Headers).To(Equal(http.Header{
				"Authorization": {"Bearer t"}, "X-Forwarded-Uri": {"/shop/a?b=c"}, "X-Forwarded-Method": {"POST"}, "X-Forwarded-Host": {"shop.test"},
				"X-Forwarded-For": asked[0].Headers["X-Forwarded-For"], "X-Forwarded-Proto": {"http"},
			}))
		}
		w.configure(`{"upstream":"auth","body_bytes":10,"request_headers":["cookie"]}`)
		w.auth.Asked()
		Expect(w.postBody("0123456789")).To(Equal(http.StatusOK))
		Expect(w.auth.Asked()[0].Body).To(Equal("0123456789"))
	})

	It("allows with any 2xx where that is configured", func() {
		w := asking(plain)
		for _, row := range []struct {
			config, answer string
			status         int
			user           string
		}{
			{`{"upstream":"auth","allow_status":"2xx","upstream_headers":["x-user"]}`, "204", http.StatusOK, "alice"},
			{`{"upstream":"auth","allow_status":"2xx","upstream_headers":["x-user"]}`, "202", http.StatusOK, "alice"},
			{`{"upstream":"auth","allow_status":"2xx"}`, "200", http.StatusOK, ""},
			{`{"upstream":"auth","allow_status":"2xx"}`, "302", http.StatusFound, ""},
			{`{"upstream":"auth","allow_status":"2xx"}`, "403", http.StatusForbidden, ""},
			{`{"upstream":"auth","allow_status":"2xx"}`, "500", http.StatusServiceUnavailable, ""},
			{`{"upstream":"auth","allow_status":"200"}`, "204", http.StatusNoContent, ""},
			{`{"upstream":"auth","request_headers":["x-deny"]}`, "204", http.StatusNoContent, ""},
		} {
			w.configure(row.config)
			a := w.send(request{header: []string{"X-Deny: " + row.answer}})
			Expect([]any{a.status, a.seen.Get("X-User")}).To(Equal([]any{row.status, row.user}), "%s: %s", row.config, row.answer)
		}
	})

	It("receives the body, and larger requests are refused", func() {
		for _, config := range []string{`{"upstream":"auth","body_bytes":10}`, `{"upstream":"auth-grpc","protocol":"grpc","body_bytes":10,"on_error":"allow"}`} {
			w := asking(config)
			for body, want := range map[string]int{"": 200, "0123456789": 200, "0123456789a": 413} {
				w.auth.Asked()
				Expect(w.postBody(body)).To(Equal(want), "%s: %q", config, body)
				asked := w.auth.Asked()
				if want == http.StatusOK {
					Expect(asked).To(HaveLen(1))
					Expect(asked[0].Body).To(Equal(body))
				} else {
					Expect(asked).To(BeEmpty())
				}
			}
		}
	})

	It("receives bodies that are larger than Envoy's default limit", func() {
		w := asking(`{"upstream":"auth","body_bytes":200000,"timeout":"10s"}`)
		Expect(w.postBody(strings.Repeat("a", 200_000))).To(Equal(http.StatusOK))
		Expect(w.auth.Asked()[0].Body).To(HaveLen(200_000))
		Expect(w.postBody(strings.Repeat("a", 200_001))).To(Equal(http.StatusRequestEntityTooLarge))
	})

	It("is called for a websocket once, before it is opened", func() {
		w := asking(`{"upstream":"auth","body_bytes":10}`)
		open := func(deny string) error {
			config, err := websocket.NewConfig("ws://shop.test/shop", "http://shop.test/")
			Expect(err).NotTo(HaveOccurred())
			config.Header.Set("X-Deny", deny)
			conn, err := testkit.Bounded(net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", w.port))) //nolint:noctx // is there at once
			Expect(err).NotTo(HaveOccurred())
			DeferCleanup(conn.Close)
			_, err = websocket.NewClient(config, conn)
			return err
		}
		Expect(open("403")).To(MatchError(ContainSubstring("bad status")))
		Expect(open("")).To(Succeed())
		Expect(w.auth.Asked()).To(HaveLen(2))
	})

	It("is called for what the gateway answers itself, but not for public routes; clients cannot forge its headers there", func() {
		w := asking(plain)
		w.post("/service/shop/route?wait=applied", "Route_Name=open", "Route_prefix=/open", `Route_config={"public":true}`)
		w.post("/service/shop/route/open/upstream/blue?wait=applied")
		for _, answering := range [][]string{{"route_filter_directresponse", `{"status":418}`}, {"route_filter_redirect", `{"host":"b.test"}`}} {
			w.post("/filter", "Filter_name=answer", "Filter_type="+answering[0], "Filter_config="+answering[1])
			w.attach("/service/shop/route/root/filter/answer")
			Expect(w.send(request{header: []string{"X-Deny: 403"}}).status).To(Equal(http.StatusForbidden), answering[0])
			w.detach("/service/shop/route/root/filter/answer", "/filter/answer")
		}
		w.auth.Asked()
		a := w.send(request{path: "/open", header: []string{"X-Deny: 403", "X-User: mallory"}})
		Expect(a.status).To(Equal(http.StatusOK))
		Expect(a.seen).NotTo(HaveKey("X-User"))
		Expect(w.auth.Asked()).To(BeEmpty())

		By("with a filter of the route's own")
		w.attach("/service/shop/route/open/filter/g")
		Expect(w.send(request{path: "/open", header: []string{"X-Deny: 403"}}).status).To(Equal(http.StatusForbidden))
	})

	It("cannot be deleted while a filter names its upstream, and a broken configuration is refused before it is stored", func() {
		w := asking(plain)
		a, err := w.api.Delete(limit(), "/upstream/auth")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusConflict), a.Body)
		for config, why := range map[string]string{
			`{"upstream":"auth","protocol":"grpc"}`: "upstream auth has the protocol http, and gRPC needs h2c or h2",
			`{"upstream":"nobody"}`:                 "names /upstream/nobody, which does not exist",
		} {
			a, err := w.api.Post(limit(), "/filter/f/config", "Filter_config="+config)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
			Expect(a.Body).To(ContainSubstring(why))
		}
		a, err = w.api.Post(limit(), "/service/shop/filter/g")
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring("of which only one can name the server that decides"))
		a, err = w.api.Post(limit(), "/filter/f/config", `Filter_config={"upstream":"auth","on_error":"allow"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Expect(a.Header.Get("Gatehouse-Warning")).To(Equal("/filter/f has on_error allow: while upstream auth is unavailable, too slow, or answers with 5xx, every request is allowed without a check"))
	})
})

// postBody sends a body, and returns the status.
func (w *world) postBody(body string) int {
	GinkgoHelper()
	req, err := http.NewRequestWithContext(limit(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d/shop", w.port), strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	req.Host = "shop.test"
	resp, err := (&http.Client{Timeout: testkit.Patience}).Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer func() { _ = resp.Body.Close() }()
	return resp.StatusCode
}
