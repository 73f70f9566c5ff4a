package plan_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/plan"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

var _ = Describe("a login", func() {
	var (
		s    *plan.Stream
		now  time.Time
		last []string // nonces
	)
	// start is a new stream.
	start := func() {
		s, last = plan.NewStream(plan.Options{Grace: 2 * time.Second, WarmBound: 20 * time.Second}), nil
	}
	BeforeEach(func() {
		now = time.Unix(1_800_000_000, 0)
		start()
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, nil)
		s.Subscribe(snapshot.RouteType, []string{"rc"}, nil)
		s.Subscribe(snapshot.ExtensionType, []string{"jwt"}, nil)
	})
	// next returns the messages as text: "routes h+keeper(a b)", "extension a/0=0/0", "secrets
	// +x -y".
	next := func() []string {
		GinkgoHelper()
		messages, _ := s.Next(now)
		var lines []string
		for _, m := range messages {
			last = append(last, m.Nonce)
			lines = append(lines, sayLogin(m))
		}
		return lines
	}
	ack := func() {
		for _, nonce := range last {
			s.Ack(nonce)
		}
		last = nil
	}
	ask := func(pairs ...string) {
		GinkgoHelper()
		for _, pair := range pairs {
			Expect(s.Subscribe(snapshot.SecretType, login{name: pair}.secrets(), nil)).To(BeTrue())
		}
	}
	secretsOf := func(pair string) string {
		return "secrets +login/filter/" + pair + "/client +login/filter/" + pair + "/hmac"
	}
	// live gives the Envoy an open host.
	live := func() {
		GinkgoHelper()
		s.Want(guarded(1, openHost("shop", 1)))
		Expect(next()).To(ContainElement("routes shop:open"))
		ack()
		Expect(next()).To(BeEmpty())
	}
	// rest waits for the rest after a route configuration.
	rest := func() { now = now.Add(time.Second) }
	// on gives a second host a login.
	on := func() {
		GinkgoHelper()
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		next()
		ack()
		ask("a")
		next()
		ack()
		next()
		ack()
		rest()
		Expect(next()).To(BeEmpty())
		revision, ok := s.Applied()
		Expect([]any{revision, ok}).To(Equal([]any{int64(2), true}))
	}

	It("is active when its secrets and its provider are there, and reports what it waits for", func() {
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		Expect(next()).To(Equal([]string{"extension a/0=0/0", "routes login/keeper:a shop:open"}))
		Expect(s.Waiting()).To(Equal([]plan.Wait{{
			Host: "till", Object: service("till"), Since: now, Until: now.Add(20 * time.Second),
			Secrets: []plan.Awaited{
				{Name: "login/filter/a/client", Objects: []snapshot.ObjectRef{filter("a")}}, {Name: "login/filter/a/hmac", Objects: []snapshot.ObjectRef{filter("a")}},
			},
			Providers: []plan.Awaited{{Name: "filter/a/0", Objects: []snapshot.ObjectRef{filter("a")}}},
		}}))
		ack()
		Expect(next()).To(BeEmpty())
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
		ask("a")
		Expect(next()).To(Equal([]string{secretsOf("a")}))
		ack()
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
		_, reached := s.Reached(plan.Goal{Revision: 2, Hosts: []string{"till"}})
		Expect(reached).To(BeFalse())
		ack()
		_, reached = s.Reached(plan.Goal{Revision: 2, Hosts: []string{"till"}})
		Expect(reached).To(BeTrue())
		_, applied = s.Applied()
		Expect(applied).To(BeTrue())
	})

	It("is activated when the bound is reached, which is reported once", func() {
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		next()
		ack()
		next()
		now = now.Add(20 * time.Second)
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
		Expect(s.Overdue()).To(ConsistOf(
			plan.Overdue{Type: snapshot.SecretType, Name: "login/filter/a/client"}, plan.Overdue{Type: snapshot.SecretType, Name: "login/filter/a/hmac"},
		))
		Expect(s.Overdue()).To(BeEmpty())
	})

	It("is in the first configuration of an Envoy, which has no subscription before", func() {
		s.Want(guarded(1, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		Expect(next()).To(ContainElement("extension a/0=0/0"))
		ack()
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
	})

	It("leaves its secrets behind when it is removed, and its provider as long as a host names it", func() {
		on()
		s.Want(guarded(3, openHost("shop", 1)))
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open"}))
		for range 3 {
			now = now.Add(time.Minute)
			Expect(next()).To(BeEmpty(), "a host that the Envoy has names the provider")
		}
		ack()
		Expect(next()).To(BeEmpty(), "the grace begins")
		_, applied := s.Applied()
		Expect(applied).To(BeTrue())
		now = now.Add(1999 * time.Millisecond)
		Expect(next()).To(BeEmpty())
		now = now.Add(time.Millisecond)
		Expect(next()).To(Equal([]string{"extension"}))
		ack()
		now = now.Add(time.Hour)
		Expect(next()).To(BeEmpty())
		Expect(s.Foreign()).To(BeZero(), "the secrets were sent to it")

		s.Want(guarded(4, openHost("shop", 2)))
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open"}))
		ack()
		ask("a")
		Expect(next()).To(BeEmpty(), "there is nothing to answer, and it is not removed")
	})

	It("leaves its provider for one grace period, whatever changes meanwhile", func() {
		on()
		s.Want(guarded(3, openHost("shop", 1)))
		next()
		ack()
		Expect(next()).To(BeEmpty(), "the grace begins")
		_, wake := s.Next(now)
		Expect(wake).To(Equal(now.Add(2 * time.Second)))
		now = now.Add(time.Second)
		s.Want(guarded(4, openHost("shop", 1)))
		Expect(next()).To(BeEmpty())
		now = now.Add(time.Second)
		Expect(next()).To(Equal([]string{"extension"}))
	})

	It("leaves its provider behind while routes that name it are on their way", func() {
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		next()
		ack()
		ask("a")
		next()
		ack()
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
		s.Want(guarded(3, openHost("shop", 1)))
		for range 3 {
			now = now.Add(time.Minute)
			Expect(next()).To(BeEmpty())
		}
		ack()
		Expect(next()).To(BeEmpty(), "a slow Envoy rests")
		rest()
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open"}))
	})

	It("leaves its provider behind while it is unknown which routes the Envoy has", func() {
		start()
		s.Subscribe(snapshot.ClusterType, nil, nil)
		s.Subscribe(snapshot.ListenerType, nil, map[string]string{"http": "other"})
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "other"})
		s.Subscribe(snapshot.ExtensionType, []string{"jwt"}, map[string]string{"jwt": "other"})
		s.Want(guarded(1, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		Expect(next()).To(ContainElement("extension a/0=0/0"))
		ack()
		s.Want(guarded(2, openHost("shop", 1)))
		Expect(next()).To(Equal([]string{"routes shop:open"}))
		for range 3 {
			now = now.Add(time.Minute)
			Expect(next()).To(BeEmpty())
		}
		ack()
		Expect(next()).To(BeEmpty(), "the grace begins")
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"extension"}))
	})

	It("that was activated before its provider was answered leaves it behind all the same", func() {
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, false)))
		Expect(next()).To(Equal([]string{"extension a/0=0/0", "routes login/keeper:a shop:open"}))
		extension := last[0]
		last = last[1:]
		ack()
		next()
		now = now.Add(20 * time.Second)
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
		ack()
		s.Want(guarded(3, openHost("shop", 1)))
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open"}))
		s.Ack(extension)
		Expect(next()).To(BeEmpty(), "a host that the Envoy has names the provider")
		ack()
		Expect(next()).To(BeEmpty(), "the grace begins")
		now = now.Add(2 * time.Second)
		Expect(next()).To(Equal([]string{"extension"}))
	})

	It("that is removed and comes back while its secrets are under way is not active before they are", func() {
		with := func(revision int64) { s.Want(guarded(revision, loginHost("till", login{name: "a"}, false))) }
		with(1)
		next()
		ack()
		next()
		ack()
		ask("a")
		Expect(next()).To(Equal([]string{secretsOf("a")}))
		s.Want(guarded(2))
		with(3)
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
		ack()
		Expect(next()).To(BeEmpty())
		_, applied = s.Applied()
		Expect(applied).To(BeTrue())
	})

	It("that is removed while its keys change leaves the newest keys behind", func() {
		on()
		s.Want(guarded(3, openHost("shop", 1), loginHost("till", login{name: "a", keys: 1}, false)))
		Expect(next()).To(Equal([]string{"extension a/0=0/1"}))
		s.Want(guarded(4, openHost("shop", 1)))
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open"}))
		s.Ack(last[0])
		Expect(next()).To(BeEmpty())
	})

	It("has one form of the extension under way at a time", func() {
		on()
		for keys := 1; keys < 4; keys++ {
			s.Want(guarded(3, openHost("shop", 1), loginHost("till", login{name: "a", keys: keys}, false)))
			Expect(next()).To(HaveLen(map[bool]int{true: 1}[keys == 1]))
		}
		ack()
		Expect(next()).To(Equal([]string{"extension a/0=0/3"}))
	})

	It("that comes back with another secret waits until the routes rest, and they wait for it", func() {
		on()
		s.Want(guarded(3, openHost("shop", 1), loginHost("till", login{name: "a", keys: 1}, false)))
		Expect(next()).To(Equal([]string{"extension a/0=0/1"}))
		ack()
		s.Want(guarded(4, openHost("shop", 2), loginHost("till", login{name: "a", keys: 1}, false)))
		Expect(next()).To(HaveLen(1))
		ack()
		s.Want(guarded(5, openHost("shop", 3), loginHost("till", login{name: "a", keys: 1, content: 1}, false)))
		Expect(next()).To(BeEmpty())
		now = now.Add(499 * time.Millisecond)
		Expect(next()).To(BeEmpty())
		now = now.Add(time.Millisecond)
		Expect(next()).To(Equal([]string{secretsOf("a")}))
		Expect(next()).To(BeEmpty())
		_, reached := s.Reached(plan.Goal{Revision: 5, Hosts: []string{"till"}})
		Expect(reached).To(BeFalse())
		ack()
		Expect(next()).To(Equal([]string{"routes login/keeper:a shop:open till:a/0"}))
	})

	It("is kept after a reconnect, and nothing is sent about routes before", func() {
		had := map[string]string{"login/filter/old/client": "1", "login/filter/old/hmac": "1"}
		start()
		s.Want(guarded(5, openHost("shop", 1)))
		s.Subscribe(snapshot.ClusterType, nil, nil)
		Expect(next()).To(Equal([]string{"clusters"}))
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "1"})
		Expect(next()).To(BeEmpty(), "it may use secrets that only it knows of")
		s.Subscribe(snapshot.ListenerType, nil, map[string]string{"http": listener("http").Version})
		Expect(next()).To(Equal([]string{"listeners"}), "to get an answer")
		Expect(next()).To(BeEmpty())
		s.Subscribe(snapshot.SecretType, []string{"login/filter/old/client", "login/filter/old/hmac", "login/filter/never/client"}, had)
		Expect(next()).To(Equal([]string{"routes login/keeper:never,old shop:open"}))
		ack()
		now = now.Add(time.Hour)
		Expect(next()).NotTo(ContainElement(HavePrefix("secrets")))
		Expect(s.Foreign()).To(BeZero(), "some cost no room")
	})

	It("that an Envoy never had is not awaited after a reconnect", func() {
		start()
		s.Want(guarded(5, openHost("shop", 1)))
		s.Subscribe(snapshot.ListenerType, nil, map[string]string{"http": listener("http").Version})
		s.Subscribe(snapshot.RouteType, []string{"rc"}, map[string]string{"rc": "1"})
		Expect(next()).To(Equal([]string{"listeners"}))
		ack()
		Expect(next()).To(Equal([]string{"routes shop:open"}))
	})

	It("with names that no host uses is kept within a limit", func() {
		live()
		s.SetRoom(10)
		var names []string
		for i := range 100 {
			names = append(names, fmt.Sprintf("login/filter/x%d/client", i))
		}
		Expect(s.Subscribe(snapshot.SecretType, names[:74], nil)).To(BeTrue())
		Expect(s.Foreign()).To(Equal(10))
		Expect(s.Subscribe(snapshot.SecretType, names[74:], nil)).To(BeFalse())
	})

	// refuseBad answers messages until there are no more, and refuses those with a bad provider.
	refuseBad := func() {
		GinkgoHelper()
		for range 20 {
			messages, _ := s.Next(now)
			for _, m := range messages {
				if strings.Contains(sayLogin(m), "bad") {
					s.Nack(m.Nonce, "no key", now)
				} else {
					s.Ack(m.Nonce)
				}
			}
			if len(messages) == 0 {
				return
			}
		}
		Fail("the messages do not end")
	}

	It("with a provider that the Envoy refuses is found among those that it gets first", func() {
		s.Want(guarded(1, openHost("shop", 1), loginHost("desk", login{name: "b"}, false), loginHost("till", login{name: "a"}, true)))
		refuseBad()
		Expect(s.Refused()).To(HaveExactElements(And(HaveField("Type", snapshot.ExtensionType), HaveField("Resource", "filter/a/0"))))
	})

	It("with a provider that is removed before the Envoy refuses it leaves nothing behind", func() {
		live()
		s.Want(guarded(2, openHost("shop", 1), loginHost("till", login{name: "a"}, true)))
		Expect(next()).To(ContainElement(HavePrefix("extension ")))
		extension := last[0]
		last = last[1:]
		ack()
		Expect(next()).To(BeEmpty())
		s.Want(guarded(3, openHost("shop", 1)))
		s.Nack(extension, "no key", now)
		Expect(next()).NotTo(ContainElement(HavePrefix("extension")))
		ack()
		_, applied := s.Applied()
		Expect(applied).To(BeTrue())
		s.Want(guarded(4, openHost("shop", 1), loginHost("desk", login{name: "b"}, false)))
		Expect(next()).To(ContainElement("extension b/0=0/0"))
	})

	It("waits for its provider again if the Envoy has dropped the filter meanwhile", func() {
		on()
		s.Unsubscribe(snapshot.ExtensionType, []string{"jwt"})
		Expect(next()).To(BeEmpty())
		s.Subscribe(snapshot.ExtensionType, []string{"jwt"}, nil)
		s.Want(guarded(3, openHost("shop", 1), loginHost("desk", login{name: "a"}, false), loginHost("till", login{name: "a"}, false)))
		Expect(next()).To(Equal([]string{"extension a/0=0/0"}))
		ack()
		Expect(next()).To(Equal([]string{"routes desk:a/0 login/keeper:a shop:open till:a/0"}))
	})

	It("with a provider that the Envoy refuses does not block another one", func() {
		live()
		var hosts []*snapshot.Parts
		for i := range 6 {
			hosts = append(hosts, loginHost(fmt.Sprint("h", i), login{name: fmt.Sprint("f", i)}, i == 4))
		}
		s.Want(guarded(2, hosts...))
		refuseBad()
		for i := range 6 {
			ask(fmt.Sprint("f", i))
		}
		next()
		ack()
		now = now.Add(time.Second)
		Expect(next()).To(Equal([]string{"routes h0:f0/0 h1:f1/0 h2:f2/0 h3:f3/0 h4:503 h5:f5/0 login/keeper:f0,f1,f2,f3,f4,f5"}))
		ack()
		Expect(s.Refused()).To(Equal([]plan.Refusal{{
			Type: snapshot.ExtensionType, Resource: "filter/f4/0", Version: s.Refused()[0].Version, Objects: []snapshot.ObjectRef{filter("f4")},
			Revision: 2, Text: "no key", At: now.Add(-time.Second),
		}}))
		lack, reached := s.Reached(plan.Goal{Revision: 2, Hosts: []string{"h4"}})
		Expect(reached).To(BeFalse())
		Expect(lack.Refusal.Resource).To(Equal("filter/f4/0"))
		_, reached = s.Reached(plan.Goal{Revision: 2, Hosts: []string{"h5"}})
		Expect(reached).To(BeTrue())
		_, applied := s.Applied()
		Expect(applied).To(BeFalse())
	})

	It("that is removed costs nothing for each stream whose Envoy had the same", func() {
		want := guarded(1, openHost("shop", 1))
		first, second := want.Keeping([]string{"login/filter/a"}), want.Keeping([]string{"login/filter/a"})
		Expect(first).To(HaveLen(2))
		Expect(&first[0]).To(BeIdenticalTo(&second[0]), "one list")
		Expect(want.Routes(slices.Clone(first))).To(BeIdenticalTo(want.Routes(second)), "one message")
		Expect(want.Keeping(nil)).To(HaveLen(1))
		for i := range 20 {
			Expect(want.Keeping([]string{fmt.Sprint("login/filter/", i)})).To(HaveLen(2), "more than are kept")
		}
		p := provider(login{name: "a"}, false)
		Expect(want.Extension([]*snapshot.Resource{p})).To(BeIdenticalTo(want.Extension([]*snapshot.Resource{p})))
		Expect(want.Extension(nil)).To(BeIdenticalTo(want.Extensions[0]))
	})
})

// sayLogin returns a message as text.
func sayLogin(m plan.Message) string {
	words := []string{strings.ToLower(m.Type[strings.LastIndex(m.Type, ".")+1:])}
	switch m.Type {
	case snapshot.ListenerType, snapshot.ClusterType, snapshot.SecretType:
		words[0] += "s"
		for _, r := range m.Resources {
			words = append(words, "+"+r.Name)
		}
	case snapshot.ExtensionType:
		words[0] = "extension"
		var forms []string
		for name, form := range readForms(m.Resources[0]) {
			forms = append(forms, strings.TrimPrefix(name, "filter/")+"="+form)
		}
		slices.Sort(forms)
		words = append(words, forms...)
	case snapshot.RouteType:
		words[0] = "routes"
		hosts, _ := readHosts(m.Resources[0])
		var list []string
		for name, h := range hosts {
			list = append(list, name+":"+sayHost(h))
		}
		slices.Sort(list)
		words = append(words, list...)
	}
	for _, name := range m.Removed {
		words = append(words, "-"+name)
	}
	return strings.Join(words, " ")
}

func sayHost(h guardedHost) string {
	switch first, _, _ := strings.Cut(h.says, " "); first {
	case "keep":
		var pairs []string
		for _, s := range h.secrets {
			pairs = append(pairs, strings.Split(s, "/")[2])
		}
		return strings.Join(slices.Compact(pairs), ",")
	case "login":
		return strings.TrimPrefix(h.demand, "filter/")
	case "open":
		return "open"
	}
	return "503"
}
