package policies_test

import "net/http"

func lua() policy {
	const (
		refuse = `{"script":"function envoy_on_request(h) if h:headers():get('x-team') ~= 'shop' then h:respond({[':status'] = '403'}, 'no') end end"}`
		unsafe = `{"script":"function envoy_on_request(h) local b = h:body() if h:headers():get('x-loop') then while true do end end os.exit(1) end"}`
	)
	return policy{
		kind: "http_filter_lua", filter: "envoy.filters.http.lua", denies: http.StatusServiceUnavailable, flags: []string{"--allow-lua"}, unpredictable: true,
		config: refuse, changed: unsafe,
		requests: []request{
			{what: "one that the script refuses", off: "200", on: "403", changed: "503", both: "503"},
			{what: "one that the script lets pass", header: []string{"X-Team: shop"}, off: "200", on: "200", changed: "503", both: "503"},
			{what: "one that makes the script loop", header: []string{"X-Team: shop", "X-Loop: 1"}, off: "200", on: "200", changed: "503", both: "503"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "403", changed: "503", both: "503"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "403", changed: "503", both: "403"},
			{what: "a redirect", host: "moved.test", off: "301", on: "403", changed: "503", both: "403"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.script", "is required"},
			{`{"script":1}`, "Filter_config.script", "must be a string, not a number"},
			{`{"script":"a","upstreams":["a/b"]}`, "Filter_config.upstreams", `"a/b" may contain only the characters A-Z a-z 0-9 . _ -`},
			{`{"script":"a","upstream_headers":["cookie"]}`, "Filter_config.upstream_headers", `"cookie" carries the tokens of users and cannot be changed; choose another header`},
			{`{"code":""}`, "Filter_config", `unknown field "code"`},
		},
	}
}
