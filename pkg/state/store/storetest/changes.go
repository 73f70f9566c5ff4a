package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func revisionSpecs(h *harness) {
	It("start at 0 and count the transactions that change something", func(ctx SpecContext) {
		Expect(h.revision(ctx)).To(BeZero())
		Expect(h.create(ctx, upstream("a"), upstream("b"))).To(Equal(int64(1)))
		Expect(h.create(ctx, upstream("c"))).To(Equal(int64(2)))
		Expect(h.revision(ctx)).To(Equal(int64(2)))
	})

	It("tell a writer what changed after one, of what it asks for, and the last that did", func(ctx SpecContext) {
		h.create(ctx, upstream("a"), upstream("b"), upstream("c"))
		h.create(ctx, upstream("d"))
		for port := range 2 {
			u := upstream("a")
			u.Port = 80 + port
			h.write(ctx, func(w store.Writer) error { return w.Replace(u) })
		}
		_, err := h.remove(ctx, model.UpstreamKey("b"))
		Expect(err).NotTo(HaveOccurred())
		by := func(revision int64) store.Revision {
			return store.Revision{Revision: revision, Actor: "tester", Request: "POST /test"}
		}
		for at, want := range map[int64]map[model.Key]store.Revision{
			1: {model.UpstreamKey("a"): by(4), model.UpstreamKey("b"): by(5)}, 3: {model.UpstreamKey("a"): by(4), model.UpstreamKey("b"): by(5)},
			4: {model.UpstreamKey("b"): by(5)}, 5: nil,
		} {
			changed, known, err := h.changedSince(ctx, h.marks[at], "a", "b", "c")
			Expect(err).NotTo(HaveOccurred())
			Expect(known).To(BeTrue())
			Expect(changed).To(Equal(want), "%d", at)
		}

		By("a revision of another database")
		changed, known, err := h.changedSince(ctx, model.Mark{Revision: 3, ID: "another"}, "a")
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeFalse())
		Expect(changed).To(BeEmpty())
	})

	It("say why they were made, and which changed an object", func(ctx SpecContext) {
		h.create(ctx, upstream("a"), upstream("b"))
		_, err := h.store.Write(ctx, store.Origin{Actor: "tester", Request: "POST /test", Message: "why"}, func(w store.Writer) error {
			return errors.Join(w.Insert(upstream("c")), w.Insert(upstream("a.c")))
		})
		Expect(err).NotTo(HaveOccurred())
		h.create(ctx, upstream("d"))
		list := func(name string, before int64, limit int) (found [][]any) {
			Expect(h.store.Read(ctx, func(r store.Reader) error {
				revisions, err := r.RevisionsOf(store.RevisionQuery{Object: model.UpstreamKey(name)}, before, limit)
				for _, is := range revisions {
					found = append(found, []any{is.Revision, is.Actor, is.Message, is.Changes})
				}
				return err
			})).To(Succeed())
			return found
		}
		Expect(list("c", 0, 5)).To(Equal([][]any{{int64(2), "tester", "why", 2}}))
		Expect(list("a", 0, 5)).To(Equal([][]any{{int64(1), "tester", "", 2}}))
		_, err = h.remove(ctx, model.UpstreamKey("a"))
		Expect(err).NotTo(HaveOccurred())
		Expect(list("a", 0, 5)).To(Equal([][]any{{int64(4), "tester", "", 1}, {int64(1), "tester", "", 2}}))
		Expect(list("a", 0, 1)).To(Equal([][]any{{int64(4), "tester", "", 1}}))
		Expect(list("a", 4, 5)).To(Equal([][]any{{int64(1), "tester", "", 2}}))
	})

	It("change an object if they change what is inside of it", func(ctx SpecContext) {
		h.create(ctx, service("s", "s.example"), service("s2", "s2.example"))
		h.create(ctx, route("s", "r"))
		h.create(ctx, route("s2", "r"))
		of := func(key model.Key) (found []int64) {
			Expect(h.store.Read(ctx, func(r store.Reader) error {
				list, err := r.RevisionsOf(store.RevisionQuery{Object: key}, 0, 9)
				for _, is := range list {
					found = append(found, is.Revision)
				}
				return err
			})).To(Succeed())
			return found
		}
		Expect(of(model.ServiceKey("s"))).To(Equal([]int64{2, 1}))
		Expect(of(model.ServiceKey("s2"))).To(Equal([]int64{3, 1}))
		Expect(of(model.RouteKey("s", "r"))).To(Equal([]int64{2}))
	})

	It("are found by who made them, by kind and by time", func(ctx SpecContext) {
		h.create(ctx, service("s", "s.example"))
		h.create(ctx, upstream("a"))
		_, err := h.store.Write(ctx, store.Origin{Actor: "bob", Request: "PUT /config"}, func(w store.Writer) error {
			return errors.Join(w.Insert(upstream("b")), w.Insert(route("s", "r")))
		})
		Expect(err).NotTo(HaveOccurred())
		of := func(q store.RevisionQuery) (found []int64) {
			Expect(h.store.Read(ctx, func(r store.Reader) error {
				list, err := r.RevisionsOf(q, 0, 9)
				for _, is := range list {
					found = append(found, is.Revision)
				}
				return err
			})).To(Succeed())
			return found
		}
		Expect(of(store.RevisionQuery{Actor: "bob"})).To(Equal([]int64{3}))
		Expect(of(store.RevisionQuery{Actor: "bo"})).To(BeEmpty())
		Expect(of(store.RevisionQuery{Kind: model.KindUpstream})).To(Equal([]int64{3, 2}))
		Expect(of(store.RevisionQuery{Kind: model.KindUpstream, Actor: "tester"})).To(Equal([]int64{2}))
		Expect(of(store.RevisionQuery{Object: model.ServiceKey("s"), Kind: model.KindRoute})).To(Equal([]int64{3}))
		Expect(of(store.RevisionQuery{Since: model.At(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC))})).To(Equal([]int64{3, 2, 1}))
		Expect(of(store.RevisionQuery{Since: model.At(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))})).To(BeEmpty())
	})

	It("do not increase if nothing changes", func(ctx SpecContext) {
		h.create(ctx, upstream("a"))
		Expect(h.write(ctx, func(store.Writer) error { return nil })).To(Equal(int64(1)))
		By("replacing an object with an equal one")
		Expect(h.write(ctx, func(w store.Writer) error { return w.Replace(upstream("a")) })).To(Equal(int64(1)))
		Expect(h.since(ctx, 1).Entries).To(BeEmpty())
		Expect(h.create(ctx, upstream("b"))).To(Equal(int64(2)))
	})

	It("are visible in their own transaction", func(ctx SpecContext) {
		h.write(ctx, func(w store.Writer) error {
			Expect(w.Revision()).To(Equal(int64(0)))
			Expect(w.Insert(upstream("a"))).To(Succeed())
			Expect(w.Revision()).To(Equal(int64(1)))
			Expect(w.Get(model.UpstreamKey("a"))).NotTo(BeNil())
			return nil
		})
	})

	It("are not stored if the transaction fails", func(ctx SpecContext) {
		h.create(ctx, upstream("a"))
		refused := errors.New("refused")
		_, err := h.store.Write(ctx, origin(), func(w store.Writer) error {
			Expect(w.Insert(upstream("b"))).To(Succeed())
			Expect(w.Remove(model.UpstreamKey("a"))).To(Succeed())
			return refused
		})
		Expect(err).To(BeIdenticalTo(refused))
		Expect(h.names(ctx, store.Query{Kind: model.KindUpstream})).To(Equal([]string{"a"}))
		Expect(h.since(ctx, 1)).To(Equal(model.Change{Revision: 1, ID: h.mark(ctx).ID}))
		Expect(h.create(ctx, upstream("c"))).To(Equal(int64(2)))
	})
}

func changeSpecs(h *harness) {
	It("is empty if nothing changed", func(ctx SpecContext) {
		Expect(h.since(ctx, 0)).To(Equal(model.Change{ID: h.mark(ctx).ID, Full: true}))
		h.create(ctx, upstream("a"))
		Expect(h.since(ctx, 1)).To(Equal(model.Change{Revision: 1, ID: h.mark(ctx).ID}))
	})

	It("contains only what changed", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		h.create(ctx, upstream("green"))
		h.create(ctx, uses("shop", "root", "green"))

		change := h.since(ctx, 2)
		Expect(change.Revision).To(Equal(int64(3)))
		Expect(change.Full).To(BeFalse())
		Expect(paths(change)).To(Equal([]string{"/service/shop/route/root/upstream/green"}))
		Expect(paths(h.since(ctx, 1))).To(Equal([]string{"/upstream/green", "/service/shop/route/root/upstream/green"}))

		full := h.since(ctx, 0)
		Expect(full.Full).To(BeTrue())
		Expect(full.Revision).To(Equal(int64(3)))
		Expect(full.Entries).To(HaveLen(8))
	})

	It("contains the last state of each object once, after what it refers to", func(ctx SpecContext) {
		h.create(ctx, upstream("start"))
		h.create(ctx, shop()...)
		h.create(ctx, upstream("gone"))
		_, err := h.remove(ctx, model.UpstreamKey("gone"))
		Expect(err).NotTo(HaveOccurred())
		for _, host := range []string{"a.example", "b.example"} {
			h.write(ctx, func(w store.Writer) error { return w.Replace(service("shop", host)) })
		}
		change := h.since(ctx, 1)
		Expect(paths(change)).To(Equal([]string{
			"/upstream/blue", "/service/shop", "/service/shop/route/root", "/proxy/gw",
			"/service/shop/route/root/upstream/blue", "/proxy/gw/service/shop", "-/upstream/gone",
		}))
		Expect(change.Entries[1].Object.(*model.Service).FQDN).To(Equal("b.example"))
	})

	It("contains everything for a reader of another database, including a restored one", func(ctx SpecContext) {
		for _, name := range []string{"a", "b", "c"} {
			h.create(ctx, upstream(name))
		}
		for _, at := range []model.Mark{
			{Revision: 7, ID: "another"}, // ahead of the database
			{Revision: 3, ID: "another"},
			{Revision: 3, ID: h.marks[2].ID},
			{Revision: 2, ID: "another"},
			{Revision: 1, ID: h.marks[2].ID},
		} {
			change, err := h.store.Since(ctx, at)
			Expect(err).NotTo(HaveOccurred())
			Expect(paths(change)).To(Equal([]string{"/upstream/a", "/upstream/b", "/upstream/c"}), "%v", at)
			change.Entries = nil
			Expect(change).To(Equal(model.Change{Revision: 3, ID: h.marks[3].ID, Full: true, Restored: true}), "%v", at)
		}
		By("for a new reader, and for one whose position is no longer in the change log")
		Expect(h.since(ctx, 0).Restored).To(BeFalse())
		h.run(ctx, h.open(ctx, Settings{KeepEntries: 1}))
		Eventually(func() bool { return h.since(ctx, 1).Full }, "10s").Should(BeTrue())
		Expect(h.since(ctx, 1).Restored).To(BeFalse())
	})

	It("gives each revision an ID of its own", func(ctx SpecContext) {
		ids := map[string]bool{h.mark(ctx).ID: true}
		for i := range 3 {
			h.create(ctx, upstream(fmt.Sprint("u", i)))
			Expect(h.marks[int64(i+1)].Revision).To(Equal(int64(i + 1)))
			ids[h.marks[int64(i+1)].ID] = true
		}
		Expect(ids).To(HaveLen(4))
		Expect(ids).NotTo(HaveKey(""))
	})

	It("signals a change after it is committed, and nothing else", func(ctx SpecContext) {
		Expect(h.store.Changed()).NotTo(Receive())
		h.write(ctx, func(w store.Writer) error {
			Expect(w.Insert(upstream("a"))).To(Succeed())
			Expect(h.store.Changed()).NotTo(Receive())
			return nil
		})
		Expect(h.store.Changed()).To(Receive())
		h.write(ctx, func(store.Writer) error { return nil })
		Expect(h.tryCreate(ctx, upstream("a"))).NotTo(Succeed())
		Expect(h.store.Changed()).NotTo(Receive())
		By("many changes are one signal for a slow reader")
		h.create(ctx, upstream("b"))
		h.create(ctx, upstream("c"))
		Expect(h.store.Changed()).To(Receive())
		Expect(h.store.Changed()).NotTo(Receive())
	})

	It("signals changes of other processes", func(ctx SpecContext) {
		other := h.open(ctx, Settings{PollInterval: 10 * time.Millisecond})
		h.run(ctx, other)
		Consistently(other.Changed(), "100ms").ShouldNot(Receive())
		h.create(ctx, upstream("a"))
		Eventually(ctx, other.Changed(), "10s").Should(Receive())
		change, err := other.Since(ctx, model.Mark{})
		Expect(err).NotTo(HaveOccurred())
		Expect(paths(change)).To(Equal([]string{"/upstream/a"}))
	})
}

// changedSince returns which upstreams were changed after a mark.
func (h *harness) changedSince(ctx context.Context, at model.Mark, names ...string) (changed map[model.Key]store.Revision, known bool, err error) {
	keys := map[model.Key]bool{}
	for _, name := range names {
		keys[model.UpstreamKey(name)] = true
	}
	_, err = h.store.Write(ctx, origin(), func(w store.Writer) (err error) {
		changed, known, err = w.ChangedSince(at, keys)
		return err
	})
	return changed, known, err
}

func compactionSpecs(h *harness) {
	createFive := func(ctx context.Context) {
		GinkgoHelper()
		for i := range 5 {
			h.create(ctx, upstream(fmt.Sprintf("u%d", i+1)))
		}
	}
	isFull := func(ctx context.Context, revision int64) func() bool {
		return func() bool { return h.since(ctx, revision).Full }
	}

	It("keeps the configured number of entries", func(ctx SpecContext) {
		createFive(ctx)
		h.run(ctx, h.open(ctx, Settings{KeepEntries: 2}))
		Eventually(ctx, isFull(ctx, 2), "10s").Should(BeTrue())
		Expect(paths(h.since(ctx, 3))).To(Equal([]string{"/upstream/u4", "/upstream/u5"}))
		change := h.since(ctx, 2)
		Expect(change.Revision).To(Equal(int64(5)))
		Expect(change.Entries).To(HaveLen(5))
	})

	It("is told to a writer who compares with what is gone", func(ctx SpecContext) {
		createFive(ctx)
		h.run(ctx, h.open(ctx, Settings{KeepEntries: 2}))
		Eventually(ctx, isFull(ctx, 2), "10s").Should(BeTrue())
		_, _, err := h.changedSince(ctx, h.marks[2], "u5")
		Expect(err).To(MatchError(HavePrefix("the history no longer reaches back to revision 2 ")))
		changed, known, err := h.changedSince(ctx, h.marks[3], "u3", "u5")
		Expect(err).NotTo(HaveOccurred())
		Expect(known).To(BeTrue())
		Expect(changed).To(Equal(map[model.Key]store.Revision{model.UpstreamKey("u5"): {Revision: 5, Actor: "tester", Request: "POST /test"}}))
	})

	It("removes what is too old, but not the newest revision", func(ctx SpecContext) {
		createFive(ctx)
		later := func() time.Time { return time.Now().Add(31 * 24 * time.Hour) }
		h.run(ctx, h.open(ctx, Settings{Now: later}))
		Eventually(ctx, isFull(ctx, 3), "10s").Should(BeTrue())
		Expect(paths(h.since(ctx, 4))).To(Equal([]string{"/upstream/u5"}))
		Expect(h.revision(ctx)).To(Equal(int64(5)))
		Expect(h.create(ctx, upstream("u6"))).To(Equal(int64(6)))
	})

	It("keeps everything else", func(ctx SpecContext) {
		createFive(ctx)
		later := func() time.Time { return time.Now().Add(29 * 24 * time.Hour) }
		h.run(ctx, h.open(ctx, Settings{Now: later, KeepEntries: 5}))
		Consistently(ctx, isFull(ctx, 1), "200ms").Should(BeFalse())
	})
}

// run runs a store until the spec ends, and checks that it then returns.
func (h *harness) run(ctx context.Context, s store.Store) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	DeferCleanup(func() {
		cancel()
		Eventually(done, "10s").Should(Receive(BeNil()))
	})
}
