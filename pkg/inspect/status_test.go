package inspect

import (
	"strconv"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/status"
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
		delete(e.Types, ListenerType)
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
		Expect(isBelow(key, "gw", below)).To(Equal(want))
	},
		Entry("itself", model.ProxyKey("gw"), true),
		Entry("not another proxy", model.ProxyKey("other"), false),
		Entry("its service", model.ServiceKey("shop"), true),
		Entry("a route of its service", model.RouteKey("shop", "root"), true),
		Entry("a filter of the route", model.RouteFilterKey("shop", "root", "each"), true),
		Entry("not a route of another service", model.RouteKey("api", "root"), false),
		Entry("its link to a service", model.ProxyServiceKey("gw", "shop"), true),
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
			of("a", health.Failing), of("a", health.Failing), of("b", health.Healthy), of("c", health.Checking),
		})).To(Equal([]ObjectCondition{
			{Code: "Failing", Status: true, Message: "failing", Path: "/proxy/a"},
			{Code: "Answering", Status: true, Message: "healthy", Path: "/proxy/b"},
			{Code: "NotChecked", Status: true, Message: "checking", Path: "/proxy/c"},
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
