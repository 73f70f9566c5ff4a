package storetest

import (
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// batchSpecs are about transactions with many writes: rows may be sent together and
// reads remembered, but no caller may notice.
func batchSpecs(h *harness) {
	It("gives each of many rows its own id, and logs it", func(ctx SpecContext) {
		const many = 1234
		var sent []*model.Upstream
		h.write(ctx, func(w store.Writer) error {
			for i := range many {
				u := upstream(fmt.Sprintf("u%d", i))
				u.Port = 1000 + i
				sent = append(sent, u)
				if err := w.Insert(u); err != nil {
					return err
				}
			}
			Expect(collect(w.Written())).To(HaveLen(many))
			return nil
		})
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			stored, err := r.List(store.Query{Kind: model.KindUpstream})
			Expect(err).NotTo(HaveOccurred())
			logged := collect(r.Entries(1))
			Expect(stored).To(HaveLen(many))
			Expect(logged).To(HaveLen(many))
			for i := range many {
				u := stored[i].(*model.Upstream)
				Expect(u.ID).To(Equal(int64(i + 1)))
				Expect(u.Name).To(Equal(fmt.Sprintf("u%d", i)))
				Expect(u.Port).To(Equal(1000 + i))
				Expect(sent[i]).To(Equal(u))
				Expect(logged[i]).To(Equal(store.Written{Key: u.Key(), After: u}))
			}
			return nil
		})).To(Succeed())
	})

	It("sees its own new rows in every query", func(ctx SpecContext) {
		h.write(ctx, func(w store.Writer) error {
			Expect(w.Insert(upstream("a"))).To(Succeed())
			Expect(w.Insert(upstream("a"))).To(beOfKind(model.Exists))
			Expect(w.Insert(service("shop", "Shop.example.com"))).To(Succeed())
			for _, q := range []store.Query{
				{Kind: model.KindService}, {Kind: model.KindService, NamePrefix: "sh"}, {Kind: model.KindService, ByName: true, Limit: 1},
				{Kind: model.KindService, Names: []string{"shop", "none"}},
			} {
				list, err := w.List(q)
				Expect(err).NotTo(HaveOccurred())
				Expect(list).To(HaveLen(1), "%+v", q)
				Expect(*list[0].Meta().ID).To(Equal(int64(1)))
			}
			Expect(w.ServicesOf("shop.EXAMPLE.com")).To(HaveLen(1))
			Expect(w.Insert(&model.Secret{Name: "ca"})).To(Succeed())
			tls := upstream("tls")
			tls.Protocol, tls.ValidationCACertificate = "tls", "ca"
			Expect(w.Insert(tls)).To(Succeed())
			Expect(w.List(store.Query{Kind: model.KindUpstream, To: []model.Key{model.SecretKey("ca")}})).To(HaveLen(1))
			return nil
		})
	})

	It("changes and removes what it has just created", func(ctx SpecContext) {
		h.write(ctx, func(w store.Writer) error {
			Expect(createAll(w, upstream("a"), upstream("b"), service("shop", "*"), route("shop", "root"), uses("shop", "root", "a"))).To(Succeed())
			changed := upstream("a")
			changed.Port = 9000
			Expect(w.Replace(changed)).To(Succeed())
			Expect(w.Remove(model.UpstreamKey("b"))).To(Succeed())
			Expect(w.Get(model.UpstreamKey("a"))).To(HaveField("Port", 9000))
			_, err := w.Get(model.UpstreamKey("b"))
			Expect(err).To(beOfKind(model.NotFound))
			Expect(store.Delete(w, model.UpstreamKey("a"))).To(beOfKind(model.InUse))
			return store.Delete(w, model.ServiceKey("shop"))
		})
		Expect(h.names(ctx, store.Query{Kind: model.KindUpstream})).To(Equal([]string{"a"}))
		Expect(h.names(ctx, store.Query{Kind: model.KindService})).To(BeEmpty())
		Expect(h.store.Read(ctx, func(r store.Reader) error {
			logged := collect(r.Entries(1))
			Expect(logged).To(HaveLen(10))
			Expect(logged[5].Before).To(HaveField("Port", 8000))
			Expect(logged[5].Before).To(HaveField("ID", int64(1)))
			Expect(logged[5].After).To(HaveField("Port", 9000))
			Expect(logged[6]).To(And(HaveField("Key", model.UpstreamKey("b")), HaveField("After", BeNil())))
			return nil
		})).To(Succeed())
	})

	It("keeps its cache consistent with what it writes", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		h.write(ctx, func(w store.Writer) error {
			Expect(w.List(store.Query{Kind: model.KindUpstream, Names: []string{"blue", "green"}})).To(HaveLen(1))
			Expect(w.List(store.Query{Kind: model.KindRoute, To: []model.Key{model.ServiceKey("shop")}})).To(HaveLen(1))
			Expect(namesOf(w, "shop.example.com")).To(Equal([]string{"shop"}))
			for _, key := range []model.Key{model.UpstreamKey("green"), model.RouteKey("shop", "other")} {
				_, err := w.Get(key)
				Expect(err).To(beOfKind(model.NotFound))
			}
			By("creating what did not exist")
			Expect(createAll(w, upstream("green"), route("shop", "other"), service("again", "SHOP.example.com"))).To(Succeed())
			Expect(w.Get(model.UpstreamKey("green"))).NotTo(BeNil())
			Expect(w.Get(model.RouteKey("shop", "other"))).NotTo(BeNil())
			Expect(namesOf(w, "shop.example.com")).To(Equal([]string{"shop", "again"}))
			By("changing and removing it")
			Expect(w.Replace(service("again", "other.example.com"))).To(Succeed())
			Expect(namesOf(w, "shop.example.com")).To(Equal([]string{"shop"}))
			Expect(namesOf(w, "other.example.com")).To(Equal([]string{"again"}))
			Expect(w.Remove(model.ServiceKey("again"))).To(Succeed())
			Expect(namesOf(w, "other.example.com")).To(BeEmpty())
			By("not using the result of a narrower query")
			Expect(w.List(store.Query{Kind: model.KindRouteUpstream, To: []model.Key{model.UpstreamKey("green")}})).To(BeEmpty())
			Expect(w.Get(model.RouteUpstreamKey("shop", "root", "blue"))).NotTo(BeNil())
			return nil
		})
	})

	It("returns copies, which the caller may change", func(ctx SpecContext) {
		h.write(ctx, func(w store.Writer) error {
			u := upstream("a")
			Expect(w.Insert(u)).To(Succeed())
			u.Port = 1
			got, err := w.Get(u.Key())
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(HaveField("Port", 8000))
			got.(*model.Upstream).Port = 2
			Expect(w.Get(u.Key())).To(HaveField("Port", 8000))
			return nil
		})
		Expect(h.get(ctx, model.UpstreamKey("a"))).To(HaveField("Port", 8000))
	})
}

// collect lists changes.
func collect(changes store.Changes, kinds ...model.Kind) (list []store.Written) {
	GinkgoHelper()
	for w, err := range changes(kinds...) {
		Expect(err).NotTo(HaveOccurred())
		list = append(list, w)
	}
	return list
}

// namesOf returns the names of the services of a host.
func namesOf(r store.Reader, host string) (names []string) {
	GinkgoHelper()
	list, err := r.ServicesOf(host)
	Expect(err).NotTo(HaveOccurred())
	for _, s := range list {
		names = append(names, s.Name)
	}
	return names
}
