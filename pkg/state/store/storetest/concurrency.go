package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

const writers, writesEach = 8, 15

func concurrencySpecs(h *harness) {
	It("give 8 writers of two processes revisions without a gap", func(ctx SpecContext) {
		stores := []store.Store{h.store, h.open(ctx, Settings{})}
		revisions := make([][]int64, writers)
		inParallel(writers, func(n int) {
			for i := range writesEach {
				revision, err := stores[n%2].Write(ctx, origin(), func(w store.Writer) error {
					if i%3 == 2 { // a failed transaction takes no revision
						return fmt.Errorf("refused")
					}
					return w.Insert(upstream(fmt.Sprintf("u-%d-%d", n, i)))
				})
				if i%3 == 2 {
					Expect(err).To(MatchError("refused"))
					continue
				}
				Expect(err).NotTo(HaveOccurred())
				revisions[n] = append(revisions[n], revision)
			}
		})
		all := slices.Sorted(slices.Values(slices.Concat(revisions...)))
		for i, revision := range all {
			Expect(revision).To(Equal(int64(i + 1)))
		}
		Expect(all).To(HaveLen(writers * 10))
		for _, own := range revisions {
			Expect(slices.IsSorted(own)).To(BeTrue())
		}
	})

	It("load everything as it was at one revision, even if others write", func(ctx SpecContext) {
		// Each revision gives all objects the same tag, its number.
		tagged := func(n int) []model.Object {
			objs := []model.Object{upstream("blue"), service("shop", "shop.example"), route("shop", "root"), proxy("gw")}
			for _, o := range objs {
				*o.(model.Tagged).TagList() = model.Tags{fmt.Sprint(n)}
			}
			return objs
		}
		h.create(ctx, tagged(1)...)
		writes, stop := context.WithCancel(ctx)
		var writing sync.WaitGroup
		defer func() {
			stop()
			writing.Wait()
		}()
		writing.Go(func() {
			defer GinkgoRecover()
			for n := 2; writes.Err() == nil; n++ {
				_, err := h.store.Write(ctx, origin(), func(w store.Writer) error {
					for _, o := range tagged(n) {
						if err := w.Replace(o); err != nil {
							return err
						}
					}
					return nil
				})
				Expect(err).NotTo(HaveOccurred())
			}
		})
		seen := map[int64]bool{}
		for len(seen) < 15 {
			change, err := h.store.Since(ctx, model.Mark{})
			Expect(err).NotTo(HaveOccurred())
			var tags []string
			for _, e := range change.Entries {
				tags = append(tags, *e.Object.(model.Tagged).TagList()...)
			}
			Expect(tags).To(And(HaveLen(4), HaveEach(fmt.Sprint(change.Revision))))
			seen[change.Revision] = true
		}
	})

	It("let one process at a time write, so that its checks remain valid", func(ctx SpecContext) {
		other, began := h.open(ctx, Settings{}), make(chan struct{})
		var second sync.WaitGroup
		h.write(ctx, func(w store.Writer) error {
			Expect(w.List(store.Query{Kind: model.KindUpstream})).To(BeEmpty())
			second.Go(func() {
				defer GinkgoRecover()
				_, err := other.Write(ctx, origin(), func(w store.Writer) error {
					close(began)
					Expect(w.List(store.Query{Kind: model.KindUpstream})).To(HaveLen(1))
					return nil
				})
				Expect(err).NotTo(HaveOccurred())
			})
			Consistently(began, "200ms").ShouldNot(BeClosed())
			return w.Insert(upstream("a"))
		})
		second.Wait()
		Expect(began).To(BeClosed())
	})

	It("attach only one of many services with the same host", func(ctx SpecContext) {
		h.create(ctx, proxy("gw"))
		for n := range writers {
			h.create(ctx, service(fmt.Sprintf("s%d", n), "shop.example.com"))
		}
		errs := make([]error, writers)
		inParallel(writers, func(n int) { errs[n] = h.tryCreate(ctx, attached("gw", fmt.Sprintf("s%d", n))) })
		Expect(errs).To(ContainElement(BeNil(), &errs))
		Expect(errs).To(HaveLen(1))
		Expect(h.names(ctx, store.Query{Kind: model.KindProxyService})).To(HaveLen(1))
	})

	It("show a reader one view while others write", func(ctx SpecContext) {
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			Expect(r.Revision()).To(BeZero())
			h.create(ctx, upstream("a")) // the reader does not block a writer
			Expect(r.Revision()).To(BeZero())
			Expect(r.List(store.Query{Kind: model.KindUpstream})).To(BeEmpty())
			_, err := r.Get(model.UpstreamKey("a"))
			Expect(err).To(beOfKind(model.NotFound))
			return nil
		})).To(Succeed())
		Expect(h.revision(ctx)).To(Equal(int64(1)))
	})

	It("do not delay a reader while a writer works", func(ctx SpecContext) {
		h.write(ctx, func(w store.Writer) error {
			Expect(w.Insert(upstream("a"))).To(Succeed())
			Expect(h.revision(ctx)).To(BeZero())
			Expect(h.names(ctx, store.Query{Kind: model.KindUpstream})).To(BeEmpty())
			Expect(h.since(ctx, 0).Entries).To(BeEmpty())
			return nil
		})
		Expect(h.revision(ctx)).To(Equal(int64(1)))
	})

	It("return the entries and the revision of one view", func(ctx SpecContext) {
		ctxWrites, stop := context.WithCancel(ctx)
		var writing sync.WaitGroup
		writing.Go(func() {
			defer GinkgoRecover()
			for i := 0; ctxWrites.Err() == nil; i++ { // revision n makes the n-th upstream
				Expect(h.tryCreate(ctx, upstream(fmt.Sprint(i)))).To(Succeed())
			}
		})
		DeferCleanup(writing.Wait)
		DeferCleanup(stop)
		config, seen := model.NewConfig(), 0
		for config.Revision < 40 {
			change, err := h.store.Since(ctx, config.Mark())
			Expect(err).NotTo(HaveOccurred())
			for _, e := range change.Entries {
				Expect(*e.Object.Meta().ID).To(Equal(int64(seen + 1)))
				seen++
			}
			Expect(change.Revision).To(Equal(int64(seen)))
			config.Apply(change)
			if seen == 0 {
				config = model.NewConfig()
			}
		}
		stop()
		writing.Wait()
	})

	It("start simultaneously in several processes on an empty database", func(ctx SpecContext) {
		again := h.emptyDatabase(ctx)
		errs := make([]error, writers)
		stores := make([]store.Store, writers)
		inParallel(writers, func(n int) { stores[n], errs[n] = again(ctx, Settings{}) })
		for n, s := range stores {
			Expect(errs[n]).NotTo(HaveOccurred())
			DeferCleanup(s.Close)
			revision, err := s.Write(ctx, origin(), func(w store.Writer) error { return w.Insert(upstream(fmt.Sprint(n))) })
			Expect(err).NotTo(HaveOccurred())
			Expect(revision).To(Equal(int64(n + 1)))
		}
	})

	It("return from Run when the context ends", func(ctx SpecContext) {
		ctx2, cancel := context.WithCancel(ctx)
		done := make(chan error, 1)
		go func() { done <- h.store.Run(ctx2) }()
		Consistently(done, "50ms").ShouldNot(Receive())
		cancel()
		Eventually(ctx, done, "10s").Should(Receive(BeNil()))
	})
}

// inParallel runs fn n times concurrently and waits for all.
func inParallel(n int, fn func(n int)) {
	var group sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		group.Go(func() {
			defer GinkgoRecover()
			<-start
			fn(i)
		})
	}
	close(start)
	group.Wait()
}
