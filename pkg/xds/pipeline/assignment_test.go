package pipeline_test

import (
	"fmt"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
)

// discoveredServices are services, each with a discovered upstream of five endpoints.
func discoveredServices(n int) model.Change {
	c := manyServices(n)
	c.Endpoints = map[model.Key]*model.Endpoints{}
	for i := range n {
		c.Endpoints[model.UpstreamKey(fmt.Sprintf("s%d", i))] = fiveEndpoints(0)
	}
	return c
}

func fiveEndpoints(edition int) *model.Endpoints {
	var list []model.Endpoint
	for i := range 5 {
		list = append(list, model.Endpoint{Address: fmt.Sprintf("10.0.%d.%d", edition, i), Port: 80, Zone: fmt.Sprint(i % 2)})
	}
	return model.NewEndpoints(list...)
}

func endpointsChange(i int) model.Change {
	return model.Change{Revision: 1, Endpoints: map[model.Key]*model.Endpoints{model.UpstreamKey("s7"): fiveEndpoints(i % 2)}}
}

// BenchmarkEndpoints changes the endpoints of one upstream, among more and more
// services.
func BenchmarkEndpoints(b *testing.B) {
	for _, services := range []int{10, 2_000, 10_000} {
		b.Run(fmt.Sprintf("services=%d", services), func(b *testing.B) {
			build, err := pipeline.NewBuild(compile.Settings{})
			if err != nil {
				b.Fatal(err)
			}
			build.Apply(discoveredServices(services))
			b.ReportAllocs()
			b.ResetTimer()
			for i := range b.N {
				build.Apply(endpointsChange(i + 1))
			}
		})
	}
}

var _ = Describe("A change of endpoints", func() {
	It("rebuilds one assignment, and nothing else, however many services there are", func() {
		allocations := func(services int) float64 {
			b := newBuild()
			before := b.Apply(discoveredServices(services)).Snapshots["gw"]
			Expect(before.Endpoints).To(HaveLen(services))
			routes := before.Routes(before.Hosts)
			i := 0
			count := testing.AllocsPerRun(21, func() {
				i++
				result := b.Apply(endpointsChange(i))
				after := result.Snapshots["gw"]
				if &after.Clusters[0] != &before.Clusters[0] || &after.Hosts[0] != &before.Hosts[0] || after.Routes(after.Hosts) != routes {
					panic("a cluster, a host or the route configuration was made again")
				}
			})
			after := b.Apply(endpointsChange(1)).Snapshots["gw"]
			different := 0
			for k := range after.Endpoints {
				if after.Endpoints[k] != before.Endpoints[k] {
					different++
					Expect(after.Endpoints[k].Name).To(Equal("s7"))
				}
			}
			Expect(different).To(Equal(1))
			return count
		}
		few, many := allocations(20), allocations(2000)
		AddReportEntry("allocations", fmt.Sprintf("a change of the endpoints of one upstream: %.0f of 20 services, %.0f of 2000", few, many))
		Expect(many).To(BeNumerically("<", few+20))
	})

	It("rebuilds the assignments of the clusters that contain the upstream, and so does its weight", func() {
		b := newBuild()
		c := discoveredServices(4)
		link := func(service, upstream string) model.Entry {
			o := &model.RouteUpstream{ID: 99, Service: service, Route: "root", Upstream: upstream}
			return model.Entry{Key: o.Key(), Object: o}
		}
		c.Entries = append(c.Entries, link("s0", "s1"), link("s2", "s0"))
		before := b.Apply(c).Snapshots["gw"]
		// changed returns the names of the assignments that a change changes, and checks that it changes no cluster and no
		// route.
		changed := func(change model.Change) (names []string) {
			GinkgoHelper()
			after := b.Apply(change).Snapshots["gw"]
			Expect(after.Clusters).To(Equal(before.Clusters))
			Expect(after.Hosts).To(Equal(before.Hosts))
			for i, r := range after.Endpoints {
				if r.Version != before.Endpoints[i].Version {
					names = append(names, r.Name)
				}
			}
			before = after
			return names
		}
		endpoints := func(upstream string, edition int) model.Change {
			moved := map[model.Key]*model.Endpoints{model.UpstreamKey(upstream): fiveEndpoints(edition)}
			return model.Change{Revision: 1, Endpoints: moved}
		}
		Expect(changed(endpoints("s0", 1))).To(Equal([]string{"s0+s1", "s0+s2"}))
		Expect(changed(endpoints("s1", 2))).To(Equal([]string{"s0+s1", "s1"}))
		Expect(changed(endpoints("s3", 1))).To(Equal([]string{"s3"}))
		heavy := model.NewUpstream()
		heavy.ID, heavy.Name, heavy.IP, heavy.Port, heavy.Weight = 1, "s1", "127.0.0.1", 80, 300
		weighed := model.Change{Revision: 2, Entries: []model.Entry{{Key: heavy.Key(), Object: heavy}}}
		Expect(changed(weighed)).To(Equal([]string{"s0+s1"}))
	})

	It("reaches the proxies that have the upstream, and no other", func() {
		b := newBuild()
		c := discoveredServices(1)
		other := proxyNamed("other")
		other.ID = 99
		c.Entries = append(c.Entries, model.Entry{Key: other.Key(), Object: other})
		b.Apply(c)
		change := model.Change{Revision: 1, Endpoints: map[model.Key]*model.Endpoints{model.UpstreamKey("s0"): fiveEndpoints(1)}}
		result := b.Apply(change)
		Expect(result.Snapshots).To(And(HaveLen(1), HaveKey("gw")))
		Expect(result.Conditions).To(HaveKeyWithValue("endpoints s0", BeEmpty()))
		Expect(b.Apply(change).Snapshots).To(BeEmpty(), "they are as they were")
		Expect(b.Apply(model.Change{Revision: 2, Entries: []model.Entry{{Key: other.Key()}, {Key: model.ProxyKey("late"), Object: proxyNamed("late")},
			{Key: model.ProxyServiceKey("late", "s0"), Object: &model.ProxyService{ID: 1, Proxy: "late", Service: "s0"}}}}).Snapshots["late"].Endpoints).
			To(HaveLen(1), "a proxy that is new has them too")
	})

	It("removes them with the cluster, and gives the cluster fixed addresses when discovery ends", func() {
		b := newBuild()
		b.Apply(discoveredServices(1))
		key := model.UpstreamKey("s0")
		s := b.Apply(model.Change{Revision: 1, Endpoints: map[model.Key]*model.Endpoints{key: nil}}).Snapshots["gw"]
		Expect(s.Endpoints).To(BeEmpty())
		Expect(s.Clusters).To(ContainElement(HaveField("Discovered", false)))
		s = b.Apply(model.Change{Revision: 1, Endpoints: map[model.Key]*model.Endpoints{key: fiveEndpoints(1)}}).Snapshots["gw"]
		Expect(s.Endpoints).To(HaveLen(1))
		s = b.Apply(model.Change{Revision: 2, Entries: []model.Entry{{Key: model.RouteUpstreamKey("s0", "root", "s0")}}}).Snapshots["gw"]
		Expect(s.Endpoints).To(BeEmpty(), "nothing names the cluster")
	})
})
