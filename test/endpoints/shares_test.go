package endpoints_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// both returns a host with one route to two upstreams, a and b, of these weights.
func both(weightA, weightB int, change ...func(*model.Upstream)) []model.Object {
	weighing := func(weight int) func(*model.Upstream) { return func(u *model.Upstream) { u.Weight = weight } }
	return append(service(1, "shop", "a"), upstream(1, "a", append(change, weighing(weightA))...), upstream(2, "b", append(change, weighing(weightB))...),
		&model.RouteUpstream{ID: 2, Service: "shop", Route: "root", Upstream: "b"})
}

// learned are the endpoints of a and b.
func learned(a, b []model.Endpoint) map[model.Key]*model.Endpoints {
	return map[model.Key]*model.Endpoints{model.UpstreamKey("a"): model.NewEndpoints(a...), model.UpstreamKey("b"): model.NewEndpoints(b...)}
}

// shares returns how many of n requests each backend answers.
func (g *gateway) shares(n int) map[string]int {
	list := map[string]int{}
	for range n {
		list[g.get("shop.test")]++
	}
	return list
}

// become waits until the shares of 40 requests are these.
func (g *gateway) become(want map[string]int) {
	GinkgoHelper()
	Eventually(g.shares).WithArguments(40).Should(Equal(want))
}

func checked(u *model.Upstream) { u.HCPath, u.HCIntervalSeconds = testkit.HealthPath, 1 }

var _ = Describe("Several discovered upstreams of a route", func() {
	It("have the shares of their weights, however many endpoints each has", func() {
		a1, a2, a3, b1 := backend("a1"), backend("a2"), backend("a3"), backend("b1")
		g := newGateway(learned([]model.Endpoint{at(a1), at(a2)}, []model.Endpoint{at(b1)}), both(100, 100)...)
		g.become(map[string]int{"a1": 10, "a2": 10, "b1": 20})
		before := g.ads.Snapshot("gw")

		By("adding endpoints, of which one drains")
		g.assign("a", at(a1), draining(a2), at(a3))
		g.become(map[string]int{"a1": 10, "a3": 10, "b1": 20})

		By("changing a weight")
		g.write(nil, both(100, 300)[5])
		g.become(map[string]int{"a1": 5, "a3": 5, "b1": 30})

		By("an endpoint that both have")
		g.assign("b", at(a1), at(b1))
		g.become(map[string]int{"a1": 20, "a3": 5, "b1": 15})

		By("removing the endpoints of one")
		g.assign("a")
		g.become(map[string]int{"a1": 20, "b1": 20})
		after := g.ads.Snapshot("gw")
		Expect(after.Clusters).To(Equal(before.Clusters))
		Expect(after.Hosts).To(Equal(before.Hosts))
	})

	It("get requests by their priorities, and a change of one loses none", func() {
		a1, a2, b1 := backend("a1"), backend("a2"), backend("b1")
		objects := both(100, 100)
		objects[5].(*model.Upstream).Priority = 4
		g := newGateway(learned([]model.Endpoint{at(a1), at(a2)}, []model.Endpoint{at(b1)}), objects...)
		g.become(map[string]int{"a1": 20, "a2": 20})
		stop := g.traffic("shop.test")
		By("an endpoint that drains, which does not count")
		g.assign("a", draining(a1), at(a2))
		g.become(map[string]int{"a2": 40})
		By("the same priority for both")
		g.assign("a", at(a1), at(a2))
		g.write(nil, both(100, 100)[5])
		g.become(map[string]int{"a1": 10, "a2": 10, "b1": 20})
		By("removing the endpoints of the first")
		g.write(nil, objects[5])
		g.become(map[string]int{"a1": 20, "a2": 20})
		g.assign("a")
		g.become(map[string]int{"b1": 40})
		stop()
	})

	It("leave their shares to the others under traffic, and answer 503 when nothing is left", func() {
		a, b := backend("a"), backend("b")
		g := newGateway(learned([]model.Endpoint{at(a)}, []model.Endpoint{at(b)}), both(100, 100, checked)...)
		g.become(map[string]int{"a": 20, "b": 20})
		stop := g.traffic("shop.test")
		b.SetHealthy(false)
		g.become(map[string]int{"a": 40})
		b.SetHealthy(true)
		grown(b)
		g.assign("a")
		g.become(map[string]int{"b": 40})
		stop()
		b.SetHealthy(false)
		g.become(map[string]int{"503": 40})
	})

	It("keep their weights with the strategy random, which knows no weights of endpoints", func() {
		a, b := backend("a"), backend("b")
		random := func(u *model.Upstream) { u.Strategy = "random" }
		g := newGateway(learned([]model.Endpoint{at(a)}, []model.Endpoint{at(b)}), both(100, 1, random)...)
		Expect(g.shares(200)["a"]).To(BeNumerically(">", 180), "about 198")
	})
})
