package status_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

func TestStatus(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "status")
}

var _ = BeforeEach(func() {
	before := gleak.Goroutines()
	DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
})

var _ = Describe("A feed", func() {
	It("wakes readers that wait for the next event", func() {
		registry := status.NewRegistry()
		feed := registry.Feed()
		events, more := feed.After(feed.Now(), 10)
		Expect(events).To(BeEmpty())
		Expect(more).NotTo(BeClosed())
		registry.RecordChange(status.Event{})
		Expect(more).To(BeClosed())
	})

	It("gives every reader what was published, in order, at its own pace", func() {
		const writers, each, readers = 4, 500, 8 // fewer than the feed keeps
		registry := status.NewRegistry()
		feed := registry.Feed()
		start := feed.Now()
		var group sync.WaitGroup
		for w := range writers {
			group.Go(func() {
				for n := range each {
					registry.RecordChange(status.Event{Actor: fmt.Sprint(w), Revision: int64(n)})
				}
			})
		}
		for r := range readers {
			group.Go(func() {
				defer GinkgoRecover()
				cursor, seen, next := start, 0, map[string]int64{}
				for seen < writers*each {
					events, more := feed.After(cursor, 1+r*50)
					if len(events) == 0 {
						<-more
						continue
					}
					Expect(len(events)).To(BeNumerically("<=", 1+r*50))
					for _, e := range events {
						Expect(e.Event).To(Equal("change"))
						Expect(e.Revision).To(Equal(next[e.Actor]))
						next[e.Actor]++
					}
					seen += len(events)
					cursor = feed.Behind(events[len(events)-1])
				}
				Expect(cursor).To(Equal(feed.Now()))
			})
		}
		group.Wait()
		Expect(feed.Counts().Events).To(Equal(map[string]int64{"change": writers * each}))
	})

	It("tells a reader that it fell behind", func() {
		registry := status.NewRegistry()
		feed := registry.Feed()
		start := feed.Now()
		for range 5000 {
			registry.RecordChange(status.Event{})
		}
		events, more := feed.After(start, 10)
		Expect(events).To(HaveLen(1))
		Expect(events[0].Event).To(Equal("reset"))
		Expect(feed.Behind(events[0])).To(Equal(feed.Now()))
		Expect(more).To(BeNil())
	})

	DescribeTable("refuses a cursor that is not its own", func(text func(own string) string) {
		registry := status.NewRegistry()
		registry.RecordChange(status.Event{})
		feed := registry.Feed()
		events, more := feed.After(status.ParseCursor(text(feed.Now().String())), 10)
		Expect(events).To(ConsistOf(HaveField("Event", "reset")))
		Expect(more).To(BeNil())
	},
		Entry("of a future event", func(own string) string { return "x" + own }),
		Entry("of an event that is yet to come", func(own string) string { return own + "0" }),
		Entry("that is empty", func(string) string { return "" }),
	)

	It("reports once that an Envoy has a revision, and nothing when it falls behind", func() {
		registry := status.NewRegistry()
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw"})
		for _, revision := range []int64{3, 3, 2, 0} {
			registry.SetProgress(1, status.Progress{Applied: revision})
		}
		Expect(registry.Feed().Counts().Events["applied"]).To(Equal(int64(1)))
	})

	It("encodes its cursor as text", func() {
		feed := status.NewRegistry().Feed()
		Expect(status.ParseCursor(feed.Now().String())).To(Equal(feed.Now()))
		Expect(status.ParseCursor("x")).To(Equal(status.Cursor{}))
	})

	It("accepts a publication that changed no proxy", func() {
		registry := status.NewRegistry()
		start := registry.Feed().Now()
		registry.RecordPublish(7, 0, nil, 2*time.Second)
		events, _ := registry.Feed().After(start, 10)
		Expect(events[0].Proxies).To(BeEmpty())
		Expect(events[0].TookMS).To(Equal(2000.0))
		Expect(registry.Feed().Counts().Revision).To(Equal(int64(7)))
	})
})

var _ = DescribeTable("The name of a type", func(typeURL, name string) {
	Expect(status.TypeName("type.googleapis.com/envoy." + typeURL)).To(Equal(name))
},
	Entry(nil, "config.cluster.v3.Cluster", "cluster"),
	Entry(nil, "config.endpoint.v3.ClusterLoadAssignment", "endpoint"),
	Entry(nil, "config.listener.v3.Listener", "listener"),
	Entry(nil, "config.route.v3.RouteConfiguration", "route"),
	Entry(nil, "extensions.transport_sockets.tls.v3.Secret", "secret"),
	Entry(nil, "config.core.v3.TypedExtensionConfig", "extension"),
	Entry(nil, "x.New", "new"),
)
