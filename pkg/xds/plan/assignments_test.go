package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("The assignment of a cluster", func() {
	var (
		s     *plan.Stream
		now   time.Time
		nonce map[string]string // of the last message, by type
	)
	BeforeEach(func() {
		s = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second})
		now, nonce = time.Unix(1_800_000_000, 0), map[string]string{}
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
	})
	// next returns the messages as text: "Cluster +a".
	next := func() []string {
		GinkgoHelper()
		messages, _ := s.Next(now)
		var lines []string
		for _, m := range messages {
			short := m.Type[strings.LastIndex(m.Type, ".")+1:]
			line := short
			for _, r := range m.Resources {
				line += " +" + r.Name
			}
			for _, name := range m.Removed {
				line += " -" + name
			}
			nonce[short] = m.Nonce
			lines = append(lines, line)
		}
		return lines
	}
	want := func(revision int64, edition, endpoints int) {
		s.Want(assignedWorld(revision, []*snapshot.Resource{assignment("a", endpoints)}, host("shop", discovered("a", edition, false))))
	}
	applied := func() bool { _, ok := s.Applied(); return ok }
	reached := func(revision int64) bool {
		_, ok := s.Reached(plan.Goal{Revision: revision, Hosts: []string{"shop"}})
		return ok
	}
	// bring gives the Envoy everything of revision 1.
	bring := func() {
		GinkgoHelper()
		want(1, 1, 80)
		Expect(next()).To(Equal([]string{"Cluster +a", "Listener +http"}))
		s.Ack(nonce["Listener"])
		Expect(next()).To(BeEmpty(), "the routes wait")
		s.Subscribe(snapshot.EndpointType, []string{"a"}, nil)
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +a"}))
		s.Ack(nonce["ClusterLoadAssignment"])
		Expect(next()).To(Equal([]string{"RouteConfiguration +rc"}), "before the answer to the cluster, which another one may delay")
		s.Ack(nonce["RouteConfiguration"])
		s.Ack(nonce["Cluster"])
		Expect(applied()).To(BeTrue())
	}

	It("makes it usable, and belongs to no revision when it changes later", func() {
		bring()
		want(1, 1, 81)
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +a"}))
		Expect(applied()).To(BeTrue(), "nobody waits for it")
		Expect(reached(1)).To(BeTrue())
		s.Ack(nonce["ClusterLoadAssignment"])
		Expect(next()).To(BeEmpty())
	})

	It("is sent again after its cluster, which is applied with it", func() {
		bring()
		want(2, 2, 80)
		Expect(next()).To(Equal([]string{"Cluster +a", "ClusterLoadAssignment +a"}))
		s.Ack(nonce["Cluster"])
		Expect(applied()).To(BeFalse())
		Expect(reached(2)).To(BeFalse())
		s.Ack(nonce["ClusterLoadAssignment"])
		Expect(applied()).To(BeTrue())
		Expect(reached(2)).To(BeTrue())
	})

	It("does not count for a new form of the cluster that was sent after it", func() {
		bring()
		want(2, 1, 81)
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +a"}))
		before := nonce["ClusterLoadAssignment"]
		want(3, 2, 81)
		Expect(next()).To(Equal([]string{"Cluster +a", "ClusterLoadAssignment +a"}))
		s.Ack(before)
		s.Ack(nonce["Cluster"])
		Expect(applied()).To(BeFalse())
		Expect(reached(3)).To(BeFalse())
		s.Ack(nonce["ClusterLoadAssignment"])
		Expect(applied()).To(BeTrue())
	})

	It("that is refused leaves the old one in use, and blocks its host", func() {
		bring()
		want(2, 1, 81)
		next()
		_, guilty := s.Nack(nonce["ClusterLoadAssignment"], "malformed IP address", now)
		Expect(guilty).To(Equal("a"))
		Expect(next()).To(BeEmpty(), "it is not sent again")
		Expect(applied()).To(BeFalse())
		Expect(s.Refused()).To(HaveLen(1))
		Expect(s.Refused()[0].Objects).To(Equal([]snapshot.ObjectRef{upstream("a")}))
		want(3, 1, 82)
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +a"}))
		Expect(s.Refused()).To(BeEmpty())
	})

	It("disappears with its cluster, and is never removed on its own", func() {
		bring()
		s.Want(world(2))
		Expect(next()).To(Equal([]string{"RouteConfiguration +rc"}))
		s.Ack(nonce["RouteConfiguration"])
		Expect(next()).To(BeEmpty())
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"Cluster -a"}))
		s.Ack(nonce["Cluster"])
		s.Unsubscribe(snapshot.EndpointType, []string{"a"})
		now = now.Add(time.Minute)
		Expect(next()).To(BeEmpty())
		Expect(s.Foreign()).To(BeZero())
	})

	It("is compared after a reconnect, and not sent again if the Envoy has it", func() {
		want(1, 1, 80)
		have := map[string]string{"a": discovered("a", 1, false).Version}
		s = plan.NewStream(plan.Options{})
		s.Want(assignedWorld(1, []*snapshot.Resource{assignment("a", 80)}, host("shop", discovered("a", 1, false))))
		s.Subscribe(snapshot.ClusterType, nil, have)
		s.Subscribe(snapshot.EndpointType, []string{"a"}, map[string]string{"a": assignment("a", 80).Version})
		Expect(next()).To(BeEmpty())
		s = plan.NewStream(plan.Options{})
		s.Want(assignedWorld(1, []*snapshot.Resource{assignment("a", 81)}, host("shop", discovered("a", 1, false))))
		s.Subscribe(snapshot.ClusterType, nil, have)
		s.Subscribe(snapshot.EndpointType, []string{"a"}, map[string]string{"a": assignment("a", 80).Version})
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +a"}))
	})

	It("that does not exist is not reported to a cluster that is served in an older form", func() {
		bring()
		s.Want(assignedWorld(2, nil, host("shop", discovered("a", 2, false))))
		Expect(next()).To(Equal([]string{"Cluster +a"}))
		s.Unsubscribe(snapshot.EndpointType, []string{"a"})
		s.Subscribe(snapshot.EndpointType, []string{"a"}, nil)
		Expect(next()).To(BeEmpty())
	})

	It("that does not exist is not reported to a cluster that never had one, even if another cluster delays the answer", func() {
		b := []*snapshot.Resource{assignment("b", 80)}
		s.Want(assignedWorld(1, b, host("shop", cluster("a", 1, false)), host("blog", discovered("b", 1, false))))
		Expect(next()).To(Equal([]string{"Cluster +a +b", "Listener +http"}))
		s.Ack(nonce["Listener"])
		s.Subscribe(snapshot.EndpointType, []string{"b"}, nil)
		Expect(next()).To(Equal([]string{"ClusterLoadAssignment +b"}))
		s.Ack(nonce["ClusterLoadAssignment"])
		Expect(next()).To(Equal([]string{"RouteConfiguration +rc"}), "before the answer to the clusters")
		s.Ack(nonce["RouteConfiguration"])
		s.Want(assignedWorld(2, b, host("shop", discovered("a", 2, false)), host("blog", discovered("b", 1, false))))
		Expect(next()).To(Equal([]string{"Cluster +a"}))
		s.Subscribe(snapshot.EndpointType, []string{"a"}, nil)
		Expect(next()).To(BeEmpty())
	})

	It("can be requested for thousands of names at the same time", func() {
		var assignments []*snapshot.Resource
		var clusters []*snapshot.Resource
		var names []string
		for i := range 2000 {
			name := fmt.Sprintf("u%04d", i)
			names = append(names, name)
			assignments, clusters = append(assignments, assignment(name, 80)), append(clusters, discovered(name, 1, false))
		}
		s.Want(assignedWorld(1, assignments, host("shop", clusters...)))
		next()
		Expect(s.Subscribe(snapshot.EndpointType, names, nil)).To(BeTrue())
		messages, _ := s.Next(now)
		Expect(messages).To(HaveLen(1))
		Expect(messages[0].Resources).To(HaveLen(2000))
		s.Ack(messages[0].Nonce)
		messages, _ = s.Next(now)
		Expect(messages).To(HaveLen(1))
		Expect(messages[0].Type).To(Equal(snapshot.RouteType))
	})
})
