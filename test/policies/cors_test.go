package policies_test

import (
	"fmt"
	"strings"
)

func cors() policy {
	const (
		page, asks = "Origin: https://a.test", "Access-Control-Request-Method: PUT"
		own        = "/shop?header=access-control-allow-origin:*&header=access-control-expose-headers:x-own&header=vary:accept"
		regexForm  = `use an expression, such as {"regex":"https://[a-z0-9-]+\\.example\\.com"}`
	)
	return policy{
		kind: "vh_filter_cors", filter: "envoy.filters.http.cors",
		config: `{"origins":["https://a.test",{"regex":"https://[a-z]+\\.b\\.test"}],"methods":["PUT","DELETE"],"headers":["x-team"],"expose":["x-total"],
			"max_age":600,"credentials":true}`,
		changed: `{"origins":["*"],"headers":["*"]}`,
		// says is who may read the answer, with credentials and which headers; what a preflight allows; and what varies.
		says: func(a answer) string {
			join := func(names ...string) (text string) {
				for _, n := range names {
					text += " " + strings.Join(a.header.Values(n), ",")
				}
				return text
			}
			const allow = "Access-Control-Allow-"
			return fmt.Sprint(a.status, join(allow+"Origin", allow+"Credentials", "Access-Control-Expose-Headers"), " |",
				join(allow+"Methods", allow+"Headers", "Access-Control-Max-Age"), " |", join("Vary"))
		},
		requests: []request{
			{what: "one of no page", off: "200    |    | ", on: "200    |    | origin", changed: "200    |    | origin", both: "200    |    | origin"},
			{
				what: "one of a page", header: []string{page}, off: "200    |    | ", on: "200 https://a.test true x-total |    | origin",
				changed: "200 https://a.test   |    | origin", both: "200 https://a.test   |    | origin",
			},
			{
				what: "one that the expression matches", header: []string{"Origin: https://x.b.test"}, off: "200    |    | ", on: "200 https://x.b.test true x-total |    | origin",
				changed: "200 https://x.b.test   |    | origin", both: "200 https://x.b.test   |    | origin",
			},
			{
				what: "one of another page", header: []string{"Origin: https://evil.test"}, off: "200    |    | ", on: "200    |    | origin",
				changed: "200 https://evil.test   |    | origin", both: "200 https://evil.test   |    | origin",
			},
			{
				what: "one whose upstream allows more", path: own, header: []string{"Origin: https://evil.test"}, off: "200 *  x-own |    | accept", on: "200    |    | accept,origin",
				changed: "200 https://evil.test   |    | accept,origin", both: "200 https://evil.test   |    | accept,origin",
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{page, asks, "Access-Control-Request-Headers: x-any"}, off: "200    |    | ",
				on: "200 https://a.test true x-total | PUT, DELETE x-team 600 | ", changed: "200 https://a.test   | GET, HEAD, PUT, PATCH, POST, DELETE x-any  | ", both: "200 https://a.test   | GET, HEAD, PUT, PATCH, POST, DELETE x-any  | ",
			},
			{
				what: "a preflight of another page", method: "OPTIONS", header: []string{"Origin: https://evil.test", asks, "Access-Control-Request-Headers: x-any"}, off: "200    |    | ",
				on: "204    |    | origin", changed: "200 https://evil.test   | GET, HEAD, PUT, PATCH, POST, DELETE x-any  | ", both: "200 https://evil.test   | GET, HEAD, PUT, PATCH, POST, DELETE x-any  | ",
			},
			{
				what: "a preflight of a page without an origin", method: "OPTIONS", header: []string{"Origin: null", asks}, off: "200    |    | ",
				on: "204    |    | origin", changed: "200 null   | GET, HEAD, PUT, PATCH, POST, DELETE   | ", both: "200 null   | GET, HEAD, PUT, PATCH, POST, DELETE   | ",
			},
			{what: "OPTIONS that is no preflight", method: "OPTIONS", header: []string{page}, off: "200    |    | ", on: "200 https://a.test true x-total |    | origin", changed: "200 https://a.test   |    | origin", both: "200 https://a.test   |    | origin"},
			{
				what: "a route without upstreams", path: "/empty", header: []string{page}, off: "503    |    | ", on: "503 https://a.test true x-total |    | origin",
				changed: "503 https://a.test   |    | origin", both: "503 https://a.test true x-total |    | origin",
			},
			{
				what: "a preflight for a route without upstreams", method: "OPTIONS", path: "/empty", header: []string{page, asks, "Access-Control-Request-Headers: x-any"}, off: "503    |    | ",
				on: "200 https://a.test true x-total | PUT, DELETE x-team 600 | ", changed: "200 https://a.test   | GET, HEAD, PUT, PATCH, POST, DELETE x-any  | ", both: "200 https://a.test true x-total | PUT, DELETE x-team 600 | ",
			},
			{
				what: "another page on a route without upstreams", path: "/empty", header: []string{"Origin: https://evil.test"}, off: "503    |    | ", on: "503    |    | origin",
				changed: "503 https://evil.test   |    | origin", both: "503    |    | origin",
			},
			{what: "a redirect to HTTPS", host: "moved.test", header: []string{page}, off: "301    |    | ", on: "301    |    | ", changed: "301    |    | ", both: "301    |    | "},
			{what: "a path that no route has", path: "/nowhere", header: []string{page}, off: "404    |    | ", on: "404    |    | ", changed: "404    |    | ", both: "404    |    | "},
			{what: "a host that no service has", host: "else.test", header: []string{page}, off: "404    |    | ", on: "404    |    | ", changed: "404    |    | ", both: "404    |    | "},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.origins", `is required; list the origins whose pages may read the answers, such as ["https://app.example.com"]`},
			{`{"origins":["*","https://a.test"],"credentials":true,"any_origin_credentials":true}`, "Filter_config.origins", `"*" matches all origins; remove the others`},
			{`{"origins":["*"],"credentials":true}`, "Filter_config.origins", `"*" and credentials together would let any page act as the user; name the origins`},
			{`{"origins":["*","https://a.test"]}`, "Filter_config.origins", `"*" matches all origins; remove the others`},
			{`{"origins":["null"]}`, "Filter_config.origins", `browsers send "null" for pages without an origin, which anybody can make; remove it`},
			{`{"origins":["a.test"]}`, "Filter_config.origins", `"a.test" is not an origin such as https://app.example.com`},
			{`{"origins":["https://a.test/"]}`, "Filter_config.origins", `"https://a.test/" has a path, and an origin has none; write "https://a.test"`},
			{`{"origins":["HTTPS://a.test"]}`, "Filter_config.origins", `"HTTPS://a.test" must be in lower case, as browsers send it; write "https://a.test"`},
			{`{"origins":["https://a.test:443"]}`, "Filter_config.origins", `"https://a.test:443" has the default port, which browsers omit; write "https://a.test"`},
			{`{"origins":["https://*.a.test"]}`, "Filter_config.origins", `"https://*.a.test" has a "*", which is allowed only alone, for all origins; ` + regexForm},
			{`{"origins":[{"regex":"https://.*"}]}`, "Filter_config.origins", `"https://.*" matches the origin "https://any.invalid", and so allows anybody; write "*" to allow all origins`},
			{`{"origins":[{"regex":"("}]}`, "Filter_config.origins", "\"(\" is not a regular expression in RE2 syntax: missing closing ): `(`"},
			{`{"origins":[{"prefix":"https://a"}]}`, "Filter_config", `an origin must be a string such as "https://app.example.com", or {"regex": EXPRESSION}`},
			{`{"origins":["https://a.test"],"methods":["put"]}`, "Filter_config.methods", `"put" must be in upper case, because browsers compare the case; write "PUT"`},
			{`{"origins":["https://a.test"],"expose":["*"],"credentials":true}`, "Filter_config.expose", `"*" has no effect in browsers where credentials are allowed; name the headers`},
			{`{"origins":["https://a.test"],"expose":["a b"]}`, "Filter_config.expose", `"a b" is not an HTTP token`},
			{`{"origins":["https://a.test"],"max_age":86401}`, "Filter_config.max_age", "86401 is not between 0 and 86400"},
		},
	}
}
