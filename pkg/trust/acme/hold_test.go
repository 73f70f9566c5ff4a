package acme

import (
	"context"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// limited answers the next order with a limit.
func (l *lab) limited(detail, retryAfter string) {
	done := false
	l.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != testkit.PebbleNewOrder || done {
			return false
		}
		done = true // one order at a time here
		w.Header().Set("Retry-After", retryAfter)
		l.pebble.Problem(w, http.StatusTooManyRequests, "rateLimited", detail)
		return true
	})
}

var _ = Describe("A limit of the authority", func() {
	It("for a registered domain holds after a restart, until the time that the authority says", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.limited("too many certificates for limited.test", "7200")
		l.order("a.limited.test")
		Eventually(l.state("a.limited.test"), testkit.Patience).Should(Equal("failing: rateLimited: too many certificates for limited.test"))
		l.stop()
		l.order("b.limited.test", "c.test")
		l.start()
		l.issued("c.test")
		Eventually(l.state("b.limited.test")).Should(MatchRegexp(`^waiting: the authority limits orders for limited.test until 20\d\d-`))
		Expect(l.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
		l.pass(2*time.Hour + time.Minute)
		l.issued("b.limited.test")
		l.issued("a.limited.test")
	})

	It("for the account holds back all hosts after a restart", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.limited("too many new orders", "7200")
		l.order("a.test")
		Eventually(l.state("a.test"), testkit.Patience).Should(Equal("failing: rateLimited: too many new orders"))
		l.stop()
		l.order("b.test")
		l.start()
		Eventually(func() error { _, err := l.Ask(context.Background(), "a.test"); return err }).Should(Succeed())
		l.issued("a.test") // whoever asks is not held back
		Eventually(l.state("b.test")).Should(HavePrefix("waiting: the authority limits orders of the account until "))
		Expect(l.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
		l.pass(2*time.Hour + time.Minute)
		l.issued("b.test")
	})

	It("is not one of another authority, and the clock does not make it longer", func() {
		w := New(Options{})
		one, two := want(model.ACMEConfig{}), want(model.ACMEConfig{})
		two.from.config.Directory = "https://two.test/dir"
		w.holds[one.from.domainHold("shop.test")] = start.Add(time.Hour)
		held := func(want wanted, now time.Time) time.Time { until, _ := w.heldUntil(want, now); return until }
		Expect(held(one, start)).To(Equal(start.Add(time.Hour)))
		Expect(held(two, start)).To(BeZero())
		w.opts.Now = func() time.Time { return start }
		Expect(w.postpone(one)).To(MatchError("the authority limits orders for shop.test until 2026-11-01T01:00:00Z"))
		By("nothing is written about it while the store is away")
		w.holds[hostHold("shop.test")] = start.Add(time.Minute)
		until, what := w.heldUntil(one, start)
		Expect([]any{until, what}).To(Equal([]any{start.Add(time.Minute), ""}))
		Expect(held(one, start.Add(2*time.Minute))).To(Equal(start.Add(time.Hour)))
		Expect(held(one, start.Add(-365*day))).To(Equal(start.Add(-365 * day).Add(longestHold)))
	})

	It("is known to the store by its latest time, and not after its end", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		ctx := context.Background()
		holder := l.opts.Holder
		for _, until := range []time.Time{start.Add(2 * time.Hour), start.Add(time.Hour)} {
			Expect(l.store.SaveHold(ctx, holder, "a", until, start)).To(Succeed())
		}
		Expect(l.store.SaveHold(ctx, holder, "b", start.Add(3*time.Hour), start.Add(time.Hour))).To(Succeed())
		Expect(l.store.Holds(ctx)).To(Equal(map[string]time.Time{"a": start.Add(2 * time.Hour).Local(), "b": start.Add(3 * time.Hour).Local()}))
		Expect(l.store.SaveHold(ctx, holder, "c", start.Add(4*time.Hour), start.Add(2*time.Hour))).To(Succeed())
		Expect(l.store.Holds(ctx)).NotTo(HaveKey("a"))
	})
})

var _ = Describe("The ration of an account", func() {
	It("is so many orders at once, and then one after each interval, also by a clock that was set back", func() {
		r := ration{36 * time.Second, 250}
		whole, pause := time.Time{}, time.Duration(0)
		for range 250 {
			whole, pause = r.take(whole, start)
			Expect(pause).To(BeZero())
		}
		_, pause = r.take(whole, start)
		Expect(pause).To(Equal(36 * time.Second))
		_, pause = r.take(whole, start.Add(30*time.Second))
		Expect(pause).To(Equal(6 * time.Second))
		_, pause = r.take(whole, start.Add(36*time.Second))
		Expect(pause).To(BeZero())
		whole, pause = r.take(whole, start.Add(-day))
		Expect(whole).To(Equal(start.Add(-day + 36*time.Second)))
		Expect(pause).To(BeZero())
		Expect(rationOf(&model.ACMEConfig{Directory: "staging"})).To(Equal(r))
	})

	It("is not whole again after a restart", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		from := &authority{name: "le", config: &model.ACMEConfig{Directory: "staging"}}
		for range 250 {
			Expect(l.spend(context.Background(), from)).To(Succeed())
		}
		l.stop()
		l.start()
		Expect(l.recall(context.Background())).To(BeTrue())
		Expect(l.spend(context.Background(), from)).To(MatchError(ContainSubstring("may order again later")))
		l.ahead.Add(int64(time.Minute))
		Expect(l.spend(context.Background(), from)).To(Succeed())
	})
})

var _ = Describe("A host that does not answer", func() {
	It("does not keep the others waiting, however many there are", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.stop()
		l.hangs.Store(".bad.test")
		for c := range strings.SplitSeq("abcdefghijklmnopqrst", "") {
			l.order(c + ".bad.test")
		}
		l.order("shop.test")
		l.patience = 100 * time.Millisecond
		l.start()
		l.issued("shop.test")
		Expect(l.Attempts()["failed"]).To(BeZero(), "all others still wait for their answers")
	})

	It("has no slot of orders while it is tested", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.order("a.bad.test")
		l.issued("a.bad.test")
		l.stop()
		l.hangs.Store(".bad.test")
		l.patience = 50 * time.Millisecond
		l.start()
		l.issued("a.bad.test")
		_, err := l.StartTest(context.Background(), "a.bad.test", "")
		Expect(err).NotTo(HaveOccurred())
		slots := func() []int { l.Watch.mu.Lock(); defer l.Watch.mu.Unlock(); return []int{l.testing, l.slow} }
		Eventually(slots, testkit.Patience).Should(Equal([]int{1, 0}))
		Consistently(slots, 20*l.patience).Should(Equal([]int{1, 0}))
	})
})
