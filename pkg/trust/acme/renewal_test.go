package acme

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	protocol "github.com/mholt/acmez/v3/acme"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// suggest makes the authority suggest a window for the renewal of the certificate of a host.
func (l *lab) suggest(host string, from, to time.Time) {
	GinkgoHelper()
	window, err := json.Marshal(map[string]any{"suggestedWindow": map[string]time.Time{"start": from.UTC(), "end": to.UTC()}})
	Expect(err).NotTo(HaveOccurred())
	Expect(l.pebble.SetRenewalInfo(context.Background(), l.row(host).Cert, string(window))).To(Succeed())
}

// informed waits until the authority has said when to renew the certificate of a host.
func (l *lab) informed(host string) {
	GinkgoHelper()
	Eventually(func() bool { l.Watch.mu.Lock(); defer l.Watch.mu.Unlock(); return l.rows[host].state.InfoAt.IsZero() }).Should(BeFalse())
}

// renewed waits for another certificate than one.
func (l *lab) renewed(host, than string) {
	GinkgoHelper()
	Eventually(l.serial(host), testkit.Patience).ShouldNot(Equal(than), l.log.String)
}

var _ = Describe("The renewal of a certificate", func() {
	It("begins when the authority moves the window to now, and names what it replaces", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.order("shop.test")
		first := l.issued("shop.test")
		l.informed("shop.test")
		l.suggest("shop.test", time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
		l.pass(5 * time.Hour)
		Expect(l.serial("shop.test")()).To(Equal(first), "the authority said six hours")
		l.pass(2 * time.Hour)
		l.renewed("shop.test", first)
		Expect(l.pebble.Stdout.String()).To(MatchRegexp(`ARI: order ".*" is a replacement of`))
		Expect(l.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
	})

	It("is at once when the authority has revoked it", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.order("shop.test")
		first := l.issued("shop.test")
		l.informed("shop.test")
		r := l.row("shop.test")
		text, err := l.store.Unseal(r.Key, r.Secret().KeyPlace())
		Expect(err).NotTo(HaveOccurred())
		key, err := readKey(text)
		Expect(err).NotTo(HaveOccurred())
		for _, c := range l.clients {
			Expect(c.RevokeCertificate(context.Background(), protocol.Account{}, r.Secret().Leaf(), key, protocol.ReasonKeyCompromise)).To(Succeed())
		}
		l.pass(6*time.Hour + time.Minute)
		l.renewed("shop.test", first)
		again := l.row("shop.test")
		Expect(again.Secret().Leaf().PublicKey).NotTo(Equal(r.Secret().Leaf().PublicKey), "with another key")
	})

	It("is made once, and then later each time, if the authority always wants one", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || r.URL.Path == "/dir" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"suggestedWindow":{"start":"2020-01-01T00:00:00Z","end":"2020-01-02T00:00:00Z"}}`))
			return true
		})
		l.order("shop.test")
		early := func() int { l.Watch.mu.Lock(); defer l.Watch.mu.Unlock(); return l.rows["shop.test"].state.Early }
		l.issued("shop.test")
		Eventually(early, testkit.Patience).Should(Equal(1))
		l.informed("shop.test")
		Expect(l.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
		l.pass(time.Minute + time.Second)
		Eventually(early, testkit.Patience).Should(Equal(2))
		l.informed("shop.test")
		l.pass(3 * time.Minute)
		do, _ := next(l.first(), new(l.row("shop.test")), l.opts.Now())
		Expect(do).To(Equal(wait), "four minutes now")
	})

	It("is ours to choose if the authority suggests a window that ends before it begins", func() {
		l := newLab(testkit.PebbleOptions{}, "")
		l.order("shop.test")
		first := l.issued("shop.test")
		l.informed("shop.test")
		l.suggest("shop.test", time.Now().Add(-time.Hour), time.Now().Add(-2*time.Hour))
		asked := l.row("shop.test").state.InfoAt
		l.pass(6*time.Hour + time.Minute)
		Eventually(func() time.Time {
			l.Watch.mu.Lock()
			defer l.Watch.mu.Unlock()
			return l.rows["shop.test"].state.InfoAt
		}).ShouldNot(Equal(asked))
		Expect(l.row("shop.test").state.RenewAt).To(BeTemporally(">", time.Now().Add(50*day)), "as suggested before")
		Expect(l.serial("shop.test")()).To(Equal(first))
	})

	It("is not made again and again by a clock that is ahead", func() {
		l := newLab(testkit.PebbleOptions{Validity: 6 * 24 * 3600}, "")
		l.ahead.Store(int64(5 * day))
		text, err := l.pebble.Get(context.Background(), l.pebble.Directory)
		Expect(err).NotTo(HaveOccurred())
		text = strings.Replace(text, `"renewalInfo"`, `"none"`, 1)
		l.pebble.Answer(func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != "/dir" {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(text)) // it does not say when to renew
			return true
		})
		l.order("shop.test")
		l.issued("shop.test")
		Eventually(func() int { l.Watch.mu.Lock(); defer l.Watch.mu.Unlock(); return l.rows["shop.test"].state.Early }, testkit.Patience).Should(Equal(1))
		l.informed("shop.test")
		do, at := next(l.first(), new(l.row("shop.test")), l.opts.Now())
		Expect(do).To(Equal(wait))
		Expect(at).To(BeTemporally("~", l.opts.Now().Add(time.Minute), time.Minute))
	})

	It("does not depend on a clock that jumps by a day, ahead and back", func() {
		l := newLab(testkit.PebbleOptions{Validity: 6 * 24 * 3600}, "")
		l.order("shop.test")
		first := l.issued("shop.test")
		for i, jump := range []time.Duration{day, -day, -day, day} {
			l.pass(jump)
			host := fmt.Sprintf("h%d.test", i)
			l.order(host)
			l.issued(host)
		}
		Expect(l.serial("shop.test")()).To(Equal(first))
		Expect(l.Attempts()).To(And(HaveKeyWithValue("issued", 5), HaveKeyWithValue("failed", 0)))
	})
})

var _ = Describe("An order", func() {
	It("waits for an authority that verifies slowly", func() {
		l := newLab(testkit.PebbleOptions{Env: []string{"PEBBLE_VA_NOSLEEP=0", "PEBBLE_VA_SLEEPTIME=4"}}, "")
		l.order("a.test", "b.test")
		l.issued("a.test")
		l.issued("b.test")
		Expect(l.pebble.Count(testkit.PebbleNewOrder)).To(Equal(2))
	})

	It("has the profile of the global config, or says that the authority does not have it", func() {
		l := newLab(testkit.PebbleOptions{Profiles: map[string]int{"shortlived": 6 * 24 * 3600}}, `,"profile":"shortlived"`)
		l.order("shop.test")
		l.issued("shop.test")
		Expect(l.row("shop.test").certificate.life()).To(BeNumerically("~", 6*day, time.Minute))
		l.mu().Lock()
		for _, o := range l.objects {
			if g, ok := o.(*model.GlobalConfig); ok {
				g.Config = model.JSON(`{"directory":"` + l.pebble.Directory + `","terms_agreed":true,"ca_certificate":"directory","profile":"longlived"}`)
			}
		}
		l.mu().Unlock()
		l.order("other.test")
		Eventually(l.state("other.test"), testkit.Patience).Should(Equal(`failing: invalidProfile: there is no profile "longlived", only ["default" "shortlived"]`))
		Expect(l.of("other.test").Advice).To(Equal("correct profile in the global config"))
	})

	It("prefers the chain of an issuer, if the authority offers several", func() {
		l := newLab(testkit.PebbleOptions{Env: []string{"PEBBLE_ALTERNATE_ROOTS=2", "PEBBLE_CHAIN_LENGTH=2"}}, "")
		root, err := l.pebble.AlternateRoot(context.Background(), 2)
		Expect(err).NotTo(HaveOccurred())
		name := (&model.Secret{Cert: root.PEM}).Leaf().Subject.CommonName
		l.order("shop.test")
		l.issued("shop.test")
		Expect(issuedBy(protocol.Certificate{ChainPEM: []byte(l.row("shop.test").Cert)}, name)).To(BeFalse())
		l.mu().Lock()
		for _, o := range l.objects {
			if g, ok := o.(*model.GlobalConfig); ok {
				g.Config = model.JSON(`{"directory":"` + l.pebble.Directory + `","terms_agreed":true,"ca_certificate":"directory","preferred_chain":"` + name + `"}`)
			}
		}
		l.mu().Unlock()
		l.order("other.test")
		l.issued("other.test")
		chain := (&model.Secret{Cert: l.row("other.test").Cert}).Certificates()
		Expect(chain[len(chain)-1].Issuer.CommonName).To(Equal(name))
	})
})
