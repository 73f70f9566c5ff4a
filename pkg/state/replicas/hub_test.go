package replicas_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

const makeOld = "UPDATE replica_report SET heard = heard - make_interval(secs => $2) WHERE replica = $1"

var _ = Describe("Replicas on one PostgreSQL", func() {
	It("learn of each other's Envoys, and once of each arrival and departure", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{})
		b := startReplica(url, "b", options{})
		a.connect(1, "10.0.0.1:1")
		Eventually(b.envoys).Should(Equal([]string{"a: 10.0.0.1:1 current"}))
		b.connect(1, "10.0.0.2:1")
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 current"}))
		b.registry.RecordNack(1, "type.googleapis.com/envoy.config.cluster.v3.Cluster", status.Answer{Revision: 1, At: time.Now(), Text: "no"})
		b.registry.Disconnect(1)
		Eventually(a.envoys).Should(BeEmpty())
		Expect(a.told()).To(Equal([]string{"b replica it has appeared", "b connect 10.0.0.2:1", "b nack 10.0.0.2:1no", "b disconnect 10.0.0.2:1"}))
		Expect(b.told()).To(Equal([]string{"a connect 10.0.0.1:1"}))
		Expect(b.registry.Feed().Counts().Events["connect"]).To(Equal(int64(1)), "metrics are of one replica")
		Expect(a.registry.Feed().Counts().Events["connect"]).To(Equal(int64(1)))

		By("a new replica does not receive old events")
		c := startReplica(url, "c", options{})
		Expect(c.envoys()).To(Equal([]string{"a: 10.0.0.1:1 current"}))
		Expect(c.told()).To(BeEmpty())
		b.connect(2, "10.0.0.2:2")
		Eventually(c.told).Should(Equal([]string{"b connect 10.0.0.2:2"}))

		By("until one leaves")
		b.stop()
		b.Leave(context.Background())
		Eventually(a.Others).Should(HaveLen(1))
		Expect(a.told()).To(ContainElement("b replica it is gone"))
	})

	It("also learn of each other without notifications", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{deaf: true})
		b := startReplica(url, "b", options{deaf: true})
		b.connect(1, "10.0.0.2:1")
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 current"}))
	})

	It("treat a silent replica as unknown, and forget it in the end", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{})
		b := startReplica(url, "b", options{})
		b.connect(1, "10.0.0.2:1")
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 current"}))
		b.stop()
		sqlOn(url, makeOld, "b", 6)
		Consistently(a.envoys, "5500ms").Should(Equal([]string{"b: 10.0.0.2:1 current"}), "a heartbeat may be lost")
		sqlOn(url, makeOld, "b", 8)
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 unheard"}))
		Eventually(a.told).Should(ContainElement("b replica it is not heard: the state of its Envoys is unknown"))

		By("even after it must be dead, while its Envoys are nowhere else")
		sqlOn(url, makeOld, "b", 60)
		Eventually(a.Others).Should(ConsistOf(HaveField("Gone", true)))
		Consistently(a.envoys, "5500ms").Should(Equal([]string{"b: 10.0.0.2:1 unheard"}))

		By("until all time limits have passed")
		sqlOn(url, makeOld, "b", 600)
		Eventually(a.Others).Should(BeEmpty())
		Eventually(func() int64 { return query(url, "SELECT count(*) FROM replica_report") }).Should(Equal(int64(1)))
	})

	It("forget a dead replica when each of its Envoys has reconnected elsewhere, and a newer replica learns of it", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{wait: func(context.Context, int64, []model.Key) []status.Lag { return nil }})
		b := startReplica(url, "b", options{})
		b.connect(1, "10.0.0.2:1")
		b.connect(2, "10.0.0.3:1")
		Eventually(a.envoys).Should(HaveLen(2))
		b.stop()
		sqlOn(url, makeOld, "b", 20)
		Eventually(a.envoys).Should(HaveEach(HaveSuffix("unheard")))
		a.connect(1, "10.0.0.2:7")
		c := startReplica(url, "c", options{})
		sqlOn(url, makeOld, "b", 60)
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.3:1 unheard"}))
		unknown := func(r *replica, proxy string) bool {
			return slices.ContainsFunc(r.Others(), func(o replicas.Other) bool { return o.IsUnknown(proxy) })
		}
		Expect(unknown(a, "gw")).To(BeTrue())
		Expect(unknown(a, "edge")).To(BeFalse(), "it had no Envoy of that proxy")
		wait := func(proxies ...string) []status.Lag {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			return a.Wait(ctx, 7, []model.Key{model.ServiceKey("shop")}, proxies)
		}
		message := MatchRegexp(`^replica b was last heard at \d\d:\d\d:\d\d, and not all of its Envoys have connected elsewhere since: their state is unknown$`)
		Expect(wait("gw")).To(ContainElement(And(HaveField("Reason", "unheard"), HaveField("Message", message))))
		Expect(wait("edge")).NotTo(ContainElement(HaveField("Reason", "unheard")))
		Expect(wait()).To(ContainElement(HaveField("Reason", "unheard")))

		c.connect(1, "10.0.0.3:9")
		for _, r := range []*replica{a, c} {
			Eventually(func() bool {
				return slices.ContainsFunc(r.Others(), func(o replicas.Other) bool { return o.Replica == "b" })
			}).Should(BeFalse())
		}
		Expect(query(url, "SELECT count(*) FROM replica_report WHERE ended")).To(Equal(int64(1)))

		By("it comes back with its next heartbeat")
		back := startReplica(url, "b", options{})
		back.connect(1, "10.0.0.4:1")
		Eventually(a.envoys).Should(ContainElement("b: 10.0.0.4:1 current"))
	})

	It("report again what a restart of the database has lost", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{})
		b := startReplica(url, "b", options{})
		b.connect(1, "10.0.0.2:1")
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 current"}))
		sqlOn(url, "TRUNCATE replica_report")
		Consistently(a.envoys, "1s").Should(Equal([]string{"b: 10.0.0.2:1 current"}))
		Eventually(func() int64 { return query(url, "SELECT count(*) FROM replica_report") }).Should(Equal(int64(2)))
		Eventually(a.envoys).Should(Equal([]string{"b: 10.0.0.2:1 current"}))
		Expect(a.told()).To(Equal([]string{"b replica it has appeared", "b connect 10.0.0.2:1"}))
	})

	It("wait for each other's Envoys, and say which lag", func() {
		url := newDatabase()
		asked := make(chan string, 10)
		answer := make(chan []status.Lag)
		here := func(context.Context, int64, []model.Key) []status.Lag {
			return []status.Lag{{Proxy: "gw", Reason: status.NotConnected}}
		}
		a := startReplica(url, "a", options{wait: here})
		startReplica(url, "b", options{wait: func(ctx context.Context, revision int64, changed []model.Key) []status.Lag {
			asked <- fmt.Sprint(revision, changed[0].Path())
			select {
			case lags := <-answer:
				return lags
			case <-ctx.Done():
				return []status.Lag{{Proxy: "gw", Envoy: "10.0.0.2:1", Reason: status.Slow, Message: "the Envoy is slow"}}
			}
		}})
		Eventually(a.Others).Should(HaveLen(1))
		wait := func(within time.Duration) chan []status.Lag {
			done := make(chan []status.Lag, 1)
			go func() {
				ctx, cancel := context.WithTimeout(context.Background(), within)
				defer cancel()
				done <- a.Wait(ctx, 7, []model.Key{model.RouteKey("shop", "root")}, nil)
			}()
			return done
		}
		done := wait(time.Minute)
		Eventually(asked).Should(Receive(Equal("7/service/shop/route/root")))
		Consistently(done, "50ms").ShouldNot(Receive())
		answer <- nil
		Eventually(done).Should(Receive(BeEmpty()), "b has an Envoy of gw")

		done = wait(time.Minute)
		answer <- []status.Lag{{Proxy: "gw", Reason: status.NotConnected, Message: "none"}}
		Eventually(done).Should(Receive(Equal([]status.Lag{{Proxy: "gw", Reason: status.NotConnected}})), "nobody has one")

		done = wait(2 * time.Second)
		Eventually(done).Should(Receive(Equal([]status.Lag{{Proxy: "gw", Envoy: "10.0.0.2:1", Replica: "b", Reason: status.Slow, Message: "the Envoy is slow"}})))
	})

	DescribeTable("tell each other what a wait is for, or to wait for everything if that is too much", func(ctx SpecContext, changed, told int) {
		url := newDatabase()
		nothing := func(context.Context, int64, []model.Key) []status.Lag { return nil }
		asked := make(chan int, 10)
		a := startReplica(url, "a", options{wait: nothing})
		startReplica(url, "b", options{wait: func(_ context.Context, _ int64, changed []model.Key) []status.Lag {
			asked <- len(changed)
			return nil
		}})
		Eventually(a.Others).Should(HaveLen(1))
		keys := make([]model.Key, changed)
		for i := range keys {
			keys[i] = model.RouteKey("shop", fmt.Sprint("r", i))
		}
		Expect(a.Wait(ctx, 7, keys, nil)).To(BeEmpty())
		Expect(asked).To(Receive(Equal(told)))
	},
		Entry("1000 objects", 1000, 1000, SpecTimeout(time.Minute)),
		Entry("1001 objects: all", 1001, 0, SpecTimeout(time.Minute)),
	)

	It("never take the silence of a replica for a yes", func() {
		url := newDatabase()
		a := startReplica(url, "a", options{wait: func(context.Context, int64, []model.Key) []status.Lag { return nil }})
		b := startReplica(url, "b", options{})
		Eventually(a.Others).Should(HaveLen(1))
		b.stop()
		keys := []model.Key{model.ServiceKey("shop")}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		lags := a.Wait(ctx, 7, keys, nil)
		Expect(lags).To(HaveLen(1))
		Expect(lags[0]).To(And(HaveField("Replica", "b"), HaveField("Reason", "slow"), HaveField("Message", "replica b has not reported yet what its Envoys have")))

		sqlOn(url, makeOld, "b", 20)
		lags = a.Wait(context.Background(), 7, keys, nil)
		Expect(lags).To(HaveLen(1))
		Expect(lags[0]).To(And(HaveField("Replica", "b"), HaveField("Reason", "unheard"),
			HaveField("Message", MatchRegexp(`^replica b was last heard at \d\d:\d\d:\d\d: the state of its Envoys is unknown$`))))

		By("nor the silence of the database")
		sqlOn(url, "ALTER TABLE replica_report RENAME TO away")
		ctx, cancel = context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		Expect(a.Wait(ctx, 7, keys, nil)).To(ContainElement(HaveField("Message", HavePrefix("the board of the replicas cannot be read"))))
		sqlOn(url, "ALTER TABLE away RENAME TO replica_report")
	})
})
