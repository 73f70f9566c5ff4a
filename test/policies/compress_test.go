package policies_test

import (
	"fmt"
	"strings"
)

func compress() policy {
	// The backend answers with what it sees.
	long := "X-Long: " + strings.Repeat("a", 1100)
	both := []string{"Accept-Encoding: gzip, br", long}
	return policy{
		kind: "route_filter_compress", filter: "envoy.filters.http.compressor",
		config:  `{"algorithms":["gzip"]}`,
		changed: `{}`,
		says: func(a answer) string {
			return fmt.Sprint(a.status, " ", a.header.Get("Content-Encoding"), " ", strings.Join(a.header.Values("Vary"), ","))
		},
		requests: []request{
			{what: "a client that takes both", header: both, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 br Accept-Encoding", both: "200 br Accept-Encoding"},
			{what: "one that takes gzip", header: []string{"Accept-Encoding: gzip", long}, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 gzip Accept-Encoding", both: "200 gzip Accept-Encoding"},
			{what: "one that takes zstd", header: []string{"Accept-Encoding: zstd;q=1, gzip;q=0.5", long}, off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 zstd Accept-Encoding", both: "200 zstd Accept-Encoding"},
			{what: "one that takes neither", header: []string{"Accept-Encoding: identity", long}, off: "200  ", on: "200  Accept-Encoding", changed: "200  Accept-Encoding", both: "200  Accept-Encoding"},
			{what: "a short answer", header: []string{"Accept-Encoding: gzip"}, off: "200  ", on: "200  ", changed: "200  ", both: "200  "},
			{what: "a HEAD", method: "HEAD", header: both, off: "200  ", on: "200  Accept-Encoding", changed: "200  Accept-Encoding", both: "200  Accept-Encoding"},
			{what: "a preflight", method: "OPTIONS", header: append(both, "Origin: https://a.test", "Access-Control-Request-Method: PUT"), off: "200  ", on: "200 gzip Accept-Encoding", changed: "200 br Accept-Encoding", both: "200 br Accept-Encoding"},
			{what: "a route without upstreams", path: "/empty", header: both, off: "503  ", on: "503  ", changed: "503  ", both: "503  "},
			{what: "a redirect", host: "moved.test", header: both, off: "301  ", on: "301  Accept-Encoding", changed: "301  Accept-Encoding", both: "301  Accept-Encoding"},
			{what: "a path that no route has", path: "/nowhere", header: both, off: "404  ", on: "404  ", changed: "404  ", both: "404  "},
		},
		refusals: []refusal{
			{`{"algorithms":[]}`, "Filter_config.algorithms", "is empty, so that nothing would be compressed; name some, or leave algorithms out for all"},
			{`{"algorithms":["deflate"]}`, "Filter_config.algorithms", `"deflate" is not one of br, gzip, zstd`},
			{`{"algorithms":["gzip","gzip"]}`, "Filter_config.algorithms", `names "gzip" twice`},
			{`{"min_bytes":1}`, "Filter_config", `unknown field "min_bytes"`},
		},
	}
}
