package pipeline_test

import (
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	luav3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/lua/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// addressesIn returns the lines of lists that a proxy receives.
func addressesIn(list []*snapshot.Resource) (lines []string) {
	GinkgoHelper()
	for _, r := range list {
		if r.Name != "envoy.filters.http.lua/addresses" {
			continue
		}
		var e corev3.TypedExtensionConfig
		var config luav3.Lua
		Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
		Expect(e.GetTypedConfig().UnmarshalTo(&config)).To(Succeed())
		for line := range strings.Lines(config.GetDefaultSourceCode().GetInlineString()) {
			if strings.HasPrefix(line, "[") {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	return lines
}

var _ = Describe("A change of a list", func() {
	list := func(name, kind, config string) *model.List {
		return &model.List{Name: name, Type: kind, Config: model.JSON(config)}
	}
	addresses := func(name, address string) *model.List {
		return list(name, "addresses", `{"addresses":["`+address+`"]}`)
	}
	filter := func(name, kind, config string) *model.Filter {
		return &model.Filter{Name: name, Type: kind, Config: model.JSON(config)}
	}
	mail := model.NewService()
	mail.Name, mail.FQDN, mail.Mode, mail.Port = "mail", "*", model.ModeTCP, 2525
	with := func(more ...model.Object) model.Change {
		return filtered(append([]model.Object{
			addresses("a", "192.0.2.1"), addresses("b", "192.0.2.2"),
			filter("f", model.FilterIPAccess, `{"allow_lists":["a"]}`), &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "f"},
		}, more...)...)
	}
	next := func(b *pipeline.Build, objects ...model.Object) pipeline.Result {
		c := model.Change{Revision: b.Revision() + 1}
		for i, o := range objects {
			*o.Meta().ID = int64(100 + i)
			c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		return b.Apply(c)
	}
	const a1, a9, b2 = `["a"]={"c0000201c0000201",""},`, `["a"]={"c0000209c0000209",""},`, `["b"]={"c0000202c0000202",""},`

	It("of addresses changes only what has all lists, once for all services", func() {
		b := newBuild()
		first := b.Apply(with()).Snapshots["gw"]
		Expect(addressesIn(first.Extensions)).To(Equal([]string{a1}))
		second := next(b, addresses("a", "192.0.2.9")).Snapshots["gw"]
		Expect(addressesIn(second.Extensions)).To(Equal([]string{a9}))
		Expect(second.Listeners[0].Version).To(Equal(first.Listeners[0].Version))
		Expect(second.Hosts[0]).To(BeIdenticalTo(first.Hosts[0]))
		Expect(next(b, addresses("b", "192.0.2.9")).Snapshots).To(BeEmpty(), "nothing names the list")
	})

	It("of addresses reaches the listeners of connections that are compared with it", func() {
		b := newBuild()
		first := b.Apply(with(mail, &model.ProxyService{Proxy: "gw", Service: "mail"}, &model.Route{Service: "mail", Name: "all", Prefix: "/"},
			&model.RouteUpstream{Service: "mail", Route: "all", Upstream: "blue"}, &model.ServiceFilter{Service: "mail", Filter: "f"})).Snapshots["gw"]
		second := next(b, addresses("a", "192.0.2.9")).Snapshots["gw"]
		Expect(second.Listeners).To(HaveLen(2))
		Expect(second.Listeners[0].Version).To(Equal(first.Listeners[0].Version))
		Expect(second.Listeners[1].Version).NotTo(Equal(first.Listeners[1].Version))
		Expect(second.Hosts[0]).To(BeIdenticalTo(first.Hosts[0]))
	})

	It("of addresses reaches connections through a filter of their proxy", func() {
		b := newBuild()
		first := b.Apply(with(mail, &model.ProxyService{Proxy: "gw", Service: "mail"}, &model.Route{Service: "mail", Name: "all", Prefix: "/"},
			&model.RouteUpstream{Service: "mail", Route: "all", Upstream: "blue"}, &model.ProxyFilter{Proxy: "gw", Filter: "f"})).Snapshots["gw"]
		second := next(b, addresses("a", "192.0.2.9")).Snapshots["gw"]
		Expect(addressesIn(second.Extensions)).To(Equal([]string{a9}))
		Expect(second.Listeners[1].Version).NotTo(Equal(first.Listeners[1].Version))
		Expect(second.Hosts[0].Version).To(Equal(first.Hosts[0].Version))
	})

	It("of headers changes the hosts and routes that name it", func() {
		b := newBuild()
		secure := func(value string) *model.List {
			return list("secure", "headers", `{"response":{"set":{"x-a":"`+value+`"}}}`)
		}
		first := b.Apply(with(secure("1"), filter("h", model.FilterHeaders, `{"lists":["secure"]}`), &model.ServiceFilter{Service: "shop", Filter: "h"})).Snapshots["gw"]
		second := next(b, secure("2")).Snapshots["gw"]
		Expect(second.Hosts[0].Version).NotTo(Equal(first.Hosts[0].Version))
		Expect(second.Listeners[0].Version).To(Equal(first.Listeners[0].Version))
		Expect(addressesIn(second.Extensions)).To(Equal([]string{a1}))
	})

	It("waits for listeners, which receive the addresses", func() {
		b := newBuild()
		b.Apply(with())
		next(b, addresses("b", "192.0.2.9")) // its revision made no listener
		Expect(b.Reach([]model.Key{model.ListKey("a")})).To(Equal(map[string]pipeline.Reach{"gw": {Services: []string{"shop"}, Listeners: true}}))
		Expect(b.Reach([]model.Key{model.ListKey("b")})).To(BeEmpty())
	})

	It("keeps a list for hosts that Envoys may still have, which name it", func() {
		b := newBuild()
		first := b.Apply(with()).Snapshots["gw"]
		Expect(first.Hosts[0].Parts).To(Equal([]snapshot.Part{{Extension: "envoy.filters.http.lua/addresses", Name: "a"}}))
		second := next(b, filter("f", model.FilterIPAccess, `{"deny_lists":["b"]}`)).Snapshots["gw"]
		Expect(addressesIn(second.Extensions)).To(Equal([]string{b2}))
		Expect(addressesIn([]*snapshot.Resource{second.Lists[3].With([]string{"a"})})).To(Equal([]string{a1, b2}))
		third := b.Apply(model.Change{Revision: 3, Entries: []model.Entry{{Key: model.ListKey("a")}}}).Snapshots["gw"]
		Expect(third.Lists[3].With([]string{"a"})).To(BeNil(), "it is deleted")
	})

	It("that cannot be read closes what needs its headers, and lets nobody in who is compared with its addresses", func() {
		found, _ := statuses(with(list("secure", "headers", `{"x":1}`), filter("h", model.FilterHeaders, `{"lists":["secure"]}`), &model.RouteFilter{Service: "shop", Route: "open", Filter: "h"}))
		Expect(found).To(Equal(map[string]uint32{"open": 503, "guarded": 0}))
		b := newBuild()
		b.Apply(with())
		Expect(addressesIn(next(b, addresses("a", "x")).Snapshots["gw"].Extensions)).To(BeEmpty(), "Envoy refuses what a missing list decides")
	})
})
