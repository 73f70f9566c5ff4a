package replicas_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("A replica at a board that is incomplete", func() {
	var (
		m    *memory
		a, b *hub
	)
	BeforeEach(func() {
		m = newMemory()
		a, b = m.hub("a"), m.hub("b")
	})

	It("reads nothing before it has announced itself, so that it overlooks nobody who overlooks it", func() {
		m.after(0, b)
		m.broken = errors.New("the board is full")
		m.after(0, a)
		Expect(a.Others()).To(BeEmpty())
		Expect(a.log.String()).To(ContainSubstring("the board is full"))
		m.broken = nil
		m.after(0, a)
		Expect(a.of("b").Replica).To(Equal("b"))
	})

	It("reports once that another one is silent, and once that it is heard again", func() {
		m.after(0, a, b, a)
		a.told()
		m.after(16*time.Second, a)
		m.after(time.Second, a)
		Expect(a.told()).To(Equal([]string{"b replica it is not heard: the state of its Envoys is unknown"}))
		b.comeTo("edge", 1, "one", "10.0.0.1:1") // otherwise it would only beat
		m.after(0, b, a)
		m.after(time.Second, a)
		Expect(a.told()).To(ContainElement("b replica it is heard again"))
		Expect(a.log.String()).To(ContainSubstring(`msg="another replica is heard again" replica=b`))
		Expect(a.of("b").Unheard).To(BeFalse())
	})

	It("forgets another one that the board no longer has, after 10 minutes", func() {
		m.after(0, a, b, a)
		a.told()
		delete(m.rows, "b")
		m.after(10*time.Minute, a)
		Expect(a.Others()).To(HaveLen(1))
		m.after(time.Millisecond, a)
		Expect(a.Others()).To(BeEmpty())
		Expect(a.told()).To(ContainElement("b replica it is gone"))
	})

	It("does without a report that is compressed, and is no JSON", func() {
		b.come(1, "one", "10.0.0.1:1")
		m.after(0, a, b, a)
		Expect(addresses(a.of("b"))).To(Equal([]string{"10.0.0.1:1"}))
		var body bytes.Buffer
		z := gzip.NewWriter(&body)
		_, err := z.Write([]byte(`{"envoys":`))
		Expect(err).NotTo(HaveOccurred())
		Expect(z.Close()).To(Succeed())
		post := m.rows["b"]
		post.Report, post.Versions.Report = body.Bytes(), post.Versions.Report+1
		m.rows["b"] = post
		m.after(0, a)
		Expect(a.log.String()).To(ContainSubstring("the report of another replica cannot be read"))
		Expect(addresses(a.of("b"))).To(BeEmpty())
	})
})

var _ = DescribeTable("An Envoy that connects through a socket file moves", func(address string, left int) {
	own := []status.Envoy{{Proxy: "gw", Address: address, Connected: time.Unix(101, 0)}}
	r := &replicas.Report{Replica: "b", Envoys: []replicas.Envoy{{Proxy: "gw", Address: "/run/one.sock"}}}
	Expect(replicas.WithoutMoved(own, []replicas.Other{{Report: r, Heard: time.Unix(100, 0)}})[0].Envoys).To(HaveLen(left))
},
	Entry("with its address", "/run/one.sock", 0),
	Entry("not with another one's", "/run/two.sock", 1),
)
