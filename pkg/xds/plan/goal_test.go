package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a goal", func() {
	var (
		s     *plan.Stream
		now   time.Time
		heard map[string][]string // type -> nonces without an answer
	)
	BeforeEach(func() {
		s = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second})
		now = time.Unix(1_800_000_000, 0)
		heard = map[string][]string{}
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
	})
	next := func() []string {
		messages, _ := s.Next(now)
		for _, m := range messages {
			heard[m.Type] = append(heard[m.Type], m.Nonce)
		}
		return say(messages)
	}
	ack := func(types ...string) {
		for _, t := range types {
			for _, nonce := range heard[t] {
				s.Ack(nonce)
			}
			heard[t] = nil
		}
	}
	all := []string{snapshot.ClusterType, snapshot.ListenerType, snapshot.RouteType}
	live := func(w *snapshot.Snapshot) {
		s.Want(w)
		for range 3 {
			next()
			ack(all...)
		}
	}
	reached := func(g plan.Goal) bool {
		_, ok := s.Reached(g)
		return ok
	}
	shop := func(revision int64) plan.Goal { return plan.Goal{Revision: revision, Hosts: []string{"shop"}} }
	fast, slow := cluster("fast", 1, false), cluster("slow", 1, true)

	It("is reached when the host is acknowledged, and not before", func() {
		s.Want(world(1, host("shop", fast)))
		Expect(reached(shop(1))).To(BeFalse())
		next()
		Expect(reached(shop(1))).To(BeFalse())
		ack(snapshot.ClusterType, snapshot.ListenerType)
		Expect(reached(shop(1))).To(BeFalse())
		ack(snapshot.RouteType)
		Expect(reached(shop(1))).To(BeTrue())
		Expect(reached(shop(2))).To(BeFalse(), "there is no such revision yet")
		Expect(reached(plan.Goal{Revision: 2, Listeners: true})).To(BeFalse())
		Expect(reached(plan.Goal{Revision: 2, Hosts: []string{"blog"}})).To(BeFalse(), "it may come with the revision")
	})

	It("is reached only in the newest form, on request, if a revision has several", func() {
		newest := shop(1)
		newest.Newest = true
		live(world(1, host("shop", fast)))
		Expect(reached(newest)).To(BeTrue())
		s.Want(world(1, host("shop", fast, cluster("other", 1, false))))
		Expect(reached(shop(1))).To(BeTrue())
		Expect(reached(newest)).To(BeFalse())
		next()
		Expect(reached(newest)).To(BeFalse())
		ack(snapshot.RouteType)
		Expect(reached(newest)).To(BeTrue())
		s.Want(world(1, host("shop", fast, cluster("other", 2, false))))
		Expect(reached(shop(1))).To(BeTrue())
		Expect(reached(newest)).To(BeFalse(), "the cluster is another")
	})

	It("is reached by the removal of the host", func() {
		live(world(1, host("shop", fast), host("blog", fast)))
		s.Want(world(2, host("blog", fast)))
		next()
		Expect(reached(shop(2))).To(BeFalse())
		ack(snapshot.RouteType)
		Expect(reached(shop(2))).To(BeTrue())
	})

	It("is not proven by an Envoy that has not subscribed to anything", func() {
		asking := plan.NewStream(plan.Options{})
		w := world(1, host("shop", fast))
		w.Listeners, w.Hosts = nil, nil
		asking.Want(w)
		_, applied := asking.Applied()
		Expect(applied).To(BeFalse())
	})

	It("does not wait for another host's cluster", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", fast, cluster("other", 1, false)), host("blog", slow)))
		Expect(next()).To(Equal([]string{"clusters +other +slow", "routes shop=fast,other"}))
		ack(snapshot.RouteType)
		Expect(reached(shop(2))).To(BeTrue())
		lack, ok := s.Reached(plan.Goal{Revision: 2, Hosts: []string{"blog"}})
		Expect(ok).To(BeFalse())
		Expect(lack.Wait.Clusters).To(Equal([]plan.Awaited{awaited("slow")}))
		Expect(lack.Wait.Until).To(Equal(now.Add(20 * time.Second)))
	})

	It("is proven even if the answer about a cluster is delayed", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", fast), host("blog", slow)))
		next()
		changed := world(3, host("shop", cluster("fast", 2, false)), host("blog", slow))
		s.Want(changed)
		Expect(next()).To(Equal([]string{"clusters +fast", "listeners"}), "an empty message asks for the proof")
		Expect(reached(shop(3))).To(BeFalse())
		Expect(next()).To(BeEmpty())
		ack(snapshot.ListenerType)
		Expect(reached(shop(3))).To(BeTrue())
		_, applied := s.Applied()
		Expect(applied).To(BeFalse(), "the slow cluster is missing")
	})

	It("is not proven for a warming form by an answer about something else", func() {
		live(world(1, host("shop", slow)))
		w := world(2, host("shop", cluster("slow", 2, true)))
		w.Listeners = append(w.Listeners, listener("https"))
		s.Want(w)
		Expect(next()).To(Equal([]string{"clusters +slow", "listeners +https"}))
		ack(snapshot.ListenerType)
		Expect(reached(shop(2))).To(BeFalse())
		ack(snapshot.ClusterType)
		Expect(reached(shop(2))).To(BeTrue())
	})

	It("is reached by a newer form of the host", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", cluster("b", 1, false))))
		next()
		s.Want(world(3, host("shop", cluster("c", 1, false))))
		Expect(reached(shop(2))).To(BeFalse())
		ack(snapshot.RouteType)
		Expect(reached(shop(2))).To(BeTrue())
		Expect(reached(shop(3))).To(BeFalse())
		next()
		ack(snapshot.RouteType)
		Expect(reached(shop(3))).To(BeTrue())
	})

	It("reports Envoy's reason for refusing the host", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", cluster("poison", 1, false))))
		next()
		s.Nack(heard[snapshot.RouteType][0], "missing )", now)
		lack, ok := s.Reached(shop(2))
		Expect(ok).To(BeFalse())
		Expect(lack.Refusal.Text).To(Equal("missing )"))
		Expect(lack.Refusal.Resource).To(Equal("shop"))
		Expect(s.Refused()).To(ConsistOf(HaveField("Objects", []snapshot.ObjectRef{service("shop")})))
		live(world(3, host("shop", fast)))
		Expect(reached(shop(2))).To(BeTrue(), "what was written later is there")
		Expect(s.Refused()).To(BeEmpty())
	})

	It("reports which cluster was refused", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", cluster("bad", 1, false))))
		next()
		s.Nack(heard[snapshot.ClusterType][0], "no such thing", now)
		next()
		ack(snapshot.RouteType)
		lack, ok := s.Reached(shop(2))
		Expect(ok).To(BeFalse())
		Expect(lack.Refusal.Resource).To(Equal("bad"))
	})

	It("can cover listeners, and everything", func() {
		listeners, everything := plan.Goal{Revision: 1, Listeners: true}, plan.Goal{Revision: 1, All: true}
		s.Want(world(1, host("shop", fast)))
		next()
		Expect(reached(listeners)).To(BeFalse())
		ack(snapshot.ListenerType)
		Expect(reached(listeners)).To(BeTrue())
		Expect(reached(everything)).To(BeFalse())
		ack(all...)
		Expect(reached(everything)).To(BeTrue())
	})

	It("counts a wait that reaches its bound, once", func() {
		live(world(1, host("shop", fast)))
		s.Want(world(2, host("shop", slow)))
		next()
		Expect(s.Waiting()).To(HaveLen(1))
		now = now.Add(20 * time.Second)
		Expect(next()).To(Equal([]string{"routes shop=slow"}))
		Expect(s.Waiting()).To(BeEmpty())
		Expect(s.Overdue()).To(Equal([]plan.Overdue{{Type: snapshot.ClusterType, Name: "slow"}}))
		Expect(s.Overdue()).To(BeEmpty())
		ack(snapshot.RouteType)
		s.Want(world(3, host("shop", slow, fast)))
		Expect(next()).To(Equal([]string{"routes shop=fast,slow"}))
		Expect(s.Overdue()).To(BeEmpty(), "it is the same wait")
	})

	Describe("for a moved listener", func() {
		// behind is a world behind one listener.
		behind := func(name string, revision int64) *snapshot.Snapshot {
			w := world(revision, host("shop", fast))
			w.Listeners = []*snapshot.Resource{listener(name)}
			return w
		}
		BeforeEach(func() {
			live(behind("http", 1))
			s.Want(behind("https", 2))
			Expect(next()).To(Equal([]string{"listeners +https"}))
		})

		It("keeps the old listener until the new one is acknowledged", func() {
			Expect(next()).To(BeEmpty())
			_, ok := s.Applied()
			Expect(ok).To(BeFalse())
			ack(all...)
			Expect(reached(plan.Goal{Revision: 2, Listeners: true})).To(BeFalse(), "the old one is open")
			Expect(next()).To(Equal([]string{"listeners -http"}))
			Expect(reached(plan.Goal{Revision: 2, Listeners: true})).To(BeFalse(), "it is open until the Envoy has read that")
			ack(all...)
			Expect(reached(plan.Goal{Revision: 2, Listeners: true})).To(BeTrue())
		})

		It("keeps the old listener if the new one is refused, and reports it", func() {
			s.Nack(heard[snapshot.ListenerType][0], "port in use", now)
			Expect(next()).To(BeEmpty())
			_, ok := s.Applied()
			Expect(ok).To(BeFalse())
			lack, ok := s.Reached(plan.Goal{Revision: 2, Listeners: true})
			Expect(ok).To(BeFalse())
			Expect(lack.Refusal.Text).To(Equal("port in use"))
			Expect(s.RefusedListeners()).To(Equal([]plan.RefusedListener{{Name: "https", Text: "port in use", Open: "http"}}))
			s.Want(behind("http", 3))
			Expect(next()).To(Equal([]string{"listeners -https"}))
			ack(all...)
			Expect(reached(plan.Goal{Revision: 3, Listeners: true})).To(BeTrue())
		})
	})
})
