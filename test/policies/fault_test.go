package policies_test

func fault() policy {
	chosen := []string{"X-Envoy-Fault-Abort-Request: 502", "X-Envoy-Fault-Abort-Request-Percentage: 100", "X-Envoy-Fault-Delay-Request: 50000"}
	return policy{
		kind: "route_filter_fault", filter: "envoy.filters.http.fault",
		config:  `{"delay":"1ms","abort":418}`,
		changed: `{"abort":503,"header":"X-Chaos"}`,
		requests: []request{
			{what: "a plain one", off: "200", on: "418", changed: "200", both: "200"},
			{what: "one with the header", header: []string{"x-chaos: 0"}, off: "200", on: "418", changed: "503", both: "503"},
			{what: "one that asks for faults of its own", header: chosen, off: "200", on: "418", changed: "200", both: "200"},
			{what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200", on: "418", changed: "200", both: "200"},
			{what: "a route without upstreams", path: "/empty", off: "503", on: "418", changed: "503", both: "418"},
			{what: "a redirect", host: "moved.test", off: "301", on: "418", changed: "301", both: "418"},
			{what: "a path that no route has", path: "/nowhere", off: "404", on: "404", changed: "404", both: "404"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", `does nothing; set delay or abort, such as {"abort":503,"percent":10}`},
			{`{"delay":60001}`, "Filter_config.delay", "1m0.001s is not between 1ms and 1m"},
			{`{"delay":"2 s"}`, "Filter_config", `"2 s" is not a duration such as "1.5s"`},
			{`{"abort":200}`, "Filter_config.abort", "200 is not between 400 and 599"},
			{`{"abort":503,"percent":0}`, "Filter_config.percent", "0 is not between 0.0001 and 100"},
			{`{"abort":503,"percent":100.1}`, "Filter_config.percent", "100.1 is not between 0.0001 and 100"},
			{`{"abort":503,"percent":0.12345}`, "Filter_config.percent", "0.12345 has more than four decimals"},
			{`{"abort":503,"percent":"10%"}`, "Filter_config.percent", "must be a number, not a string"},
			{`{"abort":503,"header":"x a"}`, "Filter_config.header", `"x a" is not an HTTP token`},
		},
	}
}
