package plan_test

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// certificate makes a certificate for a name. edition changes its content and so
// its version.
func certificate(name string, edition int) *snapshot.Certificate {
	c, err := snapshot.NewCertificate(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
		CertificateChain: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: fmt.Sprint(edition)}},
	}}}, 0, snapshot.ObjectRef{Kind: "secret", Name: "of " + name})
	Expect(err).NotTo(HaveOccurred())
	return c
}

// certified is a snapshot that contains only certificates.
func certified(revision int64, certificates ...*snapshot.Certificate) *snapshot.Snapshot {
	slices.SortFunc(certificates, func(a, b *snapshot.Certificate) int { return cmp.Compare(a.Name, b.Name) })
	return &snapshot.Snapshot{Revision: revision, Certificates: certificates}
}

var _ = Describe("a certificate that an Envoy looks up for a client", func() {
	var (
		s    *plan.Stream
		now  time.Time
		last []string // nonces
		kept map[string]bool
	)
	BeforeEach(func() {
		s, now, last, kept = plan.NewStream(plan.Options{Grace: 2 * time.Second}), time.Unix(1_800_000_000, 0), nil, map[string]bool{}
		s.Subscribe(snapshot.ListenerType, nil, nil)
	})
	// next returns the messages about secrets as text: "+a -b", and what the Envoy
	// keeps.
	next := func() []string {
		messages, _ := s.Next(now)
		var list []string
		for _, m := range messages {
			last = append(last, m.Nonce)
			if m.Type != snapshot.SecretType {
				continue
			}
			for _, r := range m.Resources {
				kept[r.Name] = true
				list = append(list, "+"+r.Name)
			}
			for _, name := range m.Removed {
				delete(kept, name)
				list = append(list, "-"+name)
			}
		}
		return list
	}
	ackAll := func() {
		for _, nonce := range last {
			s.Ack(nonce)
		}
		last = nil
	}
	ask := func(names ...string) []string {
		GinkgoHelper()
		Expect(s.Subscribe(snapshot.SecretType, names, nil)).To(BeTrue())
		return next()
	}

	It("is refused immediately if it does not exist, and nothing is stored", func() {
		s.Want(certified(1, certificate("shop.test", 1)))
		next()
		Expect(ask("x.test")).To(Equal([]string{"-x.test"}))
		Expect(s.Foreign()).To(BeZero())
		ackAll()
		s.Unsubscribe(snapshot.SecretType, []string{"x.test"})
		s.Want(certified(2, certificate("shop.test", 1), certificate("x.test", 1)))
		Expect(next()).To(BeEmpty(), "nobody has requested it since")
		Expect(ask("x.test")).To(Equal([]string{"+x.test"}))
	})

	It("is removed immediately when it is deleted, whatever else is under way", func() {
		w := certified(1, certificate("shop.test", 1), certificate("other.test", 1))
		s.Want(w)
		next()
		Expect(ask("shop.test", "other.test")).To(Equal([]string{"+other.test", "+shop.test"}))
		s.Want(certified(2, certificate("other.test", 2)))
		Expect(next()).To(Equal([]string{"+other.test", "-shop.test"}), "nothing was answered yet")
		ackAll()
		Expect(next()).To(BeEmpty())
		Expect(s.Foreign()).To(BeZero())
	})

	It("is refused if it was deleted before it was sent", func() {
		s.Want(certified(1, certificate("shop.test", 1)))
		next()
		s.Subscribe(snapshot.SecretType, []string{"shop.test"}, nil)
		s.Want(certified(2))
		Expect(next()).To(Equal([]string{"-shop.test"}))
	})

	It("is kept for the last thousand names under a wildcard, even if the Envoy answers nothing", func() {
		s.Want(certified(1, certificate("*.test", 1)))
		next()
		for i := range 2500 {
			ask(fmt.Sprintf("r%d.test", i))
			Expect(len(kept)).To(BeNumerically("<=", 1000))
		}
		Expect(kept).To(HaveKey("r1500.test"))
		Expect(kept).NotTo(HaveKey("r1499.test"))
		Expect(s.Foreign()).To(BeNumerically("<=", 1500), "until the Envoy answers")
		ackAll()
		Expect(s.Foreign()).To(BeZero())
		By("more names than that in one request are answered too")
		var names []string
		for i := range 1200 {
			names = append(names, fmt.Sprintf("q%d.test", i))
		}
		answered := ask(names...)
		for i, name := range names {
			Expect(answered).To(ContainElement(map[bool]string{true: "-", false: "+"}[i < 200] + name))
		}
		Expect(kept).To(HaveLen(1000))
		ackAll()
		s.Want(certified(2, certificate("*.test", 2)))
		Expect(next()).To(HaveLen(1000))
	})

	It("that the Envoy refuses is not sent again for any name until it changes, and is reported", func() {
		bad := certificate("*.test", 1)
		s.Want(certified(1, bad, certificate("good.test", 1)))
		next()
		ackAll()
		Expect(ask("a.test")).To(Equal([]string{"+a.test"}))
		_, guilty := s.Nack(last[0], "must staple", now)
		Expect(guilty).To(Equal("a.test"))
		last = nil
		Expect(next()).To(Equal([]string{"-a.test"}), "or the handshake would hang")
		ackAll()
		s.Unsubscribe(snapshot.SecretType, []string{"a.test"})
		for _, name := range []string{"a.test", "b.test"} {
			Expect(ask(name)).To(Equal([]string{"-" + name}))
		}
		Expect(ask("good.test")).To(Equal([]string{"+good.test"}))
		ackAll()
		Expect(s.Refused()).To(Equal([]plan.Refusal{{
			Type: snapshot.SecretType, Resource: "*.test", Version: s.Refused()[0].Version, Revision: 1, Text: "must staple", At: now,
			Objects: []snapshot.ObjectRef{{Kind: "secret", Name: "of *.test"}},
		}}))
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
		s.Want(certified(2, certificate("*.test", 2), certificate("good.test", 1)))
		Expect(s.Refused()).To(BeEmpty())
		Expect(ask("a.test")).To(Equal([]string{"+a.test"}))
		ackAll()
		_, applied = s.Applied()
		Expect(applied).To(BeTrue())
	})

	It("is awaited when it changes or is deleted, and not if clients make up names meanwhile", func() {
		reached := func(revision int64) bool {
			_, ok := s.Reached(plan.Goal{Revision: revision})
			return ok
		}
		isApplied := func() bool {
			_, ok := s.Applied()
			return ok
		}
		s.Want(certified(1, certificate("shop.test", 1), certificate("*.wild.test", 1)))
		next()
		ask("shop.test")
		ackAll()
		s.Want(certified(2, certificate("shop.test", 2), certificate("*.wild.test", 1)))
		Expect(next()).To(Equal([]string{"+shop.test"}))
		Expect([]bool{reached(1), reached(2), isApplied()}).To(Equal([]bool{true, false, false}))
		changed := last
		last = nil
		ask("a.wild.test")
		for _, nonce := range changed {
			s.Ack(nonce)
		}
		ask("b.wild.test")
		Expect([]bool{reached(2), isApplied()}).To(Equal([]bool{true, true}))
		ackAll()
		s.Want(certified(3, certificate("*.wild.test", 1)))
		ask("c.wild.test")
		Expect(reached(3)).To(BeFalse(), "a connection would still get it")
		ackAll()
		Expect(reached(3)).To(BeTrue())
		By("whatever happens to one that was to change")
		s.Want(certified(4, certificate("*.wild.test", 4)))
		next()
		s.Unsubscribe(snapshot.SecretType, []string{"b.wild.test"})
		Expect(isApplied()).To(BeFalse())
		ackAll()
		Expect(isApplied()).To(BeTrue())
		s.Want(certified(5, certificate("*.wild.test", 5)))
		next()
		for i := range 1001 {
			ask(fmt.Sprintf("r%d.wild.test", i))
		}
		Expect([]bool{reached(5), isApplied()}).To(Equal([]bool{true, true}), "it is removed under every name")
	})

	It("is compared with the Envoy's report after a reconnect", func() {
		one, two := certificate("one.test", 1), certificate("two.test", 2)
		s.Want(certified(1, one, two))
		version := func(c *snapshot.Certificate) string {
			r, _ := certified(1, c).Certificate(c.Name)
			return r.Version
		}
		s.Subscribe(snapshot.SecretType, []string{"one.test", "two.test", "gone.test", "asked.test"}, map[string]string{
			"one.test": version(one), "two.test": version(certificate("two.test", 1)), "gone.test": "1",
		})
		Expect(next()).To(ConsistOf("+two.test", "-asked.test", "-gone.test"))
		ackAll()
		Expect(next()).To(BeEmpty())
		Expect(s.Foreign()).To(BeZero())
	})
})
