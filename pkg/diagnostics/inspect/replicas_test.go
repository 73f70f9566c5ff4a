package inspect

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// Revision 7 is built here (built), with the ID "x".
var _ = Describe("Other replicas", func() {
	started := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	other := func(name string, revision int64, envoys ...replicas.Envoy) replicas.Other {
		return replicas.Other{Heard: started, Report: &replicas.Report{Replica: name, Started: started, Built: revision, BuiltID: "x", Envoys: envoys}}
	}
	at := func(address string, current bool, progress status.Progress) replicas.Envoy {
		return replicas.Envoy{Proxy: "gw", Address: address, Current: current, Waiting: progress.Waiting, Refused: progress.Refused}
	}
	unheard := func(o replicas.Other) replicas.Other { o.Unheard = true; return o }
	with := func(list ...replicas.Other) *Inspector {
		return New(Sources{
			Status: status.NewRegistry(), Snapshots: built{}, Others: func() []replicas.Other { return list },
			Position: func() replicas.Position { return replicas.Position{Built: 7, BuiltID: "x"} },
		})
	}
	refused := status.Progress{Refused: []status.Refusal{{Resource: "shop", Text: "no"}}}
	waiting := status.Progress{Waiting: []status.Wait{{Host: "shop", Clusters: []status.Awaited{{Name: "blue"}}}}}

	It("are in the status by name, with how far they are", func() {
		more := other("a", 7)
		more.More = map[string]int{"gw": 2, "edge": 3}
		stranger := other("d", 7)
		stranger.BuiltID = "y"
		view := with(other("c", 6), unheard(other("b", 7, at("192.0.2.1:1", true, status.Progress{}))), stranger, more).StatusOf(context.Background(), Scope{revision: 7, proxies: []string{"gw"}})
		heardAt := model.At(started)
		Expect(view.Replicas).To(Equal([]replicaStatus{
			{Replica: "a", State: "heard", Heard: heardAt, Built: 7, More: 5},
			{Replica: "b", State: "unheard", Heard: heardAt, Built: 7, Envoys: 1},
			{Replica: "c", State: "behind", Heard: heardAt, Built: 6},
			{Replica: "d", State: "behind", Heard: heardAt, Built: 7},
		}))
	})

	DescribeTable("say what their Envoys have", func(o replicas.Other, state string, applied int) {
		view := with(o).StatusOf(context.Background(), Scope{revision: 7, proxies: []string{"gw"}})
		Expect(view.Proxies).To(HaveLen(1))
		e := view.Proxies[0].Envoys[0]
		Expect([]any{e.Replica, e.State, e.Applied}).To(Equal([]any{"a", state, int64(applied)}))
	},
		Entry("everything", other("a", 8, at("192.0.2.1:1", true, status.Progress{})), "current", 8),
		Entry("all that the replica has, which is old", other("a", 6, at("192.0.2.1:1", true, status.Progress{})), "slow", 6),
		Entry("less", other("a", 7, at("192.0.2.1:1", false, status.Progress{})), "slow", 0),
		Entry("less, because it waits", other("a", 7, at("192.0.2.1:1", false, waiting)), "waiting", 0),
		Entry("less, because it refuses", other("a", 7, at("192.0.2.1:1", false, refused)), "refused", 0),
		Entry("nothing that is known", unheard(other("a", 7, at("192.0.2.1:1", true, status.Progress{}))), "unheard", 7),
	)

	It("count for the Envoys that are connected, with those that are not listed", func() {
		o := other("a", 7, at("192.0.2.1:1", true, status.Progress{}), replicas.Envoy{Proxy: "edge"})
		o.More = map[string]int{"gw": 2}
		Expect(with(o).Connected("gw")).To(Equal(3))
		Expect(with(o).Connected("edge")).To(Equal(1))
		Expect(with(o, o).Connected("gw")).To(Equal(6))
		Expect(New(Sources{Status: status.NewRegistry()}).Connected("gw")).To(BeZero(), "without others")
	})

	It("say which Envoys may handle a request differently", func() {
		o := other("a", 7, at("192.0.2.1:1", true, status.Progress{}), at("192.0.2.1:2", false, refused), at("192.0.2.1:3", false, waiting),
			at("192.0.2.1:4", false, status.Progress{}), replicas.Envoy{Proxy: "edge"})
		o.More, o.MoreLagging = map[string]int{"gw": 5}, map[string]int{"gw": 2}
		lag := func(envoy, reason, message string) status.Lag {
			return status.Lag{Proxy: "gw", Envoy: envoy, Replica: "a", Reason: reason, Message: message}
		}
		silent := unheard(other("b", 7, at("192.0.2.2:1", true, status.Progress{})))
		Expect(with(o, silent, other("c", 7), other("d", 7, at("192.0.2.4:1", true, status.Progress{}))).ElsewhereOf("gw")).To(Equal([]Elsewhere{
			{Replica: "a", Current: 4, Lagging: []status.Lag{
				lag("192.0.2.1:2", "refused", "the Envoy at 192.0.2.1:2 (replica a) refused shop: no"),
				lag("192.0.2.1:3", "waiting", `the Envoy at 192.0.2.1:3 (replica a) does not have service "shop" yet: it waits for blue`),
				lag("192.0.2.1:4", "slow", "the Envoy at 192.0.2.1:4 (replica a) does not have everything yet"),
			}},
			{Replica: "b", Lagging: []status.Lag{
				{Proxy: "gw", Replica: "b", Reason: "unheard", Message: "replica b was last heard at 03:04:05: the state of its Envoys is unknown"},
			}},
			{Replica: "d", Current: 1, Lagging: []status.Lag{}},
		}))
	})

	DescribeTable("say which Envoys lack only what they refused or wait for", func(e replicas.Envoy, explained bool) {
		Expect(with(other("a", 7, e)).observe(7).envoys[0].explained).To(Equal(explained))
	},
		Entry("one that waits", replicas.Envoy{Answered: true, Waiting: make([]status.Wait, 1)}, true),
		Entry("one that refused", replicas.Envoy{Answered: true, Refused: make([]status.Refusal, 1)}, true),
		Entry("not one that lacks something else", replicas.Envoy{Answered: true}, false),
		Entry("not one that has not answered", replicas.Envoy{Waiting: make([]status.Wait, 1)}, false),
		Entry("not one of which more is not told", replicas.Envoy{Answered: true, Cut: true, Waiting: make([]status.Wait, 1)}, false),
	)

	DescribeTable("have what is stored", func(built int64, id string, stored int64, want bool) {
		o := other("a", built)
		o.BuiltID = id
		Expect(with().isUpToDate(o, stored)).To(Equal(want))
	},
		Entry("as this one", int64(7), "x", int64(7), true),
		Entry("unless it is another history", int64(7), "y", int64(7), false),
		Entry("before this one", int64(8), "y", int64(8), true),
		Entry("not yet", int64(7), "x", int64(8), false),
	)

	It("add their conditions, each once, but none about what is not known here", func() {
		a, b := other("a", 7), other("b", 7)
		slow := replicas.Condition{Key: model.ServiceKey("shop"), Code: "LoginsFail", Message: "three"}
		a.Conditions, b.Conditions = []replicas.Condition{slow, {Code: "New"}}, []replicas.Condition{slow, {Key: model.ServiceKey("shop"), Code: "LoginsFail", Message: "four"}}
		a.Conditions = append(a.Conditions, replicas.Condition{Key: model.ServiceKey("api"), Code: "LoginsFail", Message: "three", Proxies: []string{"gw"}},
			replicas.Condition{Key: model.ServiceKey("shop"), Code: "Other", Message: "three"})
		Expect(with(a).observe(7).conditions).To(ContainElement(HaveField("Proxies", []string{"gw"})))
		view := with(a, b).StatusOf(context.Background(), Scope{revision: 7})
		Expect(view.Conditions).To(Equal([]conditionStatus{
			{"/service/shop", "LoginsFail", "three"}, {"/service/api", "LoginsFail", "three"}, {"/service/shop", "Other", "three"}, {"/service/shop", "LoginsFail", "four"},
		}))
	})

	It("are named where an object has not reached their Envoys", func() {
		lagging := other("c", 7, at("192.0.2.3:1", true, status.Progress{}))
		lagging.MoreLagging, lagging.More = map[string]int{"gw": 2}, map[string]int{"gw": 2}
		list := []replicas.Other{
			unheard(other("a", 7)), other("b", 6, at("192.0.2.2:1", true, status.Progress{})), lagging,
			other("d", 7, at("192.0.2.4:1", true, status.Progress{})), other("e", 6),
		}
		state := liveState{inspector: with(list...), stored: 7}
		state.others = list
		Expect(state.replicaLags("gw")).To(Equal([]status.Lag{
			{Proxy: "gw", Replica: "a", Reason: "unheard", Message: "replica a was last heard at 03:04:05: the state of its Envoys is unknown"},
			{Proxy: "gw", Replica: "b", Reason: "slow", Message: "replica b does not give its Envoys what is stored yet: revision 6 so far"},
			{Proxy: "gw", Replica: "c", Reason: "slow", Message: "2 more Envoys of replica c do not have everything yet"},
		}))
	})
})
