package plan_test

import (
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a resource that an Envoy requests by name", func() {
	var (
		s    *plan.Stream
		now  time.Time
		last []string // nonces
	)
	BeforeEach(func() {
		s = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second})
		now = time.Unix(1_800_000_000, 0)
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
	})
	// next returns the messages as text: "Secret +a -b".
	next := func() []string {
		messages, _ := s.Next(now)
		var lines []string
		for _, m := range messages {
			line := m.Type[strings.LastIndex(m.Type, ".")+1:]
			for _, r := range m.Resources {
				line += " +" + r.Name
			}
			for _, name := range m.Removed {
				line += " -" + name
			}
			lines = append(lines, line)
			last = append(last, m.Nonce)
		}
		return lines
	}
	ackAll := func() {
		for _, nonce := range last {
			s.Ack(nonce)
		}
		last = nil
	}
	resource := func(typeURL, name, version string) *snapshot.Resource {
		return &snapshot.Resource{Name: name, Version: version, Body: &anypb.Any{TypeUrl: typeURL}}
	}
	secret := func(name, version string) *snapshot.Resource { return resource(snapshot.SecretType, name, version) }
	// want sets one cluster, and the secrets and endpoints.
	want := func(revision int64, edition int, secrets, endpoints []*snapshot.Resource) {
		s.Want(&snapshot.Snapshot{
			Revision: revision, Clusters: []*snapshot.Resource{cluster("a", edition, false)}, Secrets: secrets, Endpoints: endpoints,
		})
	}

	It("is sent when it is requested, and again when it changes", func() {
		want(1, 1, []*snapshot.Resource{secret("pair/x", "1"), secret("pair/y", "1")}, nil)
		Expect(next()).To(Equal([]string{"Cluster +a", "Listener"}))
		s.Subscribe(snapshot.SecretType, []string{"pair/x"}, nil)
		Expect(next()).To(Equal([]string{"Secret +pair/x"}))
		ackAll()
		want(2, 2, []*snapshot.Resource{secret("pair/x", "2"), secret("pair/y", "2")}, nil)
		Expect(next()).To(Equal([]string{"Secret +pair/x", "Cluster +a"}), "before what may need it")
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
		ackAll()
		_, applied = s.Applied()
		Expect(applied).To(BeFalse(), "what names the other one remains in its older form")
		s.Subscribe(snapshot.SecretType, []string{"pair/y"}, nil)
		Expect(next()).To(Equal([]string{"Secret +pair/y"}))
		ackAll()
		_, applied = s.Applied()
		Expect(applied).To(BeTrue())
		Expect(next()).To(BeEmpty())
	})

	It("is answered immediately if it does not exist", func() {
		want(1, 1, nil, nil)
		next()
		ackAll()
		s.Subscribe(snapshot.SecretType, []string{"pair/x"}, nil)
		s.Subscribe(snapshot.EndpointType, []string{"e"}, nil)
		Expect(next()).To(Equal([]string{"Secret -pair/x", "ClusterLoadAssignment -e"}))
		ackAll()
		want(2, 1, []*snapshot.Resource{secret("pair/x", "1")}, []*snapshot.Resource{resource(snapshot.EndpointType, "e", "1")})
		Expect(next()).To(Equal([]string{"Secret +pair/x", "ClusterLoadAssignment +e"}), "and when it comes to exist")
	})

	It("is not answered if the Envoy has unsubscribed before", func() {
		want(1, 1, nil, nil)
		next()
		ackAll()
		s.Subscribe(snapshot.SecretType, []string{"pair/x", "pair/y"}, nil)
		s.Unsubscribe(snapshot.SecretType, []string{"pair/x"})
		Expect(next()).To(Equal([]string{"Secret -pair/y"}))
	})

	It("follows its cluster, changed or not", func() {
		assignment := []*snapshot.Resource{resource(snapshot.EndpointType, "a", "1")}
		want(1, 1, nil, assignment)
		s.Subscribe(snapshot.EndpointType, []string{"a"}, nil)
		Expect(next()).To(Equal([]string{"Cluster +a", "ClusterLoadAssignment +a", "Listener"}))
		ackAll()
		want(2, 2, nil, assignment)
		Expect(next()).To(Equal([]string{"Cluster +a", "ClusterLoadAssignment +a"}))
		ackAll()
		want(3, 2, nil, assignment)
		Expect(next()).To(BeEmpty())
	})

	It("is removed after the grace period, once everything else is in place", func() {
		want(1, 1, []*snapshot.Resource{secret("pair/x", "1")}, nil)
		s.Subscribe(snapshot.SecretType, []string{"pair/x"}, nil)
		next()
		ackAll()
		want(2, 2, nil, nil)
		Expect(next()).To(Equal([]string{"Cluster +a"}))
		now = now.Add(time.Hour)
		Expect(next()).To(BeEmpty())
		ackAll()
		Expect(next()).To(BeEmpty(), "the grace begins")
		now = now.Add(2*time.Second - 1)
		_, wake := s.Next(now)
		Expect(wake).To(Equal(now.Add(1)))
		Expect(next()).To(BeEmpty())
		now = now.Add(1)
		Expect(next()).To(Equal([]string{"Secret -pair/x"}))
	})

	It("is sent again when it is requested again, and not after the Envoy unsubscribed", func() {
		want(1, 1, []*snapshot.Resource{secret("pair/x", "1")}, nil)
		s.Subscribe(snapshot.SecretType, []string{"pair/x"}, nil)
		next()
		ackAll()
		s.Subscribe(snapshot.SecretType, []string{"pair/x"}, nil)
		Expect(next()).To(Equal([]string{"Secret +pair/x"}))
		ackAll()
		s.Unsubscribe(snapshot.SecretType, []string{"pair/x"})
		want(2, 1, []*snapshot.Resource{secret("pair/x", "2")}, nil)
		Expect(next()).To(BeEmpty())
	})

	It("costs nothing after a reconnect, and is removed when nothing uses it", func() {
		s.Subscribe(snapshot.SecretType, []string{"pair/x", "pair/y"}, map[string]string{"pair/x": "1", "pair/y": "1"})
		want(1, 1, []*snapshot.Resource{secret("pair/x", "1")}, nil)
		Expect(next()).To(Equal([]string{"Cluster +a", "Listener"}))
		ackAll()
		Expect(next()).To(BeEmpty())
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"Secret -pair/y"}))
	})

	It("keeps the acknowledged form if the new one is refused", func() {
		want(1, 1, []*snapshot.Resource{secret("pair/x", "1"), secret("pair/y", "1")}, nil)
		s.Subscribe(snapshot.SecretType, []string{"pair/x", "pair/y"}, nil)
		next()
		ackAll()
		want(2, 1, []*snapshot.Resource{secret("pair/x", "bad"), secret("pair/y", "2")}, nil)
		Expect(next()).To(Equal([]string{"Secret +pair/x +pair/y"}))
		s.Nack(last[0], "no certificate", now)
		last = nil
		Expect(next()).To(Equal([]string{"Secret +pair/x", "Secret +pair/y"}))
		_, guilty := s.Nack(last[0], "no certificate", now)
		Expect(guilty).To(Equal("pair/x"))
		s.Ack(last[1])
		Expect(next()).To(BeEmpty())
		Expect(s.Refused()).To(HaveLen(1))
		Expect(s.Refused()[0].Text).To(Equal("no certificate"))
	})

	It("is sent before a route leads to a cluster that names it, and is removed only with its new form", func() {
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		shop := func(revision int64, version string) {
			h := host("shop", cluster("a", 1, true))
			h.Secrets = []*snapshot.Resource{secret("authorities/x", version)}
			s.Want(world(revision, h))
		}
		shop(1, "1")
		// The Envoy asks for the secret when it has read the cluster, and answers when it has both.
		Expect(next()).To(Equal([]string{"Cluster +a", "Listener +http"}))
		Expect(s.Waiting()).To(HaveLen(1))
		s.Subscribe(snapshot.SecretType, []string{"authorities/x"}, nil)
		Expect(next()).To(Equal([]string{"Secret +authorities/x"}))
		ackAll()
		Expect(next()).To(Equal([]string{"RouteConfiguration +rc"}))
		Expect(s.Waiting()).To(BeEmpty())
		ackAll()
		shop(2, "2")
		Expect(next()).To(Equal([]string{"Secret +authorities/x"}))
		ackAll()
		revision, applied := s.Applied()
		Expect(applied).To(BeTrue())
		Expect(revision).To(BeEquivalentTo(2))
	})

	It("is kept within the limit for unused names", func() {
		s.Want(world(1, host("shop", cluster("a", 1, false))))
		s.SetRoom(1)
		s.Subscribe(snapshot.ClusterType, nil, map[string]string{"a": "1", "x": "1", "y": "1", "z": "1"})
		Expect(s.Foreign()).To(Equal(1), "used resources do not count")
		s.SetRoom(1)
		Expect(s.Subscribe(snapshot.RouteType, []string{"rc", "x"}, nil)).To(BeTrue())
		Expect(s.Foreign()).To(Equal(2))
		Expect(s.Subscribe(snapshot.RouteType, []string{"rc", "x"}, nil)).To(BeTrue(), "they are kept already")
		Expect(s.Subscribe(snapshot.RouteType, []string{"y"}, nil)).To(BeFalse())
		s.SetRoom(2)
		Expect(s.Subscribe(snapshot.SecretType, []string{"pair/x", "pair/y", "pair/x"}, nil)).To(BeTrue())
		Expect(s.Foreign()).To(Equal(4))
		Expect(s.Subscribe(snapshot.SecretType, []string{"pair/z"}, nil)).To(BeFalse())
		s.SetRoom(1)
		Expect(s.Subscribe(snapshot.EndpointType, nil, map[string]string{"x": "1", "y": "1", "z": "1"})).To(BeTrue())
		Expect(s.Foreign()).To(BeNumerically("<=", 6))
	})
})
