package explain_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

var _ = Describe("The filter that checks the client's address", func() {
	ranges := func(texts ...string) (list []netip.Prefix) {
		for _, t := range texts {
			list = append(list, netip.MustParsePrefix(t))
		}
		return list
	}
	// from explains a GET to a host with lists, and to a route with others or
	// none.
	from := func(client string, ofHost, ofRoute *ir.IPAccess) explain.Answer {
		GinkgoHelper()
		vh := must(translate.VirtualHost(&ir.Host{Name: "shop", Domain: "*", IPAccess: ofHost}))
		r := must(snapshot.NewRoute(must(translate.Route(&ir.Route{
			Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Respond: &ir.Respond{Status: 503}, IPAccess: ofRoute,
		}))))
		request, errs := explain.NewRequest("", "http://h/", nil)
		Expect(errs).To(BeEmpty())
		request.Client = netip.MustParseAddr(client)
		return must(explain.Explain(state(must(snapshot.NewHost(vh, []*snapshot.Route{r}, snapshot.ObjectRef{}))), request))
	}
	lists := &ir.IPAccess{
		Allow: [][]netip.Prefix{ranges("192.0.2.0/24", "2001:db8::/32"), ranges("192.0.2.0/25", "2001:db8::/32")}, Deny: ranges("192.0.2.7/32"),
	}

	DescribeTable("reports which range decides", func(client, refused, why string) {
		a := from(client, lists, nil)
		if refused == "" {
			Expect(a.Code).To(Equal("direct_response"))
			Expect(a.Filters[0]).To(Equal(explain.Filter{Name: "envoy.filters.http.rbac/ip", Message: "allows " + client + ": it " + why}))
			return
		}
		Expect(a.Code).To(Equal("address_refused"))
		Expect(a.Status).To(Equal(403))
		Expect(a.Body).To(Equal("requests from this address are not allowed here\n"))
		Expect(a.Message).To(Equal("a vh_filter_ipaccess does not allow " + client + ": it " + why))
	},
		Entry(nil, "192.0.2.8", "", "is in 192.0.2.0/25"),
		Entry(nil, "2001:db8::1", "", "is in 2001:db8::/32"),
		Entry("IPv4 in IPv6", "::ffff:192.0.2.8", "", "is in ::ffff:192.0.2.0/121"),
		Entry("denied", "192.0.2.7", "no", "is in 192.0.2.7/32"),
		Entry("denied IPv4 in IPv6", "::ffff:192.0.2.7", "no", "is in ::ffff:192.0.2.7/128"),
		Entry("in one list of two", "192.0.2.200", "no", "is in none of the ranges"),
		Entry("in none", "198.51.100.1", "no", "is in none of the ranges"),
	)

	It("prefers the route's configuration", func() {
		Expect(from("192.0.2.7", lists, &ir.IPAccess{Deny: ranges("198.51.100.0/24")}).Code).To(Equal("direct_response"))
		Expect(from("198.51.100.1", nil, &ir.IPAccess{Deny: ranges("198.51.100.0/24")}).Code).To(Equal("address_refused"))
	})

	It("allows nobody if the list is empty", func() {
		Expect(from("192.0.2.7", &ir.IPAccess{Allow: [][]netip.Prefix{{}}, Deny: ranges("198.51.100.0/24")}, nil).Code).To(Equal("address_refused"))
	})
})
