package perclient_test

import (
	"encoding/binary"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/perclient"
)

func TestPerClient(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "perclient")
}

var _ = Describe("A limit", func() {
	It("is each client's own, and comes back with time", func() {
		l, now := perclient.New(2, time.Second), time.Now()
		a, b := perclient.Of("192.0.2.1:1"), perclient.Of("192.0.2.2:1")
		Expect([]bool{l.Allow(a, now), l.Allow(a, now), l.Allow(a, now), l.Allow(b, now)}).To(Equal([]bool{true, true, false, true}))
		Expect(l.Allow(a, now.Add(time.Second))).To(BeTrue())
	})

	It("takes the network of an IPv6 address for the client", func() {
		Expect(perclient.Of("[2001:db8::1]:1")).To(Equal(perclient.Of("[2001:db8::ffff]:2")))
		Expect(perclient.Of("[2001:db8::1]:1")).NotTo(Equal(perclient.Of("[2001:db8:0:1::1]:1")))
		Expect(perclient.Of("[::ffff:192.0.2.1]:1")).To(Equal(perclient.Of("192.0.2.1:9")))
		Expect(perclient.Of("no address")).To(Equal(netip.Prefix{}))
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
		Entry("that come at once", time.Microsecond, 4096),
		Entry("that were here long ago", time.Second, 4096),
	)
})
