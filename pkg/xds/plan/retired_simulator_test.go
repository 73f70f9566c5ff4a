package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// keySim is a model of one Envoy with API keys, its stream, and filters and keys that change at random.
// Messages are delayed both ways, and arrive in order. Clusters never become ready, so hosts wait.
type keySim struct {
	rng      *rand.Rand
	now      time.Time
	stream   *plan.Stream
	wake     time.Time
	inbox    []plan.Message
	outbox   []func()
	clusters map[string]string // of the Envoy: versions
	required map[string]string // host -> set
	keys     keySets
	routesV  string
	keysV    string
	listener string

	sets     keySets
	had      map[string]bool
	hosts    map[string][2]string // host -> set, cluster
	revision int64
}

func newKeySim(seed uint64) *keySim {
	s := &keySim{
		rng: rand.New(rand.NewPCG(seed, 5)), now: time.Unix(1_800_000_000, 0), //nolint:gosec // a seeded test
		sets: keySets{"a": 1, "b": 1, "c": 1}, had: map[string]bool{}, hosts: map[string][2]string{},
	}
	s.start()
	return s
}

// start starts a new process.
func (s *keySim) start() {
	s.clusters, s.required, s.keys, s.routesV, s.keysV, s.listener = map[string]string{}, map[string]string{}, keySets{}, "", "", ""
	s.connect()
}

// connect opens a stream: the Envoy reports what it has.
func (s *keySim) connect() {
	s.stream = plan.NewStream(plan.Options{Grace: simGrace, WarmBound: simBound})
	s.inbox, s.outbox = nil, nil
	report := func(name, version string) map[string]string {
		if version == "" {
			return nil
		}
		return map[string]string{name: version}
	}
	clusters, listener, routes, keys := maps.Clone(s.clusters), report("http", s.listener), report("rc", s.routesV), report("keys", s.keysV)
	s.say(func() {
		s.stream.Subscribe(snapshot.ClusterType, nil, clusters)
		s.stream.Subscribe(snapshot.ListenerType, nil, listener)
		if listener != nil {
			s.stream.Subscribe(snapshot.RouteType, []string{"rc"}, routes)
			s.stream.Subscribe(snapshot.ExtensionType, []string{"keys"}, keys)
		}
	})
	s.publish()
}

func (s *keySim) say(f func()) { s.outbox = append(s.outbox, f) }

func (s *keySim) publish() {
	s.revision++
	var parts []*snapshot.Parts
	for name, h := range s.hosts {
		if h[0] != "" {
			s.had[h[0]] = true
		}
		parts = append(parts, keyedHost(name, h[0], cluster(h[1], 1, h[1] == "slow")))
	}
	s.stream.Want(keyedWorld(s.revision, s.sets, slices.Collect(maps.Keys(s.had)), parts...))
}

func (s *keySim) change() {
	name, set := fmt.Sprintf("h%d", s.rng.IntN(3)), string(rune('a'+s.rng.IntN(3)))
	cluster := []string{"fast", "fast", "slow"}[s.rng.IntN(3)]
	switch s.rng.IntN(8) {
	case 0:
		delete(s.hosts, name)
	case 1, 2:
		s.hosts[name] = [2]string{"", cluster}
	case 3:
		s.sets[set]++
	default:
		s.hosts[name] = [2]string{set, cluster}
	}
	s.publish()
}

// read lets the Envoy read a message.
func (s *keySim) read() {
	m := s.inbox[0]
	s.inbox = s.inbox[1:]
	withheld := false
	for _, r := range m.Resources {
		switch m.Type {
		case snapshot.ClusterType:
			s.clusters[r.Name] = r.Version
			withheld = withheld || r.Warms
		case snapshot.ListenerType:
			if s.listener == "" {
				s.say(func() { s.stream.Subscribe(snapshot.RouteType, []string{"rc"}, nil) })
				s.say(func() { s.stream.Subscribe(snapshot.ExtensionType, []string{"keys"}, nil) })
			}
			s.listener = r.Version
		case snapshot.ExtensionType:
			s.keys, s.keysV = readKeys(r), r.Version
		case snapshot.RouteType:
			s.required, s.routesV = readRequired(r), r.Version
		}
	}
	if m.Type == snapshot.ClusterType {
		for _, name := range m.Removed {
			delete(s.clusters, name)
		}
	}
	if !withheld {
		s.say(func() { s.stream.Ack(m.Nonce) })
	}
}

// check checks that no valid key is refused, and that no revoked one stays valid.
func (s *keySim) check() {
	if s.keysV == "" {
		return // the listener waits for the list
	}
	for host, set := range s.required {
		if set != "" {
			Expect(s.keys).To(HaveKey(set), "host %s requires set %s, whose keys the Envoy does not have", host, set)
		}
	}
	if _, ok := s.stream.Applied(); ok {
		for set, edition := range s.keys {
			Expect(edition).To(Equal(s.sets[set]), "set %s", set)
		}
	}
}

func (s *keySim) step(quiet bool) {
	switch n := s.rng.IntN(20); {
	case n < 6 && len(s.inbox) > 0:
		s.read()
	case n < 12 && len(s.outbox) > 0:
		f := s.outbox[0]
		s.outbox = s.outbox[1:]
		f()
	case n < 14:
		s.now = s.now.Add(time.Duration(s.rng.IntN(800)) * time.Millisecond)
	case n == 15 && quiet && !s.wake.IsZero() && s.now.Before(s.wake):
		s.now = s.wake
	case n < 18 && !quiet:
		s.change()
	case n == 18 && !quiet && s.rng.IntN(4) == 0:
		s.connect()
	case n == 19 && !quiet && s.rng.IntN(20) == 0:
		s.start()
	}
	var messages []plan.Message
	messages, s.wake = s.stream.Next(s.now)
	s.inbox = append(s.inbox, messages...)
	s.check()
}

// run makes random changes and checks the final state: the sets that hosts require, and no others.
func (s *keySim) run(steps int) {
	for range steps {
		s.step(false)
	}
	want, required := keySets{}, map[string]string{}
	for name, h := range s.hosts {
		s.hosts[name] = [2]string{h[0], "fast"}
		if required[name] = h[0]; h[0] != "" {
			want[h[0]] = s.sets[h[0]]
		}
	}
	s.publish()
	for range 3000 {
		if len(s.hosts) == 0 || maps.Equal(s.keys, want) && maps.Equal(s.required, required) {
			return
		}
		s.step(true)
	}
	Fail(fmt.Sprintf("the Envoy never got there: has keys %v and hosts %v, wants %v and %v", s.keys, s.required, want, required))
}

var _ = Describe("a simulated Envoy while filters for API keys come and go", func() {
	It("has the keys that its hosts require at any time, and ends with no others", func() {
		for seed := range seeds() {
			By(fmt.Sprintf("seed %d", seed))
			newKeySim(seed).run(200)
		}
	})
})
