package policies_test

import "net/http"

func csrf() policy {
	return policy{
		kind: "http_filter_csrf", filter: "envoy.filters.http.csrf", denies: http.StatusForbidden,
		config:  `{"origins":["https://a.test","https://b.test:8443"]}`,
		changed: `{"origins":["https://b.test:8443","https://c.test"]}`,
		requests: []request{
			{what: "POST of nobody", method: "POST", off: "200", on: "403", changed: "403", both: "403"},
			{what: "POST of the host itself", method: "POST", header: []string{"Origin: https://shop.test"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "PUT of a page of the service's list", method: "PUT", header: []string{"Origin: https://a.test"}, off: "200", on: "200", changed: "403", both: "403"},
			{what: "PATCH of a page of both lists", method: "PATCH", header: []string{"Origin: https://b.test:8443"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "DELETE of a page of the route's list", method: "DELETE", header: []string{"Origin: https://c.test"}, off: "200", on: "403", changed: "200", both: "403"},
			{what: "POST of another port", method: "POST", header: []string{"Origin: https://b.test"}, off: "200", on: "403", changed: "403", both: "403"},
			{what: "POST with the Referer of the host itself", method: "POST", header: []string{"Referer: https://shop.test/cart?a=b"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "POST with the Referer of another host", method: "POST", header: []string{"Referer: https://evil.test/shop.test"}, off: "200", on: "403", changed: "403", both: "403"},
			{what: "GET of another host", header: []string{"Origin: https://evil.test"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a preflight of another host", method: "OPTIONS", header: []string{"Origin: https://evil.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a route without upstreams", method: "POST", path: "/empty", off: "503", on: "403", changed: "403", both: "403"},
			{what: "a redirect", method: "POST", host: "moved.test", off: "308", on: "403", changed: "403", both: "403"},
			{what: "a path that no route has", method: "POST", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{"origins":["a.test"]}`, "Filter_config.origins", `"a.test" is not an origin such as https://app.example.com`},
			{`{"origins":["*"]}`, "Filter_config.origins", `"*" has a "*", which is allowed only alone, for all origins; use an expression, such as {"regex":"https://[a-z0-9-]+\\.example\\.com"}`},
			{`{"origins":[{"regex":"a"}]}`, "Filter_config.origins", "must be a string, not an object"},
			{`{"additional":[]}`, "Filter_config", `unknown field "additional"`},
		},
	}
}
