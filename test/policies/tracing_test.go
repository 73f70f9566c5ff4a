package policies_test

// traced has no effect without a collector; test/e2e has one.
func traced() policy {
	same := func(what, said string, r request) request {
		r.what, r.off, r.on, r.changed, r.both = what, said, said, said, said
		return r
	}
	return policy{
		kind: "route_filter_tracing", silent: true,
		config:  `{"sampling":50,"tags":[{"name":"team","value":"shop"}]}`,
		changed: `{"tags":[{"name":"tenant","header":"x-tenant"}]}`,
		says:    from,
		requests: []request{
			same("a plain one", "200 blue", request{}),
			same("a route without upstreams", "503", request{path: "/empty"}),
			same("a redirect", "301", request{host: "moved.test"}),
			same("a path that no route has", "404", request{path: "/nowhere"}),
		},
		refusals: []refusal{
			{`{"sampling":-1}`, "Filter_config.sampling", "-1 is neither 0 nor between 0.01 and 100"},
			{`{"sampling":"all"}`, "Filter_config.sampling", "must be a number, not a string"},
			{`{"tags":[{"name":"a","header":"Cookie"}]}`, "Filter_config.tags[0].header", `"Cookie" has credentials, which do not belong into traces and logs`},
			{`{"tags":[{"name":"a"}]}`, "Filter_config.tags[0]", "needs exactly one of value, header, response_header, consumer"},
			{`{"tags":[{"name":"a b","value":"c"}]}`, "Filter_config.tags[0].name", `"a b" is not a name of up to 256 visible ASCII characters`},
		},
	}
}
