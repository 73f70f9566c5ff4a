package embedded_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	rlsconf "github.com/envoyproxy/go-control-plane/ratelimit/config/ratelimit/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/ratelimit/embedded"
)

// storm lets clients send requests until perClient requests of each are
// answered. It returns how many were allowed.
func storm(clients, perClient int, call func(client int) bool) int64 {
	var passed atomic.Int64
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			for range perClient {
				if call(client) {
					passed.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return passed.Load()
}

var _ = Describe("Many clients at the same time", func() {
	DescribeTable("exactly 5 pass in a window", func(clients int) {
		c := newClock()
		e := loaded(c, domainOf("1/edge", perUnit("remote_address", "", "second", 5)))
		for range 4 {
			Expect(storm(clients, 640/clients, func(int) bool {
				r, err := e.ShouldRateLimit(context.Background(), ask("1/edge", entry("remote_address", "10.0.0.1")))
				return err == nil && r.GetOverallCode() == rlsv3.RateLimitResponse_OK
			})).To(BeEquivalentTo(5))
			c.advance(time.Second)
		}
		Expect(e.Stats()).To(Equal([]embedded.Stat{{Domain: "1/edge", Key: "remote_address", Hits: 2560, Over: 2540, Near: 4}}))
	},
		Entry("of 1 client", 1),
		Entry("of 10 clients", 10),
		Entry("of 64 clients", 64),
	)

	It("lets no more than 5 in any window while the clock runs", func() {
		c := newClock()
		e := loaded(c, domainOf("1/edge", perUnit("remote_address", "", "second", 5)))
		const windows = 200
		passed := storm(8, 2000, func(client int) bool {
			if client == 0 {
				c.advance(time.Second * windows / 2000)
			}
			r, err := e.ShouldRateLimit(context.Background(), ask("1/edge", entry("remote_address", "10.0.0.1")))
			return err == nil && r.GetOverallCode() == rlsv3.RateLimitResponse_OK
		})
		// The clock ends at the start of the window after the last.
		Expect(passed).To(And(BeNumerically(">=", windows), BeNumerically("<=", 5*(windows+1))))
	})

	It("answers over a Unix socket", func() {
		before := gleak.Goroutines()
		DeferCleanup(func() { Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(before)) })
		e := loaded(newClock(), domainOf("1/edge", perUnit("remote_address", "", "second", 5)))
		listener, err := net.Listen("unix", filepath.Join(GinkgoT().TempDir(), "s"))
		Expect(err).NotTo(HaveOccurred())
		server := grpc.NewServer()
		e.Register(server)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		connection, err := grpc.NewClient("unix:"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		Expect(err).NotTo(HaveOccurred())
		client := rlsv3.NewRateLimitServiceClient(connection)
		Expect(storm(10, 20, func(int) bool {
			r, err := client.ShouldRateLimit(context.Background(), ask("1/edge", entry("remote_address", "10.0.0.1")))
			return err == nil && r.GetOverallCode() == rlsv3.RateLimitResponse_OK
		})).To(BeEquivalentTo(5))
		Expect(connection.Close()).To(Succeed())
		server.GracefulStop()
		Expect(<-done).To(Succeed())
	})
})

var _ = Describe("A new configuration", func() {
	It("keeps the counters and statistics of what remains", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("k", "", "hour", 3), perUnit("gone", "", "hour", 1)))
		r := ask("1/edge", entry("k", "v"))
		Expect(passes(e, 2, r)).To(Equal("11"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "hour", 4))})).To(Succeed())
		Expect(passes(e, 3, r)).To(Equal("110"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "hour", 2))})).To(Succeed())
		Expect(passes(e, 1, r)).To(Equal("0"))
		Expect(e.Stats()).To(Equal([]embedded.Stat{{Domain: "1/edge", Key: "k", Hits: 6, Over: 2, Near: 1}}))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "minute", 2))})).To(Succeed())
		Expect(passes(e, 3, r)).To(Equal("110"), "another unit counts anew")
		Expect(e.Load(nil)).To(Succeed())
		Expect(passes(e, 2, r)).To(Equal("11"))
	})

	It("takes effect even if only the number of a limit changes", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("k", "", "hour", 1)))
		r := ask("1/edge", entry("k", "v"))
		Expect(passes(e, 2, r)).To(Equal("10"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "hour", 3))})).To(Succeed())
		Expect(passes(e, 2, r)).To(Equal("10"))
	})

	It("is visible as a whole", func() {
		e := loaded(newClock())
		pair := func(n uint32) []*rlsconf.RateLimitConfig {
			return []*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("a", "", "hour", n), perUnit("b", "", "hour", n))}
		}
		Expect(e.Load(pair(1_000_000))).To(Succeed())
		same := storm(4, 1000, func(client int) bool {
			if client == 0 {
				return e.Load(pair(1_000_000+uint32(len(e.Stats())))) == nil && e.Load(pair(2_000_000)) == nil
			}
			r, err := e.ShouldRateLimit(context.Background(), ask("1/edge", entry("a", "v"), entry("b", "v")))
			return err == nil &&
				r.GetStatuses()[0].GetCurrentLimit().GetRequestsPerUnit() == r.GetStatuses()[1].GetCurrentLimit().GetRequestsPerUnit()
		})
		Expect(same).To(BeEquivalentTo(4000))
		stats := e.Stats()
		Expect(stats).To(HaveLen(2))
		Expect(stats[0].Hits).To(BeEquivalentTo(3000), "no hit is lost")
		Expect(stats[1].Hits).To(BeEquivalentTo(3000))
	})

	It("changes nothing if it is refused", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("k", "", "hour", 2)))
		Expect(passes(e, 1, ask("1/edge", entry("k", "v")))).To(Equal("1"))
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "hour", 9)), domainOf("2/edge", perUnit("", "", "hour", 1))})).
			To(MatchError("loading rate limits: 2/edge: descriptor has empty key"))
		Expect(passes(e, 2, ask("1/edge", entry("k", "v")))).To(Equal("10"))
	})

	DescribeTable("is refused with the same message as in the stock service", func(want string, configs ...*rlsconf.RateLimitConfig) {
		Expect(embedded.New(embedded.Options{}).Load(configs)).To(MatchError("loading rate limits: " + want))
	},
		Entry(nil, "d: duplicate domain 'd' in config file", domainOf("d"), domainOf("d")),
		Entry(nil, "d: duplicate descriptor composite key 'd.x.k'", domainOf("d", level("x", "", level("k", ""), level("k", "")))),
		Entry(nil, "d: duplicate descriptor composite key 'd.a_b'", domainOf("d", level("a", "b"), level("a_b", ""))),
		Entry(nil, "d: invalid rate limit unit 'UNKNOWN'", domainOf("d", perUnit("k", "", "fortnight", 1))),
		Entry(nil, "d: invalid rate limit unit '99'", domainOf("d", policy(&rlsconf.RateLimitPolicy{Unit: 99}))),
		Entry(nil, ": config file cannot have empty domain", domainOf("")),
		Entry(nil, "d: descriptor has empty key", domainOf("d", level("", "v"))),
		Entry(nil, "d: should not specify rate limit unit when unlimited",
			domainOf("d", policy(&rlsconf.RateLimitPolicy{Unit: rlsconf.RateLimitUnit_DAY, Unlimited: true}))),
		Entry(nil, "d: replaces should not contain name of same descriptor", domainOf("d", policy(&rlsconf.RateLimitPolicy{
			Unit: rlsconf.RateLimitUnit_DAY, Name: "n", Replaces: []*rlsconf.RateLimitReplace{{Name: "n"}},
		}))),
		Entry(nil, "d: should not have an empty replaces entry", domainOf("d", policy(&rlsconf.RateLimitPolicy{
			Unit: rlsconf.RateLimitUnit_DAY, Name: "n", Replaces: []*rlsconf.RateLimitReplace{{}},
		}))),
	)

	It("of one domain does not reset another one, and an equal configuration resets nothing", func() {
		e := loaded(newClock(), domainOf("1/edge", perUnit("k", "", "hour", 9)), domainOf("2/edge", perUnit("k", "", "hour", 9)))
		for _, domain := range []string{"1/edge", "2/edge"} {
			answer(e, ask(domain, entry("k", "v")))
		}
		shadow := perUnit("k", "", "hour", 9)
		shadow.ShadowMode = true
		Expect(e.Load([]*rlsconf.RateLimitConfig{domainOf("1/edge", perUnit("k", "", "hour", 9)), domainOf("2/edge", shadow)})).To(Succeed())
		Expect(e.Stats()).To(Equal([]embedded.Stat{{Domain: "1/edge", Key: "k", Hits: 1}, {Domain: "2/edge", Key: "k", Hits: 1}}))
		for i := range 10 {
			Expect(answer(e, ask("2/edge", entry("k", "v"))).GetOverallCode()).To(Equal(rlsv3.RateLimitResponse_OK), fmt.Sprint(i))
		}
		Expect(e.Stats()[1].Shadow).To(BeEquivalentTo(2))
	})
})

func policy(p *rlsconf.RateLimitPolicy) *rlsconf.RateLimitDescriptor {
	return &rlsconf.RateLimitDescriptor{Key: "k", RateLimit: p}
}
