package status

import (
	"maps"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	gatewayv1 "github.com/gatehouse-gateway/gatehouse/api/gateway/v1"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/conditions"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/kube/translate"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("The facts about an object", func() {
	service, route, otherService := model.ServiceKey("shop.web"), model.RouteKey("shop.web", "r0"), model.ServiceKey("shop.api")
	// Generation 3 of the host arrived with resourceVersion 50.
	web := Cached{Object: Object{Ref: Ref{"GatewayHost", "shop", "web"}, ResourceVersion: 50}, Generation: 3}
	settled := web
	settled.Status.Conditions = []metav1.Condition{{Type: "Programmed", Status: "True", ObservedGeneration: 3}}
	became := &translate.Object{
		Generation: 3, Proxies: []string{"gatehouse"}, Made: []translate.Made{{Key: service}, {Key: route, Path: "spec.routes[0]"}},
	}
	seen := func(n int64) map[string]int64 { return map[string]int64{"GatewayHost": n} }
	envoy := func(address string, change func(*replicas.Envoy)) replicas.Envoy {
		e := replicas.Envoy{Proxy: "gatehouse", Address: address, Current: true, Applied: 7}
		if change != nil {
			change(&e)
		}
		return e
	}
	report := func(name string, version int64, envoys ...replicas.Envoy) heard {
		return readReport(replicas.Other{Report: &replicas.Report{Replica: name, Seen: seen(version), Envoys: envoys}}, envoys)
	}

	It("cover its proxy's Envoys at all replicas, and the conditions of what it was translated to", func() {
		other := envoy("9", nil)
		other.Proxy = "other"
		k := known{
			replicas: []heard{report("b", 50, envoy("1", nil), envoy("2", nil), other), report("a", 49, envoy("3", nil))},
			conditions: byObject([]model.Condition{
				{Key: route, Code: model.Quarantined, Message: "no"}, {Key: service, Code: model.LoginFailing, Message: "3 failed"},
				{Key: otherService, Code: model.Quarantined, Message: "another's"},
			}),
		}
		f, ok := k.factsOf(web, became, 50)
		Expect(ok).To(BeTrue())
		Expect(f).To(Equal(conditions.Facts{
			Generation: 3, Proxies: []string{"gatehouse"},
			Problems: []conditions.Problem{{Path: "spec.routes[0]", Reason: "Quarantined", Message: "no"}},
			Replicas: []conditions.Replica{{Name: "a", Envoys: 1}, {Name: "b", Envoys: 2, Built: true}},
		}))
	})

	It("do not exist before this replica has built the generation", func() {
		k := known{replicas: []heard{report("a", 49)}}
		_, ok := k.factsOf(web, became, 50)
		Expect(ok).To(BeFalse())
		k.replicas[0] = report("a", 50)
		older := *became
		older.Generation = 2
		_, ok = k.factsOf(web, &older, 50)
		Expect(ok).To(BeFalse())
	})

	It("count Envoys that a report does not name", func() {
		r := report("a", 50, envoy("1", nil))
		r.More = map[string]int{"gatehouse": 40, "other": 7}
		f, ok := known{replicas: []heard{readReport(r.Other, r.Envoys)}}.factsOf(web, became, 50)
		Expect(ok).To(BeTrue())
		Expect(f.Replicas).To(Equal([]conditions.Replica{{Name: "a", Envoys: 41, Built: true}}))
	})

	It("report that an Envoy lacks what its replica has not built", func() {
		behind := envoy("2", func(e *replicas.Envoy) { e.Current, e.Answered = false, true })
		f, ok := known{replicas: []heard{report("a", 50), report("b", 49, behind)}}.factsOf(web, became, 50)
		Expect(ok).To(BeTrue())
		Expect(f.Replicas[1].Lacks).To(Equal([]conditions.Lack{{Envoy: "2"}}))
	})

	DescribeTable("report what an Envoy lacks", func(o Cached, change func(*replicas.Envoy), lacks ...conditions.Lack) {
		k := known{replicas: []heard{report("a", 50, envoy("1", change))}}
		f, ok := k.factsOf(o, became, 50)
		Expect(ok).To(BeTrue())
		Expect(f.Replicas[0].Lacks).To(HaveExactElements(lacks))
		Expect(f.Replicas[0].Envoys).To(Equal(1))
	},
		Entry("it has everything", web, nil),
		Entry("it has not answered", web, func(e *replicas.Envoy) { e.Current, e.Seen = false, seen(49) }, conditions.Lack{Envoy: "1"}),
		Entry("it has not answered a later update", web, func(e *replicas.Envoy) { e.Current, e.Seen = false, seen(50) }),
		Entry("it has not answered anything", settled, func(e *replicas.Envoy) { e.Current, e.Applied = false, 0 }, conditions.Lack{Envoy: "1"}),
		Entry("it had the generation once, and stopped answering", settled, func(e *replicas.Envoy) { e.Current, e.Seen = false, seen(40) }),
		Entry("it waits", web, func(e *replicas.Envoy) {
			e.Current, e.Waiting = false, []status.Wait{{Object: service, Clusters: []status.Awaited{{Name: "c1"}, {Name: "c2"}, {Name: "c3"}}, Secrets: []status.Awaited{{Name: "s"}}}}
		}, conditions.Lack{Envoy: "1", Message: "waits for c1, c2, c3 and 1 more"}),
		Entry("it waits for another host, and has answered everything else", web, func(e *replicas.Envoy) {
			e.Current, e.Answered, e.Waiting = false, true, []status.Wait{{Object: otherService}}
		}),
		Entry("it waits for another host, and its report is incomplete", web, func(e *replicas.Envoy) {
			e.Current, e.Answered, e.Cut, e.Waiting = false, true, true, []status.Wait{{Object: otherService}}
		}, conditions.Lack{Envoy: "1"}),
		Entry("it refused a part", settled, func(e *replicas.Envoy) {
			e.Current, e.Refused = false, []status.Refusal{{Objects: []model.Key{otherService, route}, Text: "bad regex"}}
		}, conditions.Lack{Envoy: "1", Refused: true, Message: "bad regex"}),
		Entry("it refused a part, and answered a later update", web, func(e *replicas.Envoy) {
			e.Refused = []status.Refusal{{Objects: []model.Key{route}, Text: "bad regex"}}
		}, conditions.Lack{Envoy: "1", Refused: true, Message: "bad regex"}),
		Entry("it refused another host", web, func(e *replicas.Envoy) {
			e.Current, e.Answered, e.Refused = false, true, []status.Refusal{{Objects: []model.Key{otherService}}}
		}),
	)

	It("count an Envoy once if it has moved to another replica", func() {
		list := []replicas.Envoy{
			envoy("1", nil), envoy("2", nil), // has moved
			envoy("3", func(e *replicas.Envoy) { e.Current, e.Seen = false, seen(50) }),              // has moved, and lacks something else
			envoy("4", func(e *replicas.Envoy) { e.Current, e.Applied, e.Seen = false, 0, seen(0) }), // has moved, and lacks it
		}
		killed := &replicas.Report{Replica: "b", Seen: seen(50), Envoys: list}
		k := known{replicas: []heard{report("a", 50, envoy("5", nil), envoy("6", nil), envoy("7", nil)), readReport(replicas.Other{Report: killed}, list[:1])}}
		f, ok := k.factsOf(web, became, 50)
		Expect(ok).To(BeTrue())
		Expect(f.Replicas).To(HaveExactElements(
			conditions.Replica{Name: "a", Envoys: 3, Built: true},
			conditions.Replica{Name: "b", Envoys: 4, Moved: 2, Built: true, Lacks: []conditions.Lack{{Envoy: "4"}}}))
		have, ok := f.Have()
		Expect(ok).To(BeTrue())
		Expect(have).To(Equal(4))
	})

	here, unused := translate.Object{Proxies: []string{"gatehouse"}}, translate.Object{}
	writtenBy := func(kind, proxy, controller string) Cached {
		return Cached{Object: Object{Ref: Ref{kind, "shop", "x"}, Status: gatewayv1.Status{Proxy: proxy, Controller: controller}}}
	}

	DescribeTable("are written by one installation", func(o Cached, b translate.Object, ours bool, yields ...string) {
		others := &Installations{self: "ns/self", now: func() time.Time { return start.Add(goneAfter) }, known: map[string]*installation{
			"ns/alive": {since: start.Add(time.Second)}, "ns/gone": {since: start},
		}}
		k := known{served: []string{"gatehouse"}, installations: others, yields: map[string]Ref{}}
		Expect(k.isOurs(o, &b)).To(Equal(ours))
		Expect(slices.Collect(maps.Keys(k.yields))).To(ConsistOf(yields))
	},
		Entry("a host that another one with this proxy writes", writtenBy("GatewayHost", "gatehouse", "ns/alive"), here, false, "ns/alive"),
		Entry("a host that another one wrote, which is gone", writtenBy("GatewayHost", "gatehouse", "ns/gone"), here, true),
		Entry("a host that one wrote of which nothing is known", writtenBy("GatewayHost", "gatehouse", "ns/new"), here, false, "ns/new"),
		Entry("a host that this one wrote", writtenBy("GatewayHost", "gatehouse", "ns/self"), here, true),
		Entry("a host that another one wrote for a proxy that it no longer names", writtenBy("GatewayHost", "other", "ns/alive"), here, true),
		Entry("a filter that another one with this proxy writes", writtenBy("RouteFilter", "gatehouse", "ns/alive"), here, false, "ns/alive"),
		Entry("a filter of both that nobody uses here", writtenBy("RouteFilter", "gatehouse", "ns/alive"), unused, false),
		Entry("a filter that another one with other proxies writes: no clash", writtenBy("RouteFilter", "other", "ns/alive"), here, false),
		Entry("a filter that another one wrote, which is gone", writtenBy("RouteFilter", "other", "ns/gone"), here, true),
		Entry("a filter that another one no longer uses", writtenBy("RouteFilter", "", "ns/alive"), here, true),
		Entry("a host", Cached{Object: Object{Ref: Ref{Kind: "GatewayHost"}}}, translate.Object{Proxies: []string{"gatehouse"}}, true),
		Entry("a host that belonged to another installation", Cached{Object: Object{Ref: Ref{Kind: "GatewayHost"}, Status: gatewayv1.Status{Proxy: "other"}}},
			translate.Object{Proxies: []string{"gatehouse"}}, true),
		Entry("a host of another installation", Cached{Object: Object{Ref: Ref{Kind: "GatewayHost"}}}, translate.Object{Ignored: true}, false),
		Entry("a host that another installation has taken over", Cached{Object: Object{Ref: Ref{Kind: "GatewayHost"}, Status: gatewayv1.Status{Proxy: "gatehouse"}}},
			translate.Object{Ignored: true}, false),
		Entry("a filter that nobody uses", Cached{Object: Object{Ref: Ref{Kind: "RouteFilter"}}}, translate.Object{}, false),
		Entry("a filter that nobody uses anymore", Cached{Object: Object{Ref: Ref{Kind: "RouteFilter"}, Status: gatewayv1.Status{Proxy: "gatehouse"}}},
			translate.Object{}, true),
		Entry("a filter that another installation writes", Cached{Object: Object{Ref: Ref{Kind: "RouteFilter"}, Status: gatewayv1.Status{Proxy: "other"}}},
			translate.Object{Proxies: []string{"gatehouse"}}, false),
	)
})
