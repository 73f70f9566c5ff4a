package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// lookupSim is an Envoy whose clients request host names, its stream, and certificates
// that change at random. Messages are delayed both ways, and arrive in order.
type lookupSim struct {
	rng    *rand.Rand
	now    time.Time
	stream *plan.Stream
	wake   time.Time
	// has are the names to which the Envoy is subscribed, with the version of the
	// certificate; empty while it waits for one.
	has      map[string]string
	inbox    []plan.Message
	outbox   []lookupRequest
	editions map[string]int // of certificates; the Envoy refuses odd editions
	want     *snapshot.Snapshot
}

// lookupRequest is what the Envoy sends: a request for a name, the end of one, or an
// answer.
type lookupRequest struct {
	ask, leave, nonce string
	ok                bool
}

func newLookupSim(seed uint64) *lookupSim {
	s := &lookupSim{
		rng: rand.New(rand.NewPCG(seed, 2)), now: time.Unix(1_800_000_000, 0), //nolint:gosec // a seeded test
		has: map[string]string{}, editions: map[string]int{}, want: certified(1),
	}
	s.connect()
	return s
}

func (s *lookupSim) connect() {
	s.stream, s.inbox, s.outbox = plan.NewStream(plan.Options{Grace: simGrace}), nil, nil
	s.stream.Subscribe(snapshot.ListenerType, nil, nil)
	s.stream.Want(s.want)
	initial := maps.Clone(s.has)
	maps.DeleteFunc(initial, func(_, version string) bool { return version == "" })
	if len(s.has) > 0 {
		s.stream.Subscribe(snapshot.SecretType, slices.Sorted(maps.Keys(s.has)), initial)
	}
}

func (s *lookupSim) change() {
	name := []string{"a.test", "b.test", "*.w.test", "x.w.test", "default/"}[s.rng.IntN(5)]
	if s.rng.IntN(3) == 0 {
		delete(s.editions, name)
	} else {
		s.editions[name] += 1 + s.rng.IntN(2)
	}
	s.publish()
}

func (s *lookupSim) publish() {
	var list []*snapshot.Certificate
	for name, edition := range s.editions {
		list = append(list, certificate(name, edition))
	}
	s.want = certified(s.want.Revision+1, list...)
	s.stream.Want(s.want)
}

// ask starts a handshake for a name.
func (s *lookupSim) ask(name string) {
	if _, known := s.has[name]; !known {
		s.has[name] = ""
		s.outbox = append(s.outbox, lookupRequest{ask: name})
	}
}

// isBad reports whether the Envoy refuses the newest certificate for a name.
func (s *lookupSim) isBad(name string) bool {
	r, pattern := s.want.Certificate(name)
	return r != nil && s.editions[pattern]%2 == 1
}

func (s *lookupSim) read() {
	m := s.inbox[0]
	s.inbox = s.inbox[1:]
	if m.Type != snapshot.SecretType {
		s.outbox = append(s.outbox, lookupRequest{nonce: m.Nonce, ok: true})
		return
	}
	bad := func(r *snapshot.Resource) bool { // odd editions
		return strings.ContainsAny(string(r.Body.GetValue()[len(r.Body.GetValue())-1:]), "13579")
	}
	ok := !slices.ContainsFunc(m.Resources, bad)
	apply := ok || s.rng.IntN(2) == 0
	for _, r := range m.Resources {
		if _, asked := s.has[r.Name]; asked && apply && !bad(r) {
			s.has[r.Name] = r.Version
		}
	}
	s.outbox = append(s.outbox, lookupRequest{nonce: m.Nonce, ok: ok})
	for _, name := range m.Removed {
		if _, asked := s.has[name]; asked {
			delete(s.has, name)
			s.outbox = append(s.outbox, lookupRequest{leave: name})
		}
	}
}

func (s *lookupSim) hear() {
	r := s.outbox[0]
	s.outbox = s.outbox[1:]
	switch {
	case r.ask != "":
		Expect(s.stream.Subscribe(snapshot.SecretType, []string{r.ask}, nil)).To(BeTrue())
	case r.leave != "":
		s.stream.Unsubscribe(snapshot.SecretType, []string{r.leave})
	case r.ok:
		s.stream.Ack(r.nonce)
	default:
		s.stream.Nack(r.nonce, "no", s.now)
	}
}

func (s *lookupSim) step(quiet bool) {
	switch n := s.rng.IntN(20); {
	case n < 6 && len(s.inbox) > 0:
		s.read()
	case n < 12 && len(s.outbox) > 0:
		s.hear()
	case n < 13:
		s.now = s.now.Add(time.Duration(s.rng.IntN(2000)) * time.Millisecond)
	case n < 16 && !quiet:
		names := []string{"a.test", "A.test", "b.test", "x.w.test", "y.w.test", "z.w.test", "default/"}
		if i := s.rng.IntN(2 * len(names)); i < len(names) {
			s.ask(names[i])
		} else {
			s.ask(fmt.Sprintf("r%d.example", s.rng.Int()))
		}
	case n < 18 && !quiet:
		s.change()
	case n == 18 && !quiet && s.rng.IntN(10) == 0:
		s.connect()
	}
	s.next()
}

// next lets the stream send what is due, as after everything that it receives.
func (s *lookupSim) next() {
	messages, wake := s.stream.Next(s.now)
	s.inbox, s.wake = append(s.inbox, messages...), wake
	if _, ok := s.stream.Reached(plan.Goal{Revision: s.want.Revision}); ok {
		s.checkNewest()
	}
}

// checkNewest checks that what counts as reached exists.
func (s *lookupSim) checkNewest() {
	for name, version := range s.has {
		if version == "" || s.isBad(name) {
			continue
		}
		r, _ := s.want.Certificate(name)
		Expect(r).NotTo(BeNil(), "%s has no certificate any more", name)
		Expect(version).To(Equal(r.Version), "%s has another certificate", name)
	}
}

// run makes random changes, repairs what is bad, and checks the final state.
func (s *lookupSim) run(steps int) {
	for range steps {
		s.step(false)
	}
	for name := range s.editions {
		s.editions[name] += s.editions[name] % 2
	}
	s.publish()
	s.next()
	for range 3000 {
		_, applied := s.stream.Applied()
		if applied && len(s.inbox)+len(s.outbox) == 0 && s.wake.IsZero() {
			break
		}
		s.step(true)
	}
	_, applied := s.stream.Applied()
	Expect(applied).To(BeTrue())
	Expect(s.stream.Unanswered()).To(BeZero())
	Expect(s.stream.Foreign()).To(BeZero(), "nothing is kept for a name without a certificate")
	Expect(s.stream.Refused()).To(BeEmpty())
	for name, version := range s.has {
		Expect(version).NotTo(BeEmpty(), "the handshake for %s hangs", name)
		Expect(strings.HasSuffix(name, ".example")).To(BeFalse(), "%s is kept", name)
	}
	s.checkNewest()
}

var _ = Describe("an Envoy whose clients request certificates that come and go", func() {
	It("has the newest of each, answers every name, and keeps none that is deleted", func() {
		for seed := range seeds() {
			By(fmt.Sprintf("seed %d", seed))
			newLookupSim(seed).run(200)
		}
	})
})
