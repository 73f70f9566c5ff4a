package plan_test

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// wide is a world of n hosts, each with its own cluster.
func wide(revision int64, n int, warms bool, more ...*snapshot.Parts) *snapshot.Snapshot {
	for i := range n {
		more = append(more, host(fmt.Sprintf("h%05d", i), cluster(fmt.Sprintf("c%05d", i), 1, warms)))
	}
	return world(revision, more...)
}

var _ = Describe("many streams with the same resources", func() {
	const streams, hosts, most = 20, 2000, 16 << 10
	var (
		now  = time.Unix(1_800_000_000, 0)
		list [streams]*plan.Stream
	)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	// next lets each stream send. It acknowledges everything if ack is true.
	next := func(ack bool) {
		for _, s := range list {
			messages, _ := s.Next(now)
			for _, m := range messages {
				if ack {
					Expect(s.Ack(m.Nonce)).NotTo(BeNil())
				}
			}
		}
	}
	expectHeap := func(before uint64, when string) {
		GinkgoHelper()
		Expect((float64(heap())-float64(before))/streams).To(BeNumerically("<", most), "bytes of each stream %s", when)
	}

	It("store what is their own, and nothing for each resource", func() {
		first := wide(1, hosts, false)
		first.Routes(first.Hosts) // made once
		before := heap()
		for i := range list {
			s := plan.NewStream(plan.Options{})
			s.Subscribe(snapshot.ClusterType, nil, nil)
			s.Subscribe(snapshot.ListenerType, nil, nil)
			s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
			s.Want(first)
			list[i] = s
		}
		next(false)
		expectHeap(before, "while everything is under way")
		for _, s := range list {
			for nonce := range 10 {
				s.Ack(fmt.Sprint(nonce))
			}
		}
		next(true)
		expectHeap(before, "with everything")

		second := wide(2, hosts, false, host("new", cluster("new", 1, false)))
		second.Routes(second.Hosts)
		before = heap()
		for _, s := range list {
			s.Want(second)
		}
		next(false)
		expectHeap(before, "while a change is under way")
		for _, s := range list {
			_, applied := s.Applied()
			Expect(applied).To(BeFalse())
		}
		runtime.KeepAlive(first)
		runtime.KeepAlive(second)
	})

	It("also share what they had before they reconnected", func() {
		world := wide(1, hosts, false)
		world.Routes(world.Hosts)
		had := map[string]string{}
		for _, c := range world.Clusters {
			had[c.Name] = c.Version
		}
		before := heap()
		for i := range list {
			list[i] = plan.NewStream(plan.Options{})
			list[i].Want(world)
			list[i].Subscribe(snapshot.ClusterType, nil, had)
		}
		next(true)
		expectHeap(before, "after a reconnect")
		runtime.KeepAlive(world)
	})
})

var _ = Describe("an Envoy that refuses a message of many clusters", func() {
	It("receives each one alone, not all at once, and gets all but the bad one", func() {
		const hosts = 10_500 // more than may be unanswered
		now := time.Unix(1_800_000_000, 0)
		s := plan.NewStream(plan.Options{})
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		s.Want(wide(1, hosts, true, host("bad", cluster("bad", 1, true))))
		have, most := map[string]int{}, 0
		var routes map[string][]string
		for routes == nil {
			messages, _ := s.Next(now)
			Expect(messages).NotTo(BeEmpty())
			most = max(most, s.Unanswered())
			for _, m := range messages {
				switch {
				case m.Type == snapshot.RouteType:
					routes = clustersByHost(m.Resources[0])
				case m.Type == snapshot.ClusterType && len(m.Resources) > 1:
					s.Nack(m.Nonce, "one is bad", now)
					continue
				case strings.HasPrefix(m.Resources[0].Name, "bad"):
					_, guilty := s.Nack(m.Nonce, "bad", now)
					Expect(guilty).To(Equal("bad"))
					continue
				case m.Type == snapshot.ClusterType:
					have[m.Resources[0].Name]++
				}
				s.Ack(m.Nonce)
			}
		}
		Expect(most).To(BeNumerically("<=", 1010))
		Expect(have).To(HaveLen(hosts))
		Expect(have).To(HaveEach(1))
		Expect(routes).To(HaveLen(hosts + 1))
		Expect(routes["bad"]).To(BeEmpty(), "a fixed answer")
		Expect(routes["h10499"]).To(Equal([]string{"c10499"}))
		Expect(s.Refused()).To(ConsistOf(HaveField("Resource", "bad")))
	})
})

var _ = Describe("the content of a first message of clusters", func() {
	var (
		s   *plan.Stream
		now time.Time
	)
	// next returns the nonces of the messages, by their text from say.
	next := func() map[string]string {
		messages, _ := s.Next(now)
		nonces := map[string]string{}
		for i, line := range say(messages) {
			nonces[line] = messages[i].Nonce
		}
		return nonces
	}
	BeforeEach(func() {
		now = time.Unix(1_800_000_000, 0)
		s = plan.NewStream(plan.Options{WarmBound: 20 * time.Second})
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
	})

	It("is not in use before it is acknowledged, if it warms", func() {
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		s.Want(world(1, host("blog", cluster("fast", 1, false)), host("shop", cluster("slow", 1, true))))
		first := next()
		Expect(first).To(And(HaveLen(2), HaveKey("clusters +fast +slow"), HaveKey("listeners +http")))
		s.Ack(first["listeners +http"]) // it has read the clusters
		Expect(next()).To(BeEmpty())
		now = now.Add(20 * time.Second)
		routes := next()
		Expect(routes).To(HaveKey("routes blog=fast shop=slow"))
		s.Ack(routes["routes blog=fast shop=slow"])
		_, fast := s.Reached(plan.Goal{Revision: 1, Hosts: []string{"blog"}})
		_, slow := s.Reached(plan.Goal{Revision: 1, Hosts: []string{"shop"}})
		_, all := s.Applied()
		Expect([]bool{fast, slow, all}).To(Equal([]bool{true, false, false}))
		s.Ack(first["clusters +fast +slow"])
		_, slow = s.Reached(plan.Goal{Revision: 1, Hosts: []string{"shop"}})
		_, all = s.Applied()
		Expect([]bool{slow, all}).To(Equal([]bool{true, true}))
	})

	It("is usable in its old form while a new one warms", func() {
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		s.Want(world(1, host("shop", cluster("slow", 1, true))))
		first := next()
		s.Want(world(2, host("shop", cluster("slow", 2, true))))
		second := next()
		Expect(second).To(HaveKey("clusters +slow"))
		s.Ack(first["clusters +slow"])
		Expect(next()).To(HaveKey("routes shop=slow"))
		_, all := s.Applied()
		Expect(all).To(BeFalse())
	})

	It("is another resource if it was removed and came back", func() {
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		blog := func() *snapshot.Parts { return host("blog", cluster("fast", 1, false)) }
		s.Want(world(1, blog(), host("shop", cluster("slow", 1, true))))
		first := next()
		s.Ack(first["listeners +http"])
		now = now.Add(20 * time.Second)
		s.Ack(next()["routes blog=fast shop=slow"])
		s.Want(world(2, blog()))
		s.Ack(next()["routes blog=fast"])
		next()
		now = now.Add(time.Minute)
		Expect(next()).To(HaveKey("clusters -slow"))
		s.Want(world(3, blog(), host("shop", cluster("slow", 2, true))))
		again := next()
		Expect(again).To(HaveKey("clusters +slow"))
		s.Ack(first["clusters +fast +slow"])
		Expect(next()).To(BeEmpty(), "the Envoy has answered only the one that was removed")
		s.Ack(again["clusters +slow"])
		Expect(next()).To(HaveKey("routes blog=fast shop=slow"))
	})
})
