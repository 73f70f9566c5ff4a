package plan_test

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a listener that names clusters", func() {
	const tcp, udp = "tcp-0.0.0.0:53", "udp-0.0.0.0:53"
	var (
		s     *plan.Stream
		now   time.Time
		heard []plan.Message
	)
	BeforeEach(func() {
		s, now, heard = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second}), time.Unix(1_800_000_000, 0), nil
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
	})
	next := func() []string {
		messages, _ := s.Next(now)
		heard = append(heard, messages...)
		return say(messages)
	}
	ack := func() {
		for _, m := range heard {
			s.Ack(m.Nonce)
		}
		heard = nil
	}
	a, slow := func() *snapshot.Resource { return cluster("a", 1, false) }, func() *snapshot.Resource { return cluster("slow", 1, true) }
	want := func(revision int64, ports map[string][]*snapshot.Resource) { s.Want(wholeWorld(revision, nil, ports)) }

	It("is sent when they are usable, and holds nothing else back", func() {
		want(1, map[string][]*snapshot.Resource{tcp: {slow()}, udp: {a()}})
		Expect(next()).To(Equal([]string{"clusters +a +slow", "listeners +http +" + udp, "routes"}))
		Expect(next()).To(BeEmpty())
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
		ack()
		Expect(next()).To(Equal([]string{"listeners +" + tcp}))
		ack()
		_, applied = s.Applied()
		Expect(applied).To(BeTrue())
	})

	It("is sent all the same after the bound, or if one was refused", func() {
		want(1, map[string][]*snapshot.Resource{tcp: {slow()}})
		next()
		now = now.Add(20 * time.Second)
		Expect(next()).To(Equal([]string{"listeners +" + tcp}))
		ack()
		want(2, map[string][]*snapshot.Resource{tcp: {slow(), cluster("bad", 1, true)}})
		Expect(next()).To(Equal([]string{"clusters +bad"}))
		s.Nack(heard[0].Nonce, "no", now)
		heard = nil
		Expect(next()).To(Equal([]string{"listeners +" + tcp}))
	})

	It("keeps its clusters until the Envoy has a version without them, also after a reconnect", func() {
		want(1, map[string][]*snapshot.Resource{tcp: {a()}})
		next()
		ack()
		want(2, map[string][]*snapshot.Resource{tcp: {slow()}})
		Expect(next()).To(Equal([]string{"clusters +slow"}))
		now = now.Add(time.Minute)
		Expect(next()).To(Equal([]string{"listeners +" + tcp}))
		for range 2 {
			Expect(next()).To(BeEmpty(), "the Envoy may refuse it")
			now = now.Add(time.Minute)
		}
		versions := map[string]string{tcp: port(tcp, a()).Version, "http": listener("http").Version}
		again := plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second})
		again.Subscribe(snapshot.ClusterType, nil, map[string]string{"a": a().Version, "slow": slow().Version})
		again.Subscribe(snapshot.ListenerType, nil, versions)
		again.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		s, heard = again, nil
		want(2, map[string][]*snapshot.Resource{tcp: {slow()}})
		Expect(next()).To(Equal([]string{"listeners +" + tcp, "routes"}))
		now = now.Add(time.Minute)
		Expect(next()).To(BeEmpty(), "what the reported version names is unknown")
		ack()
		Expect(next()).To(BeEmpty(), "the grace begins")
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"clusters -a"}))
	})

	It("goes at once when it is unwanted, whatever was refused, and then another one has its address", func() {
		want(1, map[string][]*snapshot.Resource{tcp: {a()}, udp: {a()}})
		next()
		ack()
		want(2, map[string][]*snapshot.Resource{"https-0.0.0.0:53": {a()}, "tcp-0.0.0.0:54": {a()}, udp: {a()}})
		Expect(next()).To(Equal([]string{"listeners +tcp-0.0.0.0:54", "listeners -" + tcp}))
		Expect(next()).To(Equal([]string{"listeners +https-0.0.0.0:53"}))
		s.Nack(heard[0].Nonce, "port in use", now)
		heard = heard[1:]
		ack()
		want(3, map[string][]*snapshot.Resource{"https-0.0.0.0:53": {a()}, udp: {a()}, "tcp-0.0.0.0:54": {a()}})
		Expect(next()).To(BeEmpty())
		_, reached := s.Reached(plan.Goal{Revision: 3, Listeners: true, Hosts: []string{udp}})
		Expect(reached).To(BeTrue(), "the refused listener is that of another service")
		lack, reached := s.Reached(plan.Goal{Revision: 3, Listeners: true, Hosts: []string{"tcp-0.0.0.0:54"}})
		Expect(reached).To(BeFalse())
		Expect(lack.Refusal.Text).To(Equal("port in use"))
		want(4, map[string][]*snapshot.Resource{"https-0.0.0.0:53": {a()}, "tcp-0.0.0.0:54": {a()}})
		Expect(next()).To(Equal([]string{"listeners -" + udp}), "a refused listener does not keep another one open")
	})

	It("has the address of HTTP/3 once that is gone, and not before, while HTTPS waits for nothing", func() {
		want(1, map[string][]*snapshot.Resource{"http3-0.0.0.0:53": nil})
		next()
		ack()
		want(2, map[string][]*snapshot.Resource{"https-0.0.0.0:53": nil, udp: nil})
		Expect(next()).To(Equal([]string{"listeners +https-0.0.0.0:53"}))
		ack()
		Expect(next()).To(Equal([]string{"listeners -http3-0.0.0.0:53"}))
		Expect(next()).To(Equal([]string{"listeners +" + udp}))
	})
})
