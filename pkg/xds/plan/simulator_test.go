package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const (
	simGrace = 2 * time.Second
	simBound = 20 * time.Second
)

// envoy is a model of one Envoy: it reads messages in order, warms clusters,
// delays the answers about clusters while one warms, and refuses clusters whose
// name begins with "bad" and routes to one whose name begins with "poison".
type envoy struct {
	clusters  map[string]*simCluster
	listeners map[string]string
	ports     map[string][]string // listener -> clusters
	routes    map[string][]string // host -> clusters
	routesV   string
	dropped   map[string]time.Time // good clusters lost with a bad one, and when they were sent
	inbox     []letter
	withheld  []answer
	outbox    []answer
}

// letter is a message in transit.
type letter struct {
	plan.Message
	sentAt time.Time
}

type simCluster struct {
	version string
	// activeAt is when it is ready. A cluster that was active stays active.
	activeAt, sentAt time.Time
}

type answer struct {
	typeURL string
	nonce   string
	ok      bool
}

func newEnvoy() *envoy {
	return &envoy{dropped: map[string]time.Time{}, clusters: map[string]*simCluster{}, listeners: map[string]string{}, ports: map[string][]string{}, routes: map[string][]string{}}
}

func (e *envoy) read(rng *rand.Rand, now time.Time) {
	m := e.inbox[0]
	e.inbox = e.inbox[1:]
	switch m.Type {
	case snapshot.ClusterType:
		if m.Joined != nil {
			var each []byte
			for _, r := range m.Resources {
				each = append(each, r.Wire()...)
			}
			Expect(m.Joined()).To(Equal(each), "the Envoy receives what is listed")
		}
		ok := true
		for _, r := range m.Resources {
			ok = ok && !strings.HasPrefix(r.Name, "bad")
		}
		// The good clusters of a refused message may or may not be accepted.
		apply := ok || rng.IntN(2) == 0
		for _, r := range m.Resources {
			switch {
			case strings.HasPrefix(r.Name, "bad"):
			case apply:
				sentAt := m.sentAt
				if first, lost := e.dropped[r.Name]; lost {
					sentAt = first
				}
				e.takeCluster(r, rng, sentAt, now)
				delete(e.dropped, r.Name)
			default:
				if _, lost := e.dropped[r.Name]; !lost {
					e.dropped[r.Name] = m.sentAt
				}
			}
		}
		for _, name := range m.Removed {
			for host, clusters := range e.named() {
				Expect(clusters).NotTo(ContainElement(name), "cluster %s is removed while %s names it", name, host)
			}
			delete(e.clusters, name)
		}
		e.withheld = append(e.withheld, answer{m.Type, m.Nonce, ok})
	case snapshot.ListenerType:
		for _, r := range m.Resources {
			e.listeners[r.Name], e.ports[r.Name] = r.Version, r.Clusters
		}
		for _, name := range m.Removed {
			delete(e.listeners, name)
			delete(e.ports, name)
		}
		e.outbox = append(e.outbox, answer{m.Type, m.Nonce, true})
	case snapshot.RouteType:
		if poisoned(clustersByHost(m.Resources[0])) {
			e.outbox = append(e.outbox, answer{m.Type, m.Nonce, false})
			return
		}
		e.routes, e.routesV = clustersByHost(m.Resources[0]), m.Resources[0].Version
		e.outbox = append(e.outbox, answer{m.Type, m.Nonce, true})
	}
}

func (e *envoy) takeCluster(r *snapshot.Resource, rng *rand.Rand, sentAt, now time.Time) {
	c := e.clusters[r.Name]
	if c == nil {
		c = &simCluster{activeAt: now, sentAt: sentAt}
		if r.Warms {
			c.activeAt = now.Add(time.Duration(rng.IntN(40)) * time.Second) // some beyond the bound
		}
		e.clusters[r.Name] = c
	}
	c.version = r.Version
}

// tick sends the answers that no warming cluster delays.
func (e *envoy) tick(now time.Time) {
	for _, c := range e.clusters {
		if now.Before(c.activeAt) {
			return
		}
	}
	e.outbox = append(e.outbox, e.withheld...)
	e.withheld = nil
}

// named returns the clusters that hosts and listeners name.
func (e *envoy) named() map[string][]string {
	all := map[string][]string{}
	for host, clusters := range e.routes {
		all["host "+host] = clusters
	}
	for listener, clusters := range e.ports {
		all["listener "+listener] = clusters
	}
	return all
}

// check checks that no route and no listener names a missing cluster, unless that was refused,
// alone or with others, or exceeded the bound.
func (e *envoy) check(now time.Time, reconnected bool) {
	for host, clusters := range e.named() {
		for _, name := range clusters {
			c := e.clusters[name]
			_, lost := e.dropped[name]
			if strings.HasPrefix(name, "bad") || lost {
				continue
			}
			Expect(c).NotTo(BeNil(), "%s names cluster %s, which does not exist", host, name)
			// A cluster that warms is reported like an active one after a
			// reconnect.
			Expect(reconnected || !now.Before(c.activeAt) || !now.Before(c.sentAt.Add(simBound))).To(BeTrue(),
				"%s names cluster %s, which warms", host, name)
		}
	}
}

// sim is one Envoy, its stream, and a configuration that changes at random.
type sim struct {
	rng         *rand.Rand
	now         time.Time
	envoy       *envoy
	stream      *plan.Stream
	hosts       map[string][]string
	ports       map[string][]string
	editions    map[string]int
	revision    int64
	wake        time.Time
	reconnected bool
	// sent are the versions that this stream has sent. A refusal removes those
	// that may be sent again.
	sent map[string]bool
}

func newSim(seed uint64) *sim {
	s := &sim{
		rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0), envoy: newEnvoy(), //nolint:gosec // a seeded test
		hosts: map[string][]string{}, ports: map[string][]string{}, editions: map[string]int{},
	}
	s.connect()
	return s
}

func (s *sim) connect() {
	s.stream, s.sent = plan.NewStream(plan.Options{Grace: simGrace, WarmBound: simBound}), map[string]bool{}
	e := s.envoy
	e.inbox, e.outbox, e.withheld = nil, nil, nil
	clusters := map[string]string{}
	for name, c := range e.clusters {
		clusters[name] = c.version
		s.reconnected = s.reconnected || s.now.Before(c.activeAt)
	}
	routes := map[string]string{}
	if e.routesV != "" {
		routes["rc"] = e.routesV
	}
	s.stream.Subscribe(snapshot.ClusterType, nil, clusters)
	s.stream.Subscribe(snapshot.ListenerType, nil, maps.Clone(e.listeners))
	s.stream.Subscribe(snapshot.RouteType, []string{"rc"}, routes)
	s.want()
}

func (s *sim) want() {
	s.revision++
	var parts []*snapshot.Parts
	made := func(clusters []string) (list []*snapshot.Resource) {
		for _, c := range clusters {
			list = append(list, cluster(c, 1+s.editions[c], strings.HasPrefix(c, "slow")))
		}
		return list
	}
	for name, clusters := range s.hosts {
		parts = append(parts, host(name, made(clusters)...))
	}
	ports := map[string][]*snapshot.Resource{}
	for name, clusters := range s.ports {
		ports[name] = made(clusters)
	}
	s.stream.Want(wholeWorld(s.revision, nil, ports, parts...))
}

// change edits the configuration at random.
func (s *sim) change(allowBad bool) {
	name := fmt.Sprintf("h%d", s.rng.IntN(6))
	at := fmt.Sprintf("tcp-10.0.0.1:%d", s.rng.IntN(3))
	switch s.rng.IntN(7) {
	case 5:
		delete(s.ports, at)
	case 6:
		s.ports[at] = slices.Compact(slices.Sorted(slices.Values([]string{s.pick(allowBad), s.pick(allowBad)})))
	case 0:
		delete(s.hosts, name)
	case 1:
		// Some return to their previous value.
		c := s.pick(allowBad)
		s.editions[c] = max(0, s.editions[c]+1-2*s.rng.IntN(2))
	default:
		set := map[string]bool{}
		for range 1 + s.rng.IntN(3) {
			set[s.pick(allowBad)] = true
		}
		s.hosts[name] = slices.Sorted(maps.Keys(set))
	}
	s.want()
}

func (s *sim) pick(allowBad bool) string {
	kinds := []string{"fast", "fast", "fast", "slow", "slow", "bad", "poison"}
	if !allowBad {
		kinds = kinds[:5]
	}
	return fmt.Sprintf("%s%d", kinds[s.rng.IntN(len(kinds))], s.rng.IntN(4))
}

// step makes one thing happen.
func (s *sim) step(quiet bool) {
	switch n := s.rng.IntN(20); {
	case n < 6 && len(s.envoy.inbox) > 0:
		s.envoy.read(s.rng, s.now)
	case n < 12 && len(s.envoy.outbox) > 0:
		// Answers about one type arrive in order, mixed with those about
		// others.
		typeURL := s.envoy.outbox[s.rng.IntN(len(s.envoy.outbox))].typeURL
		i := slices.IndexFunc(s.envoy.outbox, func(a answer) bool { return a.typeURL == typeURL })
		a := s.envoy.outbox[i]
		s.envoy.outbox = slices.Delete(s.envoy.outbox, i, i+1)
		if a.ok {
			s.stream.Ack(a.nonce)
		} else {
			m, _ := s.stream.Nack(a.nonce, "no", s.now)
			for _, r := range m.Resources {
				delete(s.sent, r.Name+" "+r.Version)
			}
		}
	case n < 15:
		s.now = s.now.Add(time.Duration(s.rng.IntN(2000)) * time.Millisecond)
	case n == 15 && quiet && !s.wake.IsZero() && s.now.Before(s.wake):
		s.now = s.wake
	case n < 18 && !quiet:
		s.change(true)
	case n == 18 && !quiet && s.rng.IntN(10) == 0:
		s.connect()
	case n == 19 && !quiet && s.rng.IntN(20) == 0:
		s.envoy, s.reconnected = newEnvoy(), false
		s.connect()
	}
	s.envoy.tick(s.now)
	messages, wake := s.stream.Next(s.now)
	s.wake = wake
	for _, m := range messages {
		s.envoy.inbox = append(s.envoy.inbox, letter{m, s.now})
		s.checkSent(m)
	}
	s.envoy.check(s.now, s.reconnected)
	s.checkGoals()
}

// checkSent checks that an unchanged resource is not sent twice.
func (s *sim) checkSent(m plan.Message) {
	if m.Type == snapshot.RouteType {
		return // it is assembled again from unchanged pieces
	}
	for _, r := range m.Resources {
		Expect(s.sent[r.Name+" "+r.Version]).To(BeFalse(), "%s is sent again", r.Name)
		for sent := range s.sent {
			if strings.HasPrefix(sent, r.Name+" ") {
				delete(s.sent, sent) // another version may be followed by it
			}
		}
		s.sent[r.Name+" "+r.Version] = true
	}
	for _, name := range m.Removed {
		for sent := range s.sent {
			if strings.HasPrefix(sent, name+" ") {
				delete(s.sent, sent)
			}
		}
	}
}

// checkGoals checks that what counts as applied exists.
func (s *sim) checkGoals() {
	for name, clusters := range s.hosts {
		if _, ok := s.stream.Reached(plan.Goal{Revision: s.revision, Hosts: []string{name}}); !ok {
			continue
		}
		has, there := s.envoy.routes[name]
		Expect(there).To(BeTrue(), "host %s", name)
		Expect(slices.Equal(has, clusters)).To(BeTrue(), "host %s has %v, should have %v", name, has, clusters)
		for _, c := range clusters {
			if _, lost := s.envoy.dropped[c]; lost || strings.HasPrefix(c, "bad") {
				continue // refused, but the refusal has not arrived yet
			}
			Expect(s.envoy.clusters[c]).NotTo(BeNil(), "cluster %s of host %s", c, name)
			want := cluster(c, 1+s.editions[c], strings.HasPrefix(c, "slow")).Version
			Expect(s.envoy.clusters[c].version).To(Equal(want), "cluster %s of host %s", c, name)
		}
	}
}

// run makes random changes, repairs what is bad, and checks the final state.
func (s *sim) run(steps int) {
	for range steps {
		s.step(false)
	}
	for name := range s.hosts {
		s.hosts[name] = slices.DeleteFunc(s.hosts[name], func(c string) bool {
			return strings.HasPrefix(c, "bad") || strings.HasPrefix(c, "poison")
		})
	}
	for name := range s.ports {
		s.ports[name] = slices.DeleteFunc(s.ports[name], func(c string) bool {
			return strings.HasPrefix(c, "bad") || strings.HasPrefix(c, "poison")
		})
	}
	s.want()
	want := map[string][]string{}
	clusters := map[string]string{}
	for _, list := range s.ports {
		for _, c := range list {
			clusters[c] = cluster(c, 1+s.editions[c], strings.HasPrefix(c, "slow")).Version
		}
	}
	for name, list := range s.hosts {
		want[name] = append([]string(nil), list...)
		for _, c := range list {
			clusters[c] = cluster(c, 1+s.editions[c], strings.HasPrefix(c, "slow")).Version
		}
	}
	done := func() bool {
		have := map[string]string{}
		for name, c := range s.envoy.clusters {
			have[name] = c.version
		}
		_, applied := s.stream.Applied()
		delete(s.envoy.ports, "http")
		return applied && maps.Equal(have, clusters) && maps.EqualFunc(s.envoy.routes, want, slices.Equal) &&
			maps.EqualFunc(s.envoy.ports, s.ports, slices.Equal)
	}
	for range 3000 {
		if done() {
			return
		}
		s.step(true)
	}
	Fail(fmt.Sprintf("the Envoy never got there: has hosts %v, wants %v; clusters %v, wants %v",
		s.envoy.routes, want, slices.Sorted(maps.Keys(s.envoy.clusters)), slices.Sorted(maps.Keys(clusters))))
}

// seeds is the number of runs: GATEHOUSE_TEST_SEEDS, or a number that fits
// among the other tests.
func seeds() uint64 {
	n, err := strconv.ParseUint(os.Getenv("GATEHOUSE_TEST_SEEDS"), 10, 64)
	if err != nil {
		return 300
	}
	return n
}

var _ = Describe("a simulated Envoy under a storm of changes", func() {
	It("never has a route or a listener without its cluster and ends in the expected state", func() {
		for seed := range seeds() {
			By(fmt.Sprintf("seed %d", seed))
			newSim(seed).run(200)
		}
	})
})
