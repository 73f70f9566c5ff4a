package limits_test

import (
	"math"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/limits"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The name of a domain on the wire", func() {
	DescribeTable("is encoded and decoded", func(id int64, name, wire, back string) {
		Expect(limits.NewDomain(id, name, nil).Wire()).To(Equal(wire))
		gotID, gotName := limits.ParseWire(wire)
		Expect(gotID).To(Equal(id))
		Expect(gotName).To(Equal(back))
	},
		Entry("a one-digit id", int64(1), "edge", "1/edge", "edge"),
		Entry("the largest digit", int64(35), "edge", "z/edge", "edge"),
		Entry("a two-digit id", int64(36), "edge", "10/edge", "edge"),
		Entry("the largest id", int64(math.MaxInt64), "edge", "1y2p0ij32e8e7/edge", "edge"),
		Entry("a name with a slash", int64(2), "a/b", "2/a/b", "a/b"),
		Entry("a name with an underscore", int64(2), "a_b", "2/a_b", "a_b"),
		Entry("a name with dots, which are lost", int64(2), "shop.example.com", "2/shop-example-com", "shop-example-com"),
	)

	It("has the id 0 for filters that state their own limit", func() {
		Expect(limits.StatedDomain(nil).Wire()).To(Equal("0/stated-by-filters"))
	})

	It("has no id if Gatehouse did not create it", func() {
		for _, wire := range []string{"", "edge", "?/edge", "99999999999999999999/edge"} {
			id, _ := limits.ParseWire(wire)
			Expect(id).To(BeZero(), wire)
		}
	})
})

var _ = Describe("The domains of a proxy", func() {
	tree := &model.ProxyTree{Proxy: &model.Proxy{Name: "gw"}}
	for i, name := range []string{"edge", "shop", "edge", "shop", "api"} {
		tree.GlobalConfigs = append(tree.GlobalConfigs, (&model.GlobalConfig{
			ID: int64(i + 1), Name: string(rune('a' + i)), Type: model.GlobalConfigRateLimit, Config: model.JSON(`{"domain":"` + name + `"}`),
		}).Parse())
	}

	It("are the first by name, and the first by name of each domain that filters name", func() {
		got := limits.OfProxy(tree, []string{"edge", "shop", "absent"})
		Expect(got.Default.Wire()).To(Equal("1/edge"))
		Expect(got.Named).To(HaveLen(3), "and that of filters that state their own limit")
		Expect(got.Named["edge"].Wire()).To(Equal("1/edge"))
		Expect(got.Named["shop"].Wire()).To(Equal("2/shop"))
	})

	It("include the one for filters that state their own limit, on every proxy, before a filter does", func() {
		got := limits.OfProxy(&model.ProxyTree{}, nil)
		Expect(got.Default).To(BeNil())
		Expect(got.Named["stated-by-filters"].Wire()).To(Equal("0/stated-by-filters"))
	})
})

var _ = Describe("The paths of limits", func() {
	rules := []model.RateLimitRule{rateOf("generic_key=shop>remote_address"), rateOf("path"), {Key: "bare"}}

	It("are those of the rules with a rate", func() {
		got := limits.ByPath(rules)
		Expect(got).To(HaveLen(2))
		Expect(got["generic_key=shop > remote_address"]).To(BeIdenticalTo(rules[0].Descriptors[0].RateLimit))
		Expect(got["path"]).To(BeIdenticalTo(rules[1].RateLimit))
	})

	It("are known for those that a filter may match, each once", func() {
		f := filterOf(`{"generic_key":"shop","remote_address":"x"},{"generic_key":"shop","remote_address":"y"},{"path":"x"},{"method":"x"}`)
		Expect(limits.Met(f, rules)).To(Equal([]string{"generic_key=shop > remote_address", "path"}))
	})
})
