package storetest

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// Interrupted is a Writer in which something happens before a rollback reads a page;
// the first page is 1.
type Interrupted struct {
	store.Writer
	Before func(page int)
	page   int
}

// ObjectsBefore implements store.Writer.
func (i *Interrupted) ObjectsBefore(places []store.LogPosition) ([]model.Entry, error) {
	i.page++
	i.Before(i.page)
	return i.Writer.ObjectsBefore(places)
}

// many is more objects than two pages, and than a transaction keeps in memory; half of
// them are more than a page.
const many = 1002

// given stores many upstreams and as many routes of one service in revision 1. In
// revision 2 every upstream has another port, the routes with an odd number are
// deleted, route 1 is created again as a new object, and there is one more route.
func given(ctx context.Context, h *harness) {
	GinkgoHelper()
	h.write(ctx, func(w store.Writer) error {
		Expect(w.Insert(service("shop", "shop.example.com"))).To(Succeed())
		for i := range many {
			Expect(w.Insert(upstream(name("u", i)))).To(Succeed())
			Expect(w.Insert(route("shop", name("r", i)))).To(Succeed())
		}
		return nil
	})
	h.write(ctx, func(w store.Writer) error {
		for i := range many {
			u := upstream(name("u", i))
			u.Port = 9000
			Expect(w.Replace(u)).To(Succeed())
			if i%2 == 1 {
				Expect(w.Remove(model.RouteKey("shop", name("r", i)))).To(Succeed())
			}
		}
		Expect(w.Insert(route("shop", name("r", 1)))).To(Succeed())
		return w.Insert(route("shop", "new"))
	})
}

func name(prefix string, i int) string { return fmt.Sprintf("%s%04d", prefix, i) }

// contents returns all objects without the time of their last change.
func (h *harness) contents(ctx context.Context) map[string]model.Object {
	GinkgoHelper()
	all := map[string]model.Object{}
	for _, e := range h.since(ctx, 0).Entries {
		*e.Object.Meta().UpdateTS = model.Time{}
		all[e.Key.Path()] = e.Object
	}
	return all
}

func pageSpecs(h *harness) {
	It("is restored by a rollback: first what others refer to, the rest in the order of its changes", func(ctx SpecContext) {
		given(ctx, h)
		was := map[string]model.Object{}
		for _, e := range h.entries(ctx, 1) {
			*e.After.Meta().UpdateTS = model.Time{}
			was[e.Key.Path()] = e.After
		}
		Expect(was).To(HaveLen(2*many + 1))
		var done []string
		h.write(ctx, func(w store.Writer) error {
			Expect(store.Rollback(w, 1)).To(Succeed())
			Expect(w.Count()).To(Equal(store.Count{Created: many / 2, Updated: many, Deleted: 2}))
			for _, c := range collect(w.Written()) {
				done = append(done, action(c)+c.Key.Path())
			}
			return nil
		})
		Expect(h.contents(ctx)).To(Equal(was))

		want := []string{"-/service/shop/route/new", "-/service/shop/route/r0001"}
		for i := range many {
			want = append(want, "~/upstream/"+name("u", i))
		}
		for i := 1; i < many; i += 2 {
			want = append(want, "+/service/shop/route/"+name("r", i))
		}
		Expect(done).To(Equal(want))
		By("and the change log says the same")
		var logged []string
		for _, c := range h.entries(ctx, 3) {
			logged = append(logged, action(c)+c.Key.Path())
		}
		Expect(logged).To(Equal(want))
	})

	It("is unchanged if a rollback is refused at its end, or its caller disconnects in the middle", func(ctx SpecContext) {
		given(ctx, h)
		was, refused := h.contents(ctx), errors.New("refused")
		unchanged := func() {
			GinkgoHelper()
			Expect(h.revision(ctx)).To(Equal(int64(2)))
			Expect(h.contents(ctx)).To(Equal(was))
			Expect(h.entries(ctx, 3)).To(BeEmpty())
		}
		_, err := h.store.Write(ctx, origin(), func(w store.Writer) error {
			Expect(store.Rollback(w, 1)).To(Succeed())
			seen := 0
			for _, err := range w.Written()() {
				Expect(err).NotTo(HaveOccurred())
				if seen++; seen == w.Count().Total() {
					return refused
				}
			}
			return nil
		})
		Expect(err).To(BeIdenticalTo(refused))
		unchanged()

		leaveAt := func(page int) {
			GinkgoHelper()
			caller, leave := context.WithCancel(ctx)
			_, err := h.store.Write(caller, origin(), func(w store.Writer) error {
				return store.Rollback(&Interrupted{Writer: w, Before: func(p int) {
					if p == page {
						leave()
					}
				}}, 1)
			})
			Expect(err).To(MatchError(context.Canceled))
			unchanged()
		}
		By("while objects are removed")
		leaveAt(1)
		By("while the first kind is restored")
		leaveAt(4)
		By("at the last page")
		leaveAt(7)
		Expect(h.write(ctx, func(w store.Writer) error { return store.Rollback(w, 1) })).To(Equal(int64(3)))
	})

	It("is listed like anything small, during the transaction and later", func(ctx SpecContext) {
		given(ctx, h)
		var during, kind []store.Written
		h.write(ctx, func(w store.Writer) error {
			for i := range many {
				u := upstream(name("u", i))
				u.Port = 7000 + i
				Expect(w.Replace(u)).To(Succeed())
			}
			Expect(w.Insert(upstream("last"))).To(Succeed())
			Expect(store.Delete(w, model.RouteKey("shop", "new"))).To(Succeed())
			during, kind = collect(w.Written()), collect(w.Written(), model.KindRoute)
			return nil
		})
		Expect(during).To(HaveLen(many + 2))
		for i, c := range during[:many] {
			Expect(c.Key).To(Equal(model.UpstreamKey(name("u", i))))
			Expect(c.Before).To(And(HaveField("ID", int64(i+1)), HaveField("Port", 9000)))
			Expect(c.After).To(And(HaveField("ID", int64(i+1)), HaveField("Port", 7000+i)))
		}
		Expect(during[many]).To(And(HaveField("Key", model.UpstreamKey("last")), HaveField("Before", BeNil())))
		Expect(kind).To(Equal(during[many+1:]))
		Expect(h.entries(ctx, 3)).To(Equal(during))
	})

	It("is read again if the transaction has forgotten it", func(ctx SpecContext) {
		h.create(ctx, upstream("a"), service("shop", "shop.example.com"), service("till", "till.example.com"))
		h.write(ctx, func(w store.Writer) error {
			Expect(namesOf(w, "shop.example.com")).To(Equal([]string{"shop"}))
			changed := upstream("a")
			changed.Port = 9000
			Expect(w.Replace(changed)).To(Succeed())
			Expect(w.Replace(service("till", "SHOP.example.com"))).To(Succeed())
			Expect(w.Insert(upstream("b"))).To(Succeed())
			for i := range 50 {
				var others []model.Key
				for j := range 500 {
					others = append(others, model.RouteKey("shop", fmt.Sprint(i, "-", j)))
				}
				Expect(w.Prefetch(others)).To(Succeed())
			}
			Expect(w.Get(model.UpstreamKey("a"))).To(HaveField("Port", 9000))
			Expect(w.Get(model.UpstreamKey("b"))).To(HaveField("ID", int64(2)))
			Expect(namesOf(w, "shop.example.com")).To(Equal([]string{"shop", "till"}))
			return nil
		})
	})

	It("has every link of the owners that a query names, and no others", func(ctx SpecContext) {
		h.create(ctx, append(shop(), route("shop", "other"), uses("shop", "other", "blue"), service("other", "other.example.com"),
			route("other", "root"), uses("other", "root", "blue"), attached("gw", "other"))...)
		Expect(h.names(ctx, store.Query{Kind: model.KindRouteUpstream, To: []model.Key{
			model.RouteKey("shop", "root"), model.RouteKey("other", "root"), model.RouteKey("other", "none"),
		}})).To(Equal([]string{"shop/root/blue", "other/root/blue"}))
		Expect(h.names(ctx, store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey("shop")}})).To(Equal([]string{"shop/root", "shop/other"}))
		Expect(h.names(ctx, store.Query{Kind: model.KindProxyService, To: []model.Key{model.ProxyKey("g\x00w")}})).To(BeEmpty())
	})
}

// action is the sign of what was done.
func action(c store.Written) string {
	switch {
	case c.Before == nil:
		return "+"
	case c.After == nil:
		return "-"
	}
	return "~"
}

// entries lists what a revision changed.
func (h *harness) entries(ctx context.Context, revision int64) (list []store.Written) {
	GinkgoHelper()
	Expect(h.store.Read(ctx, func(r store.Reader) error {
		list = collect(r.Entries(revision))
		return nil
	})).To(Succeed())
	return list
}
