package storetest

import (
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

func ruleSpecs(h *harness) {
	DescribeTable("create nothing without what it needs", func(ctx SpecContext, obj model.Object, message string) {
		h.create(ctx, service("shop", "*"), proxy("gw"))
		err := h.tryCreate(ctx, obj)
		Expect(err).To(beOfKind(model.NotFound))
		Expect(err).To(MatchError(message))
		Expect(h.revision(ctx)).To(Equal(int64(1)))
	},
		Entry("a route without its service", route("none", "root"), `service "none" does not exist`),
		Entry("a link without its route", uses("shop", "none", "blue"), `route "none" of service "shop" does not exist`),
		Entry("an attachment without its proxy", attached("none", "shop"), `proxy "none" does not exist`),
		Entry("an attachment without its service", attached("gw", "none"), `service "none" does not exist`),
	)

	It("link no upstream that does not exist", func(ctx SpecContext) {
		h.create(ctx, service("shop", "*"), route("shop", "root"))
		Expect(h.tryCreate(ctx, uses("shop", "root", "blue"))).To(MatchError(`upstream "blue" does not exist`))
	})

	It("create nothing twice", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		for _, obj := range shop() {
			err := h.tryCreate(ctx, obj)
			Expect(err).To(beOfKind(model.Exists), "%s", obj.Key().Path())
		}
		Expect(h.revision(ctx)).To(Equal(int64(1)))
	})

	DescribeTable("attach one service per host", func(ctx SpecContext, host string) {
		h.create(ctx, append(shop(), service("other", host), proxy("edge"))...)
		err := h.tryCreate(ctx, attached("gw", "other"))
		Expect(err).To(beOfKind(model.Conflict))
		Expect(err).To(MatchError(HavePrefix(`proxy "gw" already serves host "` + host + `" with service "shop"`)))
		By("another proxy may have it")
		Expect(h.tryCreate(ctx, attached("edge", "other"))).To(Succeed())
	},
		Entry("the same host", "shop.example.com"),
		Entry("in another letter case", "Shop.EXAMPLE.com"),
	)

	It("let no service take the host of another one on its proxy", func(ctx SpecContext) {
		h.create(ctx, append(shop(), service("other", "other.example.com"), attached("gw", "other"), service("free", "free.example.com"))...)
		replace := func(svc *model.Service) error {
			_, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return store.Replace(w, svc) })
			return err
		}
		err := replace(service("other", "SHOP.example.com"))
		Expect(err).To(beOfKind(model.Conflict))
		Expect(err).To(MatchError(HavePrefix(`proxy "gw" already serves host "SHOP.example.com" with service "shop"`)))
		By("a service keeps its own host, and one without a proxy may have any")
		Expect(replace(service("shop", "Shop.example.com"))).To(Succeed())
		Expect(replace(service("free", "shop.example.com"))).To(Succeed())
	})

	It("attach a filter only where its type is allowed", func(ctx SpecContext) {
		filter := func(filterType string) *model.Filter { return &model.Filter{Name: "f", Type: filterType, Config: "{}"} }
		onRoute := &model.RouteFilter{Service: "shop", Route: "root", Filter: "f"}
		h.create(ctx, append(shop(), filter(model.FilterOIDC))...)
		err := h.tryCreate(ctx, onRoute)
		Expect(err).To(beOfKind(model.Unworkable))
		Expect(err).To(MatchError(HavePrefix(`a filter of type "http_filter_oidc" cannot be attached to a route`)))
		Expect(h.tryCreate(ctx, &model.ServiceFilter{Service: "shop", Filter: "f"})).To(Succeed())

		By("its type cannot be changed to another one there")
		replace := func(filterType string) error {
			_, err := h.store.Write(ctx, origin(), func(w store.Writer) error { return store.Replace(w, filter(filterType)) })
			return err
		}
		Expect(replace(model.FilterRateLimit)).To(Succeed())
		Expect(h.tryCreate(ctx, onRoute)).To(Succeed())
		err = replace(model.FilterOIDC)
		Expect(err).To(beOfKind(model.Unworkable))
		Expect(err).To(MatchError(HavePrefix(`filter "f" is attached to /service/shop/route/root, where a filter of type "http_filter_oidc" cannot be attached`)))
	})

	It("list at most a hundred users of an object", func(ctx SpecContext) {
		objs := shop()
		for i := range 101 {
			name := fmt.Sprint("r", i)
			objs = append(objs, route("shop", name), uses("shop", name, "blue"))
		}
		h.create(ctx, objs...)
		_, err := h.remove(ctx, model.UpstreamKey("blue"))
		inUse, _ := errors.AsType[*model.Error](err)
		Expect(inUse.ReferencedBy).To(HaveLen(100))
	})

	It("keep what others use", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		h.create(ctx, route("shop", "api"), uses("shop", "api", "blue"))

		_, err := h.remove(ctx, model.UpstreamKey("blue"))
		Expect(err).To(beOfKind(model.InUse))
		inUse, _ := errors.AsType[*model.Error](err)
		Expect(inUse.ReferencedBy).To(Equal([]string{"/service/shop/route/root", "/service/shop/route/api"}))

		_, err = h.remove(ctx, model.ServiceKey("shop"))
		Expect(err).To(beOfKind(model.InUse))
		inUse, _ = errors.AsType[*model.Error](err)
		Expect(inUse.ReferencedBy).To(Equal([]string{"/proxy/gw"}))
		Expect(h.revision(ctx)).To(Equal(int64(2)))
	})

	It("delete an object with everything it owns, in one revision", func(ctx SpecContext) {
		h.create(ctx, shop()...)
		revision, err := h.remove(ctx, model.ProxyKey("gw"))
		Expect(err).NotTo(HaveOccurred())
		Expect(revision).To(Equal(int64(2)))
		Expect(paths(h.since(ctx, 1))).To(Equal([]string{"-/proxy/gw/service/shop", "-/proxy/gw"}))

		revision, err = h.remove(ctx, model.ServiceKey("shop"))
		Expect(err).NotTo(HaveOccurred())
		Expect(revision).To(Equal(int64(3)))
		Expect(paths(h.since(ctx, 2))).To(Equal([]string{
			"-/service/shop/route/root/upstream/blue", "-/service/shop/route/root", "-/service/shop",
		}))

		revision, err = h.remove(ctx, model.UpstreamKey("blue"))
		Expect(err).NotTo(HaveOccurred())
		Expect(revision).To(Equal(int64(4)))
		full := h.since(ctx, 0)
		Expect(full.Full).To(BeTrue())
		Expect(full.Entries).To(BeEmpty())
	})

	It("delete nothing that does not exist", func(ctx SpecContext) {
		_, err := h.remove(ctx, model.RouteKey("shop", "root"))
		Expect(err).To(MatchError(`route "root" of service "shop" does not exist`))
		Expect(h.names(ctx, store.Query{Kind: model.KindRoute})).To(BeEmpty())
	})
}
