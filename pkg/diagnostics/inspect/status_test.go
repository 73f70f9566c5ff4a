package inspect

import (
	"context"
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/replicas"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

// built says that revision 7 was built, and that proxy gw changed last.
type built struct{ noSnapshots }

func (built) Revision() int64 { return 7 }
func (built) Wanted(proxy string) int64 {
	if proxy == "gw" {
		return 5
	}
	return 0
}

var _ = Describe("The state of an Envoy", func() {
	in := New(Sources{Snapshots: built{}})

	DescribeTable("is", func(e status.Envoy, state string, applied int) {
		e.Proxy = "gw"
		got := envoyView(seenEnvoy{Envoy: e, current: in.isApplied(e)}, 7)
		Expect(got.State).To(Equal(state))
		Expect(got.Applied).To(BeEquivalentTo(applied))
	},
		Entry("current if it has what its proxy should have, even if later revisions changed other proxies", status.Envoy{Progress: status.Progress{Applied: 5}}, "current", 7),
		Entry("slow if it has an older configuration", status.Envoy{Progress: status.Progress{Applied: 4}}, "slow", 4),
		Entry("waiting if a host is held back", status.Envoy{Progress: status.Progress{Applied: 4, Waiting: []status.Wait{{}}}}, "waiting", 4),
		Entry("refused in preference to all others", status.Envoy{Progress: status.Progress{Applied: 5, Refused: []status.Refusal{{}}, Waiting: []status.Wait{{}}}}, "refused", 5),
	)

	It("is slow while its proxy should have nothing yet", func() {
		Expect(in.isApplied(status.Envoy{Proxy: "edge"})).To(BeFalse())
	})

	It("names the proxy for a refused resource that comes from no object", func() {
		got := envoyView(seenEnvoy{Envoy: status.Envoy{Proxy: "gw", Progress: status.Progress{Refused: []status.Refusal{
			{TypeURL: ListenerType, Resource: "http", Text: "no"}, {Objects: []model.Key{model.RouteKey("shop", "root")}},
		}}}}, 7)
		Expect(got.Refused[0].Objects).To(Equal([]string{"/proxy/gw"}))
		Expect(got.Refused[1].Objects).To(Equal([]string{"/service/shop/route/root"}))
	})

	It("is not explained by a refusal if an answer about its listeners or routes is missing", func() {
		sent, later := time.Unix(1, 0), time.Unix(2, 0)
		e := status.Envoy{Progress: status.Progress{Refused: []status.Refusal{{}}}, Types: map[string]status.Answers{
			RouteType: {Sent: status.Answer{At: sent}, Rejected: status.Answer{At: later}},
		}}
		Expect(isExplained(e)).To(BeTrue())
		e.Types[ListenerType] = status.Answers{Sent: status.Answer{At: later}, Acked: status.Answer{At: sent}}
		Expect(isExplained(e)).To(BeFalse())
		e.Types[ListenerType], e.Types[RouteType] = e.Types[RouteType], e.Types[ListenerType]
		Expect(isExplained(e)).To(BeFalse())
		clear(e.Types)
		e.Refused = nil
		Expect(isExplained(e)).To(BeFalse())
	})
})

var _ = Describe("The Envoys without a proxy", func() {
	It("are listed with the call that would serve them, if there is one", func() {
		got := waitingNodes([]string{"gw"}, []seenEnvoy{{Envoy: status.Envoy{Proxy: "gw"}}, {Envoy: status.Envoy{Proxy: "edge"}}, {Envoy: status.Envoy{Proxy: "a b"}}})
		Expect(got).To(HaveLen(2))
		Expect(got[0].Create).To(Equal("POST /proxy with Name=edge"))
		Expect(got[1].Create).To(HavePrefix("none: no proxy can have this name"))
	})
})

var _ = Describe("The conditions of a proxy", func() {
	below := map[model.Key]bool{
		model.ProxyKey("gw"): true, model.ServiceKey("shop"): true, model.GlobalConfigKey("rates"): true, model.GlobalConfigKey("other"): false,
	}

	DescribeTable("are those about", func(key model.Key, want bool) {
		Expect(isBelow(key, below)).To(Equal(want))
	},
		Entry("itself", model.ProxyKey("gw"), true),
		Entry("not another proxy", model.ProxyKey("other"), false),
		Entry("its service", model.ServiceKey("shop"), true),
		Entry("a route of its service", model.RouteKey("shop", "root"), true),
		Entry("a filter of the route", model.RouteFilterKey("shop", "root", "each"), true),
		Entry("not a route of another service", model.RouteKey("api", "root"), false),
		Entry("its link to a service", model.ProxyServiceKey("gw", "shop"), true),
		Entry("a link of its route to an upstream", model.RouteUpstreamKey("shop", "root", "blue"), true),
		Entry("not such a link of another service", model.RouteUpstreamKey("api", "root", "blue"), false),
		Entry("not a link of another proxy", model.ProxyServiceKey("other", "shop"), false),
		Entry("a global config that applies", model.GlobalConfigKey("rates"), true),
		Entry("not one that does not apply", model.GlobalConfigKey("other"), false),
	)
})

var _ = Describe("The conditions of an upstream", func() {
	It("describe it once for each proxy", func() {
		of := func(proxy string, state health.State) UpstreamHealth {
			return UpstreamHealth{Proxy: proxy, Condition: health.Condition{State: state, Message: string(state)}}
		}
		Expect(healthConditions([]UpstreamHealth{
			of("a", health.Failing), of("a", health.Failing), of("b", health.Healthy), of("c", health.Checking), of("d", health.Answering),
		})).To(Equal([]ObjectCondition{
			{Code: "Failing", Status: true, Message: "failing", Path: "/proxy/a"},
			{Code: "Answering", Status: true, Message: "healthy", Path: "/proxy/b"},
			{Code: "NotChecked", Status: true, Message: "checking", Path: "/proxy/c"},
			{Code: "Answering", Status: true, Message: "answering", Path: "/proxy/d"},
		}))
	})
})

var _ = Describe("The progress of an object", func() {
	lag := status.Lag{Reason: status.Slow, Message: "the Envoy at 192.0.2.1:1 has not answered yet"}

	DescribeTable("is described as", func(proxies []string, lagging []status.Lag, done bool, message string) {
		c := programmedCondition(&reach{proxies: proxies}, lagging)
		Expect(c.Status).To(Equal(done))
		Expect(c.Message).To(Equal(message))
	},
		Entry("unused", nil, nil, false, "no proxy uses it"),
		Entry("complete", []string{"gw"}, nil, true, "every Envoy that it reaches has it"),
		Entry("one Envoy lacks it", []string{"gw"}, []status.Lag{lag}, false, "the Envoy at 192.0.2.1:1 has not answered yet"),
		Entry("two Envoys lack it", []string{"gw"}, []status.Lag{lag, lag}, false, "the Envoy at 192.0.2.1:1 has not answered yet; lagging lists this and 1 more"),
		Entry("several Envoys lack it", []string{"gw"}, []status.Lag{lag, lag, lag}, false,
			"the Envoy at 192.0.2.1:1 has not answered yet; lagging lists this and 2 more"),
	)

	It("names three clusters that it waits for, and counts the others", func() {
		var clusters []status.Awaited
		for i := range 5 {
			clusters = append(clusters, status.Awaited{Name: strconv.Itoa(i)})
		}
		Expect(status.Wait{Clusters: clusters[:3]}.For()).To(Equal("0, 1, 2"))
		Expect(status.Wait{Clusters: clusters}.For()).To(Equal("0, 1, 2 and 2 more"))
		Expect(status.Wait{Clusters: clusters[:1], Secrets: clusters[1:2], Providers: clusters[2:]}.For()).To(Equal("0, 1, 2 and 2 more"))
	})
})

var _ = Describe("The status of everything", func() {
	at := func(second int64) time.Time { return time.Unix(second, 0) }
	db := stored{list: []model.Object{
		&model.Proxy{Name: "inner"}, &model.Proxy{Name: "gw"}, &model.ProxyService{Proxy: "gw", Service: "shop"}, &model.ProxyService{Proxy: "gw", Service: "web"},
		&model.ProxyService{Proxy: "inner", Service: "api"},
		&model.GlobalConfig{Name: "all"}, &model.GlobalConfig{Name: "mine"}, &model.GlobalConfig{Name: "theirs"},
		&model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "mine"}, &model.ProxyGlobalConfig{Proxy: "inner", GlobalConfig: "mine"},
		&model.ProxyGlobalConfig{Proxy: "inner", GlobalConfig: "theirs"},
	}}
	inspector := func() *Inspector {
		registry := status.NewRegistry()
		registry.Connect(status.Envoy{ID: 1, Proxy: "gw", Address: "a", Version: "1", Connected: at(1), Identity: "i", Instance: "n"})
		registry.Connect(status.Envoy{ID: 2, Proxy: "lost", Address: "b", Connected: at(2)})
		registry.Connect(status.Envoy{ID: 4, Proxy: "gw", Address: "a2", Connected: at(4)})
		registry.ConnectEngine(status.Envoy{ID: 3, Address: "c", Connected: at(3), Identity: "e"})
		registry.ConnectEngine(status.Envoy{ID: 5, Address: "c2", Connected: at(5)})
		registry.SetConditions("build", []model.Condition{
			{Key: model.ProxyKey("gw"), Code: "C", Message: "gw"}, {Key: model.ServiceKey("api"), Code: "C", Message: "api"}, {Key: model.ServiceKey("shop"), Code: "C", Message: "shop"},
			{Key: model.ServiceKey("web"), Code: "C", Message: "inner", Proxies: []string{"inner"}}, {Key: model.ServiceKey("web"), Code: "C", Message: "web", Proxies: []string{"inner", "gw"}},
			{Key: model.GlobalConfigKey("all"), Code: "C", Message: "all"}, {Key: model.GlobalConfigKey("mine"), Code: "C", Message: "mine"},
			{Key: model.GlobalConfigKey("theirs"), Code: "C", Message: "theirs"}, {Key: model.RouteUpstreamKey("shop", "root", "blue"), Code: "C", Message: "blue"},
		})
		o := replicas.Other{Heard: at(9), Unheard: true, Report: &replicas.Report{Replica: "r2", Held: "busy", Engines: []replicas.Engine{{Address: "d", Connected: at(4)}}}}
		heard := replicas.Other{Heard: at(9), Report: &replicas.Report{Replica: "r3", Engines: []replicas.Engine{{Address: "e"}, {Address: "f"}}}}
		return New(Sources{
			Status: registry, Snapshots: built{}, Replica: "r1", Held: func() string { return "loading" }, Others: func() []replicas.Other { return []replicas.Other{o, heard} },
			Upstreams: func(context.Context, []string, []string) []UpstreamHealth { return make([]UpstreamHealth, 101) },
			Logins: func() []model.Condition {
				return []model.Condition{{Key: model.ServiceKey("shop"), Code: "LoginsFail", Message: "login"}}
			},
		})
	}
	messages := func(s Status) (list []string) {
		for _, c := range s.Conditions {
			list = append(list, c.Message)
		}
		return list
	}

	It("has every proxy, Envoy, engine and condition", func(ctx SpecContext) {
		scope, err := All(db)
		Expect(err).NotTo(HaveOccurred())
		s := inspector().StatusOf(ctx, scope)
		Expect([]any{s.Replica, s.Revision, s.Built, s.Held, s.LimitsBy}).To(Equal([]any{"r1", int64(7), int64(7), "loading", "none"}))
		Expect(s.Replicas).To(HaveExactElements(And(HaveField("Replica", "r2"), HaveField("Held", "busy")), HaveField("Replica", "r3")))
		Expect(s.Upstreams).To(HaveLen(100))
		Expect(s.MoreUpstreams).To(Equal(1))
		Expect(s.Proxies).To(Equal([]proxyStatus{
			{Proxy: "gw", Envoys: []envoyStatus{{
				Address: "a", Version: "1", Connected: model.At(at(1)), Identity: "i", Instance: "n", State: "slow", Waiting: []waitStatus{}, Refused: []refusedStatus{}, Types: []typeStatus{},
			}, {Address: "a2", Connected: model.At(at(4)), State: "slow", Waiting: []waitStatus{}, Refused: []refusedStatus{}, Types: []typeStatus{}}}},
			{Proxy: "inner", Envoys: []envoyStatus{}},
		}))
		Expect(s.WaitingNodes).To(Equal([]waitingNode{{Node: "lost", Address: "b", Connected: model.At(at(2)), Create: "POST /proxy with Name=lost"}}))
		Expect(s.Engines).To(Equal([]engineStatus{
			{Address: "c", Connected: model.At(at(3)), Identity: "e", State: "slow"}, {Address: "c2", Connected: model.At(at(5)), State: "slow"},
			{Replica: "r2", Address: "d", Connected: model.At(at(4)), State: "unheard"}, {Replica: "r3", Address: "e", Connected: model.At(time.Time{}), State: "slow"},
			{Replica: "r3", Address: "f", Connected: model.At(time.Time{}), State: "slow"},
		}))
		Expect(messages(s)).To(ConsistOf("gw", "api", "shop", "inner", "web", "all", "mine", "theirs", "blue", "login"))
	})

	It("has of one proxy what is about it", func(ctx SpecContext) {
		scope, err := OfProxy(db, "gw")
		Expect(err).NotTo(HaveOccurred())
		s := inspector().StatusOf(ctx, scope)
		Expect(s.Proxies).To(HaveExactElements(And(HaveField("Proxy", "gw"), HaveField("Envoys", HaveLen(2)))))
		Expect(messages(s)).To(ConsistOf("gw", "shop", "web", "all", "mine", "blue", "login"))
		Expect([]any{s.Revision, s.LimitsBy, s.Engines, s.WaitingNodes}).To(Equal([]any{int64(7), "", []engineStatus(nil), []waitingNode{}}))
	})

	DescribeTable("of one proxy cannot be read", func(broken model.Kind) {
		_, err := OfProxy(stored{list: db.list, broken: broken}, "gw")
		Expect(err).To(MatchError(errStore))
	},
		Entry(nil, model.KindProxyService), Entry(nil, model.KindProxyGlobalConfig), Entry(nil, model.KindGlobalConfig), Entry(nil, model.Kind("revision")),
	)

	DescribeTable("cannot be read", func(broken model.Kind) {
		_, err := All(stored{list: db.list, broken: broken})
		Expect(err).To(MatchError(errStore))
	},
		Entry(nil, model.KindProxy), Entry(nil, model.Kind("revision")),
	)

	It("has nothing without Envoys", func(ctx SpecContext) {
		s := New(Sources{}).StatusOf(ctx, Scope{revision: 7, proxies: []string{"gw"}})
		Expect([]any{s.Built, s.Held, s.LimitsBy, s.Engines, s.Conditions}).To(Equal([]any{int64(0), "", "none", []engineStatus(nil), []conditionStatus{}}))
		Expect(New(Sources{LimitsBy: "here"}).StatusOf(ctx, Scope{}).LimitsBy).To(Equal("here"))
	})

	DescribeTable("has the state of an engine", func(sent, acked, rejected int64, state string) {
		answer := func(second int64) (a status.Answer) {
			if second > 0 {
				a = status.Answer{Revision: second, At: at(second), More: 2, Resources: make([]status.Resource, 1), Text: "t"}
			}
			return a
		}
		v := engineView("", "c", at(1), "", map[string]status.Answers{"t": {Sent: answer(sent), Acked: answer(acked), Rejected: answer(rejected)}})
		Expect(v.State).To(Equal(state))
		for got, second := range map[*answerStatus]int64{v.Acknowledged: acked, v.Refused: rejected} {
			if second > 0 {
				Expect(got).To(Equal(&answerStatus{Revision: second, At: model.At(at(second)), Resources: 3, Message: "t"}))
			}
		}
	},
		Entry("that has not answered", int64(3), int64(2), int64(1), "slow"),
		Entry("that has accepted", int64(3), int64(4), int64(1), "current"),
		Entry("that has refused", int64(3), int64(1), int64(4), "refused"),
		Entry("that has refused before", int64(3), int64(0), int64(2), "slow"),
		Entry("that has never been asked", int64(0), int64(0), int64(0), "current"),
	)

	It("has what an Envoy waits for, and its answers", func() {
		clusters := []status.Awaited{{Name: "c", Objects: []model.Key{model.UpstreamKey("blue"), model.RouteKey("shop", "root")}}, {Name: "d"}}
		e := envoyAt("a", status.Progress{Waiting: []status.Wait{
			{Host: "shop", Object: model.ServiceKey("shop"), Since: at(1), Clusters: clusters, Secrets: []status.Awaited{{Name: "s"}, {Name: "t"}}, Providers: []status.Awaited{{Name: "p"}, {Name: "q"}}},
			{Host: "api", Object: model.ServiceKey("api"), Since: at(2), Until: at(3)},
		}})
		e.Types = map[string]status.Answers{ListenerType: {}, ClusterType: {Sent: status.Answer{Revision: 5, At: at(5)}}}
		got := envoyView(e, 7)
		Expect(got.Waiting).To(Equal([]waitStatus{
			{Object: "/service/shop", Since: model.At(at(1)), For: []awaitedStatus{
				{Cluster: "c", Objects: []string{"/upstream/blue", "/service/shop/route/root"}}, {Cluster: "d", Objects: []string{}},
				{Secret: "s", Objects: []string{}}, {Secret: "t", Objects: []string{}}, {Provider: "p", Objects: []string{}}, {Provider: "q", Objects: []string{}},
			}},
			{Object: "/service/api", Since: model.At(at(2)), Until: model.At(at(3)), For: []awaitedStatus{}},
		}))
		Expect(got.Types).To(HaveExactElements(
			And(HaveField("Type", status.TypeName(ClusterType)), HaveField("Sent", &answerStatus{Revision: 5, At: model.At(at(5))})),
			And(HaveField("Type", status.TypeName(ListenerType)), HaveField("Sent", BeNil())),
		))
	})
})
