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

// loginEnvoy is a model of one Envoy process with logins. It crashes when a secret leaves
// its route configuration, and when one changes while it destroys an older configuration.
// It refuses providers whose form begins with "bad".
type loginEnvoy struct {
	hosts    map[string]guardedHost
	given    map[string]bool   // secrets that a route configuration ever named
	asked    map[string]bool   // secrets that it subscribed to
	secrets  map[string]string // versions
	forms    map[string]string // of the extension
	routesV  string
	jwtV     string
	tookAt   time.Time // when it accepted its route configuration
	listener string
}

// loginSim is such an Envoy, its stream, and logins that change at random. Messages are
// delayed both ways, and arrive in order.
type loginSim struct {
	rng    *rand.Rand
	now    time.Time
	envoy  *loginEnvoy
	stream *plan.Stream
	wake   time.Time
	inbox  []plan.Message
	outbox []func() // what the Envoy sends

	hosts    map[string]string // host -> login, or empty
	logins   map[string]login
	bad      map[string]bool // logins whose provider the Envoy refuses
	open     int             // edition of hosts without a login
	revision int64
	// excused means that answers may be wrong: the Envoy has a route configuration that is
	// not known piece by piece.
	excused bool
	// firsts are the nonces of configurations that were not built on a known one. Their
	// hosts (early) may be sent before their secrets.
	firsts map[string]bool
	early  map[string]bool
	late   map[string]bool // hosts that were sent when a bound was exceeded
}

func newLoginSim(seed uint64) *loginSim {
	s := &loginSim{
		rng: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1_800_000_000, 0), //nolint:gosec // a seeded test
		hosts: map[string]string{}, logins: map[string]login{}, bad: map[string]bool{},
	}
	for i := range 4 {
		name := fmt.Sprintf("f%d", i)
		s.logins[name] = login{name: name}
	}
	s.start()
	return s
}

// start starts a new process.
func (s *loginSim) start() {
	s.envoy = &loginEnvoy{
		hosts: map[string]guardedHost{}, given: map[string]bool{}, asked: map[string]bool{}, secrets: map[string]string{}, forms: map[string]string{},
	}
	s.excused, s.early = false, map[string]bool{}
	s.connect()
}

// connect opens a stream: the Envoy reports what it has, type by type, before it answers.
func (s *loginSim) connect() {
	s.stream = plan.NewStream(plan.Options{Grace: simGrace, WarmBound: simBound})
	s.inbox, s.outbox, s.late, s.firsts = nil, nil, map[string]bool{}, map[string]bool{}
	e := s.envoy
	subscribe := func(typeURL string, names []string, initial map[string]string) {
		s.outbox = append(s.outbox, func() { Expect(s.stream.Subscribe(typeURL, names, initial)).To(BeTrue()) })
	}
	versions := func(name, version string) map[string]string {
		if version == "" {
			return nil
		}
		return map[string]string{name: version}
	}
	s.excused = s.excused || e.routesV != ""
	subscribe(snapshot.ClusterType, nil, nil)
	subscribe(snapshot.ListenerType, nil, versions("http", e.listener))
	if e.listener != "" {
		subscribe(snapshot.RouteType, []string{"rc"}, versions("rc", e.routesV))
		if len(e.asked) > 0 {
			subscribe(snapshot.SecretType, slices.Sorted(maps.Keys(e.asked)), maps.Clone(e.secrets))
		}
		subscribe(snapshot.ExtensionType, []string{"jwt"}, versions("jwt", e.jwtV))
	}
	s.publish()
}

func (s *loginSim) publish() {
	s.revision++
	var parts []*snapshot.Parts
	for name, of := range s.hosts {
		if of == "" {
			parts = append(parts, openHost(name, s.open))
		} else {
			parts = append(parts, loginHost(name, s.logins[of], s.bad[of]))
		}
	}
	s.stream.Want(guarded(s.revision, parts...))
}

func (s *loginSim) change() {
	host, of := fmt.Sprintf("h%d", s.rng.IntN(4)), fmt.Sprintf("f%d", s.rng.IntN(4))
	l := s.logins[of]
	switch s.rng.IntN(9) {
	case 0, 1:
		delete(s.hosts, host)
	case 2, 3:
		s.hosts[host] = of
	case 4:
		s.hosts[host] = ""
	case 5:
		s.open++
	case 6:
		l.edition++
	case 7:
		l.keys++
		s.bad[of] = s.rng.IntN(3) == 0
	case 8:
		l.content++
	}
	s.logins[of] = l
	s.publish()
}

// say appends what the Envoy sends.
func (s *loginSim) say(f func()) { s.outbox = append(s.outbox, f) }

func (s *loginSim) answer(m plan.Message, ok bool) {
	s.say(func() {
		if ok {
			s.stream.Ack(m.Nonce)
		} else {
			s.stream.Nack(m.Nonce, "no", s.now)
		}
	})
}

// read lets the Envoy read a message.
func (s *loginSim) read() {
	m := s.inbox[0]
	s.inbox = s.inbox[1:]
	e, ok := s.envoy, true
	switch m.Type {
	case snapshot.ListenerType:
		for _, r := range m.Resources {
			first := e.listener == ""
			e.listener = r.Version
			if first {
				s.say(func() { Expect(s.stream.Subscribe(snapshot.RouteType, []string{"rc"}, nil)).To(BeTrue()) })
				s.say(func() { Expect(s.stream.Subscribe(snapshot.ExtensionType, []string{"jwt"}, nil)).To(BeTrue()) })
			}
		}
	case snapshot.RouteType:
		s.readRoutes(m)
		return
	case snapshot.SecretType:
		for _, name := range m.Removed {
			Expect(name).NotTo(HavePrefix("login/"), "a secret of a login is never removed")
		}
		for _, r := range m.Resources {
			if had := e.secrets[r.Name]; had != "" && had != r.Version {
				Expect(s.now.Sub(e.tookAt)).To(BeNumerically(">=", 500*time.Millisecond), "crash: %s changes while older routes are destroyed", r.Name)
			}
			Expect(e.asked).To(HaveKey(r.Name))
			e.secrets[r.Name] = r.Version
		}
	case snapshot.ExtensionType:
		for _, r := range m.Resources {
			forms := readForms(r)
			for _, form := range forms {
				ok = ok && !strings.HasPrefix(form, "bad")
			}
			if ok {
				e.forms, e.jwtV = forms, r.Version
			}
		}
	}
	s.answer(m, ok)
}

func (s *loginSim) readRoutes(m plan.Message) {
	e := s.envoy
	hosts, secrets := readHosts(m.Resources[0])
	for name := range e.given {
		Expect(secrets).To(HaveKey(name), "crash: secret %s leaves the route configuration", name)
	}
	s.excused = false
	for name, h := range hosts {
		if s.firsts[m.Nonce] && h.demand != "" && slices.ContainsFunc(h.secrets, func(secret string) bool { return e.secrets[secret] == "" }) {
			s.early[name] = true
		}
	}
	e.hosts, e.routesV, e.tookAt = hosts, m.Resources[0].Version, s.now
	var names []string
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		if e.given[name] = true; !e.asked[name] {
			e.asked[name] = true
			names = append(names, name)
		}
	}
	subscribe := func() {
		if len(names) > 0 {
			s.say(func() { Expect(s.stream.Subscribe(snapshot.SecretType, names, nil)).To(BeTrue()) })
		}
	}
	before := s.rng.IntN(2) == 0
	if before {
		subscribe()
	}
	s.answer(m, true)
	if !before {
		subscribe()
	}
}

// check checks that clients of a login get no wrong answer.
func (s *loginSim) check() {
	if s.excused {
		return
	}
	for name, h := range s.envoy.hosts {
		if h.demand == "" || s.late[name] {
			continue
		}
		there := true
		for _, secret := range h.secrets {
			there = there && s.envoy.secrets[secret] != ""
			Expect(there || s.early[name]).To(BeTrue(), "host %s uses secret %s, which is not there", name, secret)
		}
		if there {
			delete(s.early, name)
		}
		Expect(s.envoy.forms).To(HaveKey(h.demand), "host %s names provider %s, which is not there", name, h.demand)
	}
	if _, ok := s.stream.Applied(); ok {
		s.checkApplied()
	}
	for name, of := range s.hosts {
		if _, ok := s.stream.Reached(plan.Goal{Revision: s.revision, Hosts: []string{name}}); ok && of != "" {
			s.checkHost(name, s.logins[of])
		}
	}
}

func (s *loginSim) checkHost(name string, l login) {
	Expect(s.envoy.hosts[name].demand).To(Equal(l.demand()), "host %s", name)
	Expect(s.envoy.forms[l.demand()]).To(Equal(l.form(false)), "host %s", name)
	for _, secret := range l.secrets() {
		Expect(s.envoy.secrets[secret]).To(Equal(loginSecret(secret, l.content).Version), secret)
	}
}

// checkApplied checks that what counts as applied exists.
func (s *loginSim) checkApplied() {
	for name, of := range s.hosts {
		if of == "" {
			Expect(s.envoy.hosts[name].says).To(Equal(fmt.Sprint("open ", s.open)), "host %s", name)
			continue
		}
		s.checkHost(name, s.logins[of])
	}
	for name := range s.envoy.hosts {
		if name != "login/keeper" {
			Expect(s.hosts).To(HaveKey(name))
		}
	}
}

func (s *loginSim) step(quiet bool) {
	switch n := s.rng.IntN(20); {
	case n < 6 && len(s.inbox) > 0:
		s.read()
	case n < 12 && len(s.outbox) > 0:
		f := s.outbox[0]
		s.outbox = s.outbox[1:]
		f()
	case n < 14:
		s.now = s.now.Add(time.Duration(s.rng.IntN(400)) * time.Millisecond)
	case n == 15 && quiet && !s.wake.IsZero() && s.now.Before(s.wake):
		s.now = s.wake
	case n < 18 && !quiet:
		s.change()
	case n == 18 && !quiet && s.rng.IntN(8) == 0:
		s.connect()
	case n == 19 && !quiet && s.rng.IntN(20) == 0:
		s.start()
	}
	s.next()
	s.check()
}

func (s *loginSim) next() {
	waited := s.stream.Waiting()
	_, known := s.stream.Hosts()
	messages, wake := s.stream.Next(s.now)
	s.wake = wake
	for _, m := range messages {
		s.firsts[m.Nonce] = !known
	}
	s.inbox = append(s.inbox, messages...)
	for _, w := range waited {
		if !w.Until.IsZero() && !s.now.Before(w.Until) {
			s.late[w.Host] = true
		}
	}
}

// run makes random changes, repairs what is bad, and checks the final state.
func (s *loginSim) run(steps int) {
	for range steps {
		s.step(false)
	}
	for name := range s.bad {
		l := s.logins[name]
		l.keys++
		s.logins[name] = l
	}
	s.bad = map[string]bool{}
	s.publish()
	wanted := map[string]string{}
	for _, of := range s.hosts {
		if of != "" {
			wanted[s.logins[of].demand()] = s.logins[of].form(false)
		}
	}
	done := func() bool {
		_, applied := s.stream.Applied()
		return applied && len(s.inbox)+len(s.outbox) == 0 && s.wake.IsZero() && maps.Equal(s.envoy.forms, wanted)
	}
	for range 3000 {
		if done() {
			Expect(s.stream.Refused()).To(BeEmpty())
			Expect(s.stream.Waiting()).To(BeEmpty())
			Expect(s.stream.Foreign()).To(BeZero())
			s.checkApplied()
			return
		}
		s.step(true)
	}
	Fail(fmt.Sprintf("the Envoy never got there: it has %v and verifies %v, should verify %v; waiting %v, refused %v",
		s.envoy.hosts, s.envoy.forms, wanted, s.stream.Waiting(), s.stream.Refused()))
}

var _ = Describe("an Envoy with logins that come and go", func() {
	It("never loses a secret that it received, never answers wrong, and ends in the expected state", func() {
		for seed := range seeds() {
			By(fmt.Sprintf("seed %d", seed))
			newLoginSim(seed).run(200)
		}
	})
})
