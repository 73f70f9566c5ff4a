package plan_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// hostAt is host with another domain.
func hostAt(name, domain string, clusters ...*snapshot.Resource) *snapshot.Parts {
	GinkgoHelper()
	parts := host(name, clusters...)
	vh, err := parts.Host.VirtualHost()
	Expect(err).NotTo(HaveOccurred())
	routes := vh.GetRoutes()
	vh.Domains, vh.Routes = []string{domain}, nil
	var list []*snapshot.Route
	for _, r := range routes {
		made, err := snapshot.NewRoute(r)
		Expect(err).NotTo(HaveOccurred())
		list = append(list, made)
	}
	h, err := snapshot.NewHost(vh, list, service(name))
	Expect(err).NotTo(HaveOccurred())
	return &snapshot.Parts{Host: h, Domain: domain, Named: parts.Named}
}

// domainsIn returns the domains of a route configuration, each with its host and that host's clusters. A domain must be in
// one host only.
func domainsIn(r *snapshot.Resource) map[string]string {
	GinkgoHelper()
	var rc routev3.RouteConfiguration
	Expect(r.Body.UnmarshalTo(&rc)).To(Succeed())
	clusters, domains := clustersByHost(r), map[string]string{}
	for _, vh := range rc.GetVirtualHosts() {
		for _, d := range vh.GetDomains() {
			Expect(domains).NotTo(HaveKey(d), "of %s too", vh.GetName())
			domains[d] = vh.GetName() + "=" + strings.Join(clusters[vh.GetName()], ",")
		}
	}
	return domains
}

// domainEnvoy reads what a stream sends, and answers at once. The cluster slow is active, and acknowledged, when told so.
type domainEnvoy struct {
	stream *plan.Stream
	now    time.Time
	slow   []string // nonces
	has    map[string]string
	sent   int
}

func newDomainEnvoy() *domainEnvoy {
	e := &domainEnvoy{stream: plan.NewStream(plan.Options{Grace: simGrace, WarmBound: simBound}), now: time.Unix(1_800_000_000, 0)}
	e.stream.Subscribe(snapshot.ClusterType, nil, nil)
	e.stream.Subscribe(snapshot.ListenerType, nil, nil)
	e.stream.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
	return e
}

// settle exchanges messages until there are none.
func (e *domainEnvoy) settle() {
	GinkgoHelper()
	for {
		messages, _ := e.stream.Next(e.now)
		if len(messages) == 0 {
			return
		}
		for _, m := range messages {
			switch {
			case m.Type == snapshot.RouteType:
				e.sent++
				Expect(e.sent).To(BeNumerically("<", 40), "configurations are sent without end")
				domains := domainsIn(m.Resources[0])
				if strings.Contains(fmt.Sprint(domains), "poison") {
					_, _ = e.stream.Nack(m.Nonce, "no", e.now)
					continue
				}
				e.has = domains
			case slices.ContainsFunc(m.Resources, func(r *snapshot.Resource) bool { return r.Name == "bad" }):
				_, _ = e.stream.Nack(m.Nonce, "no", e.now)
				continue
			case slices.ContainsFunc(m.Resources, func(r *snapshot.Resource) bool { return r.Warms }):
				e.slow = append(e.slow, m.Nonce)
				continue
			}
			e.stream.Ack(m.Nonce)
		}
	}
}

func (e *domainEnvoy) warm() {
	GinkgoHelper()
	for _, nonce := range e.slow {
		e.stream.Ack(nonce)
	}
	e.slow = nil
	e.settle()
}

func (e *domainEnvoy) want(revision int64, parts ...*snapshot.Parts) {
	GinkgoHelper()
	e.sent = 0
	e.stream.Want(world(revision, parts...))
	e.settle()
}

var _ = Describe("a domain that moves to another host", func() {
	a, b, slow := cluster("a", 1, false), cluster("b", 1, false), cluster("slow", 1, true)
	var e *domainEnvoy
	BeforeEach(func() { e = newDomainEnvoy() })
	waits := func() (names []string) {
		for _, w := range e.stream.Waiting() {
			names = append(names, fmt.Sprintf("%s for %s", w.Host, w.Clusters[0].Name))
		}
		return names
	}

	It("moves when the host that gives it up can change; both change together", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b))
		e.want(2, hostAt("h1", "z.test", slow), hostAt("h2", "x.test", b))
		Expect(e.has).To(Equal(map[string]string{"x.test": "h1=a", "y.test": "h2=b"}))
		Expect(waits()).To(Equal([]string{"h1 for slow", "h2 for slow"}))
		e.warm()
		Expect(e.has).To(Equal(map[string]string{"z.test": "h1=slow", "x.test": "h2=b"}))
		Expect(e.stream.Refused()).To(BeEmpty())
		Expect(waits()).To(BeEmpty())
	})

	It("moves when the host that receives it can change", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b))
		e.want(2, hostAt("h1", "z.test", a), hostAt("h2", "x.test", slow))
		Expect(e.has).To(Equal(map[string]string{"x.test": "h1=a", "y.test": "h2=b"}))
		e.warm()
		Expect(e.has).To(Equal(map[string]string{"z.test": "h1=a", "x.test": "h2=slow"}))
	})

	It("stays with a deleted host until the new one can serve it, or its bound is over", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h3", "u.test", b))
		e.want(2, hostAt("h2", "x.test", slow))
		Expect(e.has).To(Equal(map[string]string{"x.test": "h1=a"}))
		_, applied := e.stream.Applied()
		Expect(applied).To(BeFalse())
		e.now = e.now.Add(simBound)
		e.settle()
		Expect(e.has).To(Equal(map[string]string{"x.test": "h2=slow"}))
	})

	It("moves along a chain in one step", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b), hostAt("h3", "z.test", b), hostAt("h4", "u.test", a))
		e.want(2, hostAt("h1", "y.test", slow), hostAt("h2", "z.test", b), hostAt("h3", "x.test", b), hostAt("h4", "u.test", b))
		Expect(e.has).To(Equal(map[string]string{"x.test": "h1=a", "y.test": "h2=b", "z.test": "h3=b", "u.test": "h4=b"}), "h4 waits for nobody")
		e.warm()
		Expect(e.has).To(Equal(map[string]string{"y.test": "h1=slow", "z.test": "h2=b", "x.test": "h3=b", "u.test": "h4=b"}))
	})

	It("is removed with a deleted host if the new one needs what the Envoy refused", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b))
		e.want(2, hostAt("h2", "x.test", cluster("bad", 1, true)))
		Expect(e.has).To(Equal(map[string]string{"y.test": "h2=b"}))
	})

	It("is refused together with all that move with it, and with nothing else", func() {
		poison := cluster("poison", 1, false)
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b), hostAt("h3", "z.test", b))
		e.want(2, hostAt("h1", "y.test", poison), hostAt("h2", "x.test", b), hostAt("h3", "z.test", a))
		Expect(e.has).To(Equal(map[string]string{"x.test": "h1=a", "y.test": "h2=b", "z.test": "h3=a"}))
		var refused []string
		for _, r := range e.stream.Refused() {
			refused = append(refused, r.Resource)
		}
		Expect(refused).To(Equal([]string{"h1", "h2"}))
		e.want(3, hostAt("h1", "y.test", a), hostAt("h2", "x.test", a), hostAt("h3", "z.test", a))
		Expect(e.has).To(Equal(map[string]string{"y.test": "h1=a", "x.test": "h2=a", "z.test": "h3=a"}))
		Expect(e.stream.Refused()).To(BeEmpty())
	})

	It("ends a search if the rest of it is withdrawn", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", b), hostAt("h3", "z.test", b))
		next := func() plan.Message {
			GinkgoHelper()
			messages, _ := e.stream.Next(e.now)
			for _, m := range messages {
				if m.Type == snapshot.RouteType {
					return m
				}
				e.stream.Ack(m.Nonce)
			}
			Fail("no configuration is sent")
			return plan.Message{}
		}
		e.stream.Want(world(2, hostAt("h1", "x.test", b), hostAt("h2", "y.test", a), hostAt("h3", "z.test", cluster("poison", 1, false))))
		_, _ = e.stream.Nack(next().Nonce, "no", e.now)
		first := next()
		Expect(domainsIn(first.Resources[0])).To(Equal(map[string]string{"x.test": "h1=b", "y.test": "h2=b", "z.test": "h3=b"}))
		e.stream.Want(world(3, hostAt("h1", "x.test", b), hostAt("h2", "y.test", b), hostAt("h3", "z.test", b)))
		e.stream.Ack(first.Nonce)
		e.settle()
		_, applied := e.stream.Applied()
		Expect(applied).To(BeTrue())
	})

	It("costs little to look for when the Envoy refuses many hosts between which domains move in a ring", func() {
		// work returns how much is allocated to choose what to send after the refusal.
		work := func(hosts int) uint64 {
			e = newDomainEnvoy()
			ring := func(revision int64, moved int, c *snapshot.Resource) {
				parts := []*snapshot.Parts{host("x", c), host("y", c)}
				for i := range hosts {
					parts = append(parts, hostAt(fmt.Sprintf("h%04d", i), fmt.Sprintf("d%d.test", (i+moved)%hosts), a))
				}
				e.stream.Want(world(revision, parts...))
			}
			ring(1, 0, a)
			e.settle()
			ring(2, 0, b)
			messages, _ := e.stream.Next(e.now)
			messages = slices.DeleteFunc(messages, func(m plan.Message) bool { return m.Type != snapshot.RouteType })
			Expect(messages).To(HaveLen(1))
			_, guilty := e.stream.Nack(messages[0].Nonce, "no", e.now)
			Expect(guilty).To(BeEmpty(), "the search begins with one host")
			ring(3, 1, a)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			messages, _ = e.stream.Next(e.now)
			runtime.ReadMemStats(&after)
			Expect(messages).To(HaveLen(1))
			Expect(domainsIn(messages[0].Resources[0])).To(HaveKeyWithValue("d1.test", "h0000=a"), "no part can be sent alone")
			return after.Mallocs - before.Mallocs
		}
		few, many := work(100), work(1600)
		Expect(float64(many)/float64(few)).To(BeNumerically("<", 60), "in proportion it is 16, and with the square 256")
	})

	It("blames the fewest hosts between which domains move, and not their neighbors", func() {
		e.want(1, hostAt("h1", "x.test", a), hostAt("h2", "y.test", a), hostAt("h3", "z.test", a), hostAt("h4", "u.test", a), hostAt("h5", "v.test", a), hostAt("h6", "w.test", a))
		// Three hosts exchange their domains, and three others change.
		e.stream.Want(world(2, hostAt("h1", "y.test", cluster("poison", 1, false)), hostAt("h2", "z.test", a), hostAt("h3", "x.test", a),
			hostAt("h4", "u.test", b), hostAt("h5", "v.test", b), hostAt("h6", "w.test", b)))
		for range 20 {
			messages, _ := e.stream.Next(e.now)
			for _, m := range messages {
				if m.Type == snapshot.RouteType && poisoned(clustersByHost(m.Resources[0])) {
					e.stream.Nack(m.Nonce, "no", e.now)
				} else {
					e.stream.Ack(m.Nonce)
				}
			}
		}
		var blamed []string
		for _, r := range e.stream.Refused() {
			blamed = append(blamed, r.Resource)
		}
		Expect(blamed).To(Equal([]string{"h1", "h2", "h3"}))
	})

	It("is never in two hosts, never missing while it is wanted, and ends in the right host, whatever else changes", func() {
		for seed := range seeds() {
			rng := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a seeded test
			e = newDomainEnvoy()
			for revision := int64(1); revision <= 12; revision++ {
				domains := rng.Perm(6)
				var parts []*snapshot.Parts
				want := map[string]string{}
				for i := range rng.IntN(5) + 1 {
					name, domain := fmt.Sprintf("h%d", rng.IntN(2)+2*i), fmt.Sprintf("d%d.test", domains[i])
					kind := []string{"a", "b", "slow1", "slow2", "slow3"}[rng.IntN(5)]
					c := cluster(kind, rng.IntN(2)+1, strings.HasPrefix(kind, "slow"))
					if slices.ContainsFunc(parts, func(p *snapshot.Parts) bool { return p.Clusters[0].Name == c.Name }) {
						continue
					}
					parts = append(parts, hostAt(name, domain, c))
					want[domain] = name + "=" + c.Name
				}
				had := maps.Clone(e.has)
				e.want(revision, parts...)
				for d := range had {
					if _, stays := want[d]; stays {
						Expect(e.has).To(HaveKey(d), "seed %d, revision %d: it was there, and is wanted", seed, revision)
					}
				}
				if rng.IntN(2) == 0 {
					e.warm()
					Expect(e.has).To(Equal(want), "seed %d, revision %d", seed, revision)
				}
			}
			Expect(e.stream.Refused()).To(BeEmpty())
		}
	})
})
