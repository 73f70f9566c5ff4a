package policies_test

import "fmt"

func directResponse() policy {
	return policy{
		kind:    "route_filter_directresponse",
		config:  `{"status":503,"body":"<h1>100% closed</h1>","content_type":"text/html","headers":{"Retry-After":"60","x-share":"100%"}}`,
		changed: `{"body":"open"}`,
		// says adds more of an answer that no backend gave.
		says: func(a answer) string {
			if a.seen != nil {
				return fmt.Sprint(a.status)
			}
			return fmt.Sprint(a.status, " ", a.header.Get("Content-Type"), " ", a.header.Get("Content-Length"), " ", a.header.Get("Retry-After"), " ", a.header.Get("X-Share"))
		},
		requests: []request{
			{what: "a plain one", reason: "direct_response", off: "200", on: "503 text/html 20 60 100%", changed: "200 text/plain 4  ", both: "200 text/plain 4  "},
			{
				what: "a preflight", reason: "direct_response", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"},
				off: "200", on: "503 text/html 20 60 100%", changed: "200 text/plain 4  ", both: "200 text/plain 4  ",
			},
			{what: "a route without upstreams", path: "/empty", off: "503 text/plain 30  ", on: "503 text/html 20 60 100%", changed: "200 text/plain 4  ", both: "503 text/html 20 60 100%"},
			{what: "a redirect", host: "moved.test", off: "301  0  ", on: "301  0  ", changed: "301  0  ", both: "301  0  "},
			{what: "a path that no route has", path: "/nowhere", off: "404 text/plain 41  ", on: "404 text/plain 41  ", changed: "404 text/plain 41  ", both: "404 text/plain 41  "},
		},
		refusals: []refusal{
			{`{"status":302}`, "Filter_config.status", "302 redirects; use a filter of type route_filter_redirect"},
			{`{"status":199}`, "Filter_config.status", "must be between 200 and 599"},
			{`{"status":204,"body":"x"}`, "Filter_config.body", "must be empty: an answer with status 204 has none"},
			{`{"content_type":"html"}`, "Filter_config.content_type", `"html" is not a media type such as text/html; charset=utf-8`},
			{`{"headers":{"Content-Type":"text/html"}}`, "Filter_config.headers.Content-Type", "is set by content_type"},
			{`{"headers":{"Server":"x"}}`, "Filter_config.headers.Server", `"Server" is set by the gateway and cannot be changed`},
			{`{"headers":{"te":"x"}}`, "Filter_config.headers.te", `"te" belongs to the connection and cannot be changed`},
			{`{"headers":{"x-a":"b\r\nc: d"}}`, "Filter_config.headers.x-a", "ends in a space or contains a control character, which a header value cannot"},
		},
	}
}
