package explain_test

import (
	"net/netip"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
)

var _ = Describe("The client", func() {
	// limited explains a request with a limit by address. It returns the
	// address and the message about it.
	limited := func(hops int, headers ...string) (client, told string) {
		GinkgoHelper()
		have := limitingBy(ir.Listener{TrustedHops: hops, RateLimit: &ir.RateLimitService{Domain: "1/edge", Status: 429}}, ir.RateLimit{{Kind: ir.RateLimitAddress}})
		r, errs := explain.NewRequest("", "http://h/", headers)
		Expect(errs).To(BeEmpty())
		r.Client = netip.MustParseAddr("192.0.2.7")
		a, err := explain.Explain(have, r)
		Expect(err).NotTo(HaveOccurred())
		for _, step := range a.Steps {
			if step.Code == "client" {
				told = step.Message
			}
		}
		Expect(a.Filters[0].Descriptors).To(HaveLen(1))
		return a.Filters[0].Descriptors[0].Entries[0].Value, told
	}
	fromRight := func(client, n string) string {
		return "the client is " + client + ", which is " + n + " from the right in X-Forwarded-For"
	}
	nobody := func(n string) string {
		return "X-Forwarded-For has no address " + n + " from the right, so the client is 192.0.2.7, the address of the connection"
	}

	DescribeTable("is found behind proxies", func(hops int, forwarded []string, client, told string) {
		var headers []string
		for _, f := range forwarded {
			headers = append(headers, "X-Forwarded-For: "+f)
		}
		gotClient, gotTold := limited(hops, headers...)
		Expect(gotClient).To(Equal(client))
		Expect(gotTold).To(Equal(told))
	},
		Entry("none", 0, []string{"10.0.0.1"}, "192.0.2.7", ""),
		Entry("one", 1, []string{"10.0.0.1, 10.0.0.2"}, "10.0.0.2", fromRight("10.0.0.2", "1")),
		Entry("two", 2, []string{"10.0.0.1 , 10.0.0.2"}, "10.0.0.1", fromRight("10.0.0.1", "2")),
		Entry("that add another header line", 1, []string{"10.0.0.1", "2001:DB8::0:1"}, "2001:db8::1", fromRight("2001:db8::1", "1")),
		Entry("that did not add their address", 1, nil, "192.0.2.7", nobody("1")),
		Entry("of which one did not add its address", 2, []string{"10.0.0.1"}, "192.0.2.7", nobody("2")),
		Entry("that added something that is not an address", 1, []string{"10.0.0.1, unknown"}, "192.0.2.7", nobody("1")),
		Entry("that added an address with a port", 1, []string{"10.0.0.1:80"}, "192.0.2.7", nobody("1")),
	)

	Context("behind a trusted proxy", func() {
		encrypted := prefixed("/")
		encrypted.Headers = []*routev3.HeaderMatcher{{
			Name: "x-forwarded-proto", HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Exact{Exact: "https"},
			}},
		}}
		behind := func(hops uint32) explain.State {
			return stateWith(func(l *hcmv3.HttpConnectionManager) { l.XffNumTrustedHops = hops },
				host("shop", []string{"*"}, answering("r", encrypted)))
		}

		It("used TLS if the proxy says so", func() {
			Expect(ask(behind(0), "http://h/", "X-Forwarded-Proto: https").Code).To(Equal(explain.NoRoute))
			Expect(ask(behind(1), "http://h/", "X-Forwarded-Proto: https").Code).To(Equal(explain.DirectResponse))
		})

		It("matches no route if the proxy sends an empty X-Forwarded-Proto", func() {
			a := ask(behind(1), "http://h/", "X-Forwarded-Proto:")
			Expect(a.Code).To(Equal(explain.NoRoute))
			Expect(a.Steps).To(ContainElement(explain.Step{
				Code: "route", Message: "the proxy in front sent an empty X-Forwarded-Proto, so Envoy looks for no route",
			}))
		})
	})
})
