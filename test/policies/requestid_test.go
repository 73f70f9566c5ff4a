package policies_test

import (
	"fmt"
	"regexp"
)

func requestID() policy {
	const name = "X-Request-Id"
	made := regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)
	return policy{
		kind: "http_filter_requestid", filter: "envoy.filters.http.header_mutation/requestid",
		config: `{"take_over":true}`, changed: `{"echo":true}`,
		// says is the ID that the backend received and, after the bar, that of the answer.
		says: func(a answer) string {
			seen, told := a.seen.Get(name), a.header.Get(name)
			if told != "" && (told == seen || seen == "") {
				told = "told"
			}
			if made.MatchString(seen) {
				seen = "new"
			}
			if copied := a.seen.Get("X-Envoy-Client-Request-Id"); copied != "" {
				seen += " and " + copied
			}
			return fmt.Sprint(a.status, " ", seen, " | ", told)
		},
		requests: []request{
			{what: "one without an ID", off: "200 new | ", on: "200 new | ", changed: "200 new | told", both: "200 new | told"},
			{what: "one with an ID", header: []string{"X-Request-Id: a-1"}, off: "200 new and a-1 | ", on: "200 a-1 | ", changed: "200 new | told", both: "200 new | told"},
			{
				what: "one that pretends to be the gateway", header: []string{"X-Envoy-Client-Request-Id: a-1"},
				off: "200 new | ", on: "200 new | ", changed: "200 new | told", both: "200 new | told",
			},
			{what: "a route without upstreams", path: "/empty", off: "503  | ", on: "503  | ", changed: "503  | told", both: "503  | "},
			{what: "a path that no route has", path: "/nowhere", off: "404  | ", on: "404  | ", changed: "404  | ", both: "404  | "},
		},
		refusals: []refusal{
			{`{"echo":"yes"}`, "Filter_config.echo", "must be true or false, not a string"},
			{`{"keep":true}`, "Filter_config", `unknown field "keep"`},
		},
	}
}
