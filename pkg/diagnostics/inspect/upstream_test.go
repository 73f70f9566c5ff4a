package inspect

import (
	"context"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/health"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/status"
)

var _ = Describe("Upstreams that fail", func() {
	ctx := context.Background()
	one := func(name string, state health.State, envoys ...string) UpstreamHealth {
		return UpstreamHealth{
			Proxy: "gw", Upstream: name, Cluster: "c", Address: "2001:db8::1", Port: 80, Envoys: envoys, Condition: health.Condition{State: state, Reason: "r", Message: "m"},
		}
	}
	// asked are the proxies and names of the last question.
	var asked [][]string
	with := func(list ...UpstreamHealth) *Inspector {
		return New(Sources{Upstreams: func(_ context.Context, proxies, names []string) []UpstreamHealth {
			asked = [][]string{proxies, names}
			return list
		}})
	}
	numbers := func(n int) []string {
		list := make([]string, n)
		for i := range list {
			list[i] = strconv.Itoa(i)
		}
		return list
	}

	It("are listed for proxies with Envoys, each with ten of its Envoys", func() {
		list, more := with(one("blue", health.Failing, numbers(11)...), one("", health.Failing)).failing(ctx, []proxyStatus{
			{Proxy: "gw", Envoys: make([]envoyStatus, 1)}, {Proxy: "empty"}, {Proxy: "edge", Envoys: make([]envoyStatus, 1)},
		})
		Expect(asked).To(Equal([][]string{{"gw", "edge"}, nil}))
		Expect(list).To(Equal([]upstreamStatus{
			{Object: "/upstream/blue", Proxy: "gw", Cluster: "c", Address: "[2001:db8::1]:80", Health: "failing", Reason: "r", Message: "m", Envoys: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}},
			{Proxy: "gw", Cluster: "c", Address: "[2001:db8::1]:80", Health: "failing", Reason: "r", Message: "m", Envoys: []string{}},
		}))
		Expect(more).To(BeZero())
	})

	It("are counted beyond one hundred", func() {
		list, more := with(make([]UpstreamHealth, 102)...).failing(ctx, nil)
		Expect(list).To(HaveLen(100))
		Expect(more).To(Equal(2))
		list, more = New(Sources{}).failing(ctx, nil)
		Expect(list).To(Equal([]upstreamStatus{}))
		Expect(more).To(BeZero())
	})

	It("have it in the status of those that a proxy uses", func() {
		block := func(key model.Key, proxies ...string) *ObjectStatus { return &ObjectStatus{key: key, proxies: proxies} }
		blue, unused, service := block(model.UpstreamKey("blue"), "gw", "edge"), block(model.UpstreamKey("unused")), block(model.ServiceKey("blue"), "gw")
		green := block(model.UpstreamKey("green"), "edge")
		with(one("blue", health.Failing), one("green", health.Healthy)).AddHealth(ctx, []*ObjectStatus{blue, green, unused})
		Expect(asked).To(Equal([][]string{{"edge", "gw"}, {"blue", "green"}}))
		Expect(blue.Conditions).To(Equal([]ObjectCondition{{Code: "Failing", Status: true, Message: "m", Path: "/proxy/gw"}}))
		Expect(green.Conditions).To(Equal([]ObjectCondition{{Code: "Answering", Status: true, Message: "m", Path: "/proxy/gw"}}))
		Expect(unused.Conditions).To(BeEmpty())
		asked = nil
		with().AddHealth(ctx, []*ObjectStatus{unused, service})
		New(Sources{}).AddHealth(ctx, []*ObjectStatus{blue})
		Expect(asked).To(BeNil(), "nothing is asked")
	})

	It("cause a warning where they are written", func() {
		in := with(one("blue", health.Failing), one("green", health.Answering))
		Expect(in.WarnFailing(ctx, []string{"blue", "green"})).To(Equal([]string{`upstream "blue" ([2001:db8::1]:80) is failing in proxy "gw": m`}))
		Expect(asked[1]).To(Equal([]string{"blue", "green"}))
		in.WarnFailing(ctx, numbers(500))
		Expect(asked[1]).To(HaveLen(500))
		in.WarnFailing(ctx, numbers(501))
		Expect(asked[1]).To(BeNil(), "all that fail")
		asked = nil
		Expect(in.WarnFailing(ctx, nil)).To(BeNil())
		Expect(New(Sources{}).WarnFailing(ctx, []string{"blue"})).To(BeNil())
		Expect(asked).To(BeNil())
	})

	It("cause a warning of each, in the proxies with Envoys", func() {
		in := with(one("blue", health.Failing), one("green", health.Failing))
		in.Status = status.NewRegistry()
		for i, proxy := range []string{"gw", "edge", "gw"} {
			in.Status.Connect(status.Envoy{ID: int64(i), Proxy: proxy})
		}
		Expect(in.WarnFailing(ctx, []string{"blue"})).To(HaveLen(2))
		Expect(asked[0]).To(Equal([]string{"edge", "gw"}))
	})

	It("are looked for in many services, and not in others", func() {
		links := stored{list: []model.Object{
			&model.RouteUpstream{Service: "0", Route: "root", Upstream: "green"}, &model.RouteUpstream{Service: "api", Route: "root", Upstream: "red"},
			&model.RouteUpstream{Service: "500", Route: "root", Upstream: "blue"},
		}}
		var changed []model.Key
		for _, name := range numbers(501) {
			changed = append(changed, model.ServiceKey(name))
		}
		Expect(UpstreamsOf(links, changed)).To(Equal([]string{"blue", "green"}))
		links.broken = model.KindRouteUpstream
		_, err := UpstreamsOf(links, changed)
		Expect(err).To(MatchError(errStore))
	})

	DescribeTable("are looked for among those that a change concerns", func(changed model.Key, names ...string) {
		links := stored{list: []model.Object{
			&model.RouteUpstream{Service: "shop", Route: "root", Upstream: "green"}, &model.RouteUpstream{Service: "api", Route: "root", Upstream: "red"},
		}}
		Expect(UpstreamsOf(links, []model.Key{changed})).To(BeComparableTo(append([]string(nil), names...)))
	},
		Entry("the upstream itself", model.UpstreamKey("blue"), "blue"),
		Entry("those of a service", model.ServiceKey("shop"), "green"),
		Entry("those of a route", model.RouteKey("shop", "root"), "green"),
		Entry("those of a route that gets or loses one", model.RouteUpstreamKey("shop", "root", "blue"), "green"),
		Entry("those of a service that is attached", model.ProxyServiceKey("gw", "shop"), "green"),
		Entry("none", model.ProxyKey("gw")),
	)
})
