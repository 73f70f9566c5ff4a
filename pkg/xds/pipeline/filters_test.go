package pipeline_test

import (
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// filtered is one service on one proxy with two forwarding routes, and links of
// filters.
func filtered(objects ...model.Object) model.Change {
	c := model.Change{Revision: 1, Full: true}
	up := model.NewUpstream()
	up.Name, up.IP, up.Port = "blue", "192.0.2.1", 80
	for i, o := range append([]model.Object{
		up, proxyNamed("gw"), &model.Service{Name: "shop", FQDN: "shop.test"}, &model.ProxyService{Proxy: "gw", Service: "shop"},
		&model.Route{Service: "shop", Name: "open", Prefix: "/"}, &model.RouteUpstream{Service: "shop", Route: "open", Upstream: "blue"},
		&model.Route{Service: "shop", Name: "guarded", Prefix: "/guarded"}, &model.RouteUpstream{Service: "shop", Route: "guarded", Upstream: "blue"},
	}, objects...) {
		*o.Meta().ID = int64(i + 1)
		c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	return c
}

// statuses returns the statuses of the only host's fixed responses; 0 for a
// route that forwards.
func statuses(c model.Change) (map[string]uint32, map[string][]model.Condition) {
	GinkgoHelper()
	result := newBuild().Apply(c)
	Expect(result.Snapshots["gw"].Hosts).To(HaveLen(1))
	vh, err := result.Snapshots["gw"].Hosts[0].VirtualHost()
	Expect(err).NotTo(HaveOccurred())
	found := map[string]uint32{}
	for _, r := range vh.GetRoutes() {
		found[r.GetName()] = r.GetDirectResponse().GetStatus()
	}
	return found, result.Conditions
}

var _ = Describe("A filter that cannot be enforced", func() {
	unknown := func() model.Object {
		return &model.Filter{Name: "guard", Type: "http_filter_none", Config: `{"allow":[]}`}
	}
	onRoute := func() model.Object { return &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "guard"} }
	onService := func() model.Object { return &model.ServiceFilter{Service: "shop", Filter: "guard"} }

	It("closes its route, and no other, if its type is unknown", func() {
		found, conditions := statuses(filtered(unknown(), onRoute()))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
		Expect(conditions["service shop"]).To(Equal([]model.Condition{{
			Key: model.RouteKey("shop", "guarded"), Code: "Quarantined",
			Message: `the route has filter guard of type "http_filter_none", which this version does not support, and answers 503`,
		}}))
	})

	It("closes its service", func() {
		found, conditions := statuses(filtered(unknown(), onService()))
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
		Expect(conditions["service shop"]).To(Equal([]model.Condition{{
			Key: model.ServiceFilterKey("shop", "guard"), Code: "Quarantined",
			Message: `the service has filter guard of type "http_filter_none", which this version does not support, and answers 503`,
		}}))
	})

	It("also closes its service if its configuration cannot be read", func() {
		broken := func() model.Object {
			return &model.Filter{Name: "guard", Type: "route_filter_ratelimit", Config: `{"descriptors":[{"colour":"red"}]}`}
		}
		found, conditions := statuses(filtered(broken(), onRoute()))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
		Expect(conditions["service shop"]).To(HaveLen(1))
		Expect(conditions["service shop"][0].Message).To(HavePrefix("the route has filter guard, which cannot be read (Filter_config.descriptors[0] "))
		found, _ = statuses(filtered(broken(), onService()))
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
	})

	It("closes the route if its type is for services only", func() {
		found, _ := statuses(filtered(&model.Filter{Name: "guard", Type: "http_filter_oidc"}, onRoute()))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
	})

	It("reopens what it closed when it is detached", func() {
		build := newBuild()
		build.Apply(filtered(unknown(), onService()))
		after := build.Apply(model.Change{Revision: 2, Entries: []model.Entry{{Key: onService().Key()}}})
		Expect(after.Conditions["service shop"]).To(BeEmpty())
		Expect(after.Snapshots["gw"].Hosts[0].Clusters).To(Equal([]string{"blue"}))
	})
})

var _ = Describe("An inner message that Envoy would refuse", func() {
	It("closes the route that needs it, and is not sent", func() {
		up := model.NewUpstream()
		up.Name, up.IP, up.Port, up.Protocol = "tls", "192.0.2.9", 443, "tls"
		up.ValidationCACertificate, up.ValidationSubjectName = "ca", strings.Repeat("a", 256)
		change := filtered(&model.Secret{Name: "ca", Cert: "pem"}, up, &model.RouteUpstream{Service: "shop", Route: "guarded", Upstream: "tls"})
		found, conditions := statuses(change)
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
		Expect(conditions["service shop"]).To(HaveLen(1))
		Expect(conditions["service shop"][0].Code).To(Equal("Quarantined"))
		Expect(conditions["service shop"][0].Message).To(ContainSubstring("invalid UpstreamTlsContext.Sni: value length must be at most 255 bytes"))
	})

	It("leaves a proxy without its listener, and reports that", func() {
		p := proxyNamed("gw")
		p.ListenIP = ""
		result := newBuild().Apply(filtered(p))
		Expect(result.Snapshots["gw"].Listeners).To(BeEmpty())
		Expect(result.Conditions["proxy gw"]).To(HaveLen(1))
		Expect(result.Conditions["proxy gw"][0].Key).To(Equal(model.ProxyKey("gw")))
		Expect(result.Conditions["proxy gw"][0].Code).To(Equal("Quarantined"))
		Expect(result.Conditions["proxy gw"][0].Message).To(HavePrefix("Envoy would refuse the listener: "))
	})
})

var _ = Describe("What Envoy would refuse", func() {
	It("closes only the route whose cluster it is", func() {
		bad := model.NewUpstream()
		bad.Name, bad.IP, bad.Port, bad.ConnectTimeoutSeconds = "bad", "192.0.2.2", 80, 0
		found, conditions := statuses(filtered(bad,
			&model.Route{Service: "shop", Name: "bad", Prefix: "/bad"}, &model.RouteUpstream{Service: "shop", Route: "bad", Upstream: "bad"}))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 0, "bad": 503}))
		Expect(conditions["service shop"]).To(HaveLen(1))
		Expect(conditions["service shop"][0].Key).To(Equal(model.RouteKey("shop", "bad")))
		Expect(conditions["service shop"][0].Message).To(HavePrefix("the route would be refused by Envoy: "))
	})

	It("closes the service if not even a fixed answer is possible for the route", func() {
		bad := &model.Route{Service: "shop", Name: "bad", Prefix: "/bad", Config: model.RouteConfig{Headers: []model.ValueMatch{{Name: ""}}}}
		found, conditions := statuses(filtered(bad, &model.RouteUpstream{Service: "shop", Route: "bad", Upstream: "blue"}))
		Expect(found).To(HaveLen(1))
		Expect(found).To(HaveEach(uint32(503)))
		Expect(conditions["service shop"]).To(ContainElement(And(
			HaveField("Key", model.ServiceKey("shop")), HaveField("Message", HavePrefix("Envoy would refuse the service: ")))))
	})
})
