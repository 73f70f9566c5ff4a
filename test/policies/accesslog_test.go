package policies_test

import "strings"

// accessLog has no effect that a client sees; test/e2e reads the logs.
func accessLog() policy {
	same := func(what, said string, r request) request {
		r.what, r.off, r.on, r.changed, r.both = what, said, said, said, said
		return r
	}
	return policy{
		kind: "route_filter_accesslog", filter: "envoy.filters.http.set_metadata/logs", silent: true,
		config: `{"logs":["shop"]}`, changed: `{"logs":[]}`,
		says: from,
		requests: []request{
			same("a plain one", "200 blue", request{}),
			same("a route without upstreams", "503", request{path: "/empty"}),
			same("a redirect", "301", request{host: "moved.test"}),
			same("a path that no route has", "404", request{path: "/nowhere"}),
		},
		refusals: []refusal{
			{`{}`, "Filter_config.logs", "is required; [] means no log"},
			{`{"logs":"shop"}`, "Filter_config.logs", "must be a list, not a string"},
			{`{"logs":["a/b"]}`, "Filter_config.logs[0]", `"a/b" may contain only the characters A-Z a-z 0-9 . _ -`},
			{`{"logs":["` + strings.Repeat(`a","`, 8) + `a"]}`, "Filter_config.logs", "has 9 names; at most 8 are allowed"},
		},
	}
}
