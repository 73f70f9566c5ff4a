package explain_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// test/policies shows that Envoy does the same.
var _ = Describe("A route that redirects", func() {
	have := func(to ir.Redirect) explain.State {
		GinkgoHelper()
		to.Status = 307
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*"}))
		r := must(snapshot.NewRoute(must(translate.Route(&ir.Route{Name: "root", Match: ir.Match{Path: "/shop", PathKind: "prefix"}, Redirect: &to}))))
		return state(must(snapshot.NewHost(vh, []*snapshot.Route{r}, snapshot.ObjectRef{})))
	}

	DescribeTable("sends the client to", func(to ir.Redirect, url, location string) {
		a := ask(have(to), url)
		Expect(a.Code).To(Equal(explain.Redirected))
		Expect(a.Status).To(Equal(307))
		Expect(a.Location).To(Equal(location))
	},
		Entry("another host, on the usual port", ir.Redirect{Host: "new.test"}, "http://h:8080/shop?a", "http://new.test/shop?a"),
		Entry("an IPv6 address", ir.Redirect{Host: "2001:db8::1", Port: 1}, "http://h:8080/shop", "http://[2001:db8::1]:1/shop"),
		Entry("another port", ir.Redirect{Port: 8443}, "http://h:8080/shop", "http://h:8443/shop"),
		Entry("another scheme, without its old port", ir.Redirect{Scheme: "https"}, "http://h:80/shop", "https://h/shop"),
		Entry("another scheme, with a port of its own", ir.Redirect{Scheme: "https"}, "http://h:443/shop", "https://h:443/shop"),
		Entry("the same scheme, with its port", ir.Redirect{Scheme: "http", StripQuery: true}, "http://h:80/shop?a", "http://h:80/shop"),
		Entry("a path with the old query", ir.Redirect{Path: "/new"}, "http://h/shop?a", "http://h/new?a"),
		Entry("a path with its own query, which is kept", ir.Redirect{Path: "/new?b", StripQuery: true}, "http://h/shop?a", "http://h/new?b"),
		Entry("a path with only its own query", ir.Redirect{Path: "/new?b"}, "http://h/shop?a", "http://h/new?b"),
		Entry("another prefix", ir.Redirect{Rewrite: ir.Rewrite{Prefix: "/v2"}}, "http://h/shop/a?b", "http://h/v2/a?b"),
		Entry("no prefix", ir.Redirect{Rewrite: ir.Rewrite{Prefix: "/"}}, "http://h/shop/a", "http://h/a"),
		Entry("a path from an expression, with a slash added", ir.Redirect{Rewrite: ir.Rewrite{Regex: "^/s(h)", Substitution: `\1`}}, "http://h/shop", "http://h/hop"),
	)
})
