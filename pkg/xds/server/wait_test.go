package server_test

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/server"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a wait", func() {
	var (
		s        *server.Server
		registry *status.Registry
		addr     string
		// elsewhere means that another replica has an Envoy of gw. moved signals a
		// change of it.
		elsewhere *atomic.Bool
		moved     chan struct{}
	)
	BeforeEach(func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		registry = status.NewRegistry()
		has, more := &atomic.Bool{}, make(chan struct{})
		elsewhere, moved = has, more
		s = server.New(server.Options{
			Status: registry, Log: slog.New(slog.DiscardHandler),
			Elsewhere: func(proxy string) (bool, <-chan struct{}) { return proxy == "gw" && has.Load(), more },
		})
		addr = serveGRPC(s.GRPC())
	})
	// envoy connects and hands every response to answer.
	envoy := func(answer func(*testkit.XDSResponse)) *testkit.XDSClient {
		GinkgoHelper()
		x, err := testkit.DialXDS(addr, "gw", answer)
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { _ = x.Close() })
		Expect(x.Subscribe(snapshot.ClusterType)).To(Succeed())
		return x
	}
	publish := func(revision int64, cluster string) {
		GinkgoHelper()
		s.Publish(revision, map[string]*snapshot.Snapshot{"gw": withCluster(revision, cluster)})
	}
	goal := func(revision int64) map[string]plan.Goal {
		return map[string]plan.Goal{"gw": {Revision: revision, All: true}}
	}
	start := func(ctx context.Context, goals map[string]plan.Goal) chan []status.Lag {
		answer := make(chan []status.Lag, 1)
		go func() { answer <- s.Wait(ctx, goals) }()
		return answer
	}
	short := func() context.Context {
		ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
		DeferCleanup(cancel)
		return ctx
	}

	nobody := []status.Lag{{Proxy: "gw", Reason: "not_connected", Message: `no Envoy whose node id is "gw" is connected`}}

	It("reports immediately that a proxy has no Envoy", func() {
		s.Publish(1, nil)
		publish(3, "blue")
		Eventually(start(context.Background(), goal(3))).Should(Receive(Equal(nobody)))
	})

	It("is for the last publication, even for an earlier revision", func() {
		publish(1, "blue")
		open, heard := make(chan struct{}), make(chan struct{}, 10)
		x := envoy(func(r *testkit.XDSResponse) {
			if len(r.GetResources()) > 0 && r.GetResources()[0].GetName() == "green" {
				heard <- struct{}{}
				<-open
			}
			_ = r.Ack()
		})
		release := sync.OnceFunc(func() { close(open) })
		DeferCleanup(release)
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(start(context.Background(), goal(1))).Should(Receive(BeEmpty()))
		publish(1, "green")
		Expect(s.Wait(short(), goal(1))).To(ConsistOf(HaveField("Reason", "slow")))
		Eventually(heard).Should(Receive())
		answer := start(context.Background(), goal(1))
		release()
		Eventually(answer).Should(Receive(BeEmpty()))
	})

	It("waits a while for an Envoy that was connected, then no longer", func() {
		s.Publish(1, nil)
		publish(3, "blue")
		first := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(first.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(func() []status.Lag { return s.Wait(short(), goal(3)) }).Should(BeEmpty())
		Expect(first.Close()).To(Succeed())
		Eventually(func() []status.Lag { return s.Wait(short(), goal(3)) }).Should(Equal(nobody))
		answer := start(context.Background(), goal(3))
		Consistently(answer, "50ms").ShouldNot(Receive())
		second := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(second.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(answer).Should(Receive(BeEmpty()))

		publish(4, "green")
		Eventually(start(context.Background(), goal(4))).Should(Receive(BeEmpty()))
		Expect(second.Close()).To(Succeed())
		Eventually(func() []status.Lag { return s.Wait(short(), goal(4)) }).Should(Equal(nobody))
		Eventually(start(context.Background(), goal(4))).Should(Receive(Equal(nobody)))
	})

	It("does not wait for an Envoy that has connected to another replica", func() {
		s.Publish(1, nil)
		publish(3, "blue")
		envoy := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(envoy.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(func() []status.Lag { return s.Wait(short(), goal(3)) }).Should(BeEmpty())
		Expect(envoy.Close()).To(Succeed())
		Eventually(func() []status.Lag { return s.Wait(short(), goal(3)) }).Should(Equal(nobody))
		answer := start(context.Background(), goal(3))
		Consistently(answer, "50ms").ShouldNot(Receive())
		elsewhere.Store(true)
		close(moved)
		Eventually(answer, "4s").Should(Receive(Equal(nobody)), "before it could have connected again here")
	})

	It("goes on when the last Envoy disconnects without having it", func() {
		s.Publish(1, nil)
		heard := make(chan struct{}, 10)
		silent := envoy(func(*testkit.XDSResponse) { heard <- struct{}{} })
		publish(3, "blue")
		Eventually(heard).Should(Receive())
		ctx, cancel := context.WithCancel(context.Background())
		answer := start(ctx, goal(3))
		Eventually(s.Waits).Should(Equal(1))
		Expect(silent.Close()).To(Succeed())
		Eventually(registry.Envoys).Should(BeEmpty())
		Consistently(answer, "50ms").ShouldNot(Receive())
		cancel()
		Eventually(answer).Should(Receive(Equal(nobody)))
	})

	It("ends immediately if the change made no difference, or the proxy is deleted", func() {
		x := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		publish(3, "blue")
		s.Publish(4, nil)
		Eventually(start(context.Background(), goal(4))).Should(Receive(BeEmpty()))
		Expect(x.Close()).To(Succeed())
		Eventually(registry.Envoys).Should(BeEmpty())
		s.Publish(5, map[string]*snapshot.Snapshot{"gw": nil})
		Eventually(start(context.Background(), goal(5))).Should(Receive(BeEmpty()))
	})

	It("waits as long as possible for the Envoy that the program runs itself", func() {
		s = server.New(server.Options{Status: status.NewRegistry(), Log: slog.New(slog.DiscardHandler), Own: "gw"})
		s.Publish(1, nil)
		publish(3, "blue")
		Expect(s.Wait(short(), goal(3))).To(Equal(nobody))
		Consistently(start(short(), goal(3)), "40ms").ShouldNot(Receive())
	})

	It("ends when an Envoy reconnects to a restarted program", func() {
		publish(3, "blue") // the first: the proxy existed before
		Expect(s.Wait(short(), goal(3))).To(Equal(nobody))
		answer := start(context.Background(), goal(3))
		x := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(answer).Should(Receive(BeEmpty()))
		Eventually(start(context.Background(), nil)).Should(Receive(BeEmpty()), "nothing to wait for")
	})

	It("ends when all of several Envoys have it, including the slowest", func() {
		for range 2 {
			x := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
			Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		}
		open, heard := make(chan struct{}), make(chan struct{}, 10)
		slow := envoy(func(r *testkit.XDSResponse) {
			if r.GetTypeUrl() == snapshot.ClusterType {
				heard <- struct{}{}
				<-open
			}
			_ = r.Ack()
		})
		release := sync.OnceFunc(func() { close(open) })
		DeferCleanup(release)
		Expect(slow.Subscribe(snapshot.ListenerType)).To(Succeed())
		publish(4, "green")
		Eventually(heard).Should(Receive())
		answer := start(context.Background(), goal(4))
		Eventually(func() []status.Lag { return s.Wait(short(), goal(4)) }).Should(ConsistOf(HaveField("Reason", "slow")))
		Expect(answer).NotTo(Receive())
		release()
		Eventually(answer).Should(Receive(BeEmpty()))
	})

	It("ends immediately with the reason of a refusal", func() {
		open := make(chan struct{})
		x := envoy(func(r *testkit.XDSResponse) {
			if len(r.GetResources()) > 0 {
				<-open
				_ = r.Nack("no such thing")
				return
			}
			_ = r.Ack()
		})
		release := sync.OnceFunc(func() { close(open) })
		DeferCleanup(release)
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		Eventually(registry.Envoys).Should(HaveLen(1), "so that the wait is for no Envoy that may come")
		publish(3, "bad")
		answer := start(context.Background(), goal(3))
		Eventually(func() []status.Lag { return s.Wait(short(), goal(3)) }).Should(ConsistOf(HaveField("Reason", "slow")))
		Expect(answer).NotTo(Receive())
		release()
		var lags []status.Lag
		Eventually(answer).Should(Receive(&lags))
		Expect(lags).To(HaveLen(1))
		Expect(lags[0].Reason).To(Equal("refused"))
		Expect(lags[0].Envoy).To(HavePrefix("127.0.0.1:"))
		Expect(lags[0].Message).To(Equal("Envoy refused bad: no such thing"))
	})

	It("does not count an Envoy that disconnected", func() {
		x := envoy(func(r *testkit.XDSResponse) { _ = r.Ack() })
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		heard := make(chan struct{}, 10)
		silent := envoy(func(*testkit.XDSResponse) { heard <- struct{}{} })
		publish(3, "blue")
		Eventually(heard).Should(Receive())
		answer := start(context.Background(), goal(3))
		Consistently(answer, "50ms").ShouldNot(Receive())
		Expect(silent.Close()).To(Succeed())
		Eventually(answer).Should(Receive(BeEmpty()))
	})

	It("is cheap: of 10,000 waits at the same time, each takes little memory and no goroutine, and all end together", func() {
		const waits = 10_000
		open, heard := make(chan struct{}), make(chan struct{}, 10)
		x := envoy(func(r *testkit.XDSResponse) {
			heard <- struct{}{}
			<-open
			_ = r.Ack()
		})
		release := sync.OnceFunc(func() { close(open) })
		DeferCleanup(release)
		Expect(x.Subscribe(snapshot.ListenerType)).To(Succeed())
		publish(3, "blue")
		Eventually(heard).Should(Receive())
		memory := func() int {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int(m.HeapAlloc + m.StackInuse)
		}
		before, goroutines := memory(), runtime.NumGoroutine()
		lags := make(chan []status.Lag, waits)
		for range waits {
			go func() { lags <- s.Wait(context.Background(), goal(3)) }()
		}
		Eventually(s.Waits).Should(Equal(waits))
		Expect((memory()-before)/waits).To(BeNumerically("<", 16<<10), "with the caller's own goroutine")
		Expect(runtime.NumGoroutine()).To(BeNumerically("<", goroutines+waits+100))
		Expect(lags).NotTo(Receive())
		release()
		for range waits {
			Eventually(lags).Should(Receive(BeEmpty()))
		}
		Expect(s.Waits()).To(BeZero())
	})
})
