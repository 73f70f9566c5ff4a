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

// fetchTimeout is how long an Envoy waits for an assignment.
const fetchTimeout = 5 * time.Second

// edsEnvoy is a model of one Envoy with clusters whose endpoints are assignments. It behaves as
// a real one was observed to (ADR 0064). It requests an assignment after it has read a cluster
// that needs one, and unsubscribes with the cluster. A cluster, also in a new version, warms
// until the Envoy reads the assignment that comes after it, or that there is none, or until a
// timeout. With a health check, it then warms for some more time. The Envoy accepts the
// assignments of a message one after the other, up to one that it refuses: one with port 1.
type edsEnvoy struct {
	clusters map[string]*edsCluster
	routes   map[string][]string
	routesV  string
	asked    map[string]bool
	inbox    []letter
	withheld []edsAnswer
	outbox   []edsAnswer
}

type edsCluster struct {
	version    string
	discovered bool
	// assigned is the version of the assignment in use; empty: none.
	assigned string
	// serves means that a version of it is active.
	serves bool
	// warmsSince is when the newest version was read, while it has no endpoints. readyAt is
	// when its health check ends. The zero time means neither.
	warmsSince, readyAt time.Time
	checked             bool
	sentAt              time.Time // at first
	// excused means that it has been warming since before a reconnect, has run into its
	// timeout, or has lost an assignment to a refusal.
	excused bool
}

func (c *edsCluster) warms() bool { return !c.warmsSince.IsZero() || !c.readyAt.IsZero() }

// edsAnswer is an answer, or a change of subscriptions.
type edsAnswer struct {
	typeURL, nonce string
	ok             bool
	asks, leaves   string
}

func newEDSEnvoy() *edsEnvoy {
	return &edsEnvoy{clusters: map[string]*edsCluster{}, routes: map[string][]string{}, asked: map[string]bool{}}
}

func (e *edsEnvoy) ask(name string) {
	if !e.asked[name] {
		e.asked[name] = true
		e.outbox = append(e.outbox, edsAnswer{typeURL: snapshot.EndpointType, asks: name})
	}
}

func (e *edsEnvoy) leave(name string) {
	if e.asked[name] {
		delete(e.asked, name)
		e.outbox = append(e.outbox, edsAnswer{typeURL: snapshot.EndpointType, leaves: name})
	}
}

func (e *edsEnvoy) read(rng *rand.Rand, now time.Time) {
	m := e.inbox[0]
	e.inbox = e.inbox[1:]
	ok := true
	switch m.Type {
	case snapshot.ClusterType:
		for _, r := range m.Resources {
			e.takeCluster(r, m.sentAt, now)
		}
		for _, name := range m.Removed {
			for host, clusters := range e.routes {
				Expect(clusters).NotTo(ContainElement(name), "cluster %s is removed while host %s names it", name, host)
			}
			delete(e.clusters, name)
			e.leave(name)
		}
		e.withheld = append(e.withheld, edsAnswer{typeURL: m.Type, nonce: m.Nonce, ok: true})
		return
	case snapshot.EndpointType:
		for _, r := range m.Resources {
			if ok = ok && r.Version != assignment(r.Name, 1).Version; !ok {
				if c := e.clusters[r.Name]; c != nil {
					c.excused = true // also for those after the bad one, until they are sent alone
				}
				continue
			}
			e.assign(r.Name, r.Version, rng, now)
		}
		for _, name := range m.Removed {
			c := e.clusters[name]
			Expect(c == nil || !c.serves || !c.warms() || !e.isNamed(name)).To(BeTrue(), "cluster %s, which serves, is told that it has no endpoints", name)
			e.assign(name, "", rng, now)
		}
	case snapshot.RouteType:
		e.routes, e.routesV = clustersByHost(m.Resources[0]), m.Resources[0].Version
	}
	e.outbox = append(e.outbox, edsAnswer{typeURL: m.Type, nonce: m.Nonce, ok: ok})
}

func (e *edsEnvoy) isNamed(cluster string) bool {
	for _, clusters := range e.routes {
		if slices.Contains(clusters, cluster) {
			return true
		}
	}
	return false
}

func (e *edsEnvoy) takeCluster(r *snapshot.Resource, sentAt, now time.Time) {
	c := e.clusters[r.Name]
	if c == nil {
		c = &edsCluster{sentAt: sentAt}
		e.clusters[r.Name] = c
	}
	c.version, c.discovered, c.checked, c.excused = r.Version, r.Discovered, r.Warms, c.excused && !c.serves
	c.warmsSince, c.readyAt = time.Time{}, time.Time{}
	if !r.Discovered {
		c.serves, c.assigned = true, ""
		e.leave(r.Name)
		return
	}
	c.warmsSince = now
	e.ask(r.Name)
}

// assign applies an assignment. An empty version means that there is none, which matters only
// to a cluster that waits.
func (e *edsEnvoy) assign(name, version string, rng *rand.Rand, now time.Time) {
	c := e.clusters[name]
	if c == nil || !e.asked[name] || version == "" && c.warmsSince.IsZero() {
		return
	}
	c.assigned = version
	if !c.warmsSince.IsZero() {
		c.warmsSince = time.Time{}
		if c.checked {
			c.readyAt = now.Add(time.Duration(1+rng.IntN(5000)) * time.Millisecond)
		}
	}
	if !c.readyAt.IsZero() {
		return // it stays excused until it is ready
	}
	c.excused, c.serves = c.excused && (version == "" || !c.serves), true
}

// tick ends what has timed out, and sends the answers that nothing delays.
func (e *edsEnvoy) tick(now time.Time, late func(name string)) {
	warms := false
	for _, name := range slices.Sorted(maps.Keys(e.clusters)) {
		c := e.clusters[name]
		if !c.warmsSince.IsZero() && !now.Before(c.warmsSince.Add(fetchTimeout)) {
			late(name)
			c.warmsSince, c.serves, c.excused = time.Time{}, true, true // with its previous endpoints
		}
		if !c.readyAt.IsZero() && !now.Before(c.readyAt) {
			c.readyAt, c.serves, c.excused = time.Time{}, true, c.excused && (c.assigned == "" || !c.serves)
		}
		warms = warms || c.warms()
	}
	if !warms {
		e.outbox = append(e.outbox, e.withheld...)
		e.withheld = nil
	}
}

// edsSim is one Envoy, its stream, and a configuration that changes at random.
type edsSim struct {
	rng      *rand.Rand
	now      time.Time
	envoy    *edsEnvoy
	stream   *plan.Stream
	snap     *snapshot.Snapshot
	hosts    map[string][]string
	editions map[string]int
	// ports are the ports of the endpoints. 1 is refused.
	ports    map[string]int
	revision int64
	wake     time.Time
}

func newEDSSim(seed uint64) *edsSim {
	s := &edsSim{
		rng: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1_800_000_000, 0), envoy: newEDSEnvoy(), //nolint:gosec // a seeded test
		hosts: map[string][]string{}, editions: map[string]int{}, ports: map[string]int{},
	}
	s.build()
	s.connect()
	return s
}

func (s *edsSim) connect() {
	s.stream = plan.NewStream(plan.Options{Grace: simGrace, WarmBound: simBound})
	s.stream.Want(s.snap)
	e := s.envoy
	e.inbox, e.outbox, e.withheld = nil, nil, nil
	clusters, assigned, routes := map[string]string{}, map[string]string{}, map[string]string{}
	for name, c := range e.clusters {
		clusters[name] = c.version
		c.excused = c.excused || c.warms()
		if c.assigned != "" {
			assigned[name] = c.assigned
		}
	}
	if e.routesV != "" {
		routes["rc"] = e.routesV
	}
	s.stream.Subscribe(snapshot.ClusterType, nil, clusters)
	if len(e.asked) > 0 {
		s.stream.Subscribe(snapshot.EndpointType, slices.Sorted(maps.Keys(e.asked)), assigned)
	}
	s.stream.Subscribe(snapshot.ListenerType, nil, nil)
	s.stream.Subscribe(snapshot.RouteType, []string{"rc"}, routes)
}

// resource is a cluster. A name with "eds" has an assignment, one with "hc" a health check too,
// and one with "morph" an assignment in some editions.
func (s *edsSim) resource(name string) *snapshot.Resource {
	edition := 1 + s.editions[name]
	switch {
	case strings.HasPrefix(name, "eds"), strings.HasPrefix(name, "hc"), strings.HasPrefix(name, "morph") && edition%2 == 1:
		return discovered(name, edition, strings.HasPrefix(name, "hc"))
	}
	return cluster(name, edition, false)
}

func (s *edsSim) port(name string) int { return max(1, 80+s.ports[name]) }

func (s *edsSim) build() {
	var parts []*snapshot.Parts
	assignments := map[string]*snapshot.Resource{}
	for name, clusters := range s.hosts {
		var resources []*snapshot.Resource
		for _, c := range clusters {
			resources = append(resources, s.resource(c))
			if resources[len(resources)-1].Discovered {
				assignments[c] = assignment(c, s.port(c))
			}
		}
		parts = append(parts, host(name, resources...))
	}
	s.snap = assignedWorld(s.revision, slices.Collect(maps.Values(assignments)), parts...)
}

func (s *edsSim) want() {
	s.build()
	s.stream.Want(s.snap)
	s.next()
}

func (s *edsSim) pick() string {
	kinds := []string{"eds", "eds", "eds", "hc", "morph", "static"}
	return fmt.Sprintf("%s%d", kinds[s.rng.IntN(len(kinds))], s.rng.IntN(3))
}

// change edits the configuration at random. Changes of endpoints have no revision.
func (s *edsSim) change() {
	name := fmt.Sprintf("h%d", s.rng.IntN(5))
	switch s.rng.IntN(8) {
	case 0:
		s.revision++
		delete(s.hosts, name)
	case 1:
		s.revision++
		s.editions[s.pick()]++
	case 2, 3, 4:
		s.ports[s.pick()] = s.rng.IntN(4) // some return to their previous value
	case 5:
		s.ports[s.pick()] = -80 // this is refused
	default:
		s.revision++
		set := map[string]bool{}
		for range 1 + s.rng.IntN(3) {
			set[s.pick()] = true
		}
		s.hosts[name] = slices.Sorted(maps.Keys(set))
	}
	s.want()
}

func (s *edsSim) deliver() {
	typeURL := s.envoy.outbox[s.rng.IntN(len(s.envoy.outbox))].typeURL
	i := slices.IndexFunc(s.envoy.outbox, func(a edsAnswer) bool { return a.typeURL == typeURL })
	a := s.envoy.outbox[i]
	s.envoy.outbox = slices.Delete(s.envoy.outbox, i, i+1)
	switch {
	case a.asks != "":
		Expect(s.stream.Subscribe(snapshot.EndpointType, []string{a.asks}, nil)).To(BeTrue())
	case a.leaves != "":
		s.stream.Unsubscribe(snapshot.EndpointType, []string{a.leaves})
	case a.ok:
		s.stream.Ack(a.nonce)
	default:
		s.stream.Nack(a.nonce, "no", s.now)
	}
}

func (s *edsSim) step(quiet bool) {
	switch n := s.rng.IntN(20); {
	case n < 6 && len(s.envoy.inbox) > 0:
		s.envoy.read(s.rng, s.now)
	case n < 12 && len(s.envoy.outbox) > 0:
		s.deliver()
	case n < 15:
		s.now = s.now.Add(time.Duration(s.rng.IntN(1500)) * time.Millisecond)
	case n == 15 && quiet && !s.wake.IsZero() && s.now.Before(s.wake):
		s.now = s.wake
	case n < 18 && !quiet:
		s.change()
	case n == 18 && !quiet && s.rng.IntN(10) == 0:
		s.connect()
	case n == 19 && !quiet && s.rng.IntN(20) == 0:
		s.envoy = newEDSEnvoy()
		s.connect()
	}
	s.envoy.tick(s.now, s.checkLate)
	s.next()
	s.check()
}

// next sends what is due, like the server after each event.
func (s *edsSim) next() {
	messages, wake := s.stream.Next(s.now)
	s.wake = wake
	for _, m := range messages {
		s.envoy.inbox = append(s.envoy.inbox, letter{m, s.now})
	}
}

// checkLate checks that a cluster runs into its timeout only while an answer or a request for
// it is unread, or if its assignment was refused or is no longer wanted.
func (s *edsSim) checkLate(name string) {
	for _, m := range s.envoy.inbox {
		if m.Type == snapshot.EndpointType && (slices.ContainsFunc(m.Resources, func(r *snapshot.Resource) bool { return r.Name == name }) || slices.Contains(m.Removed, name)) {
			return
		}
	}
	for _, a := range s.envoy.outbox {
		if a.typeURL == snapshot.EndpointType {
			return // a request, or an answer without which other messages may not be sent alone
		}
	}
	c := s.envoy.clusters[name]
	wanted := slices.ContainsFunc(s.snap.Clusters, func(r *snapshot.Resource) bool {
		return r.Name == name && r.Discovered && r.Version == c.version
	})
	Expect(!wanted || s.port(name) == 1 || c.excused).To(BeTrue(), "cluster %s ran into its timeout: nobody answers for its endpoints", name)
}

// check checks that no route names a cluster that does not serve or has no endpoints, unless it
// exceeded the bound, and that what counts as applied exists, with endpoints.
func (s *edsSim) check() {
	for host, clusters := range s.envoy.routes {
		for _, name := range clusters {
			c := s.envoy.clusters[name]
			Expect(c).NotTo(BeNil(), "host %s names cluster %s, which does not exist", host, name)
			Expect(c.serves && (!c.discovered || c.assigned != "" || c.warms()) || c.excused || !s.now.Before(c.sentAt.Add(simBound))).To(BeTrue(),
				"host %s names cluster %s, which warms or has no endpoints: %+v", host, name, *c)
		}
	}
	for name, clusters := range s.hosts {
		if _, ok := s.stream.Reached(plan.Goal{Revision: s.revision, Hosts: []string{name}}); !ok {
			continue
		}
		Expect(s.envoy.routes[name]).To(Equal(clusters), "host %s", name)
		for _, cluster := range clusters {
			s.expectThere(cluster)
		}
	}
	if rev, ok := s.stream.Applied(); ok && rev == s.revision {
		for _, r := range s.snap.Clusters {
			s.expectThere(r.Name)
		}
	}
}

// expectThere checks that the Envoy has and uses the wanted version of a cluster.
func (s *edsSim) expectThere(name string) {
	c := s.envoy.clusters[name]
	Expect(c).NotTo(BeNil(), "cluster %s", name)
	Expect(c.version).To(Equal(s.resource(name).Version), "cluster %s", name)
	Expect(!c.warms() && (!c.discovered || c.assigned != "") || c.excused).To(BeTrue(), "cluster %s warms, or has no endpoints: %+v", name, *c)
}

// run makes random changes, repairs what is bad, and checks the final state.
func (s *edsSim) run(steps int) {
	for range steps {
		s.step(false)
	}
	for name := range s.ports {
		s.ports[name] = max(0, s.ports[name])
	}
	s.want()
	for range 3000 {
		if s.isDone() {
			return
		}
		s.step(true)
	}
	_, applied := s.stream.Applied()
	Fail(fmt.Sprintf("the Envoy never got there: it has hosts %v, wants %v; clusters %v, wants %v; asks for %v; applied %v, refused %v, foreign %d",
		s.envoy.routes, s.hosts, slices.Sorted(maps.Keys(s.envoy.clusters)), names(s.snap.Clusters), slices.Sorted(maps.Keys(s.envoy.asked)),
		applied, s.stream.Refused(), s.stream.Foreign()))
}

func names(list []*snapshot.Resource) (names []string) {
	for _, r := range list {
		names = append(names, r.Name)
	}
	return names
}

func (s *edsSim) isDone() bool {
	if _, applied := s.stream.Applied(); !applied || !maps.EqualFunc(s.envoy.routes, s.hosts, slices.Equal) || s.stream.Foreign() > 0 {
		return false
	}
	clusters, asked := map[string]string{}, map[string]string{}
	for name, c := range s.envoy.clusters {
		clusters[name] = c.version
	}
	for name := range s.envoy.asked {
		asked[name] = s.envoy.clusters[name].assigned
	}
	for _, r := range s.snap.Clusters {
		if clusters[r.Name] != r.Version {
			return false
		}
	}
	for _, r := range s.snap.Endpoints {
		if asked[r.Name] != r.Version {
			return false
		}
	}
	return len(clusters) == len(s.snap.Clusters) && len(asked) == len(s.snap.Endpoints)
}

var _ = Describe("a simulated Envoy whose clusters have assignments", func() {
	It("has endpoints where routes lead, never waits for any in vain, and ends in the expected state", func() {
		for seed := range seeds() {
			By(fmt.Sprintf("seed %d", seed))
			newEDSSim(seed).run(200)
		}
	})
})
