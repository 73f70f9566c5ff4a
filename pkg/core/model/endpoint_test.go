package model_test

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

var _ = DescribeTable("EndpointOf", func(ready, serving, terminating bool, want any) {
	e, ok := model.EndpointOf("10.0.0.1", 80, "a", ready, serving, terminating)
	if want == nil {
		Expect(ok).To(BeFalse())
		return
	}
	Expect(ok).To(BeTrue())
	Expect(e).To(Equal(want))
},
	Entry("ready", true, true, false, model.Endpoint{Address: "10.0.0.1", Port: 80, Zone: "a"}),
	Entry("ready, of a Service with publishNotReadyAddresses", true, false, false, model.Endpoint{Address: "10.0.0.1", Port: 80, Zone: "a"}),
	Entry("not ready", false, false, false, nil),
	Entry("not ready but serving", false, true, false, nil),
	Entry("terminating and serving", false, true, true, model.Endpoint{Address: "10.0.0.1", Port: 80, Zone: "a", Draining: true}),
	Entry("terminating and serving, of a Service with publishNotReadyAddresses", true, true, true, model.Endpoint{Address: "10.0.0.1", Port: 80, Zone: "a", Draining: true}),
	Entry("terminating and done", false, false, true, nil),
	Entry("terminating and done, of a Service with publishNotReadyAddresses", true, false, true, nil),
)

var _ = Describe("Endpoints", func() {
	a := model.Endpoint{Address: "10.0.0.1", Port: 80}
	b := model.Endpoint{Address: "10.0.0.2", Port: 80, Zone: "z"}

	It("are the same in any order, and with duplicates", func() {
		draining := a
		draining.Draining = true
		e := model.NewEndpoints(b, draining, a, b)
		Expect(e.All()).To(Equal([]model.Endpoint{a, b}))
		Expect(e.Equal(model.NewEndpoints(a, b))).To(BeTrue())
		Expect(e.Equal(model.NewEndpoints(a))).To(BeFalse())
		Expect(e.Equal(nil)).To(BeFalse())
	})

	It("leave out invalid addresses", func() {
		Expect(model.NewEndpoints(
			model.Endpoint{Address: "shop.example", Port: 80}, model.Endpoint{Address: "fe80::1%eth0", Port: 80},
			model.Endpoint{Address: "10.0.0.1"}, model.Endpoint{Address: "10.0.0.1", Port: 65536}, model.Endpoint{Address: "2001:db8::1", Port: 65535},
		).All()).To(Equal([]model.Endpoint{{Address: "2001:db8::1", Port: 65535}}))
	})

	It("that are an empty list differ from no list", func() {
		var none *model.Endpoints
		Expect(none.All()).To(BeEmpty())
		Expect(none.Equal(model.NewEndpoints())).To(BeFalse())
		Expect(model.NewEndpoints().Equal(model.NewEndpoints())).To(BeTrue())
	})
})

var _ = Describe("Config.Apply of endpoints", func() {
	var c *model.Config
	entry := func(o model.Object) model.Entry { return model.Entry{Key: o.Key(), Object: o} }
	blue, green := &model.Upstream{ID: 1, Name: "blue"}, &model.Upstream{ID: 2, Name: "green"}
	all := []model.Entry{
		entry(&model.Service{ID: 1, Name: "shop", FQDN: "*", HTTPS: model.HTTPSBoth}), entry(&model.Route{ID: 1, Service: "shop", Name: "root", Prefix: "/"}),
		entry(blue), entry(green), entry(&model.RouteUpstream{ID: 1, Service: "shop", Route: "root", Upstream: "blue"}),
	}
	one := model.NewEndpoints(model.Endpoint{Address: "10.0.0.1", Port: 80})
	two := model.NewEndpoints(model.Endpoint{Address: "10.0.0.1", Port: 80}, model.Endpoint{Address: "10.0.0.2", Port: 80})
	apply := func(endpoints map[model.Key]*model.Endpoints, full bool, entries ...model.Entry) model.Touched {
		return c.Apply(model.Change{Revision: 1, Full: full, Entries: entries, Endpoints: endpoints})
	}
	of := func(e *model.Endpoints) map[model.Key]*model.Endpoints {
		return map[model.Key]*model.Endpoints{blue.Key(): e}
	}
	upstream := func() *model.Upstream { return c.Service("shop").Routes[0].Upstreams[0] }

	BeforeEach(func() {
		c = model.NewConfig()
		Expect(apply(of(one), true, all...).Upstreams).To(Equal([]string{"blue"}))
		Expect(upstream().IsDiscovered()).To(BeTrue())
	})

	It("touches no tree if only they change", func() {
		before := c.Service("shop")
		Expect(apply(of(two), false)).To(Equal(model.Touched{Upstreams: []string{"blue"}}))
		Expect(c.Endpoints("blue")).To(BeIdenticalTo(two))
		Expect(apply(of(model.NewEndpoints()), false)).To(Equal(model.Touched{Upstreams: []string{"blue"}}))
		Expect(c.Service("shop")).To(BeIdenticalTo(before))
	})

	It("touches nothing if they are the same", func() {
		Expect(apply(of(model.NewEndpoints(one.All()...)), false)).To(Equal(model.Touched{}))
	})

	It("replaces trees when an upstream becomes discovered, and when it stops being discovered", func() {
		Expect(apply(of(nil), false)).To(Equal(model.Touched{Services: []string{"shop"}, Upstreams: []string{"blue"}}))
		Expect(upstream()).To(Equal(blue))
		Expect(c.Endpoints("blue")).To(BeNil())
		Expect(apply(of(two), false)).To(Equal(model.Touched{Services: []string{"shop"}, Upstreams: []string{"blue"}}))
		Expect(upstream().IsDiscovered()).To(BeTrue())
		Expect(blue.IsDiscovered()).To(BeFalse(), "objects are never modified")
	})

	It("keeps those of an upstream that is rewritten, and of one that a full change does not mention", func() {
		Expect(apply(nil, false, entry(&model.Upstream{ID: 1, Name: "blue", Weight: 5}))).To(Equal(model.Touched{Services: []string{"shop"}}))
		Expect(upstream().IsDiscovered()).To(BeTrue())
		Expect(apply(nil, true, all...).Upstreams).To(BeEmpty())
		Expect(c.Endpoints("blue")).To(BeIdenticalTo(one))
	})

	DescribeTable("forgets those of an upstream that is removed", func(full bool, entries ...model.Entry) {
		Expect(apply(nil, full, entries...).Upstreams).To(Equal([]string{"blue"}))
		apply(nil, false, entry(blue))
		Expect(c.Endpoints("blue")).To(BeNil())
	},
		Entry("deleted", false, model.Entry{Key: blue.Key()}),
		Entry("missing from a full change", true, entry(green)),
	)

	It("ignores those of an upstream that never existed", func() {
		Expect(apply(map[model.Key]*model.Endpoints{model.UpstreamKey("grey"): two}, false)).To(Equal(model.Touched{}))
		apply(nil, false, entry(&model.Upstream{ID: 3, Name: "grey"}))
		Expect(c.Endpoints("grey")).To(BeNil())
	})
})
