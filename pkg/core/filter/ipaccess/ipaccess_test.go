package ipaccess_test

import (
	"net/http"
	"net/netip"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/filtertest"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/ipaccess"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestIPAccess(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "ipaccess")
}

// test/policies shows that Envoy does what the messages say, and the golden case filter-ipaccess shows the messages.
var _ = Describe("The filter that checks the client's address", func() {
	ranges := func(texts ...string) (list []netip.Prefix) {
		for _, t := range texts {
			list = append(list, netip.MustParsePrefix(t))
		}
		return list
	}
	// from returns a request of a client to a host with lists, and to a route with others or none.
	from := func(client string, ofHost, ofRoute *ipaccess.Access) seam.Request {
		GinkgoHelper()
		values := func(a *ipaccess.Access) ir.Filters {
			if a == nil {
				return nil
			}
			return ir.Filters{"ipAccess": a}
		}
		r, err := filtertest.Request(ipaccess.Filter(), values(ofHost), values(ofRoute), http.MethodGet)
		Expect(err).NotTo(HaveOccurred())
		r.Client = client
		return r
	}
	refusal := func(r seam.Request) *seam.Refusal {
		GinkgoHelper()
		refused, err := ipaccess.Filter().Refuse(r)
		Expect(err).NotTo(HaveOccurred())
		return refused
	}
	lists := &ipaccess.Access{
		Allow: [][]netip.Prefix{ranges("192.0.2.0/24", "2001:db8::/32"), ranges("192.0.2.0/25", "2001:db8::/32")},
		Deny:  ranges("192.0.2.7/32"),
	}

	DescribeTable("reports which range decides", func(client string, allows bool, why string) {
		r := from(client, lists, nil)
		if allows {
			Expect(refusal(r)).To(BeNil())
			Expect(ipaccess.Filter().Describe(r)).To(Equal("allows " + client + ": it " + why))
			return
		}
		Expect(refusal(r)).To(Equal(&seam.Refusal{
			Code: "address_refused", Message: "a vh_filter_ipaccess does not allow " + client + ": it " + why,
			Details: "rbac_access_denied_matched_policy[address_refused]", Status: 403, Body: "RBAC: access denied",
		}))
	},
		Entry(nil, "192.0.2.8", true, "is in 192.0.2.0/25"),
		Entry(nil, "2001:db8::1", true, "is in 2001:db8::/32"),
		Entry("IPv4 in IPv6", "::ffff:192.0.2.8", true, "is in ::ffff:192.0.2.0/121"),
		Entry("denied", "192.0.2.7", false, "is in 192.0.2.7/32"),
		Entry("denied IPv4 in IPv6", "::ffff:192.0.2.7", false, "is in ::ffff:192.0.2.7/128"),
		Entry("in one list of two", "192.0.2.200", false, "is in none of the ranges"),
		Entry("in none", "198.51.100.1", false, "is in none of the ranges"),
	)

	It("prefers the route's configuration", func() {
		other := &ipaccess.Access{Deny: ranges("198.51.100.0/24")}
		Expect(refusal(from("192.0.2.7", lists, other))).To(BeNil())
		Expect(refusal(from("198.51.100.1", nil, other))).NotTo(BeNil())
	})

	It("allows nobody if the list is empty", func() {
		none := [][]netip.Prefix{{}}
		Expect(refusal(from("192.0.2.7", &ipaccess.Access{Allow: none, Deny: ranges("198.51.100.0/24")}, nil))).NotTo(BeNil())
		Expect(refusal(from("192.0.2.7", &ipaccess.Access{Allow: none}, nil))).NotTo(BeNil())
	})

	It("combines the lists of several filters, and leaves copies of the route as they were", func() {
		add := func(r *ir.Route, f *model.IPAccessFilter) {
			GinkgoHelper()
			Expect(ipaccess.Filter().Config.Route(r, f, seam.Place{})).To(Succeed())
		}
		var first ir.Route
		add(&first, &model.IPAccessFilter{Allow: []string{"10.1.2.3/8"}, Deny: []string{"192.0.2.7"}})
		second := first
		add(&second, &model.IPAccessFilter{Allow: []string{"10.1.0.0/16"}, Deny: []string{"10.0.0.1", "192.0.2.7"}})
		Expect(first.Filters).To(Equal(ir.Filters{"ipAccess": &ipaccess.Access{
			Allow: [][]netip.Prefix{ranges("10.0.0.0/8")}, Deny: ranges("192.0.2.7/32"),
		}}))
		Expect(second.Filters).To(Equal(ir.Filters{"ipAccess": &ipaccess.Access{
			Allow: [][]netip.Prefix{ranges("10.0.0.0/8"), ranges("10.1.0.0/16")}, Deny: ranges("10.0.0.1/32", "192.0.2.7/32"),
		}}))
	})
})
