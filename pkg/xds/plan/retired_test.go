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

var _ = Describe("A set of API keys that no filter names any more", func() {
	var (
		s   *plan.Stream
		now time.Time
	)
	start := func(routes, keys map[string]string) {
		s, now = plan.NewStream(plan.Options{Grace: 2 * time.Second}), time.Unix(1_800_000_000, 0)
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, map[string]string{"http": listener("http").Version})
		s.Subscribe(snapshot.RouteType, []string{"rc"}, routes)
		s.Subscribe(snapshot.ExtensionType, []string{"keys"}, keys)
	}
	// pass returns the lists that are sent now, and acknowledges everything but messages of a type.
	pass := func(except string) (lists []keySets, held []plan.Message) {
		messages, _ := s.Next(now)
		for _, m := range messages {
			if m.Type == snapshot.ExtensionType && len(m.Resources) > 0 {
				lists = append(lists, readKeys(m.Resources[0]))
			}
			if m.Type == except {
				held = append(held, m)
			} else {
				s.Ack(m.Nonce)
			}
		}
		return lists, held
	}
	fast := cluster("fast", 1, false)

	It("stays until the grace is over after the last host that names it, with the keys that are valid then", func() {
		start(nil, nil)
		s.Want(keyedWorld(1, keySets{"a": 1, "b": 1}, nil, keyedHost("shop", "a", fast)))
		lists, _ := pass("")
		Expect(lists).To(Equal([]keySets{{"a": 1}}))
		By("another set")
		s.Want(keyedWorld(2, keySets{"a": 1, "b": 1}, []string{"a"}, keyedHost("shop", "b", fast)))
		lists, held := pass(snapshot.RouteType)
		Expect(lists).To(Equal([]keySets{{"a": 1, "b": 1}}))
		Expect(held).To(HaveLen(1))
		By("a long time without an answer")
		for range 3 {
			now = now.Add(time.Hour)
			lists, _ = pass("")
			Expect(lists).To(BeEmpty())
		}
		By("new keys")
		s.Want(keyedWorld(3, keySets{"a": 2, "b": 1}, []string{"a"}, keyedHost("shop", "b", fast)))
		lists, _ = pass("")
		Expect(lists).To(Equal([]keySets{{"a": 2, "b": 1}}))
		By("the answer")
		s.Ack(held[0].Nonce)
		lists, _ = pass("")
		Expect(lists).To(BeEmpty())
		now = now.Add(2*time.Second - 1)
		_, wake := s.Next(now)
		Expect(wake).To(Equal(now.Add(1)))
		now = now.Add(1)
		lists, _ = pass("")
		Expect(lists).To(Equal([]keySets{{"b": 1}}))
	})

	It("loses revoked keys at once", func() {
		start(nil, nil)
		s.Want(keyedWorld(1, keySets{"a": 1}, nil, keyedHost("shop", "a", fast)))
		pass("")
		s.Want(keyedWorld(2, keySets{"a": 0}, []string{"a"}, keyedHost("shop", "", fast)))
		lists, _ := pass(snapshot.RouteType)
		Expect(lists).To(Equal([]keySets{{}}))
	})

	It("is wanted again without a new list", func() {
		start(nil, nil)
		s.Want(keyedWorld(1, keySets{"a": 1}, nil, keyedHost("shop", "a", fast)))
		pass("")
		s.Want(keyedWorld(2, keySets{"a": 1}, []string{"a"}, keyedHost("shop", "", fast)))
		pass("")
		_, wake := s.Next(now)
		Expect(wake).To(Equal(now.Add(2 * time.Second)))
		now = now.Add(time.Second)
		s.Want(keyedWorld(3, keySets{"a": 1}, []string{"a"}, keyedHost("shop", "a", cluster("slow", 1, true))))
		lists, _ := pass(snapshot.ClusterType)
		Expect(lists).To(BeEmpty())
		_, wake = s.Next(now)
		Expect(wake).To(Equal(now.Add(20*time.Second)), "only the host waits")
		now = now.Add(time.Minute)
		lists, _ = pass("")
		Expect(lists).To(BeEmpty())
	})

	It("stays for an Envoy that reconnects with routes that may name it", func() {
		want := keyedWorld(1, keySets{"a": 1}, []string{"a"}, keyedHost("shop", "", fast))
		start(map[string]string{"rc": "other"}, map[string]string{"keys": "other"})
		s.Want(want)
		lists, _ := pass("")
		Expect(lists).To(Equal([]keySets{{"a": 1}}))
		pass("")
		now = now.Add(2 * time.Second)
		lists, _ = pass("")
		Expect(lists).To(Equal([]keySets{{}}))
		By("unless its list lacks it")
		start(map[string]string{"rc": "other"}, map[string]string{"keys": want.Extensions[0].Version})
		s.Want(want)
		lists, _ = pass("")
		Expect(lists).To(BeEmpty())
		By("unless it has no routes")
		start(nil, nil)
		s.Want(want)
		lists, _ = pass("")
		Expect(lists).To(Equal([]keySets{{}}))
	})

	It("stays in its own list only", func() {
		// both adds the list of another filter, whose hosts have named the set too.
		both := func(w *snapshot.Snapshot) *snapshot.Snapshot {
			join := func(parts []string) (*snapshot.Resource, error) {
				return &snapshot.Resource{Name: "other", Version: strings.Join(parts, ","), Body: &anypb.Any{TypeUrl: snapshot.ExtensionType}}, nil
			}
			other, err := join(nil)
			Expect(err).NotTo(HaveOccurred())
			w.Extensions = append(w.Extensions, other)
			w.Lists = append(w.Lists, snapshot.NewList("other", nil, []string{"a"}, join))
			return w
		}
		extensions := func() (names []string) {
			messages, _ := s.Next(now)
			for _, m := range messages {
				for _, r := range m.Resources {
					if m.Type == snapshot.ExtensionType {
						names = append(names, r.Name)
					}
				}
				s.Ack(m.Nonce)
			}
			return names
		}
		start(nil, nil)
		s.Subscribe(snapshot.ExtensionType, []string{"other"}, nil)
		s.Want(both(keyedWorld(1, keySets{"a": 1}, nil, keyedHost("shop", "a", fast))))
		Expect(extensions()).To(Equal([]string{"keys", "other"}))
		s.Want(both(keyedWorld(2, keySets{"a": 1}, []string{"a"}, keyedHost("shop", "", fast))))
		Expect(extensions()).To(BeEmpty())
		now = now.Add(time.Second)
		Expect(extensions()).To(BeEmpty(), "the grace begins")
		now = now.Add(2 * time.Second)
		Expect(extensions()).To(Equal([]string{"keys"}))
	})
})
