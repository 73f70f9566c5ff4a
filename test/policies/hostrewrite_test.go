package policies_test

import (
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

func hostRewrite() policy {
	const one = `requires one of host, from_header and from_path, such as {"host":"inner.example.com"}`
	const inner, header = "200 inner.test:81 shop.test", "200 shop.test "
	return policy{
		kind:    "route_filter_host_rewrite",
		config:  `{"host":"inner.test:81"}`,
		changed: `{"from_header":"X-Tenant"}`,
		// says are the hosts that the backend received: Host and x-forwarded-host.
		says: func(a answer) string {
			if a.seen == nil {
				return ""
			}
			return strings.Join([]string{"200", a.host, strings.Join(a.seen["X-Forwarded-Host"], ",")}, " ")
		},
		requests: []request{
			{what: "a plain one", off: "200 shop.test ", on: inner, changed: header, both: header},
			{
				what: "one with the header", header: []string{"X-Tenant: a.test"}, off: "200 shop.test ", on: inner,
				changed: "200 a.test shop.test", both: "200 a.test shop.test",
			},
			{what: "one with an empty header", header: []string{"X-Tenant: "}, off: "200 shop.test ", on: inner, changed: header, both: header},
			{
				what: "one with two of them", header: []string{"X-Tenant: a.test", "X-Tenant: b.test"}, off: "200 shop.test ", on: inner,
				changed: "200 a.test shop.test", both: "200 a.test shop.test",
			},
			{
				what: "one with a forged x-forwarded-host", header: []string{"X-Forwarded-Host: evil.test"}, off: "200 shop.test ", on: inner, changed: header, both: header,
			},
			{
				what: "a preflight", method: "OPTIONS", header: []string{"Origin: https://a.test", "Access-Control-Request-Method: PUT"},
				off: "200 shop.test ", on: inner, changed: header, both: header,
			},
			{what: "a route without upstreams", path: "/empty"},
			{what: "a redirect", host: "moved.test"},
			{what: "a path that no route has", path: "/nowhere"},
		},
		refusals: []refusal{
			{`{}`, "Filter_config", one},
			{`{"host":"a.test","from_header":"x-a"}`, "Filter_config", one},
			{`{"host":"a b"}`, "Filter_config.host", `"a b" is not a host name or an address, optionally with a port`},
			{`{"host":"a.test/b"}`, "Filter_config.host", `"a.test/b" is not a host name or an address, optionally with a port`},
			{`{"from_header":":authority"}`, "Filter_config.from_header", `":authority" cannot hold a host for the upstream`},
			{`{"from_header":"Host"}`, "Filter_config.from_header", `"Host" cannot hold a host for the upstream`},
			{`{"from_header":"x a"}`, "Filter_config.from_header", `"x a" is not an HTTP token`},
			{`{"from_path":{"substitution":"a"}}`, "Filter_config.from_path.regex", "is required"},
			{`{"from_path":{"regex":"/(a)","substitution":"\\2.test"}}`, "Filter_config.from_path.substitution", `"\\2.test" refers to group 2, but the expression has only 1`},
			{`{"from_path":{"regex":"/(a)","substitution":"\\1/b"}}`, "Filter_config.from_path.substitution", `"\\1/b" does not make a host name, such as \1.example.com`},
			{`{"from_path":{"regex":"/(a)"}}`, "Filter_config.from_path.substitution", `"" does not make a host name, such as \1.example.com`},
		},
	}
}

var _ = Describe("A rewrite of the host", func() {
	It("makes the host that explain predicts, and never makes it the path", func() {
		w := newWorld(hostRewrite())
		w.post("/filter", "Filter_name=set", "Filter_type=route_filter_headers", `Filter_config={"request":{"set":{"x-tenant":"set.test"},"remove":["x-gone"]}}`)
		w.attach("/service/shop/filter/f")
		for _, try := range []struct{ config, path, host string }{
			{`{"from_path":{"regex":"/shop/([a-z0-9]+)(/.*)?","substitution":"\\1.inner.test"}}`, "/shop/a1/b?c=/shop/z", "a1.inner.test"},
			{`{"from_path":{"regex":"/shop/([a-z0-9]+)(/.*)?","substitution":"\\1.inner.test"}}`, "/shop/a1?b=%2F", "a1.inner.test"},
			{`{"from_path":{"regex":"/shop/([a-z0-9]+)|/shop/no","substitution":"\\1.inner.test"}}`, "/shop/a1", "a1.inner.test"},
			{`{"from_path":{"regex":"/shop/([a-z]+)","substitution":"\\1.inner.test"}}`, "/shop/UP", ""},
			{`{"from_path":{"regex":"/shop/([a-z]+)","substitution":"\\1.inner.test"}}`, "/shop", ""},
			{`{"from_path":{"regex":"/shop/([a-z]+)","substitution":"\\1.inner.test"}}`, "/shop/a/shop/b", ""},
			{`{"host":"[2001:db8::1]:8080"}`, "/shop", "[2001:db8::1]:8080"},
			{`{"from_header":"x-tenant"}`, "/shop", "set.test"},
			{`{"from_header":"x-gone"}`, "/shop", "shop.test"},
		} {
			w.configure(try.config)
			w.attach("/service/shop/filter/set")
			r := request{what: try.config, path: try.path, header: []string{"X-Tenant: client.test", "X-Gone: gone.test"}}
			a := w.send(r)
			Expect(a.host).To(Equal(try.host), "%s: %s", try.config, try.path)
			var list []struct{ Forward struct{ Host string } }
			w.read("/proxy/gw/explain?"+url.Values{"url": {"http://shop.test" + try.path}, "header": r.header}.Encode(), "core_db_explain", &list)
			Expect(list).To(HaveLen(1))
			Expect(list[0].Forward.Host).To(Equal(try.host), "explain of %s: %s", try.config, try.path)
			w.detach("/service/shop/filter/set")
		}
	})
})
