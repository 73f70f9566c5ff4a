package plan_test

import (
	"fmt"
	"time"

	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("the certificate that a client of an Envoy requests", func() {
	var s *plan.Stream
	var now time.Time
	var last []string // nonces

	// certificate is a certificate whose key is its edition.
	certificate := func(name, edition string) *snapshot.Certificate {
		GinkgoHelper()
		c, err := snapshot.NewCertificate(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_TlsCertificate{TlsCertificate: &tlsv3.TlsCertificate{
			PrivateKey: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: edition}},
		}}}, 0, snapshot.ObjectRef{Kind: "secret", Name: "for " + name})
		Expect(err).NotTo(HaveOccurred())
		return c
	}
	want := func(revision int64, list ...*snapshot.Certificate) {
		s.Want(&snapshot.Snapshot{Revision: revision, Certificates: list})
	}
	// next returns the messages about secrets as text: "+a" and "-b".
	next := func() (list []string) {
		messages, _ := s.Next(now)
		for _, m := range messages {
			if m.Type != snapshot.SecretType {
				continue
			}
			last = append(last, m.Nonce)
			for _, r := range m.Resources {
				list = append(list, "+"+r.Name)
			}
			for _, name := range m.Removed {
				list = append(list, "-"+name)
			}
		}
		return list
	}
	ask := func(names ...string) []string {
		Expect(s.Subscribe(snapshot.SecretType, names, nil)).To(BeTrue())
		return next()
	}
	ack := func() {
		for _, nonce := range last {
			s.Ack(nonce)
		}
		last = nil
	}

	BeforeEach(func() {
		now, last = time.Unix(1_000_000, 0), nil
		s = plan.NewStream(plan.Options{})
		want(1, certificate("*.wild.test", "1"), certificate("default/", "1"), certificate("shop.test", "1"))
	})

	It("is found by its name, by a wildcard for one more label, and in every letter case", func() {
		Expect(ask("shop.test", "a.wild.test", "SHOP.Test", "A.Wild.TEST", "default/")).To(ConsistOf(
			"+shop.test", "+a.wild.test", "+SHOP.Test", "+A.Wild.TEST", "+default/"))
	})

	It("is answered with its removal if it does not exist, and nothing is stored", func() {
		Expect(ask("other.test", "wild.test", "a.b.wild.test", "shop.test.", "x.shop.test", "")).To(ConsistOf(
			"-", "-a.b.wild.test", "-other.test", "-shop.test.", "-wild.test", "-x.shop.test"))
		Expect(s.Foreign()).To(BeZero())
		ack()
		Expect(ask("other.test")).To(Equal([]string{"-other.test"}), "each time")
		By("even beyond the limit for unknown names")
		s.SetRoom(0)
		for i := range 20_000 {
			name := fmt.Sprintf("n%d.test", i)
			Expect(ask(name)).To(Equal([]string{"-" + name}))
			ack()
		}
		Expect(s.Foreign()).To(BeZero())
	})

	It("is sent again when it changes, to those who requested it", func() {
		Expect(ask("shop.test", "a.wild.test")).To(Equal([]string{"+a.wild.test", "+shop.test"}))
		ack()
		want(2, certificate("*.wild.test", "2"), certificate("shop.test", "1"))
		Expect(next()).To(Equal([]string{"+a.wild.test"}))
		ack()
		want(3, certificate("*.wild.test", "2"), certificate("a.wild.test", "3"), certificate("shop.test", "1"))
		Expect(next()).To(Equal([]string{"+a.wild.test"}), "its own certificate replaces the wildcard's")
	})

	It("is removed immediately when it is deleted", func() {
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		Expect(ask("shop.test")).To(Equal([]string{"+shop.test"}))
		ack()
		want(2)
		Expect(next()).To(Equal([]string{"-shop.test"}))
		ack()
		Expect(ask("shop.test")).To(Equal([]string{"-shop.test"}))
	})

	It("is removed even if a thousand other names were made up since", func() {
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		Expect(ask("shop.test")).To(Equal([]string{"+shop.test"}))
		for i := range 1000 {
			ask(fmt.Sprintf("n%d.wild.test", i))
			ack()
		}
		ask("n0.wild.test") // it is now the newest
		ack()
		Expect(ask("n1000.wild.test")).To(Equal([]string{"+n1000.wild.test", "-n1.wild.test"}))
	})

	It("is answered with its removal if the first one is refused, and kept if a later one is", func() {
		Expect(ask("shop.test", "a.wild.test")).To(HaveLen(2))
		s.Nack(last[0], "bad", now)
		last = nil
		Expect(next()).To(Equal([]string{"+a.wild.test", "+shop.test"}), "each by itself")
		s.Ack(last[0])
		_, guilty := s.Nack(last[1], "bad", now)
		Expect(guilty).To(Equal("shop.test"))
		last = nil
		Expect(next()).To(Equal([]string{"-shop.test"}))
		ack()
		Expect(ask("shop.test")).To(Equal([]string{"-shop.test"}), "in the same version")
		ack()
		want(2, certificate("*.wild.test", "bad"), certificate("shop.test", "2"))
		Expect(ask("shop.test")).To(ConsistOf("+shop.test", "+a.wild.test"))
		s.Nack(last[0], "bad", now)
		last = nil
		Expect(next()).To(HaveLen(2))
		_, guilty = s.Nack(last[0], "bad", now)
		Expect(guilty).To(Equal("a.wild.test"))
		Expect(s.Refused()).To(ContainElement(And(HaveField("Resource", "a.wild.test"), HaveField("Objects", []snapshot.ObjectRef{{Kind: "secret", Name: "for *.wild.test"}}))))
		last = nil
		Expect(next()).To(BeEmpty(), "it continues with the older one")
	})

	It("is the one that the Envoy has when it reconnects", func() {
		Expect(s.Subscribe(snapshot.SecretType, []string{"shop.test", "gone.test"}, map[string]string{"shop.test": "old", "gone.test": "old"})).To(BeTrue())
		Expect(next()).To(Equal([]string{"+shop.test", "-gone.test"}))
	})
})
