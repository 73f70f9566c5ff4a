package storetest

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// identity is what the store assigns to an object and a rollback restores.
type identity struct {
	id      int64
	created string
}

// identities returns the identity of every object and link.
func (h *harness) identities(ctx context.Context) map[string]identity {
	GinkgoHelper()
	all := map[string]identity{}
	for _, e := range h.since(ctx, 0).Entries {
		meta := e.Object.Meta()
		all[e.Key.Path()] = identity{*meta.ID, meta.CreateTS.String()}
	}
	return all
}

func rollbackSpecs(h *harness) {
	// A clock that moves with each use, so that no two times are equal by
	// chance.
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	clock := func() time.Time { now = now.Add(time.Second); return now }
	// given stores shop and more, each in a revision of its own: 8 in all. No two
	// objects of shop then have the same ID by chance.
	given := func(ctx context.Context) {
		GinkgoHelper()
		h.store = h.open(ctx, Settings{Now: clock})
		h.create(ctx, upstream("first"), service("first", "first.example.com"))
		for _, obj := range append(shop(), upstream("green")) {
			h.create(ctx, obj)
		}
	}
	rollback := func(ctx context.Context, revision int64) int64 {
		GinkgoHelper()
		return h.write(ctx, func(w store.Writer) error { return store.Rollback(w, revision) })
	}
	removed := func(ctx context.Context, keys ...model.Key) {
		GinkgoHelper()
		for _, key := range keys {
			_, err := h.remove(ctx, key)
			Expect(err).NotTo(HaveOccurred())
		}
	}

	It("restores the id and creation time of a deleted object, with a new update time", func(ctx SpecContext) {
		given(ctx)
		was := h.identities(ctx)
		Expect(was).To(HaveKeyWithValue("/upstream/blue", identity{2, "2026-11-21T08:00:02.000000+00:00"}))
		Expect(was).To(HaveKeyWithValue("/service/shop", identity{2, "2026-11-21T08:00:03.000000+00:00"}))
		Expect(was).To(HaveKeyWithValue("/proxy/gw", identity{1, "2026-11-21T08:00:05.000000+00:00"}))
		removed(ctx, model.ProxyKey("gw"), model.ServiceKey("shop"), model.UpstreamKey("blue"), model.UpstreamKey("green"))
		Expect(h.identities(ctx)).To(HaveLen(2))

		Expect(rollback(ctx, 8)).To(Equal(int64(13)))
		Expect(h.identities(ctx)).To(Equal(was))
		got, err := h.get(ctx, model.UpstreamKey("blue"))
		Expect(err).NotTo(HaveOccurred())
		Expect(got.Meta().UpdateTS.Time).To(Equal(now))
	})

	It("returns a name to its earlier object", func(ctx SpecContext) {
		given(ctx)
		was := h.identities(ctx)
		removed(ctx, model.ProxyKey("gw"), model.ServiceKey("shop"), model.UpstreamKey("blue"))
		h.create(ctx, shop()...)
		Expect(h.identities(ctx)).NotTo(Equal(was))
		rollback(ctx, 8)
		Expect(h.identities(ctx)).To(Equal(was))
	})

	It("keeps the id and creation time of an object that was only changed", func(ctx SpecContext) {
		given(ctx)
		was := h.identities(ctx)
		for _, port := range []int{1, 2} {
			u := upstream("blue")
			u.Port = port
			h.write(ctx, func(w store.Writer) error { return w.Replace(u) })
		}
		rollback(ctx, 8)
		Expect(h.identities(ctx)).To(Equal(was))
		got, err := h.get(ctx, model.UpstreamKey("blue"))
		Expect(err).NotTo(HaveOccurred())
		Expect(got.(*model.Upstream).Port).To(Equal(8000))
	})

	It("does not affect the id of a later object", func(ctx SpecContext) {
		given(ctx)
		removed(ctx, model.UpstreamKey("green"))
		rollback(ctx, 8)
		later := upstream("later")
		h.create(ctx, later)
		Expect(later.ID).To(Equal(int64(4)))
	})

	It("can undo another rollback, to an empty configuration and back", func(ctx SpecContext) {
		given(ctx)
		was := h.identities(ctx)
		Expect(rollback(ctx, 0)).To(Equal(int64(9)))
		Expect(h.identities(ctx)).To(BeEmpty())
		Expect(rollback(ctx, 8)).To(Equal(int64(10)))
		Expect(h.identities(ctx)).To(Equal(was))
		Expect(rollback(ctx, 10)).To(Equal(int64(10)))
		By("with objects in their earlier order")
		Expect(h.names(ctx, store.Query{Kind: model.KindUpstream})).To(Equal([]string{"first", "blue", "green"}))
	})
}
