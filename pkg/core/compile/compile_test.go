package compile_test

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

func TestCompile(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "compile")
}

func upstream(name string, set ...func(*model.Upstream)) *model.Upstream {
	u := model.NewUpstream()
	u.Name, u.IP, u.Port = name, "192.0.2.1", 80
	for _, f := range set {
		f(u)
	}
	return u
}

var _ = Describe("Clusters", func() {
	names := func(list ...*model.Upstream) []string {
		var out []string
		for _, c := range compile.Clusters(list, compile.Credentials{}) {
			out = append(out, c.Name)
		}
		return out
	}

	It("combines upstreams with equal settings, and is named after them", func() {
		Expect(names(upstream("a"), upstream("b"))).To(Equal([]string{"a+b"}))
	})
	It("separates upstreams with other settings", func() {
		check := func(u *model.Upstream) { u.HCPath = "/healthz" }
		Expect(names(upstream("a"), upstream("b", check), upstream("c"))).To(Equal([]string{"a+c", "b"}))
	})
	It("does not separate by unused health check settings", func() {
		other := func(u *model.Upstream) { u.HCIntervalSeconds = 9 }
		Expect(names(upstream("a"), upstream("b", other))).To(Equal([]string{"a+b"}))
	})
	DescribeTable("separates upstreams that differ in", func(other func(*model.Upstream)) {
		Expect(names(upstream("a"), upstream("b", other))).To(Equal([]string{"a", "b"}))
	},
		Entry("the connect timeout", func(u *model.Upstream) { u.ConnectTimeoutSeconds = 1 }),
		Entry("the idle timeout", func(u *model.Upstream) { u.IdleTimeoutSeconds = 1 }),
		Entry("keepalive", func(u *model.Upstream) { u.KeepaliveIntervalSeconds = 1 }),
		Entry("connections", func(u *model.Upstream) { u.MaxConnections = 1 }),
		Entry("pending requests", func(u *model.Upstream) { u.MaxPending = 1 }),
		Entry("requests", func(u *model.Upstream) { u.MaxRequests = 1 }),
		Entry("retries", func(u *model.Upstream) { u.MaxRetries = 1 }),
		Entry("a retry budget", func(u *model.Upstream) { u.RetryBudgetPercent = 1 }),
		Entry("the failures until ejection", func(u *model.Upstream) { u.OutlierThresholdCount = 1 }),
		Entry("the ejection time", func(u *model.Upstream) { u.OutlierEjectionSeconds = 1 }),
		Entry("the endpoints of their zone", func(u *model.Upstream) { u.ZoneMinCount = 1 }),
		Entry("the PROXY protocol", func(u *model.Upstream) { u.ProxyProtocol = "v2" }),
		Entry("slow start", func(u *model.Upstream) { u.SlowStartSeconds = 1 }),
		Entry("the panic threshold", func(u *model.Upstream) { u.PanicThresholdPercent = 1 }),
	)
	It("does not separate by part of a retry budget that is not set", func() {
		other := func(u *model.Upstream) { u.RetryBudgetMinCount = 9 }
		Expect(names(upstream("a"), upstream("b", other))).To(Equal([]string{"a+b"}))
	})
	It("does not separate by an unused ejection time", func() {
		never := func(u *model.Upstream) { u.OutlierThresholdCount = 0 }
		other := func(u *model.Upstream) { u.OutlierThresholdCount, u.OutlierEjectionSeconds = 0, 9 }
		Expect(names(upstream("a", never), upstream("b", other))).To(Equal([]string{"a+b"}))
	})
	DescribeTable("keeps connections idle for longer than a health check can take", func(path string, timeout, idle int, want time.Duration) {
		list := compile.Clusters([]*model.Upstream{upstream("a", func(u *model.Upstream) {
			u.HCPath, u.HCTimeoutSeconds, u.IdleTimeoutSeconds = path, timeout, idle
		})}, compile.Credentials{})
		Expect(list[0].Connections.IdleTimeout).To(Equal(want))
	},
		Entry("a check that takes long", "/healthz", 10, 4, 11*time.Second),
		Entry("a check that does not", "/healthz", 2, 4, 4*time.Second),
		Entry("no check", "", 10, 4, 4*time.Second),
		Entry("no bound", "/healthz", 10, 0, time.Duration(0)),
	)
	It("keeps the name when an upstream is taken out of rotation", func() {
		rest := func(u *model.Upstream) { u.Weight = 0 }
		list := compile.Clusters([]*model.Upstream{upstream("a"), upstream("b", rest)}, compile.Credentials{})
		Expect(list).To(HaveLen(1))
		Expect(list[0].Name).To(Equal("a+b"))
		Expect(list[0].Endpoints).To(HaveLen(1))
		Expect(list[0].Share).To(Equal(100))
		Expect(names(upstream("a", rest))).To(BeEmpty())
	})
	It("shortens a long name without a collision", func() {
		long := strings.Repeat("x", 200)
		first, second := names(upstream(long + "1"))[0], names(upstream(long + "2"))[0]
		Expect(first).To(HaveLen(120))
		Expect(second).To(HaveLen(120))
		Expect(first).NotTo(Equal(second))
		Expect(first).To(HavePrefix("xxx"))
	})
})

var _ = Describe("Route", func() {
	It("answers 503 without an upstream and reports it", func() {
		r, c := compile.Route(&model.RouteTree{Route: &model.Route{Service: "shop", Name: "root", Prefix: "/"}}, compile.Settings{})
		Expect(r.Forward).To(BeNil())
		Expect(r.Respond.Status).To(Equal(503))
		Expect(c.Code).To(Equal("NoUpstream"))
		Expect(c.Key).To(Equal(model.RouteKey("shop", "root")))
	})
	It("answers 503 if its configuration cannot be read", func() {
		r, c := compile.Route(&model.RouteTree{
			Route:     &model.Route{Service: "shop", Name: "root", Prefix: "/", Config: model.RouteConfig{Unreadable: "{"}},
			Upstreams: []*model.Upstream{upstream("a")},
		}, compile.Settings{})
		Expect(r.Respond.Status).To(Equal(503))
		Expect(c.Code).To(Equal("Quarantined"))
		Expect(c.Message).To(ContainSubstring("cannot be read"))
	})
})
