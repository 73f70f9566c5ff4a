package policies_test

import "strings"

func bodyLimit() policy {
	const preflight = "Access-Control-Request-Method: PUT"
	ten, fifty := strings.Repeat("a", 10), strings.Repeat("a", 50)
	return policy{
		kind: "route_filter_bodylimit", filter: "envoy.filters.http.buffer", denies: 413,
		config:  `{"bytes":10}`,
		changed: `{"bytes":100,"decompress":true}`,
		requests: []request{
			{what: "a body", method: "POST", body: fifty, off: "200", on: "413", changed: "200", both: "200"},
			{what: "a body that is just as long", method: "POST", body: ten, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a large body", method: "PUT", body: fifty + fifty + "a", off: "200", on: "413", changed: "413", both: "413"},
			{what: "a body of a GET", body: fifty, off: "200", on: "413", changed: "200", both: "200"},
			{what: "none", off: "200", on: "200", changed: "200", both: "200"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", preflight}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a body for a route without upstreams", method: "POST", path: "/empty", body: fifty, off: "503", on: "413", changed: "503", both: "413"},
			{what: "a redirect", host: "moved.test", method: "POST", body: fifty, off: "308", on: "308", changed: "308", both: "308"},
			{what: "a path that no route has", path: "/nowhere", method: "POST", body: fifty, off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.bytes", "0 is not between 1 and 104857600"},
			{`{"bytes":104857601}`, "Filter_config.bytes", "104857601 is not between 1 and 104857600"},
			{`{"bytes":"10MB"}`, "Filter_config.bytes", "must be a whole number, not a string"},
			{`{"bytes":10,"unpack":true}`, "Filter_config", `unknown field "unpack"`},
		},
	}
}
