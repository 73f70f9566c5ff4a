package compile_test

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = Describe("The weights of endpoints of several upstreams", func() {
	// share is an upstream with n endpoints that receive requests, from an address on, and some that drain.
	share := func(upstream string, weight, from, n, draining int) compile.Share {
		var list []model.Endpoint
		for i := range n + draining {
			at := from + i
			list = append(list, model.Endpoint{Address: fmt.Sprintf("10.%d.%d.%d", at>>16, at>>8&255, at&255), Port: 80, Draining: i >= n})
		}
		a, _ := compile.Assignment(upstream, model.NewEndpoints(list...), compile.Settings{})
		return compile.Share{Assignment: a, Weight: weight}
	}
	// told are endpoints as text.
	told := func(a *ir.Assignment) (list []string) {
		for _, e := range a.Endpoints {
			text := fmt.Sprintf("%s %s %d", e.Upstream, e.Address, e.Weight)
			if e.Draining {
				text += " draining"
			}
			list = append(list, text)
		}
		return list
	}
	DescribeTable("are the upstreams' weights, divided among their endpoints", func(shares []compile.Share, want ...string) {
		a := compile.JoinAssignments("a+b", shares)
		Expect(told(a)).To(Equal(want))
		Expect(a.Name).To(Equal("a+b"))
	},
		Entry("equal", []compile.Share{share("a", 100, 1, 1, 0), share("b", 100, 9, 1, 0)}, "a 10.0.0.1 1", "b 10.0.0.9 1"),
		Entry("in small numbers", []compile.Share{share("a", 300, 1, 2, 0), share("b", 100, 7, 3, 0)},
			"a 10.0.0.1 9", "a 10.0.0.2 9", "b 10.0.0.7 2", "b 10.0.0.8 2", "b 10.0.0.9 2"),
		Entry("without those that drain", []compile.Share{share("a", 100, 1, 1, 1), share("b", 100, 8, 2, 0)},
			"a 10.0.0.1 2", "a 10.0.0.2 1 draining", "b 10.0.0.8 1", "b 10.0.0.9 1"),
		Entry("with those that drain, if all do", []compile.Share{share("a", 100, 1, 0, 1), share("b", 100, 9, 1, 0)},
			"a 10.0.0.1 1", "b 10.0.0.9 1"),
		Entry("without an upstream that has none", []compile.Share{share("a", 100, 1, 0, 0), share("b", 7, 9, 1, 0)}, "b 10.0.0.9 1"),
		Entry("without an upstream of weight 0", []compile.Share{share("a", 0, 1, 1, 0), share("b", 7, 9, 1, 0)}, "b 10.0.0.9 1"),
		Entry("added for an address that several have", []compile.Share{share("a", 100, 1, 2, 0), share("b", 300, 2, 1, 0)},
			"a 10.0.0.1 1", "a 10.0.0.2 7"),
		Entry("where such an address drains for one", []compile.Share{share("a", 100, 1, 1, 1), share("b", 300, 2, 1, 0)},
			"a 10.0.0.1 1", "a 10.0.0.2 3"),
		Entry("where it drains for all", []compile.Share{share("a", 100, 1, 1, 1), share("b", 100, 2, 0, 1), share("c", 300, 9, 1, 0)},
			"a 10.0.0.1 1", "a 10.0.0.2 1", "c 10.0.0.9 3"),
	)

	It("have Priorities of assignments without gaps, whatever upstreams have endpoints", func() {
		at := func(s compile.Share, priority int) compile.Share {
			s.Priority = priority
			return s
		}
		a := compile.JoinAssignments("x", []compile.Share{at(share("a", 100, 1, 0, 0), 0), at(share("b", 100, 2, 1, 0), 3), at(share("c", 100, 3, 1, 0), 7)})
		Expect(a.Endpoints).To(HaveLen(2))
		Expect([]int{a.Endpoints[0].Priority, a.Endpoints[1].Priority}).To(Equal([]int{0, 1}))
	})

	It("are nearly exact where exact ones would exceed what Envoy takes", func() {
		a := compile.JoinAssignments("x", []compile.Share{
			share("a", 1_000_000, 1, 997, 0), share("b", 999_983, 2000, 991, 0), share("c", 1, 4000, 983, 0),
		})
		sum, shares := uint64(0), map[string]uint64{}
		for _, e := range a.Endpoints {
			sum += uint64(e.Weight)
			shares[e.Upstream] += uint64(e.Weight)
		}
		Expect(a.Endpoints).To(HaveLen(997 + 991 + 983))
		Expect(sum).To(And(BeNumerically("<=", uint64(1<<32-1)), BeNumerically(">", 1<<30)))
		Expect(float64(shares["a"]) / float64(sum)).To(BeNumerically("~", 0.500004, 0.000003))
		Expect(shares["c"]).To(BeNumerically("~", 983, 983), "the least that Envoy takes")
	})
})

var _ = Describe("The clusters of discovered upstreams", func() {
	discovered := func(name, strategy string) *model.Upstream {
		u := upstream(name)
		u.Strategy = strategy
		return u.Discovered(true)
	}
	names := func(list ...*model.Upstream) (names []string) {
		for _, c := range compile.Clusters(list, compile.Credentials{}) {
			names = append(names, fmt.Sprintf("%s %d", c.Name, c.Share))
		}
		return names
	}

	It("are shared by those with equal settings, and with no upstream that is not discovered", func() {
		Expect(names(discovered("a", "round_robin"), upstream("b"), discovered("c", "round_robin"), discovered("d", "least_request"))).
			To(Equal([]string{"a+c 200", "b 100", "d 100"}))
	})
	It("are their own with the strategy random, which would ignore their weights", func() {
		Expect(names(discovered("a", "random"), discovered("b", "random"))).To(Equal([]string{"a 100", "b 100"}))
	})
})
