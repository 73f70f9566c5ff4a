package policies_test

import (
	"fmt"
	"net/http"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// startAuth runs an authorization server with the upstreams auth, over HTTP, and auth-grpc.
func startAuth(w *world) {
	GinkgoHelper()
	s, err := testkit.StartAuthServer()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(s.Close)
	w.auth = s
	w.post("/upstream", "Upstream_name=auth", "Upstream_ip=127.0.0.1", "Upstream_port="+strconv.Itoa(s.HTTP))
	w.post("/upstream", "Upstream_name=auth-grpc", "Upstream_ip=127.0.0.1", "Upstream_protocol=h2c", "Upstream_port="+strconv.Itoa(s.GRPC))
}

func extAuthz() policy {
	preflight := []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}
	deny := []string{"X-Deny: 401"}
	return policy{
		kind: "http_filter_extauthz", filter: "envoy.filters.http.ext_authz", denies: http.StatusServiceUnavailable, given: startAuth,
		config:  `{"upstream":"auth","path":"/check?all=1","upstream_headers":["X-User"],"timeout":"5s"}`,
		changed: `{"upstream":"auth-grpc","protocol":"grpc","upstream_headers":["x-user","x-role"],"body_bytes":1000,"timeout":"5s"}`,
		says:    func(a answer) string { return fmt.Sprint(a.status, " ", a.seen.Get("X-User"), a.seen.Get("X-Role")) },
		requests: []request{
			{what: "a plain one", off: "200 ", on: "200 alice", changed: "200 alice", both: "200 alice"},
			{what: "one that says who it is", header: []string{"X-User: mallory", "X-Role: admin"}, off: "200 malloryadmin", exempt: "200 admin", on: "200 aliceadmin", changed: "200 alice", both: "200 alice"},
			{what: "a preflight", method: "OPTIONS", header: preflight, off: "200 ", on: "200 alice", changed: "200 alice", both: "200 alice"},
			{what: "one that is denied", header: deny, asked: true, off: "200 ", on: "401 ", changed: "401 ", both: "401 "},
			{what: "a preflight that is denied", method: "OPTIONS", header: append(preflight, deny...), asked: true, off: "200 ", on: "401 ", changed: "401 ", both: "401 "},
			{what: "a route without upstreams, denied", path: "/empty", header: deny, asked: true, off: "503 ", on: "401 ", changed: "401 ", both: "401 "},
			{what: "a redirect to HTTPS, where it is asked", host: "moved.test", header: deny, off: "301 ", on: "301 ", changed: "301 ", both: "301 "},
			{what: "a path that no route has", path: "/nowhere", header: deny, off: "404 ", on: "404 ", changed: "404 ", both: "404 "},
			{what: "a host that no service has", host: "else.test", header: deny, off: "404 ", on: "404 ", changed: "404 ", both: "404 "},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.upstream", "is required"},
			{`{"upstream":"auth","protocol":"h2c"}`, "Filter_config.protocol", `"h2c" is not one of http, grpc`},
			{`{"upstream":"auth","path":"check"}`, "Filter_config.path", `"check" is not a path such as /check`},
			{`{"upstream":"auth","path":"/a b"}`, "Filter_config.path", `"/a b" is not a path such as /check`},
			{`{"upstream":"auth","path_prefix":"/a?b=1"}`, "Filter_config.path_prefix", `"/a?b=1" must have no query, because the path of the request follows it`},
			{`{"upstream":"auth","path":"/a","path_prefix":"/b"}`, "Filter_config.path_prefix", "cannot be combined with path"},
			{`{"upstream":"auth-grpc","protocol":"grpc","path":"/a"}`, "Filter_config.path", "requires protocol http; a gRPC call has the path of the request in its message"},
			{`{"upstream":"auth","upstream_headers":["content-length"]}`, "Filter_config.upstream_headers", `"content-length" belongs to the connection and cannot be changed`},
			{`{"upstream":"auth","upstream_headers":[":path"]}`, "Filter_config.upstream_headers", `":path" cannot be changed; the rewrite of Route_config changes path and host`},
			{`{"upstream":"auth","upstream_headers":["x-user","X-User"]}`, "Filter_config.upstream_headers", `"X-User" is named twice`},
			{`{"upstream":"auth","body_bytes":8388609}`, "Filter_config.body_bytes", "8388609 is not between 0 and 8388608"},
			{`{"upstream":"auth","timeout":"2m"}`, "Filter_config.timeout", "2m0s is not between 1ms and 1m"},
			{`{"upstream":"auth","on_error":"open"}`, "Filter_config.on_error", `"open" is not one of deny, allow`},
			{`{"upstream":"auth","request_header":["cookie"]}`, "Filter_config", `unknown field "request_header"`},
			{`{"upstream":"auth","request_headers":[]}`, "Filter_config.request_headers", "names no header; leave it out if the server may receive all headers"},
			{`{"upstream":"auth","request_headers":["Host"]}`, "Filter_config.request_headers", `"Host" need not be named; the server always receives method, path and host`},
			{`{"upstream":"auth","request_headers":["upgrade"]}`, "Filter_config.request_headers", `"upgrade" belongs to the connection and cannot be passed on`},
			{`{"upstream":"auth","request_headers":["cookie","Cookie"]}`, "Filter_config.request_headers", `"Cookie" is named twice`},
			{`{"upstream":"auth-grpc","protocol":"grpc","request_headers":["cookie"]}`, "Filter_config.request_headers", "requires protocol http; a gRPC call has all headers of the request in its message"},
			{`{"upstream":"auth","allow_status":"3xx"}`, "Filter_config.allow_status", `"3xx" is not one of 200, 2xx`},
			{`{"upstream":"auth-grpc","protocol":"grpc","allow_status":"2xx"}`, "Filter_config.allow_status", "requires protocol http; over gRPC, the status OK allows a request"},
		},
	}
}
