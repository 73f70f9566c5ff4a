package attack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// authTry is a request that tries to bypass an authorization server.
type authTry struct {
	method, path, body string
	header             []string
	// sees is the path that the server and the backend receive; empty means that no backend receives
	// the request, and that status is the answer.
	sees   string
	status int
	// only is the only protocol for which it is tried; empty means both.
	only string
}

func authTries() []authTry {
	return []authTry{
		// Headers with the client's identity.
		{header: []string{"X-User: mallory"}, sees: "/"},
		{header: []string{"x-user: mallory", "X-USER: mallory"}, sees: "/"},
		{header: []string{"X-User: mallory", "Connection: x-user"}, sees: "/"},
		{header: []string{"X-User: mallory", "X-Envoy-Auth-Headers-To-Remove: x-user"}, sees: "/"},
		{header: []string{"X-User-Role: admin"}, sees: "/"},
		{header: []string{"X-Envoy-Auth-Failure-Mode-Allowed: true", "X-Deny: 403"}, status: 403},
		{header: []string{"X-Envoy-Auth-Partial-Body: true", "X-Deny: 403"}, status: 403},
		// Headers in the server's answer.
		{header: []string{"X-Answer: Keep-Alive=timeout=5"}, sees: "/"},
		{header: []string{"X-Answer: Content-Length=5"}, sees: "/", only: "grpc"},
		{header: []string{"X-Answer: :path=/admin"}, sees: "/", only: "grpc"},
		{header: []string{"X-Answer: :authority=else.test"}, sees: "/", only: "grpc"},
		{header: []string{"X-Answer: Content-Length=5"}, status: 503, only: "http"},
		{header: []string{"X-Answer: X-Other=1"}, sees: "/"},
		{header: []string{"X-Answer: Transfer-Encoding=chunked"}, sees: "/"},
		{header: []string{"X-Answer: Host=else.test"}, sees: "/"},
		{header: []string{"X-Answer: X-Envoy-Original-Path=/admin"}, sees: "/"},
		{header: []string{"X-Deny: 204"}, status: 204},
		{header: []string{"X-Deny: 302"}, status: 302},
		{header: []string{"X-Deny: 407"}, status: 407},
		{header: []string{"X-Answer: X-Envoy-Retry-On=5xx"}, sees: "/"},
		// The path that the server checks, and that the backend receives.
		{path: "/a/../admin", sees: "/admin"},
		{path: "//admin", sees: "/admin"},
		{path: "/./admin/.", sees: "/admin/"},
		{path: "/%61dmin", sees: "/admin"},
		{path: "/admin;x=1", sees: "/admin;x=1"},
		{path: "/admin?x=/../public", sees: "/admin?x=/../public"},
		{path: "/admin%2f..%2fpublic", status: 307},
		// Bodies.
		{method: "POST", body: "0123456789", sees: "/"},
		{method: "POST", body: "0123456789a", status: 413},
		{method: "GET", body: "0123456789a", status: 413},
		{method: "PUT", body: strings.Repeat("a", 1<<20), status: 413},
		{method: "POST", body: "GET /admin HTTP/1.1\r\n\r\n", status: 413},
	}
}

var _ = Describe("A request that tries to bypass an authorization server", func() {
	DescribeTable("reaches the backend as the server received it, or not at all", func(ctx SpecContext, protocol, port string) {
		s, err := testkit.StartAuthServer()
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(s.Close)
		t := startTarget(ctx)
		for _, call := range [][]string{
			{"/upstream", "Upstream_name=auth", "Upstream_ip=127.0.0.1", "Upstream_protocol=" + protocol, "Upstream_port=" + strconv.Itoa(map[string]int{"http": s.HTTP, "grpc": s.GRPC}[port])},
			{"/filter", "Filter_name=auth", "Filter_type=http_filter_extauthz", fmt.Sprintf(`Filter_config={"upstream":"auth","protocol":%q,"upstream_headers":["x-user"],"body_bytes":10}`, port)},
			{"/service/shop/filter/auth?wait=applied"},
		} {
			a, err := t.API.Post(ctx, call[0], call[1:]...)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), "POST %q: %s", call, a.Body)
		}
		base := testkit.API{URL: "http://127.0.0.1:" + strconv.Itoa(t.port)}
		for _, r := range authTries() {
			about := strings.ReplaceAll(fmt.Sprintf("%s: %+v", port, r), "%", "%%")
			if r.only != "" && r.only != port {
				continue
			}
			ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
			DeferCleanup(cancel)
			s.Asked()
			method, path := r.method, r.path
			if method == "" {
				method = http.MethodGet
			}
			if path == "" {
				path = "/"
			}
			a := try(ctx, base, method, path, r.body, append(r.header, "Host: shop.test")...)
			if r.sees == "" {
				Expect(a.Status).To(Equal(r.status), about)
				Expect(a.Header).NotTo(HaveKey(testkit.BackendHeader), about)
				continue
			}
			var echo testkit.Echo
			Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed(), about+a.Body)
			Expect([]string{echo.Method, echo.Host, echo.Path}).To(Equal([]string{method, "shop.test", r.sees}), about)
			Expect(echo.Headers["X-User"]).To(Equal([]string{"alice"}), about)
			asked := s.Asked()
			Expect(asked).To(HaveLen(1), about)
			Expect([]string{asked[0].Method, asked[0].Host, asked[0].Path, asked[0].Body}).To(Equal([]string{method, "shop.test", r.sees, r.body}), about)
			Expect(asked[0].Headers).NotTo(HaveKey("X-User"), about)
		}
	},
		Entry("over HTTP", "http", "http"), Entry("over gRPC", "h2c", "grpc"),
	)
})
