package policies_test

import "fmt"

func maintenance() policy {
	const closed = "503 text/html 60 22"
	return policy{
		kind: "vh_filter_maintenance", filter: "envoy.filters.http.rbac/maintenance", denies: 503,
		config:  `{"body":"<h1>100% \"closed\"</h1>","content_type":"text/html","retry_after":60,"except":["127.0.0.2"]}`,
		changed: `{"status":404,"except":["127.0.0.0/30"]}`,
		// says adds more of an answer that no backend gave.
		says: func(a answer) string {
			if a.seen != nil {
				return fmt.Sprint(a.status)
			}
			return fmt.Sprint(a.status, " ", a.header.Get("Content-Type"), " ", a.header.Get("Retry-After"), " ", a.header.Get("Content-Length"))
		},
		requests: []request{
			{what: "a plain one", off: "200", on: closed, changed: "200"},
			{what: "one from who may pass", from: "127.0.0.2", off: "200", on: "200", changed: "200"},
			{what: "one from who may not", from: "127.0.0.9", off: "200", on: closed, changed: "404 text/plain  39"},
			{what: "a POST", method: "POST", body: "a", off: "200", on: closed, changed: "200"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: closed, changed: "200"},
			{what: "a route without upstreams", path: "/empty", off: "503 text/plain  30", on: closed, changed: "503 text/plain  30"},
			{what: "a redirect", host: "moved.test", off: "301   0", on: closed, changed: "301   0"},
			{what: "a path that no route has", path: "/nowhere", off: "404 text/plain  41", on: closed, changed: "404 text/plain  41"},
			{what: "the same from who may not", path: "/nowhere", from: "127.0.0.9", off: "404 text/plain  41", on: closed, changed: "404 text/plain  39"},
			{what: "a challenge of a certificate", path: "/.well-known/acme-challenge/a_-1", off: "404 text/plain  41", on: "404 text/plain  41", changed: "404 text/plain  41"},
			{what: "a path that leads out of the well-known ones", path: "/.well-known/a/../../shop", off: "200", on: closed, changed: "200"},
			{what: "a path that somebody may read so", path: "/shop/.well-known/a;b", off: "200", on: closed, changed: "200"},
			{what: "a host that no service has", host: "else.test", off: "404 text/plain  41", on: "404 text/plain  41", changed: "404 text/plain  41"},
		},
		refusals: []refusal{
			{`{"status":302}`, "Filter_config.status", "302 is not one of 200, 404, 410, 503"},
			{`{"retry_after":-1}`, "Filter_config.retry_after", "-1 is not between 1 and 2592000"},
			{`{"content_type":"html"}`, "Filter_config.content_type", `"html" is not a media type such as text/html; charset=utf-8`},
			{`{"except":["10.0.0.0/33"]}`, "Filter_config.except", `"10.0.0.0/33" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`},
			{`{"on":"yes"}`, "Filter_config.on", "must be true or false, not a string"},
			{`{"message":"closed"}`, "Filter_config", `unknown field "message"`},
		},
	}
}
