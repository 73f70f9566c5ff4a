package replicas_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// memory is a board in memory, for hubs that do not run: each Join is one post and one read.
type memory struct {
	now   time.Time
	rows  map[string]replicas.Post
	heard map[string]time.Time
	ended map[string]bool
	// broken is why nothing can be posted; nil means that everything can.
	broken error
}

func newMemory() *memory {
	return &memory{now: time.Unix(1000, 0), rows: map[string]replicas.Post{}, heard: map[string]time.Time{}, ended: map[string]bool{}}
}

// view is the board as a hub gets it.
type view struct {
	*memory
	changed chan struct{}
}

func (v view) Publish(_ context.Context, p replicas.Post) error {
	if v.broken != nil {
		return v.broken
	}
	old := v.rows[p.Replica]
	if p.Report == nil {
		p.Report = old.Report
	}
	v.rows[p.Replica], v.heard[p.Replica] = p, v.now
	return nil
}

func (v view) Beat(context.Context, string) (kept bool, err error) { return true, nil }
func (v view) End(_ context.Context, name string) error {
	v.ended[name] = true
	return nil
}
func (v view) Bury(context.Context, string) error { return nil }
func (v view) Changed() <-chan struct{}           { return v.changed }
func (v view) Pace() replicas.Pace                { return replicas.DefaultPace() }

func (v view) Read(_ context.Context, replica string, _ map[string]replicas.Versions) (list []replicas.Notice, kept bool, err error) {
	for _, name := range slices.Sorted(maps.Keys(v.rows)) {
		if name != replica {
			list = append(list, replicas.Notice{Post: v.rows[name], Age: v.now.Sub(v.heard[name]), Ended: v.ended[name]})
		}
	}
	return list, v.rows[replica].Replica != "", nil
}

// hub is a replica that does only what a spec tells it.
type hub struct {
	*replicas.Hub
	*status.Registry
	board *memory
	log   *testkit.Output
	from  status.Cursor
}

func (m *memory) hub(name string) *hub {
	r := &hub{Registry: status.NewRegistry(), board: m, log: &testkit.Output{}}
	r.from = r.Feed().Now()
	r.Hub = replicas.New(replicas.Options{
		Replica: name, Board: view{m, make(chan struct{}, 1)}, Registry: r.Registry, Log: slog.New(slog.NewTextHandler(r.log, nil)),
		Now: func() time.Time { return m.now },
		Report: func() replicas.Report {
			return replicas.Observe(r.Registry, model.Mark{Revision: 1}, func(string) int64 { return 1 })
		},
	})
	return r
}

// after lets time pass; then each of the hubs posts and reads.
func (m *memory) after(d time.Duration, hubs ...*hub) {
	m.now = m.now.Add(d)
	for _, h := range hubs {
		h.Join(context.Background())
	}
}

// come connects an Envoy of gw.
func (h *hub) come(id int64, instance, address string) { h.comeTo("gw", id, instance, address) }

func (h *hub) comeTo(proxy string, id int64, instance, address string) {
	h.Connect(status.Envoy{ID: id, Proxy: proxy, Instance: instance, Address: address, Connected: h.board.now})
	h.SetProgress(id, status.Progress{Applied: 1})
}

// of returns what a hub knows of another one.
func (h *hub) of(name string) replicas.Other {
	GinkgoHelper()
	list := h.Others()
	i := slices.IndexFunc(list, func(o replicas.Other) bool { return o.Replica == name })
	Expect(i).To(BeNumerically(">=", 0), name)
	return list[i]
}

// told returns the new events of other replicas.
func (h *hub) told() (list []string) {
	for {
		events, more := h.Feed().After(h.from, 500)
		if more != nil || len(events) == 0 {
			return list
		}
		for _, e := range events {
			if e.Replica != "" {
				list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s%s", e.Replica, e.Event, e.Envoy, e.Message)))
			}
		}
		h.from = h.Feed().Behind(events[len(events)-1])
	}
}

func addresses(o replicas.Other) (list []string) {
	for _, e := range o.Envoys {
		list = append(list, e.Address)
	}
	return list
}

var _ = Describe("A replica whose process may be dead", func() {
	var (
		m       *memory
		a, b, c *hub
	)
	BeforeEach(func() {
		m = newMemory()
		a, b, c = m.hub("a"), m.hub("b"), m.hub("c")
		m.after(0, a, b, c)
		m.after(time.Second, a, b, c)
	})
	// killed lets b be silent from now on, with its Envoys; a and c have heard of them.
	killed := func() { m.after(time.Second, b, a, c) }
	dead := func() bool { return a.of("b").Gone }

	It("counts as dead 2 s after its last Envoy came to this replica or to a third one", func() {
		b.come(1, "one", "10.0.0.1:1")
		b.come(2, "two", "10.0.0.2:1")
		killed()
		m.after(time.Second)
		a.come(1, "one", "10.0.0.9:1")
		c.come(1, "two", "10.0.0.9:2")
		m.after(0, c, a)
		m.after(1999*time.Millisecond, c, a)
		Expect(dead()).To(BeFalse(), "it could still say that they left")
		m.after(time.Millisecond, c, a)
		Expect(dead()).To(BeTrue())
		Expect(a.of("b")).To(And(HaveField("Unheard", true), HaveField("Envoys", BeEmpty())))
		Expect(a.of("b").IsUnknown("gw")).To(BeFalse())
	})

	It("lives if it has no Envoy, or more than it has reported", func() {
		killed()
		m.after(10*time.Second, a, c)
		Expect(dead()).To(BeFalse(), "none has left it")
		for id := range int64(5001) {
			b.come(id, "one", "10.0.0.1:1")
		}
		m.after(time.Second, b, a, c)
		m.after(time.Second)
		for id := range int64(5001) {
			a.come(id, "one", "10.0.0.9:1")
		}
		m.after(5*time.Second, c, a)
		Expect(dead()).To(BeFalse(), "nobody knows who the others are")
	})

	DescribeTable("lives if its Envoy has not come elsewhere", func(come func()) {
		b.come(1, "one", "10.0.0.1:1")
		b.comeTo("gw", 2, "two", "10.0.0.2:1")
		killed()
		m.after(time.Second)
		come()
		m.after(5*time.Second, c, a)
		Expect(dead()).To(BeFalse())
	},
		Entry("only one of two", func() { a.come(1, "one", "10.0.0.1:2") }),
		Entry("one of another proxy has the name", func() { a.come(1, "one", "10.0.0.1:2"); a.comeTo("edge", 2, "two", "10.0.0.2:2") }),
		Entry("the same one came twice, by its name and then by the other's", func() { a.come(1, "one", "10.0.0.1:2"); a.come(2, "one", "10.0.0.2:2") }),
	)

	It("is not taken for dead because of what it reports itself", func() {
		b.come(1, "one", "10.0.0.1:1")
		m.after(time.Second, b, a)
		b.Disconnect(1)
		b.come(2, "one", "10.0.0.1:2")
		m.after(time.Second, b)
		m.after(time.Second, a)
		m.after(5*time.Second, a)
		Expect(dead()).To(BeFalse())
	})

	It("is not taken for dead because of Envoys that a third replica had when it was first heard of", func() {
		b.come(1, "one", "10.0.0.1:1")
		killed()
		d := m.hub("d")
		m.after(time.Second)
		d.come(1, "one", "10.0.0.1:2")
		m.after(time.Second, d, a)
		m.after(5*time.Second, d, a)
		Expect(addresses(a.of("d"))).To(ConsistOf("10.0.0.1:2"))
		Expect(dead()).To(BeFalse())
	})

	It("is not taken for dead because of an Envoy that was elsewhere before, whatever is reported of it later", func() {
		c.come(1, "one", "10.0.0.1:2")
		m.after(time.Second, c, a)
		b.come(1, "one", "10.0.0.1:1")
		killed()
		c.come(2, "two", "10.0.0.2:1")
		m.after(time.Second, c, a)
		m.after(5*time.Second, c, a)
		Expect(addresses(a.of("c"))).To(HaveLen(2))
		Expect(dead()).To(BeFalse())
	})

	It("is gone after a minute, with the Envoys that came nowhere else", func() {
		b.come(1, "", "10.0.0.1:1")
		b.come(2, "", "10.0.0.1:2")
		b.come(3, "", "10.0.0.2:1")
		killed()
		m.after(time.Second)
		a.come(1, "", "10.0.0.1:9")
		m.after(0, a)
		m.after(58*time.Second, a, c)
		Expect(a.of("b")).To(And(HaveField("Gone", false), HaveField("Unheard", true), HaveField("Envoys", HaveLen(3))))
		Expect(a.of("b").UnheardMessage()).To(Equal("replica b was last heard at 00:16:42: the state of its Envoys is unknown"))
		m.after(2*time.Second, a, c)
		Expect(addresses(a.of("b"))).To(Equal([]string{"10.0.0.1:2", "10.0.0.2:1"}), "one came, which cannot be both")
		Expect(a.of("b").IsUnknown("gw")).To(BeTrue())
		Expect(a.of("b").IsUnknown("edge")).To(BeFalse())
		Expect(a.of("b").UnheardMessage()).To(Equal("replica b was last heard at 00:16:42, and not all of its Envoys have connected elsewhere since: their state is unknown"))
		Expect(addresses(a.of("b"))).To(HaveLen(2), "to ask changes nothing")
	})

	It("is heard until 15 s have passed, and forgotten after 10 minutes", func() {
		b.come(1, "", "10.0.0.1:1")
		killed()
		m.after(15*time.Second, a)
		Expect(a.of("b").Unheard).To(BeFalse())
		m.after(time.Millisecond, a)
		Expect(a.of("b").Unheard).To(BeTrue())
		m.after(10*time.Minute-15*time.Second-time.Millisecond, a)
		Expect(a.Others()).To(ContainElement(HaveField("Replica", "b")))
		m.after(time.Millisecond, a)
		Expect(a.Others()).NotTo(ContainElement(HaveField("Replica", "b")))
		Expect(a.told()).To(ContainElements("b replica it is not heard: the state of its Envoys is unknown", "b replica it is gone"))
	})

	It("is unknown for as long as it has reported nothing that can be read", func() {
		m.rows["new"], m.heard["new"] = replicas.Post{Replica: "new", Versions: replicas.Versions{Report: 1, Mail: 1}, Report: []byte("x"), Mail: []byte("y")}, m.now
		m.after(0, a)
		Expect(a.of("new")).To(And(HaveField("Unheard", true), HaveField("Gone", false)))
		Expect(a.of("new").UnheardMessage()).To(Equal("replica new has reported nothing: the state of its Envoys is unknown"))
		Expect(a.log.String()).To(And(ContainSubstring("the report of another replica cannot be read"), ContainSubstring("the mail of another replica cannot be read")))
		m.after(61*time.Second, a)
		Expect(a.of("new").Gone).To(BeFalse(), "it is not known which Envoys to look for")
	})
})

var _ = Describe("Events of Envoys", func() {
	var (
		m    *memory
		a, b *hub
	)
	BeforeEach(func() {
		m = newMemory()
		a, b = m.hub("a"), m.hub("b")
		m.after(0, a, b)
		m.after(time.Second, b, a)
		Expect(a.told()).To(Equal([]string{"b replica it has appeared"}))
	})

	It("are told once: comings, goings and refusals, and no answers", func() {
		b.come(1, "", "10.0.0.1:1")
		b.RecordAck(1, routeType, status.Answer{Revision: 1})
		b.RecordNack(1, routeType, status.Answer{Revision: 1, Text: "x" + strings.Repeat("ä", 300)})
		b.Disconnect(1)
		m.after(time.Second, b, a)
		told := a.told()
		Expect(told).To(HaveExactElements("b connect 10.0.0.1:1", And(HavePrefix("b nack 10.0.0.1:1"), HaveSuffix("ää...")), "b disconnect 10.0.0.1:1"))
		Expect(len(told[1])).To(BeNumerically("<", 530))
		m.after(time.Second, b, a)
		m.after(time.Second, a, b)
		Expect(a.told()).To(BeEmpty())
		Expect(b.told()).To(BeEmpty(), "it does not hear of its own Envoys from others")
	})

	It("beyond 64 in one report are a number", func() {
		for id := range int64(64) {
			b.come(id, "", fmt.Sprintf("10.0.0.1:%d", id))
		}
		m.after(time.Second, b, a)
		Expect(a.told()).To(And(HaveLen(64), HaveEach(HavePrefix("b connect "))))
		for id := range int64(66) {
			b.come(100+id, "", fmt.Sprintf("10.0.0.2:%d", id))
		}
		m.after(time.Second, b, a)
		Expect(a.told()).To(And(HaveLen(65), ContainElement("b replica 2 more events of its Envoys are not listed here; GET /status shows their state"),
			ContainElement("b connect 10.0.0.2:2"), Not(ContainElement("b connect 10.0.0.2:1"))))
	})
})

var _ = Describe("The bounds of a report", func() {
	It("are those of engines, of waits, refusals and names in them, and of conditions", func() {
		registry := status.NewRegistry()
		many := make([]model.Key, 11)
		for i := range many {
			many[i] = model.ServiceKey(fmt.Sprint("s", i))
		}
		awaited := func(n int) []status.Awaited {
			return slices.Repeat([]status.Awaited{{Name: "x", Objects: many}}, n)
		}
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "10.0.0.1:1"})
		registry.SetProgress(1, status.Progress{
			Waiting: slices.Repeat([]status.Wait{{Host: "h", Clusters: awaited(11), Secrets: awaited(11), Providers: awaited(11)}}, 10),
			Refused: slices.Repeat([]status.Refusal{{Objects: many}}, 11),
		})
		registry.Connect(status.Envoy{ID: 2, Proxy: "gw", Address: "10.0.0.2:1"})
		registry.SetProgress(2, status.Progress{Waiting: make([]status.Wait, 11), Refused: make([]status.Refusal, 10)})
		registry.Connect(status.Envoy{ID: 3, Proxy: "gw", Address: "10.0.0.3:1"})
		registry.SetProgress(3, status.Progress{Waiting: make([]status.Wait, 10), Refused: make([]status.Refusal, 10)})
		r := replicas.Observe(registry, model.Mark{Revision: 1}, func(string) int64 { return 1 })
		Expect(r.Envoys).To(HaveLen(3))
		one := r.Envoys[0]
		Expect(one).To(And(HaveField("Waiting", HaveLen(10)), HaveField("Refused", HaveLen(10)), HaveField("Cut", true)))
		Expect(one.Refused[0].Objects).To(HaveLen(10))
		for _, list := range [][]status.Awaited{one.Waiting[0].Clusters, one.Waiting[0].Secrets, one.Waiting[0].Providers} {
			Expect(list).To(And(HaveLen(10), HaveEach(HaveField("Objects", HaveLen(10)))))
		}
		Expect(r.Envoys[1]).To(And(HaveField("Waiting", HaveLen(10)), HaveField("Cut", true)))
		Expect(r.Envoys[2].Cut).To(BeFalse())

		text := strings.Repeat("x", 501)
		short := r.WithConditions(slices.Repeat([]model.Condition{{Key: many[0], Message: text}}, 101))
		Expect(short.Conditions).To(And(HaveLen(100), HaveEach(HaveField("Message", strings.Repeat("x", 500)+"..."))))
	})

	It("are those of engines and Envoys; of the Envoys beyond it, those that lag are counted", func() {
		registry := status.NewRegistry()
		for id := range int64(5003) {
			registry.Connect(status.Envoy{ID: id, Proxy: "gw", Address: fmt.Sprint("10.0.0.1:", id), Connected: time.Unix(id, 0)})
			registry.SetProgress(id, status.Progress{Applied: min(1, 5001-id)})
		}
		for id := range int64(101) {
			registry.ConnectEngine(status.Envoy{ID: 10000 + id, Address: fmt.Sprint("10.0.0.2:", id)})
		}
		r := replicas.Observe(registry, model.Mark{Revision: 1}, func(string) int64 { return 1 })
		Expect(r).To(And(HaveField("Envoys", HaveLen(5000)), HaveField("Engines", HaveLen(100))))
		Expect(r.More).To(Equal(map[string]int{"gw": 3}))
		Expect(r.MoreLagging).To(Equal(map[string]int{"gw": 2}))
		few := replicas.Report{More: map[string]int{"gw": 1}}
		Expect([]bool{few.Has("gw"), few.Has("edge")}).To(Equal([]bool{true, false}))
	})

	It("has the positions of what is built, and of each Envoy that lags", func() {
		built := replicas.Report{Built: 9, Envoys: []replicas.Envoy{{Applied: 9, Current: true}, {Applied: 7}, {}}}
		r := built.WithSeen(func(revision int64) map[string]int64 { return map[string]int64{"Service": revision} })
		Expect(r.Seen).To(Equal(map[string]int64{"Service": 9}))
		Expect(r.Envoys).To(HaveExactElements(HaveField("Seen", BeNil()), HaveField("Seen", map[string]int64{"Service": 7}), HaveField("Seen", BeNil())))
		Expect(built.Envoys[1].Seen).To(BeNil(), "it is immutable")
	})

	DescribeTable("say of an Envoy what is so", func(wanted int64, p status.Progress, current bool) {
		registry := status.NewRegistry()
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "10.0.0.1:1"})
		registry.SetProgress(1, p)
		Expect(replicas.Observe(registry, model.Mark{}, func(string) int64 { return wanted }).Envoys).To(ConsistOf(HaveField("Current", current)))
	},
		Entry("it has what it should have", int64(5), status.Progress{Applied: 5}, true),
		Entry("it has more", int64(5), status.Progress{Applied: 6}, true),
		Entry("it has less", int64(5), status.Progress{Applied: 4}, false),
		Entry("it refuses something", int64(5), status.Progress{Applied: 5, Refused: []status.Refusal{{}}}, false),
		Entry("nothing was built yet", int64(0), status.Progress{}, false),
	)
})
