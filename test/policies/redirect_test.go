package policies_test

import "fmt"

func redirect() policy {
	const nowhere = `changes nothing; set scheme, host, port, path, prefix, regex or strip_query, such as {"path":"/new"}`
	return policy{
		kind:    "route_filter_redirect",
		config:  `{"host":"New.test","path":"/new","code":302}`,
		changed: `{"scheme":"https","port":8443,"prefix":"/v2","strip_query":true}`,
		says:    func(a answer) string { return fmt.Sprint(a.status, " ", a.header.Get("Location")) },
		requests: []request{
			{what: "a plain one", off: "200 ", on: "302 http://new.test/new", changed: "308 https://shop.test:8443/v2", both: "308 https://shop.test:8443/v2"},
			{
				what: "a query", path: "/empty/a?b=c", off: "503 ", on: "302 http://new.test/new?b=c",
				changed: "308 https://shop.test:8443/v2/a", both: "302 http://new.test/new?b=c",
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"}, off: "200 ",
				on: "302 http://new.test/new", changed: "308 https://shop.test:8443/v2", both: "308 https://shop.test:8443/v2",
			},
			{what: "a redirect to HTTPS", host: "moved.test", off: "301 https://moved.test/shop", on: "301 https://moved.test/shop", changed: "301 https://moved.test/shop", both: "301 https://moved.test/shop"},
			{what: "a path that no route has", path: "/nowhere", off: "404 ", on: "404 ", changed: "404 ", both: "404 "},
			{what: "a host that no service has", host: "else.test", off: "404 ", on: "404 ", changed: "404 ", both: "404 "},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", nowhere},
			{`{"code":301}`, "Filter_config", nowhere},
			{`{"scheme":"ftp"}`, "Filter_config.scheme", `"ftp" is not one of https, http`},
			{`{"host":"new.test:80"}`, "Filter_config.host", `"new.test:80" is not a host name or an address; port has a field of its own`},
			{`{"host":"%REQ(x)%"}`, "Filter_config.host", `"%REQ(x)%" is not a host name or an address; port has a field of its own`},
			{`{"port":65536}`, "Filter_config.port", "65536 is not between 1 and 65535"},
			{`{"path":"new"}`, "Filter_config.path", `"new" must start with "/"`},
			{`{"path":"/a#b"}`, "Filter_config.path", `"/a#b" must be a path without query (?) and fragment (#)`},
			{`{"prefix":"/a?b"}`, "Filter_config.prefix", `"/a?b" must be a path without query (?) and fragment (#)`},
			{`{"path":"/a","prefix":"/b"}`, "Filter_config", "takes only one of path, prefix and regex"},
			{`{"path":"/a","substitution":"/b"}`, "Filter_config.substitution", "requires regex"},
			{`{"regex":"/(a)","substitution":"/\\2"}`, "Filter_config.substitution", `"/\\2" refers to group 2, but the expression has only 1`},
			{`{"path":"/a","code":300}`, "Filter_config.code", "300 is not one of 301, 302, 303, 307, 308"},
		},
	}
}
