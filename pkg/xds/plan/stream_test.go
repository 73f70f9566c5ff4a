package plan_test

import (
	"fmt"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// say returns messages as text: "clusters +a +b", "routes shop=a,b", "clusters
// -a".
func say(messages []plan.Message) []string {
	var lines []string
	for _, m := range messages {
		line := map[string]string{
			snapshot.ClusterType: "clusters", snapshot.ListenerType: "listeners", snapshot.RouteType: "routes",
		}[m.Type]
		for _, r := range m.Resources {
			if m.Type != snapshot.RouteType {
				line += " +" + r.Name
				continue
			}
			hosts := clustersByHost(r)
			for _, name := range []string{"blog", "shop"} {
				if clusters, ok := hosts[name]; ok {
					line += " " + name + "=" + strings.Join(clusters, ",")
				}
			}
		}
		for _, name := range m.Removed {
			line += " -" + name
		}
		lines = append(lines, line)
	}
	return lines
}

var _ = Describe("a stream", func() {
	var (
		s   *plan.Stream
		now time.Time
		// last contains the nonces of the last messages, by their text from
		// say.
		last map[string]string
	)
	next := func() []string {
		messages, _ := s.Next(now)
		lines := say(messages)
		for i, m := range messages {
			last[strings.Fields(lines[i])[0]] = m.Nonce
		}
		return lines
	}
	ackAll := func() {
		for what, nonce := range last {
			s.Ack(nonce)
			delete(last, what)
		}
	}
	subscribe := func() {
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
	}
	a, b := func() *snapshot.Resource { return cluster("a", 1, false) }, func() *snapshot.Resource { return cluster("b", 1, false) }
	slow := func() *snapshot.Resource { return cluster("slow", 1, true) }
	// live brings the stream to the snapshot and acknowledges everything.
	live := func(w *snapshot.Snapshot) {
		s.Want(w)
		for range 3 {
			next()
			ackAll()
		}
	}

	BeforeEach(func() {
		s = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second})
		now = time.Unix(1_800_000_000, 0)
		last = map[string]string{}
	})

	It("sends nothing before there is a snapshot", func() {
		subscribe()
		Expect(next()).To(BeEmpty())
	})

	It("answers with an empty snapshot, so that the Envoy does not wait", func() {
		subscribe()
		s.Want(snapshot.Empty(3))
		Expect(next()).To(Equal([]string{"clusters", "listeners"}))
		ackAll()
		Expect(next()).To(BeEmpty())
		rev, ok := s.Applied()
		Expect(ok).To(BeTrue())
		Expect(rev).To(Equal(int64(3)))
	})

	It("sends clusters, then listeners, then routes", func() {
		subscribe()
		s.Want(world(1, host("shop", a())))
		Expect(next()).To(Equal([]string{"clusters +a", "listeners +http", "routes shop=a"}))
		_, ok := s.Applied()
		Expect(ok).To(BeFalse())
		ackAll()
		_, ok = s.Applied()
		Expect(ok).To(BeTrue())
		Expect(next()).To(BeEmpty())
	})

	It("sends a route configuration only once it is subscribed to", func() {
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Want(world(1, host("shop", a())))
		Expect(next()).To(Equal([]string{"clusters +a", "listeners +http"}))
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		Expect(next()).To(Equal([]string{"routes shop=a"}))
	})

	It("makes, switches, and breaks after the grace period", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(world(2, host("shop", b())))
		Expect(next()).To(Equal([]string{"clusters +b", "routes shop=b"}))
		now = now.Add(time.Hour)
		Expect(next()).To(BeEmpty(), "the old cluster is named by what the Envoy has")
		ackAll()
		messages, wake := s.Next(now)
		Expect(messages).To(BeEmpty(), "the grace begins")
		Expect(wake).To(Equal(now.Add(2 * time.Second)))
		now = now.Add(1999 * time.Millisecond)
		_, wake = s.Next(now)
		Expect(wake).To(Equal(now.Add(time.Millisecond)))
		Expect(next()).To(BeEmpty())
		now = now.Add(time.Millisecond)
		Expect(next()).To(Equal([]string{"clusters -a"}))
	})

	It("removes several clusters in the order of their names", func() {
		subscribe()
		var many []*snapshot.Resource
		for _, name := range []string{"c", "h", "a", "g", "b", "f", "d", "e"} {
			many = append(many, cluster(name, 1, false))
		}
		live(world(1, host("shop", many...)))
		live(world(2, host("shop", cluster("new", 1, false))))
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"clusters -a -b -c -d -e -f -g -h"}))
	})

	It("keeps a cluster that comes back within the grace period", func() {
		subscribe()
		live(world(1, host("shop", a())))
		live(world(2, host("shop", b())))
		s.Want(world(3, host("shop", a())))
		Expect(next()).To(Equal([]string{"routes shop=a"}))
		ackAll()
		now = now.Add(time.Minute)
		next()
		now = now.Add(time.Minute)
		Expect(next()).To(Equal([]string{"clusters -b"}))
	})

	It("makes a host wait for a cluster that comes back in another form, and warms", func() {
		subscribe()
		live(world(1, host("shop", slow())))
		live(world(2, host("shop", a())))
		s.Want(world(3, host("shop", cluster("slow", 2, true))))
		Expect(next()).To(Equal([]string{"clusters +slow"}), "what the Envoy has may lead to a backend that is gone")
		ackAll()
		Expect(next()).To(Equal([]string{"routes shop=slow"}))
	})

	It("lets only the host wait that names a warming cluster", func() {
		subscribe()
		live(world(1, host("blog", a()), host("shop", a())))
		s.Want(world(2, host("blog", b()), host("shop", slow())))
		Expect(next()).To(Equal([]string{"clusters +b +slow", "routes blog=b shop=a"}))
		s.Ack(last["routes"])
		Expect(next()).To(BeEmpty())
		s.Ack(last["clusters"])
		Expect(next()).To(Equal([]string{"routes blog=b shop=slow"}))
	})

	It("stops waiting for a warming cluster when the bound is reached", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(world(2, host("shop", slow())))
		messages, wake := s.Next(now)
		Expect(say(messages)).To(Equal([]string{"clusters +slow"}))
		Expect(wake).To(Equal(now.Add(20 * time.Second)))
		now = wake
		Expect(next()).To(Equal([]string{"routes shop=slow"}))
	})

	It("does not wait longer for a cluster that changes while it warms", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(world(2, host("shop", slow())))
		Expect(next()).To(Equal([]string{"clusters +slow"}))
		bound := now.Add(20 * time.Second)
		now = now.Add(15 * time.Second)
		s.Want(world(3, host("shop", cluster("slow", 2, true))))
		messages, wake := s.Next(now)
		Expect(say(messages)).To(Equal([]string{"clusters +slow"}))
		Expect(wake).To(Equal(bound))
		now = bound
		Expect(next()).To(Equal([]string{"routes shop=slow"}))
	})

	It("wakes up for the first of several waits", func() {
		subscribe()
		live(world(1, host("blog", a()), host("shop", a())))
		s.Want(world(2, host("blog", a()), host("shop", slow())))
		next()
		bound := now.Add(20 * time.Second)
		now = now.Add(5 * time.Second)
		s.Want(world(3, host("blog", cluster("slower", 1, true)), host("shop", slow())))
		messages, wake := s.Next(now)
		Expect(say(messages)).To(Equal([]string{"clusters +slower"}))
		Expect(wake).To(Equal(bound))
		Expect(s.Waiting()).To(HaveExactElements(
			plan.Wait{Host: "blog", Object: service("blog"), Clusters: []plan.Awaited{awaited("slower")}, Since: now, Until: now.Add(20 * time.Second)},
			plan.Wait{Host: "shop", Object: service("shop"), Clusters: []plan.Awaited{awaited("slow")}, Since: now.Add(-5 * time.Second), Until: bound},
		))
	})

	It("does not wait for new content of an existing cluster", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(world(2, host("blog", cluster("a", 2, true)), host("shop", cluster("a", 2, true))))
		Expect(next()).To(Equal([]string{"clusters +a", "routes blog=a shop=a"}))
	})

	It("holds a first route configuration back until it is complete", func() {
		subscribe()
		s.Want(world(1, host("blog", a()), host("shop", slow())))
		Expect(next()).To(Equal([]string{"clusters +a +slow", "listeners +http"}))
		s.Ack(last["clusters"])
		Expect(next()).To(Equal([]string{"routes blog=a shop=slow"}))
	})

	It("sends a first route configuration when the bound is reached", func() {
		subscribe()
		s.Want(world(1, host("blog", a()), host("shop", slow())))
		next()
		now = now.Add(20 * time.Second)
		Expect(next()).To(Equal([]string{"routes blog=a shop=slow"}))
	})

	It("takes the newest snapshot in the middle of a plan", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(world(2, host("shop", slow())))
		Expect(next()).To(Equal([]string{"clusters +slow"}))
		s.Want(world(3, host("shop", b())))
		Expect(next()).To(Equal([]string{"clusters +b", "routes shop=b"}))
	})

	It("removes a host immediately", func() {
		subscribe()
		live(world(1, host("blog", a()), host("shop", a())))
		s.Want(world(2, host("shop", a())))
		Expect(next()).To(Equal([]string{"routes shop=a"}))
	})

	Describe("after a refusal", func() {
		It("sends each cluster of the message alone, and a bad one never again", func() {
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("blog", cluster("bad", 1, false)), host("shop", b())))
			Expect(next()).To(Equal([]string{"clusters +b +bad", "routes blog=bad shop=b"}))
			s.Ack(last["routes"])
			s.Nack(last["clusters"], "no", now)
			messages, _ := s.Next(now)
			Expect(say(messages)).To(Equal([]string{"clusters +b", "clusters +bad"}))
			s.Ack(messages[0].Nonce)
			s.Nack(messages[1].Nonce, "no", now)
			Expect(next()).To(BeEmpty())
			_, ok := s.Applied()
			Expect(ok).To(BeFalse())

			By("its next version is tried")
			s.Want(world(3, host("blog", cluster("bad", 2, false)), host("shop", b())))
			Expect(next()).To(Equal([]string{"clusters +bad"}))
			ackAll()
			rev, ok := s.Applied()
			Expect(ok).To(BeTrue())
			Expect(rev).To(Equal(int64(3)))
		})

		It("does not resend what was replaced meanwhile", func() {
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("blog", cluster("bad", 1, false)), host("shop", b())))
			next()
			s.Nack(last["clusters"], "no", now)
			fixed := cluster("bad", 2, false)
			s.Want(world(3, host("blog", fixed), host("shop", b())))
			messages, _ := s.Next(now)
			Expect(say(messages)).To(Equal([]string{"clusters +b", "clusters +bad"}))
			Expect(messages[1].Resources[0].Version).To(Equal(fixed.Version))
		})

		DescribeTable("resends the previous version if a refused message may have replaced it", func(late bool) {
			of := func(revision int64, edition int, more ...*snapshot.Parts) *snapshot.Snapshot {
				return world(revision, append(more, host("shop", cluster("a", edition, false)))...)
			}
			subscribe()
			live(of(1, 1))
			s.Want(of(2, 2, host("blog", cluster("bad", 1, false))))
			Expect(next()).To(ContainElement("clusters +a +bad"))
			both := last["clusters"]
			if !late {
				s.Nack(both, "bad", now)
			}
			s.Want(of(3, 3))
			Expect(next()).To(ContainElement("clusters +a"))
			if late {
				s.Nack(both, "bad", now)
			}
			s.Nack(last["clusters"], "a", now)
			next()
			s.Want(of(4, 1))
			Expect(next()).To(ContainElement("clusters +a"), "the Envoy may have edition 2")
			s.Ack(last["clusters"])

			By("an answer shows which one it has")
			s.Want(of(5, 4))
			next()
			s.Nack(last["clusters"], "a", now)
			s.Want(of(6, 1))
			Expect(next()).NotTo(ContainElement(HavePrefix("clusters +")))
		},
			Entry("refused before the next one is sent", false),
			Entry("refused after the next one is sent", true),
		)

		It("lets only the hosts wait that name a refused cluster", func() {
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("blog", cluster("bad", 1, true)), host("shop", a())))
			Expect(next()).To(Equal([]string{"clusters +bad"}))
			s.Nack(last["clusters"], "no", now)
			Expect(next()).To(Equal([]string{"routes blog= shop=a"}), "and answer 503")
			s.Ack(last["routes"])
			s.Want(world(3, host("blog", cluster("bad", 1, true)), host("shop", b())))
			Expect(next()).To(Equal([]string{"clusters +b", "routes blog= shop=b"}))
			ackAll()
			s.Want(world(4, host("blog", cluster("bad", 2, true)), host("shop", b())))
			Expect(next()).To(Equal([]string{"clusters +bad"}), "the fix releases it")
			ackAll()
			Expect(next()).To(Equal([]string{"routes blog=bad shop=b"}))
		})

		It("keeps a refused host as it was until it changes", func() {
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("shop", b())))
			next()
			s.Ack(last["clusters"])
			_, guilty := s.Nack(last["routes"], "no", now)
			Expect(guilty).To(Equal("shop"))
			now = now.Add(time.Hour)
			Expect(next()).To(BeEmpty(), "and the old cluster stays, for the Envoy uses it")
			now = now.Add(time.Hour)
			Expect(next()).To(BeEmpty())
			s.Want(world(3, host("shop", a(), b())))
			Expect(next()).To(Equal([]string{"routes shop=a,b"}))
		})

		It("gives a host that was refused from the beginning a 503", func() {
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("blog", a()), host("shop", a())))
			Expect(next()).To(Equal([]string{"routes blog=a shop=a"}))
			s.Nack(last["routes"], "no", now)
			Expect(next()).To(Equal([]string{"routes blog= shop=a"}))
			ackAll()
			Expect(next()).To(BeEmpty())
			_, ok := s.Applied()
			Expect(ok).To(BeFalse())

			By("unless that is refused too: then it is omitted")
			s = plan.NewStream(plan.Options{})
			subscribe()
			live(world(1, host("shop", a())))
			s.Want(world(2, host("blog", a()), host("shop", a())))
			next()
			s.Nack(last["routes"], "no", now)
			next()
			s.Nack(last["routes"], "no", now)
			Expect(next()).To(BeEmpty())
		})

		It("finds the guilty hosts among many in few messages, and the others are updated", func() {
			subscribe()
			live(world(1))
			var hosts []*snapshot.Parts
			for i := range 100 {
				name := fmt.Sprintf("h%03d", i)
				if i%25 == 7 {
					hosts = append(hosts, host(name, cluster("poison", 1, false)))
				} else {
					hosts = append(hosts, host(name, a()))
				}
			}
			s.Want(world(2, hosts...))
			refusals, have := 0, map[string][]string{}
			var blamed []string
			for range 200 {
				messages, _ := s.Next(now)
				for _, m := range messages {
					if m.Type != snapshot.RouteType {
						s.Ack(m.Nonce)
						continue
					}
					names := clustersByHost(m.Resources[0])
					if poisoned(names) {
						refusals++
						if _, guilty := s.Nack(m.Nonce, "no", now); guilty != "" {
							blamed = append(blamed, guilty)
						}
						continue
					}
					s.Ack(m.Nonce)
					have = names
				}
			}
			Expect(blamed).To(ConsistOf("h007", "h032", "h057", "h082"))
			Expect(have).To(HaveLen(100))
			Expect(have["h000"]).To(Equal([]string{"a"}))
			Expect(have["h099"]).To(Equal([]string{"a"}))
			Expect(have["h032"]).To(BeEmpty(), "a fixed answer")
			Expect(refusals).To(BeNumerically("<=", 40), "some log2 of 100 for each")
		})
	})

	Describe("after a reconnect", func() {
		versions := func(w *snapshot.Snapshot) (clusters, listeners, routes map[string]string) {
			clusters, listeners = map[string]string{}, map[string]string{}
			for _, r := range w.Clusters {
				clusters[r.Name] = r.Version
			}
			for _, r := range w.Listeners {
				listeners[r.Name] = r.Version
			}
			return clusters, listeners, map[string]string{"rc": w.Routes(w.Hosts).Version}
		}
		reconnect := func(had *snapshot.Snapshot) {
			clusters, listeners, routes := versions(had)
			s.Subscribe(snapshot.ClusterType, []string{"*"}, clusters)
			s.Subscribe(snapshot.ListenerType, []string{"*"}, listeners)
			s.Subscribe(snapshot.RouteType, []string{"rc"}, routes)
		}

		It("sends nothing when nothing changed", func() {
			reconnect(world(1, host("shop", a())))
			s.Want(world(1, host("shop", a())))
			Expect(next()).To(BeEmpty())
			rev, ok := s.Applied()
			Expect(ok).To(BeTrue())
			Expect(rev).To(Equal(int64(1)))
		})

		It("sends changes, and removes what is gone only after the new routes", func() {
			reconnect(world(1, host("shop", a())))
			s.Want(world(2, host("shop", b())))
			Expect(next()).To(Equal([]string{"clusters +b", "routes shop=b"}))
			now = now.Add(time.Hour)
			Expect(next()).To(BeEmpty())
			ackAll()
			next()
			now = now.Add(2 * time.Second)
			Expect(next()).To(Equal([]string{"clusters -a"}))
		})

		It("does the same when the subscription comes after the snapshot", func() {
			s.Want(world(2, host("shop", b())))
			Expect(next()).To(BeEmpty())
			reconnect(world(1, host("shop", a())))
			Expect(next()).To(Equal([]string{"clusters +b", "routes shop=b"}))
		})
	})

	It("does not resend a route configuration that was refused for no single host", func() {
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "of another control plane"})
		s.Want(world(1, host("shop", a())))
		next()
		s.Ack(last["clusters"])
		s.Ack(last["listeners"])
		_, guilty := s.Nack(last["routes"], "no", now)
		Expect(guilty).To(BeEmpty())
		Expect(next()).To(BeEmpty())
		Expect(s.Refused()).To(ConsistOf(And(HaveField("Resource", "rc"), HaveField("Objects", BeEmpty()))))
		s.Want(world(2, host("shop", b())))
		Expect(next()).To(Equal([]string{"clusters +b", "routes shop=b"}))
	})

	It("removes listeners and clusters when the proxy is deleted", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Want(snapshot.Empty(2))
		Expect(next()).To(Equal([]string{"listeners -http"}))
		ackAll()
		s.Unsubscribe(snapshot.RouteType, []string{"rc"})
		Expect(next()).To(BeEmpty())
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"clusters -a"}))
	})

	It("keeps the clusters of an Envoy that drains its last listener, whose routes are unknown, until it drops them", func() {
		s.Subscribe(snapshot.ClusterType, nil, map[string]string{"a": a().Version})
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "other"})
		s.Want(snapshot.Empty(1))
		for range 3 {
			Expect(next()).NotTo(ContainElement("clusters -a"))
			ackAll()
			now = now.Add(time.Hour)
		}
		s.Unsubscribe(snapshot.RouteType, []string{"rc"})
		Expect(next()).To(BeEmpty(), "the grace begins")
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"clusters -a"}))
	})

	It("keeps the clusters of an Envoy that has not said yet which listeners and routes it has", func() {
		expectKept := func() {
			GinkgoHelper()
			for range 3 {
				Expect(next()).NotTo(ContainElement("clusters -a"))
				ackAll()
				now = now.Add(time.Hour)
			}
		}
		s.Subscribe(snapshot.ClusterType, nil, map[string]string{"a": a().Version})
		s.Want(world(1, host("shop", b())))
		expectKept()
		s.Subscribe(snapshot.ListenerType, nil, map[string]string{"http": "other"})
		expectKept()
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "other"})
		Expect(next()).To(Equal([]string{"routes shop=b"}))
	})

	It("answers a repeated subscription", func() {
		subscribe()
		live(world(1, host("shop", a())))
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		Expect(next()).To(Equal([]string{"routes shop=a"}))
	})
})
