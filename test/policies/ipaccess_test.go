package policies_test

import "net/http"

func ipAccess() policy {
	const what = "is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32"
	return policy{
		kind: "vh_filter_ipaccess", filter: "envoy.filters.http.rbac/ip", denies: http.StatusForbidden,
		config:  `{"allow":["127.0.0.4/29"],"deny":["127.0.0.1"]}`,
		changed: `{"allow":["127.0.0.1","127.0.0.2"]}`,
		requests: []request{
			{what: "one that is allowed and denied", off: "200", on: "403", changed: "200", both: "403"},
			{what: "one of both lists", from: "127.0.0.2", off: "200", on: "200", changed: "200", both: "200"},
			{what: "one of the service's list", from: "127.0.0.3", off: "200", on: "200", changed: "403", both: "403"},
			{what: "one of no list", from: "127.0.0.9", off: "200", on: "403", changed: "403", both: "403"},
			{what: "one that makes up an address", header: []string{"X-Forwarded-For: 127.0.0.2"}, off: "200", on: "403", changed: "200", both: "403"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "403", changed: "200", both: "403"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "403", changed: "503", both: "403"},
			{what: "a redirect", host: "moved.test", off: "301", on: "403", changed: "301", both: "403"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
			{what: "a host that no service has", host: "else.test", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", `has no address; set allow or deny, such as {"allow":["192.0.2.0/24"]}`},
			{`{"allow":[],"deny":["192.0.2.1"]}`, "Filter_config.allow", "is empty, so no client would be allowed; name at least one address, or omit allow"},
			{`{"allow":["192.0.2.0/33"]}`, "Filter_config.allow", `"192.0.2.0/33" ` + what},
			{`{"deny":["localhost"]}`, "Filter_config.deny", `"localhost" ` + what},
			{`{"deny":["fe80::1%eth0"]}`, "Filter_config.deny", `"fe80::1%eth0" ` + what},
			{`{"deny":["::ffff:192.0.2.1"]}`, "Filter_config.deny", `"::ffff:192.0.2.1" ` + what},
			{`{"allow":"192.0.2.1"}`, "Filter_config.allow", "must be a list, not a string"},
			{`{"allow_countries":["UK"]}`, "Filter_config.allow_countries", `"UK" is not the code of a country with two letters (ISO 3166-1), such as DE`},
			{`{"deny_asns":["AS1"]}`, "Filter_config.deny_asns", "must be a whole number, not a string"},
			{`{"block":["192.0.2.1"]}`, "Filter_config", `unknown field "block"`},
		},
	}
}
