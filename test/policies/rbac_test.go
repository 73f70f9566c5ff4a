package policies_test

func rbac() policy {
	get := func(more string) string {
		return `{"allow":[{"methods":["GET","OPTIONS"],"paths":[{"segment":"/shop/"},{"exact":"/empty"}]},{"methods":["POST"],"paths":[{"prefix":"/shop/o"}]}]` + more + `}`
	}
	return policy{
		kind: "vh_filter_rbac", filter: "envoy.filters.http.rbac/access", denies: 403,
		config:  `{"allow":[{}],"deny":[{"methods":["GET"],"paths":[{"exact":"/shop"}]},{"paths":[{"prefix":"/Shop/secret"}]},{"headers":[{"name":"X-Plan","values":["free"]}],"addresses":["127.0.0.0/8"]},{"addresses":["192.0.2.0/24"]}]}`,
		changed: get(`,"deny":[{"paths":[{"segment":"/shop/secret"}]}]`),
		requests: []request{
			{what: "a plain one", off: "200", on: "403", changed: "200", both: "403"},
			{what: "another method", method: "DELETE", off: "200", on: "200", changed: "403", both: "403"},
			{what: "another method by a header", header: []string{"X-HTTP-Method-Override: DELETE"}, off: "200", on: "403", changed: "403", both: "403"},
			{what: "one with a query", path: "/shop?a=/secret", off: "200", on: "403", changed: "200", both: "403"},
			{what: "a path below", path: "/shop/a", off: "200", on: "200", changed: "200", both: "200"},
			{what: "a path beside", path: "/shopping", off: "200", on: "200", changed: "403", both: "403"},
			{what: "what a path begins with", method: "POST", path: "/shop/orders", off: "200", on: "200", changed: "200", both: "200"},
			{what: "what it does not", method: "POST", path: "/shop/a", off: "200", on: "200", changed: "403", both: "403"},
			{what: "what is denied", path: "/shop/secret", off: "200", on: "403", changed: "403", both: "403"},
			{what: "what is denied, in another case", path: "/shop/SECRET/x", off: "200", on: "403", changed: "403", both: "403"},
			{what: "what is denied, with a parameter", path: "/shop/secret;x=1", off: "200", on: "403", changed: "403", both: "403"},
			{what: "what is denied by header and address", path: "/shop/a", header: []string{"X-Plan: gold, FREE"}, off: "200", on: "403", changed: "200", both: "403"},
			{what: "what only the address is denied of", path: "/shop/a", header: []string{"X-Plan: gold"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "200", changed: "200", both: "200"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "503", changed: "503", both: "503"},
			{what: "another path there", path: "/empty/a", off: "503", on: "503", changed: "403", both: "503"},
			{what: "a redirect", host: "moved.test", off: "301", on: "301", changed: "301", both: "301"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config.allow", `has no rule, so nothing would be allowed; list what is allowed, or write {"allow":[{}]} and list in deny what is not`},
			{`{"allow":[{}],"deny":[{}]}`, "Filter_config.deny[0]", "has no condition, so nothing would be allowed; set methods, paths or claims"},
			{`{"allow":[{"methods":["get"]}]}`, "Filter_config.allow[0].methods[0]", `"get" has lowercase letters, and methods are case-sensitive: write GET`},
			{`{"allow":[{"methods":["A B"]}]}`, "Filter_config.allow[0].methods[0]", `"A B" is not an HTTP token`},
			{`{"allow":[{"paths":[{}]}]}`, "Filter_config.allow[0].paths[0]", `takes exactly one of exact, prefix and segment, such as {"segment":"/admin"}`},
			{`{"allow":[{"paths":[{"exact":"/a","prefix":"/a"}]}]}`, "Filter_config.allow[0].paths[0]", `takes exactly one of exact, prefix and segment, such as {"segment":"/admin"}`},
			{`{"allow":[{"paths":[{"exact":"a"}]}]}`, "Filter_config.allow[0].paths[0]", `"a" must start with "/"`},
			{`{"allow":[{"paths":[{"exact":"/a/../b"}]}]}`, "Filter_config.allow[0].paths[0]", `"/a/../b" matches no request: paths are normalized first, and have no //, dot segment, backslash or percent sign`},
			{`{"allow":[{"clients":["a/b/c"]}]}`, "Filter_config.allow[0].clients[0]", `"b/c" may contain only the characters A-Z a-z 0-9 . _ -`},
			{`{"allow":[{"headers":[{"name":":path"}]}]}`, "Filter_config.allow[0].headers[0].name", `":path" cannot be compared; methods and paths compare the request, and a service has its host`},
			{`{"allow":[{"addresses":["10.0.0.0/33"]}]}`, "Filter_config.allow[0].addresses", `"10.0.0.0/33" is not an address or a range such as 192.0.2.7, 10.0.0.0/8 or 2001:db8::/32`},
			{`{"allow":[{"claims":[{"claim":"a","values":[]}]}]}`, "Filter_config.allow[0].claims[0].values", "must list at least one value; a token needs one of them"},
		},
	}
}
