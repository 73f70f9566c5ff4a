package inspect

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// envoyAt is an Envoy of gw.
func envoyAt(address string, p status.Progress) seenEnvoy {
	return seenEnvoy{Envoy: status.Envoy{Proxy: "gw", Address: address, Progress: p}}
}

var _ = Describe("The Envoys that lack an object", func() {
	shop, root, blue := model.ServiceKey("shop"), model.RouteKey("shop", "root"), model.UpstreamKey("blue")
	in := &reach{hosts: map[string]bool{"shop": true}, proxies: []string{"gw"}}
	state := func(envoys ...seenEnvoy) liveState {
		return liveState{inspector: New(Sources{}), stored: 7, built: 7, envoys: map[string][]seenEnvoy{"gw": envoys}}
	}
	refused := func(from ...model.Key) status.Progress {
		return status.Progress{Refused: []status.Refusal{{Resource: "other", Text: "others", Objects: []model.Key{model.ServiceKey("other")}}, {Resource: "shop", Text: "no", Objects: from}}}
	}
	waits := status.Progress{Waiting: []status.Wait{
		{Host: "other", Object: model.ServiceKey("other"), Clusters: []status.Awaited{{Name: "c", Objects: []model.Key{blue}}}},
		{Host: "shop", Object: shop, Clusters: []status.Awaited{{Name: "c1"}, {Name: "c2", Objects: []model.Key{model.UpstreamKey("red"), blue}}}},
	}}
	lag := func(envoy, reason, message string) status.Lag {
		return status.Lag{Proxy: "gw", Envoy: envoy, Reason: reason, Message: message}
	}
	current, explained := envoyAt("a", status.Progress{}), envoyAt("a", status.Progress{})
	current.current, explained.explained = true, true
	unheard, behind, elsewhere := envoyAt("a", status.Progress{}), envoyAt("a", status.Progress{}), envoyAt("a", status.Progress{})
	unheard.unheard, behind.behind, elsewhere.replica = true, true, "b"

	DescribeTable("are", func(k model.Key, s liveState, rejected string, want ...status.Lag) {
		lags, text := s.lags(k, in, "gw")
		Expect(lags).To(HaveExactElements(want))
		Expect(text).To(Equal(rejected))
	},
		Entry("none if they have everything", root, state(current), ""),
		Entry("none if they lack other things only", root, state(explained), ""),
		Entry("those that have not answered", root, state(current, envoyAt("b", status.Progress{})), "", lag("b", "slow", "the Envoy at b has not answered yet")),
		Entry("any, if there is none", root, state(), "", lag("", "not_connected", `no Envoy of proxy "gw" is connected`)),
		Entry("those that refused it", root, state(envoyAt("a", refused(shop, root)), envoyAt("b", refused(root)), current), "no",
			lag("a", "refused", "the Envoy at a refused it: no"), lag("b", "refused", "the Envoy at b refused it: no")),
		Entry("those that refused its service", root, state(envoyAt("a", refused(shop))), "", lag("a", "refused", `the Envoy at a refused service "shop": no`)),
		Entry("not those that refused an upstream called as the service", root, state(envoyAt("a", refused(model.UpstreamKey("shop")))), "",
			lag("a", "slow", "the Envoy at a has not answered yet")),
		Entry("not for an upstream, which is a resource by itself", blue, state(envoyAt("a", refused(shop))), "", lag("a", "slow", "the Envoy at a has not answered yet")),
		Entry("those that refused the upstream", blue, state(envoyAt("a", refused(blue))), "no", lag("a", "refused", "the Envoy at a refused it: no")),
		Entry("those that wait for something of its service", root, state(envoyAt("a", waits)), "", lag("a", "waiting", `the Envoy at a does not have service "shop" yet: it waits for c1, c2`)),
		Entry("those that wait for the upstream", blue, state(envoyAt("a", waits)), "", lag("a", "waiting", `the Envoy at a does not have service "shop" yet: it waits for c1, c2`)),
		Entry("not those that wait for another one", model.UpstreamKey("green"), state(envoyAt("a", waits)), "", lag("a", "slow", "the Envoy at a has not answered yet")),
		Entry("those of other replicas", root, state(elsewhere), "", status.Lag{Proxy: "gw", Envoy: "a", Replica: "b", Reason: "slow", Message: "the Envoy at a (replica b) has not answered yet"}),
		Entry("not those that are told as replicas", root, state(unheard, behind), ""),
	)

	DescribeTable("are told as replicas", func(change func(s *liveState), want ...status.Lag) {
		s := state()
		change(&s)
		lags, _ := s.lags(root, in, "gw")
		Expect(lags).To(HaveExactElements(want))
	},
		Entry("if this one is behind", func(s *liveState) { s.built = 6 }, lag("", "slow", "revision 7 is stored; Envoys get revision 6 so far")),
		Entry("if another one is not heard", func(s *liveState) {
			s.others = []replicas.Other{{Unheard: true, Report: &replicas.Report{Replica: "b"}}}
		}, status.Lag{Proxy: "gw", Replica: "b", Reason: "unheard", Message: "replica b has reported nothing: the state of its Envoys is unknown"}),
		Entry("if another one has more than it lists", func(s *liveState) {
			s.others = []replicas.Other{{Report: &replicas.Report{Replica: "b", Built: 7, More: map[string]int{"gw": 1}, MoreLagging: map[string]int{"gw": 1}}}}
		}, status.Lag{Proxy: "gw", Replica: "b", Reason: "slow", Message: "1 more Envoys of replica b do not have everything yet"}),
		Entry("if another one has more of another proxy only", func(s *liveState) {
			s.others = []replicas.Other{{Report: &replicas.Report{Replica: "b", Built: 7, More: map[string]int{"edge": 1}}}}
		}, lag("", "not_connected", `no Envoy of proxy "gw" is connected`)),
	)
})

var _ = Describe("The status of an object", func() {
	current := envoyAt("a", status.Progress{})
	current.current = true
	shop, root := model.ServiceKey("shop"), model.RouteKey("shop", "root")
	accepted := ObjectCondition{Code: "Accepted", Status: true, Message: "it is a part of the configuration"}
	programmed := ObjectCondition{Code: "Programmed", Status: true, Message: "every Envoy that it reaches has it"}
	broken := model.Condition{Key: shop, Code: model.Quarantined, Message: "secret x does not exist"}

	DescribeTable("says", func(k model.Key, conditions map[model.Key][]model.Condition, want ...ObjectCondition) {
		s := liveState{inspector: New(Sources{}), stored: 7, built: 7, envoys: map[string][]seenEnvoy{"gw": {current}}, conditions: conditions}
		Expect(s.statusOf(k, &reach{hosts: map[string]bool{"shop": true}, proxies: []string{"gw"}}).Conditions).To(HaveExactElements(want))
	},
		Entry("that all is well", root, nil, accepted, programmed),
		Entry("that it cannot work", shop, map[model.Key][]model.Condition{shop: {broken}},
			ObjectCondition{Code: "Accepted", Message: "it cannot work as it is written: secret x does not exist"}, programmed,
			ObjectCondition{Code: "Quarantined", Status: true, Message: "secret x does not exist"}),
		Entry("that it cannot work, after something else", shop, map[model.Key][]model.Condition{shop: {{Key: shop, Code: model.NoRates, Message: "m"}, broken}},
			ObjectCondition{Code: "Accepted", Message: "it cannot work as it is written: secret x does not exist"}, programmed,
			ObjectCondition{Code: "NoRates", Status: true, Message: "m"}, ObjectCondition{Code: "Quarantined", Status: true, Message: "secret x does not exist"}),
		Entry("that its service cannot", root, map[model.Key][]model.Condition{shop: {broken}},
			ObjectCondition{Code: "Accepted", Message: "it cannot work as it is written: secret x does not exist"}, programmed,
			ObjectCondition{Code: "Quarantined", Status: true, Message: "secret x does not exist", Path: "/service/shop"}),
		Entry("nothing of its service otherwise", model.UpstreamKey("blue"), map[model.Key][]model.Condition{shop: {broken}}, accepted, programmed),
		Entry("what is not so bad", root, map[model.Key][]model.Condition{root: {{Key: model.RouteFilterKey("shop", "root", "each"), Code: model.NoRates, Message: "m"}}},
			accepted, programmed, ObjectCondition{Code: "NoRates", Status: true, Message: "m", Path: "/service/shop/route/root/filter/each"}),
		Entry("once what is the same at each place of a filter", model.FilterKey("each"), map[model.Key][]model.Condition{model.FilterKey("each"): {
			{Key: model.ServiceFilterKey("a", "each"), Code: model.NoRates, Message: "m"}, {Key: model.ServiceFilterKey("b", "each"), Code: model.NoRates, Message: "m"},
			{Key: model.ServiceFilterKey("c", "each"), Code: model.NoRates, Message: "n"},
		}}, accepted, programmed, ObjectCondition{Code: "NoRates", Status: true, Message: "m", Path: "/service/a/filter/each"},
			ObjectCondition{Code: "NoRates", Status: true, Message: "n", Path: "/service/c/filter/each"}),
		Entry("at each place of another object", shop, map[model.Key][]model.Condition{shop: {
			{Key: model.ProxyServiceKey("a", "shop"), Code: model.NoRates, Message: "m"}, {Key: model.ProxyServiceKey("b", "shop"), Code: model.NoRates, Message: "m"},
		}}, accepted, programmed, ObjectCondition{Code: "NoRates", Status: true, Message: "m", Path: "/proxy/a/service/shop"},
			ObjectCondition{Code: "NoRates", Status: true, Message: "m", Path: "/proxy/b/service/shop"}),
	)

	It("has what the first Envoy said that refused it, of all proxies", func() {
		refusal := func(text string) seenEnvoy {
			return envoyAt("a", status.Progress{Refused: []status.Refusal{{Text: text, Objects: []model.Key{root}}}})
		}
		s := liveState{inspector: New(Sources{}), envoys: map[string][]seenEnvoy{"edge": {current}, "gw": {refusal("no"), refusal("never")}, "inner": {refusal("not at all")}}}
		got := s.statusOf(root, &reach{proxies: []string{"edge", "gw", "inner"}})
		Expect(got.Conditions).To(Equal([]ObjectCondition{
			accepted, {Code: "Programmed", Message: "the Envoy at a refused it: no; lagging lists this and 2 more"}, {Code: "Rejected", Status: true, Message: "no"},
		}))
		Expect(got.Lagging).To(HaveExactElements(HaveField("Proxy", "gw"), HaveField("Proxy", "gw"), HaveField("Proxy", "inner")))
	})

	DescribeTable("says what to do if no proxy has it", func(k model.Key, message string) {
		s := liveState{inspector: New(Sources{})}
		got := s.statusOf(k, &reach{})
		Expect(got.Conditions).To(Equal([]ObjectCondition{
			accepted, {Code: "Programmed", Message: "no proxy uses it"}, {Code: "Unattached", Status: true, Message: message},
		}))
		Expect(got.Lagging).To(Equal([]status.Lag{}))
	},
		Entry(nil, shop, "no proxy serves it: POST /proxy/{proxy}/service/shop"),
		Entry(nil, root, "no proxy serves its service: POST /proxy/{proxy}/service/shop"),
		Entry(nil, model.GlobalConfigKey("rates"), "there is no proxy that it could apply to: POST /proxy"),
		Entry(nil, model.UpstreamKey("blue"), "no service of a proxy uses it"),
	)

	It("is read for several objects together", func() {
		registry := status.NewRegistry()
		for i, proxy := range []string{"gw", "edge", "gw"} {
			registry.Connect(status.Envoy{ID: int64(i), Proxy: proxy, Address: []string{"a", "b", "c"}[i]})
		}
		registry.SetProgress(0, status.Progress{Applied: 7})
		registry.SetConditions("build", []model.Condition{
			{Key: model.RouteUpstreamKey("shop", "root", "blue"), Code: model.NoEndpoints, Message: "m"}, {Key: shop, Code: model.NoRates, Message: "n"},
		})
		registry.SetProgress(2, status.Progress{Waiting: []status.Wait{{Host: "shop", Object: shop, Clusters: []status.Awaited{{Name: "c", Objects: []model.Key{model.UpstreamKey("blue")}}}}}})
		var others []replicas.Other
		in := New(Sources{
			Status: registry, Snapshots: built{}, Others: func() []replicas.Other { return others },
			Upstreams: func(_ context.Context, proxies, names []string) []UpstreamHealth {
				return []UpstreamHealth{{Upstream: names[0], Proxy: proxies[0]}}
			},
		})
		service, route, upstream, rates := &model.Service{Name: "shop"}, &model.Route{Service: "shop", Name: "root"}, &model.Upstream{Name: "blue"}, &model.GlobalConfig{Name: "rates"}
		db := stored{list: []model.Object{
			service, route, upstream, rates, &model.RouteUpstream{Service: "shop", Route: "root", Upstream: "blue"}, &model.Proxy{Name: "gw"}, &model.Proxy{Name: "edge"},
			&model.ProxyService{Proxy: "gw", Service: "shop"}, &model.Service{Name: "api"}, &model.RouteUpstream{Service: "api", Route: "root", Upstream: "blue"},
			&model.ProxyService{Proxy: "gw", Service: "api"}, &model.ProxyService{Proxy: "edge", Service: "api"},
		}}
		list, err := in.Objects(db, []model.Object{service, route, upstream, rates, &model.Proxy{Name: "edge"}})
		Expect(err).NotTo(HaveOccurred())
		slow := status.Lag{Proxy: "edge", Envoy: "b", Reason: "slow", Message: "the Envoy at b has not answered yet"}
		waits := status.Lag{Proxy: "gw", Envoy: "c", Reason: "waiting", Message: `the Envoy at c does not have service "shop" yet: it waits for c`}
		Expect(list).To(HaveExactElements(
			HaveField("Lagging", []status.Lag{waits}), HaveField("Lagging", []status.Lag{waits}), HaveField("Lagging", []status.Lag{slow, waits}),
			HaveField("Lagging", []status.Lag{slow}), HaveField("Lagging", []status.Lag{slow}),
		))
		in.AddHealth(context.Background(), list)
		Expect(list[2].Conditions).To(ContainElement(HaveField("Path", "/proxy/edge")))
		link := ObjectCondition{Code: "NoEndpoints", Status: true, Message: "m", Path: "/service/shop/route/root/upstream/blue"}
		Expect(list[0].Conditions).To(ContainElement(ObjectCondition{Code: "NoRates", Status: true, Message: "n"}))
		Expect(list[1].Conditions).To(ContainElement(link), "of both ends of a link")
		Expect(list[2].Conditions).To(ContainElement(link))
		others = []replicas.Other{{Report: &replicas.Report{Replica: "r2", Built: 6, Envoys: []replicas.Envoy{{Proxy: "gw"}}}}}
		list, err = in.Objects(db, []model.Object{service})
		Expect(err).NotTo(HaveOccurred())
		Expect(list[0].Lagging).To(HaveExactElements(HaveField("Replica", "r2"), waits))
		for _, broken := range []model.Kind{model.KindProxyService, "revision"} {
			db.broken = broken
			_, err = in.Objects(db, []model.Object{service})
			Expect(err).To(MatchError(errStore))
		}
		Expect(New(Sources{}).Objects(db, []model.Object{service})).To(BeNil(), "nothing is known")
	})
})
