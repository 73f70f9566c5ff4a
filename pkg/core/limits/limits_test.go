package limits_test

import (
	"fmt"
	"math/rand/v2"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

// filterOf reads a filter's descriptors.
func filterOf(descriptors string) *model.RateLimitFilter {
	GinkgoHelper()
	f := (&model.Filter{Type: model.FilterRateLimit, Config: model.JSON(`{"descriptors":[` + descriptors + `]}`)}).Parse()
	Expect(f.Fault).NotTo(HaveOccurred())
	return f.Spec.(*model.RateLimitFilter)
}

// rateOf is a rule with a rate: "key", "key=value", and nested rules after ">".
func rateOf(path string) model.RateLimitRule {
	first, rest, nested := strings.Cut(path, ">")
	key, value, _ := strings.Cut(first, "=")
	if nested {
		return model.RateLimitRule{Key: key, Value: value, Descriptors: []model.RateLimitRule{rateOf(rest)}}
	}
	return model.RateLimitRule{Key: key, Value: value, RateLimit: &model.RateLimit{Unit: "day", RequestsPerUnit: 1}}
}

func domainOf(paths ...string) *limits.Domain {
	d := limits.NewDomain(1, "shop", nil)
	for _, p := range paths {
		d.Descriptors = append(d.Descriptors, rateOf(p))
	}
	return d
}

var _ = Describe("A descriptor", func() {
	DescribeTable("may match", func(descriptor string, paths ...string) {
		Expect(limits.Unmet(filterOf(descriptor), domainOf(paths...))).To(BeEmpty())
	},
		Entry("its key", `{"remote_address":"x"}`, "remote_address"),
		Entry("an address", `{"remote_address":"x"}`, "remote_address=192.0.2.1"),
		Entry("addresses with the same beginning", `{"remote_address":"x"}`, "remote_address=192.0.*"),
		Entry("a network", `{"masked_remote_address":"x"}`, "masked_remote_address=192.0.2.0/24"),
		Entry("any value of a header", `{"request_headers":"x-key"}`, "x-key=gold"),
		Entry("its fixed value", `{"generic_key":"a"}`, "generic_key=a"),
		Entry("its fixed value through a wildcard", `{"generic_key":"abc"}`, "generic_key=a*"),
		Entry("its fixed value through the key", `{"generic_key":"a"}`, "generic_key=b", "generic_key"),
		Entry("conditions on headers", `{"header_value_match":{"descriptor_value":"v","headers":[{"name":"a"}]}}`, "header_match=v"),
		Entry("nested parts in order", `{"generic_key":"a","method":"x"}`, "generic_key=a>method=POST"),
		Entry("a rule without the optional part", `{"generic_key":"a","request_headers":{"header_name":"k","descriptor_key":"k","skip_if_absent":true}}`, "generic_key=a"),
		Entry("a rule with the optional part", `{"generic_key":"a","request_headers":{"header_name":"k","descriptor_key":"k","skip_if_absent":true}}`, "generic_key=a>k"),
		Entry("a key that, once joined, looks like another's value", `{"request_headers":"k"}`, "k_a=b"),
		Entry("a rate of any of the rules with the same key", `{"method":"x","path":"x"}`, "method=GET", "method=POST>path"),
	)

	DescribeTable("matches no rate", func(descriptor, want string, paths ...string) {
		Expect(limits.Unmet(filterOf(descriptor), domainOf(paths...))).To(Equal([]string{want}))
	},
		Entry("in an empty domain", `{"path":"x"}`, `descriptor path meets no rate of domain "shop", which has no rates`),
		Entry("with another value", `{"generic_key":"shp"}`, `descriptor generic_key=shp meets no rate of domain "shop"; the nearest is generic_key=shop, with another value`,
			"generic_key=api", "generic_key=shop", "generic_kez=shp"),
		Entry("with a value that cannot be an address", `{"remote_address":"client"}`,
			`descriptor remote_address meets no rate of domain "shop"; the nearest is remote_address=client, with another value`, "remote_address=client"),
		Entry("with a value that cannot be a network", `{"masked_remote_address":"x"}`,
			`descriptor masked_remote_address meets no rate of domain "shop"; the nearest is masked_remote_address=192.0.2.1, with another value`, "masked_remote_address=192.0.2.1"),
		Entry("above the rate", `{"generic_key":"a"}`,
			`descriptor generic_key=a meets no rate of domain "shop"; the nearest is generic_key=a > method, which is deeper: a rate applies at its own depth only`, "generic_key=a>method"),
		Entry("below the rate", `{"generic_key":"a","path":"x"}`,
			`descriptor generic_key=a > path meets no rate of domain "shop"; the nearest is generic_key=a, which has fewer parts: a rate applies at its own depth only`, "generic_key=a"),
		Entry("in another order", `{"path":"x","method":"x"}`,
			`descriptor path > method meets no rate of domain "shop"; the nearest is method > path, in another order`, "method>path", "methods"),
		Entry("with another key", `{"request_headers":"api-key"}`,
			`descriptor api-key meets no rate of domain "shop"; the nearest is api_key`, "remote_address", "api_key"),
		Entry("below an exact value, from which the engine does not backtrack", `{"generic_key":"a","method":"x"}`,
			`descriptor generic_key=a > method meets no rate of domain "shop"; the nearest is generic_key > method, with another value`, "generic_key=a>path", "generic_key>method"),
	)

	It("with a rate in the engine is never reported as unmatched", func() {
		rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a seeded test
		pick := func(list ...string) string { return list[rng.IntN(len(list))] }
		values := []string{"", "", "a", "b", "a_b", "a*", "*"}
		var rule func(depth int) string
		rule = func(depth int) string {
			text := pick("k", "l", "k_a")
			if v := pick(values...); v != "" {
				text += "=" + v
			}
			if depth > 1 && rng.IntN(2) == 0 {
				return text + ">" + rule(depth-1)
			}
			return text
		}
		met, told := 0, 0
		for range 5_000 {
			domain := domainOf()
			for range 1 + rng.IntN(4) {
				domain.Descriptors = append(domain.Descriptors, rateOf(rule(3)))
			}
			if ratelimit.Check(domain) != nil {
				continue
			}
			var parts []string
			var sent []embedded.Entry
			for range 1 + rng.IntN(3) {
				key, value := pick("k", "l"), pick("a", "b", "a_b", "ab", "c")
				there := true
				switch rng.IntN(3) {
				case 0:
					parts = append(parts, fmt.Sprintf(`"generic_key":{"descriptor_key":%q,"descriptor_value":%q}`, key, value))
				case 1:
					parts = append(parts, fmt.Sprintf(`"request_headers":{"header_name":"h","descriptor_key":%q}`, key))
				default:
					there = rng.IntN(2) == 0
					parts = append(parts, fmt.Sprintf(`"query_parameters":{"query_parameter_name":"q","descriptor_key":%q,"skip_if_absent":true}`, key))
				}
				if there {
					sent = append(sent, embedded.Entry{Key: key, Value: value})
				}
			}
			found, err := embedded.Find(domain, [][]embedded.Entry{sent})
			Expect(err).NotTo(HaveOccurred())
			unmet := limits.Unmet(filterOf("{"+strings.Join(parts, ",")+"}"), domain)
			told += len(unmet)
			if found[0] != nil {
				met++
				Expect(unmet).To(BeEmpty(), "%v sent as %v to %v", parts, sent, domain.Descriptors)
			}
		}
		Expect(met).To(BeNumerically(">", 300))
		Expect(told).To(BeNumerically(">", 300))
	})
})

var _ = Describe("An Advisor", func() {
	place := func(proxy string, domains ...string) limits.Scope {
		tree := &model.ProxyTree{Proxy: &model.Proxy{Name: proxy}}
		for i, d := range domains {
			tree.GlobalConfigs = append(tree.GlobalConfigs, (&model.GlobalConfig{
				ID: int64(i), Name: d, Type: model.GlobalConfigRateLimit,
				Config: model.JSON(`{"domain":"` + d + `","descriptors":[{"key":"path","rate_limit":{"unit":"day"}}]}`),
			}).Parse())
		}
		return limits.Scope{Proxy: tree, Limits: limits.OfProxy(tree, []string{"shop"})}
	}

	link := model.RouteFilterKey("shop", "root", "each")
	advise := func(f *model.RateLimitFilter, places ...limits.Scope) []model.Condition {
		return limits.NewAdvisor().Advise(link, &model.ParsedFilter{Spec: f}, true, places)
	}

	It("reports nothing if the filter limits", func() {
		f := filterOf(`{"path":"x"}`)
		Expect(advise(f, place("a", "edge"), place("b", "shop"))).To(BeEmpty())
		f.Domain = "shop"
		Expect(advise(f, place("a", "edge", "shop"))).To(BeEmpty())
	})

	It("reports on which proxies it does not, and why", func() {
		f := filterOf(`{"path":"x"},{"method":"x"}`)
		f.Domain = "shop"
		Expect(advise(f,
			place("e"), place("d"), place("c"), place("a"), place("f", "shops"), place("g", "edge"), place("h", "shop"),
		)).To(Equal([]model.Condition{
			{Key: link, Code: "NoRates", Message: "limits nothing: no globalconfig_ratelimit applies (proxy a, c, d and 1 more)", Proxies: []string{"a", "c", "d", "e"}},
			{Key: link, Code: "UnknownDomain", Message: `limits nothing: no globalconfig_ratelimit of domain "shop" applies; the nearest is "shops" (proxy f)`, Proxies: []string{"f"}},
			{Key: link, Code: "UnknownDomain", Message: `limits nothing: no globalconfig_ratelimit of domain "shop" applies (proxy g)`, Proxies: []string{"g"}},
			{Key: link, Code: "NoMatchingRate", Message: `descriptor method meets no rate of domain "shop"; the nearest is path (proxy h)`, Proxies: []string{"h"}},
		}))
	})
})
