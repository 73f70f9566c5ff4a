package explain_test

import (
	"fmt"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("The routes after the selected one", func() {
	It("are listed with what would happen to them", func() {
		a := ask(state(host("shop", []string{"*"},
			answering("api", prefixed("/api")), answering("cart", prefixed("/cart")),
			answering("news", prefixed("/news")), answering("rest", prefixed("/")))), "http://h/cart")
		Expect(a.Route).To(Equal("cart"))
		Expect(a.Later).To(Equal([]explain.Route{
			{
				Route: "news", Message: "is not reached and would not match",
				Checks: []explain.Check{{Code: "path_prefix", Message: `path "/cart" does not begin with "/news"`}},
			},
			{
				Route: "rest", Matches: true, Message: "would match, but comes later",
				Checks: []explain.Check{{Code: "path_prefix", Holds: true, Message: `path "/cart" begins with "/"`}},
			},
		}))
		Expect(a.MoreRoutes).To(BeZero())
	})

	It("are limited, and routes that would match come first", func() {
		routes := []*routev3.Route{answering("chosen", prefixed("/"))}
		for i := range 30 {
			routes = append(routes, answering(fmt.Sprint("other", i), prefixed("/other")))
		}
		routes = append(routes, answering("shadowed", prefixed("/x")))
		a := ask(state(host("shop", []string{"*"}, routes...)), "http://h/x")
		Expect(a.Later).To(HaveLen(20))
		Expect(a.Later[0].Route).To(Equal("other0"))
		Expect(a.Later[18].Route).To(Equal("other18"))
		Expect(a.Later[19].Route).To(Equal("shadowed"))
		Expect(a.MoreRoutes).To(Equal(11))

		for i := range 30 {
			routes = append(routes, answering(fmt.Sprint("more", i), prefixed("/x")))
		}
		a = ask(state(host("shop", []string{"*"}, routes...)), "http://h/x")
		Expect(a.Later).To(HaveLen(20))
		Expect(a.Later[0].Route).To(Equal("shadowed"))
		Expect(a.Later[19].Route).To(Equal("more18"))
		Expect(a.MoreRoutes).To(Equal(41))
	})

	It("are not listed if no route was selected", func() {
		a := ask(state(host("shop", []string{"*"}, answering("cart", prefixed("/cart")))), "http://h/")
		Expect(a.Later).To(BeEmpty())
	})
})

var _ = Describe("A listener that Envoy refused", func() {
	refused := func(open string) explain.Answer {
		GinkgoHelper()
		have := state(host("shop", []string{"*"}, answering("cart", prefixed("/"))))
		have.Refused = []explain.RefusedListener{{Name: "http-0.0.0.0:8080", Text: "Address already in use", Open: open}}
		return ask(have, "http://h/")
	}

	It("takes no connection", func() {
		a := refused("")
		Expect(a.Code).To(Equal(explain.NoListener))
		Expect(a.Message).To(Equal("Envoy refused listener http-0.0.0.0:8080, so nothing accepts the connection: Address already in use"))
		Expect(a.Steps).To(HaveLen(1))
		Expect(a.Envoy).To(Equal(explain.Names{}))
	})

	DescribeTable("leaves an older one in use",
		func(open, step string) {
			a := refused(open)
			Expect(a.Code).To(Equal(explain.DirectResponse))
			Expect(a.Steps[0].Message).To(Equal(step))
			Expect(a.Envoy.Listener).To(Equal(open))
		},
		Entry("of the same name", "http-0.0.0.0:8080",
			"listener http-0.0.0.0:8080 accepts the connection in an older form, since Envoy refused the newest: Address already in use"),
		Entry("that it was to replace", "http-127.0.0.1:80",
			"listener http-127.0.0.1:80 accepts the connection; Envoy refused http-0.0.0.0:8080, which is to replace it: Address already in use"),
	)
})
