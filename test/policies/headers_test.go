package policies_test

import (
	"fmt"
	"strings"
)

func headers() policy {
	return policy{
		kind: "route_filter_headers", filter: "envoy.filters.http.header_mutation",
		config: `{"request":{"set":{"X-Team":"shop","x-share":"100%"},"add":{"x-tag":"service"},"remove":["x-debug"]},
			"response":{"set":{"x-frame-options":"DENY"},"add":{"x-by":"service"}}}`,
		changed: `{"request":{"set":{"x-team":"cart"},"add":{"x-tag":"route"},"remove":["x-share"]},"response":{"set":{"x-frame-options":"SAMEORIGIN"}}}`,
		// says are the values that the backend received and, after the bar, those of the
		// answer.
		says: func(a answer) string {
			join := func(values map[string][]string, names ...string) (text string) {
				for _, n := range names {
					text += " " + strings.Join(values[n], ",")
				}
				return text
			}
			return fmt.Sprint(a.status, join(a.seen, "X-Team", "X-Share", "X-Tag", "X-Debug"), " |", join(a.header, "X-Frame-Options", "X-By"))
		},
		requests: []request{
			{what: "a plain one", off: "200     |  ", on: "200 shop 100% service  | DENY service", changed: "200 cart  route  | SAMEORIGIN ", both: "200 cart  service,route  | SAMEORIGIN service"},
			{
				what: "one with values", header: []string{"X-Team: other", "X-Tag: client", "X-Debug: 1"}, off: "200 other  client 1 |  ",
				on: "200 shop 100% client,service  | DENY service", changed: "200 cart  client,route 1 | SAMEORIGIN ", both: "200 cart  client,service,route  | SAMEORIGIN service",
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200     |  ",
				on: "200 shop 100% service  | DENY service", changed: "200 cart  route  | SAMEORIGIN ", both: "200 cart  service,route  | SAMEORIGIN service",
			},
			{what: "a route without upstreams", path: "/empty", off: "503     |  ", on: "503     | DENY service", changed: "503     | SAMEORIGIN ", both: "503     | DENY service"},
			{what: "a redirect", host: "moved.test", off: "301     |  ", on: "301     | DENY service", changed: "301     | SAMEORIGIN ", both: "301     | DENY service"},
			{what: "a path that no route has", path: "/nowhere", off: "404     |  ", on: "404     |  ", changed: "404     |  ", both: "404     |  "},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", `changes no header; set request or response, such as {"request":{"set":{"x-team":"shop"}}}`},
			{`{"request":{"set":{"host":"a"}}}`, "Filter_config.request.set.host", `"host" cannot be changed; the rewrite of Route_config changes path and host`},
			{`{"template":true,"response":{"set":{"x-a":"%ENVIRONMENT(HOME)%"}}}`, "Filter_config.response.set.x-a", `"%ENVIRONMENT(HOME)%" is not a command of templates; headers.md lists them`},
		},
	}
}
