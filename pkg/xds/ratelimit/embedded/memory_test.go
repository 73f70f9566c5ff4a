package embedded_test

import (
	"runtime"
	"strconv"
	"strings"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func address(i int) string { return "2001:db8::" + strconv.FormatInt(int64(i), 16) }

var _ = Describe("Memory", func() {
	It("for a million addresses is what doc.go states, and more addresses need no more", func() {
		before := heap()
		e := loaded(newClock(), domainOf("1/edge", perUnit("remote_address", "", "hour", 1)))
		// The statistics and what lookups leave behind.
		for i := range 10_000 {
			passes(e, 2, ask("1/edge", entry("remote_address", address(i))))
		}
		for i := 10_000; i < 1_000_000; i++ {
			e.Count("1/edge", rlsv3.RateLimitResponse_RateLimit_HOUR, entry("remote_address", address(i)))
		}
		Expect(e.Usage()).To(Equal(embedded.Usage{Counters: 1_000_000, Max: 1 << 20}))
		million := heap() - before
		for i := 1_000_000; i < 1_200_000; i++ {
			e.Count("1/edge", rlsv3.RateLimitResponse_RateLimit_HOUR, entry("remote_address", address(i)))
		}
		most := heap() - before
		GinkgoWriter.Printf("1,000,000 addresses: %d MB, 1,200,000: %d MB\n", million>>20, most>>20)
		Expect(most).To(BeNumerically("<", 128<<20))
		Expect(e.Usage()).To(Equal(embedded.Usage{Counters: 1 << 20, Max: 1 << 20, Evicted: 1_200_000 - 1<<20}))
		Expect(e.Stats()).To(HaveLen(1))
	})

	It("loses first what expires first", func() {
		c := newClock()
		e := embedded.New(embedded.Options{Now: c.now, MaxCounters: 10})
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("day", "", "day", 1), perUnit("minute", "", "minute", 1))})).To(Succeed())
		for i := range 5 {
			Expect(passes(e, 1, ask("1/edge", entry("day", strconv.Itoa(i))))).To(Equal("1"))
		}
		for i := range 50 {
			Expect(passes(e, 1, ask("1/edge", entry("minute", strconv.Itoa(i))))).To(Equal("1"))
		}
		Expect(e.Usage()).To(Equal(embedded.Usage{Counters: 10, Max: 10, Evicted: 45}))
		for i := range 5 {
			Expect(passes(e, 1, ask("1/edge", entry("day", strconv.Itoa(i))))).To(Equal("0"))
		}
		Expect(passes(e, 1, ask("1/edge", entry("minute", "49")))).To(Equal("0"))
		Expect(passes(e, 1, ask("1/edge", entry("minute", "0")))).To(Equal("1"))
	})

	It("of expired counters is reused", func() {
		c := newClock()
		e := loaded(c, domainOf("1/edge", perUnit("remote_address", "", "second", 1)))
		for i := range 50 {
			for j := range 1000 {
				e.Count("1/edge", rlsv3.RateLimitResponse_RateLimit_SECOND, entry("remote_address", address(i*1000+j)))
			}
			c.advance(2 * time.Second)
		}
		Expect(e.Usage().Counters).To(BeNumerically("<", 2000))
		Expect(e.Usage().Evicted).To(BeZero())
	})

	It("survives a clock that is set back, and blocks nobody until it has caught up", func() {
		c := newClock()
		e := loaded(c, domainOf("1/edge", perUnit("k", "", "second", 2)))
		r := ask("1/edge", entry("k", "v"))
		Expect(passes(e, 3, r)).To(Equal("110"))
		c.advance(-time.Hour)
		Expect(passes(e, 3, r)).To(Equal("110"))
	})
})

var _ = Describe("The list of who is limited most", func() {
	It("covers the last five minutes", func() {
		c := newClock()
		e := loaded(c, domainOf("1/edge", level("tenant", "gold", perUnit("ip", "", "hour", 1)), perUnit("ip", "", "hour", 0)))
		passes(e, 4, ask("1/edge", entry("tenant", "gold", "ip", "::1")))
		c.advance(4 * time.Minute)
		passes(e, 2, ask("1/edge", entry("ip", "::2")))
		passes(e, 2, ask("1/edge", entry("tenant", "gold", "ip", "::1")))
		gold := embedded.Limited{Domain: "1/edge", Key: "tenant=gold > ip", Value: "tenant=gold > ip=::1", Count: 5}
		bare := embedded.Limited{Domain: "1/edge", Key: "ip", Value: "ip=::2", Count: 2}
		Expect(e.Top(10)).To(Equal([]embedded.Limited{gold, bare}))
		Expect(e.Top(1)).To(Equal([]embedded.Limited{gold}))
		c.advance(time.Minute)
		gold.Count = 2
		Expect(e.Top(10)).To(Equal([]embedded.Limited{bare, gold}))
		c.advance(5 * time.Minute)
		Expect(e.Top(10)).To(BeEmpty())
		Expect(e.Top(0)).To(BeEmpty())
	})

	It("finds them among many, within the stated error", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("ip", "", "hour", 0)))
		for i := range 20_000 {
			passes(e, 1, ask("1/edge", entry("ip", strconv.Itoa(i))))
			if i%100 == 0 {
				passes(e, 3, ask("1/edge", entry("ip", "worst")))
			}
		}
		worst := e.Top(3)[0]
		Expect(worst.Value).To(Equal("ip=worst"))
		Expect(worst.Count - worst.Error).To(BeNumerically("<=", 600))
		Expect(worst.Count).To(And(BeNumerically(">=", 600), BeNumerically("<=", 600+20_600/512)))
		all := e.Top(10_000)
		Expect(all).To(HaveLen(512))
		var sum uint64
		for _, one := range all {
			sum += one.Count
		}
		Expect(sum).To(BeEquivalentTo(20_600), "no hit is left out")
	})

	It("needs few bytes", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("header", "", "hour", 0)))
		long := strings.Repeat("ä", 10_000)
		passes(e, 1, ask("1/edge", entry("header", long)))
		passes(e, 2, ask("1/edge", entry("header", long+"x")))
		top := e.Top(10)
		Expect(top).To(HaveLen(2))
		Expect(top[0].Count).To(BeEquivalentTo(2))
		Expect(top[0].Value).To(And(HavePrefix("header=ä"), HaveLen(255)))
	})
})
