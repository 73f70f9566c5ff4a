package perclient_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/trust/perclient"
)

func TestPerClient(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "perclient")
}

var _ = Describe("A limit", func() {
	It("is per client, and refills over time", func() {
		l, now := perclient.New(2, time.Second), time.Now()
		a, b := perclient.Prefix("192.0.2.1:1"), perclient.Prefix("192.0.2.2:1")
		Expect([]bool{l.Allow(a, now), l.Allow(a, now), l.Allow(a, now), l.Allow(b, now)}).To(Equal([]bool{true, true, false, true}))
		Expect(l.Allow(a, now.Add(time.Second))).To(BeTrue())
	})

	It("counts the network of an IPv6 address as one client", func() {
		Expect(perclient.Prefix("[2001:db8::1]:1")).To(Equal(perclient.Prefix("[2001:db8::ffff]:2")))
		Expect(perclient.Prefix("[2001:db8::1]:1")).NotTo(Equal(perclient.Prefix("[2001:db8:0:1::1]:1")))
		Expect(perclient.Prefix("[::ffff:192.0.2.1]:1")).To(Equal(perclient.Prefix("192.0.2.1:9")))
		Expect(perclient.Prefix("no address")).To(Equal(netip.Prefix{}))
	})

	Describe("when it remembers the maximum number of clients", func() {
		var (
			l   *perclient.Limit
			now time.Time
		)
		client := func(n uint32) netip.Prefix {
			var addr [4]byte
			binary.BigEndian.PutUint32(addr[:], n)
			return netip.PrefixFrom(netip.AddrFrom4(addr), 32)
		}
		BeforeEach(func() {
			l, now = perclient.New(2, time.Hour), time.Now()
			for n := range uint32(4096) {
				l.Allow(client(n), now)
			}
		})

		It("gives all others one shared limit", func() {
			now = now.Add(time.Minute)
			Expect([]bool{l.Allow(client(5000), now), l.Allow(client(5001), now), l.Allow(client(5002), now)}).To(Equal([]bool{true, true, false}))
			Expect(l.Allow(client(7), now)).To(BeTrue(), "one of its own is left to it")
			Expect(l.Allow(client(7), now)).To(BeFalse())
		})

		It("forgets quiet clients, and no others", func() {
			now = now.Add(time.Hour - time.Minute)
			l.Allow(client(7), now) // it has none left, and gets one in a minute
			now = now.Add(2 * time.Minute)
			Expect([]bool{l.Allow(client(5000), now), l.Allow(client(5000), now), l.Allow(client(5000), now)}).To(Equal([]bool{true, true, false}))
			Expect([]bool{l.Allow(client(5001), now), l.Allow(client(5001), now)}).To(Equal([]bool{true, true}), "which has its own")
			Expect(l.Allow(client(7), now)).To(BeTrue())
			Expect(l.Allow(client(7), now)).To(BeFalse(), "it was not forgotten")
		})

		It("looks for quiet clients at most once a second", func() {
			now = now.Add(time.Hour - 100*time.Millisecond)
			l.Allow(client(5000), now) // forgets no client yet
			l.Allow(client(5001), now.Add(time.Second-time.Millisecond))
			Expect(l.Clients()).To(Equal(4096))
			l.Allow(client(5002), now.Add(time.Second))
			Expect(l.Clients()).To(Equal(1))
		})
	})

	DescribeTable("remembers a bounded number of clients", func(between time.Duration, want int) {
		l, now := perclient.New(10, 6*time.Second), time.Now()
		for i := range 10_000 {
			var addr [4]byte
			binary.BigEndian.PutUint32(addr[:], uint32(i))
			l.Allow(netip.PrefixFrom(netip.AddrFrom4(addr), 32), now)
			now = now.Add(between)
		}
		Expect(l.Clients()).To(BeNumerically("<=", want))
		Expect(l.Clients()).To(BeNumerically(">", 0))
	},
		Entry("that come at the same time", time.Microsecond, 4096),
		Entry("that have been gone for a long time", time.Second, 4096),
	)
})
