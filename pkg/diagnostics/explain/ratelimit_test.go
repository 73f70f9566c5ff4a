package explain_test

import (
	"net/netip"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/explain"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

// limiting is a state with one route, without an upstream, that has these
// limits.
func limiting(limits ...ir.RateLimit) explain.State {
	GinkgoHelper()
	return limitingBy(ir.Listener{RateLimit: &ir.RateLimitService{Domain: "1/edge", Headers: true, Status: 429}}, limits...)
}

// limitingBy is the same with the limits of a listener.
func limitingBy(l ir.Listener, limits ...ir.RateLimit) explain.State {
	GinkgoHelper()
	l.Address, l.Port, l.RateLimitEngine = "0.0.0.0", 8080, &ir.RateLimitEngine{Socket: "/run/engine.sock"}
	r := must(translate.Route(&ir.Route{Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"}, Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}}, RateLimits: limits}))
	have := state(host("shop", []string{"*"}, r))
	have.Listeners = []*snapshot.Resource{must(snapshot.NewListener(must(translate.Listener(l))))}
	for _, e := range must(translate.ListenerResources(l)).Extensions {
		have.Extensions = append(have.Extensions, must(snapshot.NewExtension(e)))
	}
	return have
}

var _ = Describe("A rate limit", func() {
	told := func(have explain.State, client, url string, headers ...string) explain.Filter {
		GinkgoHelper()
		r, errs := explain.NewRequest("", url, headers)
		Expect(errs).To(BeEmpty())
		r.Client = netip.MustParseAddr(client)
		a, err := explain.Explain(have, r)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Filters).To(HaveLen(2))
		Expect(a.Filters[0].Name).To(Equal("envoy.filters.http.ratelimit"))
		return a.Filters[0]
	}
	header := func(name, key string, skip bool) ir.RateLimitEntry {
		return ir.RateLimitEntry{Kind: ir.RateLimitHeader, Name: name, Key: key, SkipIfAbsent: skip}
	}
	address := ir.RateLimitEntry{Kind: ir.RateLimitAddress}

	It("is explained with what is sent and what is not", func() {
		have := limiting(ir.RateLimit{address}, ir.RateLimit{header("x-key", "key", false), address}, ir.RateLimit{header("x-key", "key", true), address})
		Expect(told(have, "192.0.2.7", "http://h/")).To(Equal(explain.Filter{
			Name: "envoy.filters.http.ratelimit", Message: "checks 2 of 3 descriptors in domain 1/edge",
			Descriptors: []explain.Descriptor{
				{Domain: "1/edge", Sent: true, Message: "remote_address=192.0.2.7", Entries: []explain.Entry{{Key: "remote_address", Value: "192.0.2.7"}}},
				{Domain: "1/edge", Message: "is not sent: header x-key is missing", Entries: []explain.Entry{}},
				{Domain: "1/edge", Sent: true, Message: "remote_address=192.0.2.7", Entries: []explain.Entry{{Key: "remote_address", Value: "192.0.2.7"}}},
			},
		}))
		Expect(told(have, "192.0.2.7", "http://h/", "X-Key: a", "X-Key: b").Descriptors[1].Message).To(Equal("key=a > remote_address=192.0.2.7"))
	})

	DescribeTable("uses", func(e ir.RateLimitEntry, client, url, want string) {
		Expect(told(limiting(ir.RateLimit{e}), client, url, "X-Key: ann").Descriptors[0].Message).To(Equal(want))
	},
		Entry("the IPv4 network", ir.RateLimitEntry{Kind: ir.RateLimitMaskedAddress, V4Mask: 20, V6Mask: 48}, "192.0.31.7", "http://h/", "masked_remote_address=192.0.16.0/20"),
		Entry("the IPv6 network", ir.RateLimitEntry{Kind: ir.RateLimitMaskedAddress, V4Mask: 20, V6Mask: 48}, "2001:db8:1:2::3", "http://h/",
			"masked_remote_address=2001:db8:1::/48"),
		Entry("a fixed value", ir.RateLimitEntry{Kind: ir.RateLimitGeneric, Value: "a"}, "::1", "http://h/", "generic_key=a"),
		Entry("the normalized path", ir.RateLimitEntry{Kind: ir.RateLimitPath, Key: "path"}, "::1", "http://h/a/../b?c", "path=/b"),
		Entry("the normalized path with its query, as a header", header(":path", "path", false), "::1", "http://h/a/../b?c", "path=/b?c"),
		Entry("a decoded parameter", ir.RateLimitEntry{Kind: ir.RateLimitQuery, Name: "k", Key: "key"}, "::1", "http://h/?%6b=%61%zz&k=2", "key=a%zz"),
		Entry("no parameter", ir.RateLimitEntry{Kind: ir.RateLimitQuery, Name: "k", Key: "key"}, "::1", "http://h/", "is not sent: query parameter k is missing"),
		Entry("nothing", ir.RateLimitEntry{Kind: ir.RateLimitQuery, Name: "k", Key: "key", SkipIfAbsent: true}, "::1", "http://h/", "is empty"),
		Entry("conditions that match", ir.RateLimitEntry{Kind: ir.RateLimitHeaderMatch, Value: "v", Headers: []ir.ValueMatch{{Name: "x-key"}}}, "::1", "http://h/", "header_match=v"),
		Entry("conditions that do not match", ir.RateLimitEntry{Kind: ir.RateLimitHeaderMatch, Value: "v", Headers: []ir.ValueMatch{{Name: "x-no"}}}, "::1", "http://h/",
			"is not sent: header x-no is missing; it must be present"),
		Entry("conditions that must not match", ir.RateLimitEntry{Kind: ir.RateLimitHeaderMatch, Value: "v", NoMatch: true, Headers: []ir.ValueMatch{{Name: "x-key"}}}, "::1", "http://h/",
			"is not sent: all conditions on headers hold"),
	)

	It("is explained with the rate that applies", func() {
		have := limiting(ir.RateLimit{address}, ir.RateLimit{header("x-no", "key", false)}, ir.RateLimit{header("x-key", "key", false)})
		have.Limits = func(domain string, descriptors [][]explain.Entry) ([]*explain.Limit, error) {
			Expect(domain).To(Equal("1/edge"))
			Expect(descriptors).To(Equal([][]explain.Entry{{{Key: "remote_address", Value: "::1"}}, {{Key: "key", Value: "ann"}}}))
			return []*explain.Limit{nil, {Limit: "key", Unit: "hour", RequestsPerUnit: 5, Shadow: true}}, nil
		}
		list := told(have, "::1", "http://h/", "X-Key: ann").Descriptors
		Expect(list).To(HaveLen(3))
		Expect(list[0].Message).To(Equal("remote_address=::1 meets no rate"))
		Expect(list[0].Limit).To(BeNil())
		Expect(list[1].Limit).To(BeNil())
		Expect(list[2].Message).To(Equal("key=ann meets key: 5 each hour, counted only"))
		Expect(list[2].Limit.RequestsPerUnit).To(BeEquivalentTo(5))
	})

	It("is explained for each domain, with what the proxy lacks", func() {
		have := limitingBy(ir.Listener{
			RateLimit:    &ir.RateLimitService{Domain: "1/edge", Status: 429},
			DomainLimits: map[string]*ir.RateLimitService{"api": {Domain: "2/api", Status: 429}, "other": {Domain: "3/other", Status: 429}},
		})
		limits := []ir.RateLimit{{address}}
		r := must(translate.Route(&ir.Route{
			Name: "root", Match: ir.Match{Path: "/", PathKind: "prefix"},
			Forward:      &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: &ir.Cluster{Name: "blue"}}}},
			DomainLimits: map[string][]ir.RateLimit{"api": limits, "gone": limits},
		}))
		have.Hosts = state(host("shop", []string{"*"}, r)).Hosts
		request, _ := explain.NewRequest("", "http://h/", nil)
		a, err := explain.Explain(have, request)
		Expect(err).NotTo(HaveOccurred())
		var said []string
		for _, f := range a.Filters {
			said = append(said, f.Name+" "+f.Message)
		}
		Expect(said).To(Equal([]string{
			"envoy.filters.http.ratelimit/api checks 1 of 1 descriptors in domain 2/api",
			"envoy.filters.http.router forwards the request, or answers as the route says",
			"envoy.filters.http.ratelimit/gone limits nothing: no rates of domain gone apply to the proxy",
		}))
	})

	It("limits nothing while no rates apply to the proxy", func() {
		nothing := explain.Filter{
			Name: "envoy.filters.http.ratelimit", Message: "limits nothing: no rates apply to the proxy",
			Descriptors: []explain.Descriptor{{
				Unknown: true, Message: "remote_address=::1 is not sent: no rates apply to the proxy", Entries: []explain.Entry{{Key: "remote_address", Value: "::1"}},
			}},
		}
		have := limitingBy(ir.Listener{}, ir.RateLimit{address})
		Expect(told(have, "::1", "http://h/")).To(Equal(nothing))

		By("and before the Envoy has the filter's configuration")
		have = limiting(ir.RateLimit{address})
		have.Extensions = nil
		Expect(told(have, "::1", "http://h/")).To(Equal(nothing))
	})

	It("is not passed if the route has none", func() {
		request, _ := explain.NewRequest("", "http://h/", nil)
		a, err := explain.Explain(limiting(), request)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Filters).To(HaveExactElements(HaveField("Name", "envoy.filters.http.router")))
	})
})
