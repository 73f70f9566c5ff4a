package translate_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/headers"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/translate"
)

func TestTranslate(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "translate")
}

func must[T any](value T, err error) T {
	GinkgoHelper()
	Expect(err).NotTo(HaveOccurred())
	return value
}

// example is a listener, and a host with a route and a cluster.
func example() (ir.Listener, *ir.Host) {
	limits := []ir.RateLimit{{{Kind: ir.RateLimitPath, Key: "path"}}}
	cluster := &ir.Cluster{
		Name: "blue", Strategy: "round_robin", Protocol: "h2", Endpoints: []ir.Endpoint{{Address: "a.test", DNS: true, Port: 443, Weight: 1}},
		TLS:         &ir.UpstreamTLS{Authorities: &ir.Authorities{PEM: "pem"}, Name: "a.test"},
		Connections: ir.Connections{ConnectTimeout: time.Second, Keepalive: time.Second},
	}
	listener := ir.Listener{
		Address: "0.0.0.0", Port: 8080, AccessLog: true, RateLimitEngine: &ir.RateLimitEngine{Socket: "/run/engine.sock"},
		RateLimit:    &ir.RateLimitService{Domain: "1/edge", Status: 429},
		DomainLimits: map[string]*ir.RateLimitService{"api": {Domain: "2/api", Status: 429}},
	}
	changes := &headers.Changes{Request: []ir.HeaderChange{{Action: ir.HeaderSet, Name: "x-team", Value: "shop"}}}
	return listener, &ir.Host{Name: "shop", Domain: "shop.test", Filters: ir.Filters{"headers": changes}, Routes: []*ir.Route{{
		Name: "root", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, RateLimits: limits,
		Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: cluster, Share: 1}}},
	}}}
}

var _ = Describe("The message of a filter", func() {
	It("is set on a route that answers by itself too", func() {
		_, h := example()
		r := must(translate.Route(&ir.Route{
			Name: "closed", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, Filters: h.Filters, Respond: &ir.Respond{Status: 503},
		}))
		Expect(r.GetTypedPerFilterConfig()).To(HaveKey("envoy.filters.http.header_mutation"))
	})

	DescribeTable("is refused if Envoy would treat it as no filter", func(name string, m proto.Message, why string) {
		err := translate.CheckOverride(name, m)
		if why == "" {
			Expect(err).NotTo(HaveOccurred())
		} else {
			Expect(err).To(MatchError("configuring filter " + name + ": " + why))
		}
	},
		Entry("emptied", "envoy.filters.http.rbac/ip", &rbacv3.RBACPerRoute{}, "an empty message would turn it off"),
		Entry("under another name", "envoy.filters.http.rbac/pi", &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{}}, "no listener has a filter of that name"),
		Entry("but not if it is complete", "envoy.filters.http.rbac/ip", &rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{}}, ""),
		Entry("but not if an empty one turns it on", "envoy.filters.http.rbac/ip", &routev3.FilterConfig{}, ""),
	)
})

var _ = Describe("A packed message", func() {
	It("has valid UTF-8 text", func() {
		_, err := translate.Pack(&tlsv3.UpstreamTlsContext{Sni: "\xff"})
		Expect(err).To(MatchError(ContainSubstring("invalid UTF-8")))
	})

	DescribeTable("causes an error in its container", func(what string, breakIt func(*ir.Listener, *ir.Host)) {
		l, h := example()
		breakIt(&l, h)
		_, ofListener := translate.Listener(l)
		_, ofRoute := translate.Route(h.Routes[0])
		_, ofCluster := translate.Cluster(h.Routes[0].Forward.Clusters[0].Cluster)
		_, ofResources := translate.ListenerResources(l)
		errs := map[string]error{"listener": ofListener, "resources": ofResources, "route": ofRoute, "cluster": ofCluster}
		Expect(errs[what]).To(HaveOccurred())
		delete(errs, what)
		for other, err := range errs {
			Expect(err).NotTo(HaveOccurred(), other)
		}
	},
		Entry("the rate-limit filter", "resources", func(l *ir.Listener, _ *ir.Host) { l.RateLimit.Domain = "" }),
		Entry("the rate-limit filter of a domain", "listener", func(l *ir.Listener, _ *ir.Host) { l.DomainLimits["api"].Domain = "" }),
		Entry("headers", "route", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Filters = ir.Filters{"headers": &headers.Changes{Request: []ir.HeaderChange{{Action: ir.HeaderSet}}}}
		}),
		Entry("limits", "route", func(_ *ir.Listener, h *ir.Host) { h.Routes[0].RateLimits = []ir.RateLimit{{}} }),
		Entry("a part of a limit that is packed too", "route", func(_ *ir.Listener, h *ir.Host) { h.Routes[0].RateLimits[0][0].Key = "" }),
		Entry("TLS", "cluster", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Forward.Clusters[0].TLS.Name = strings.Repeat("a", 256)
		}),
		Entry("HTTP/2", "cluster", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Forward.Clusters[0].Connections.ConnectTimeout = 0
		}),
	)
})

var _ = Describe("The filter that requires a client certificate", func() {
	It("is off only on routes for which nobody has to show one, whatever they answer", func() {
		off := func(r *ir.Route) bool {
			_, is := must(translate.Route(r)).GetTypedPerFilterConfig()[translate.AnybodyFilter]
			return is
		}
		to := ir.Redirect{Status: 308, Scheme: "https"}
		Expect(off(&ir.Route{Name: "r", Redirect: &to})).To(BeFalse())
		Expect(off(&ir.Route{Name: "r", Redirect: &to, Unverified: true})).To(BeTrue())
	})
})

var _ = Describe("The token verification", func() {
	It("includes where the token is, who issued it, and the tolerated clock skew", func() {
		check := func(c credential.TokenCheck) map[string]any {
			GinkgoHelper()
			c.Name, c.Issuer, c.Audiences, c.JWKS = "api", "us", []string{"shop"}, "keys"
			m := c.Config()
			text := must(protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.GetProviders()["api"]))
			var out map[string]any
			Expect(json.Unmarshal(text, &out)).To(Succeed())
			return out
		}
		all := func(with map[string]any) map[string]any {
			for name, value := range map[string]any{
				"issuer": "us", "audiences": []any{"shop"}, "local_jwks": map[string]any{"inline_string": "keys"}, "payload_in_metadata": "id_token",
				"clock_skew_seconds": 60., "require_expiration": true, "jwt_cache_config": map[string]any{},
			} {
				with[name] = value
			}
			return with
		}
		Expect(check(credential.TokenCheck{Header: "authorization", Prefix: "Bearer "})).To(Equal(all(map[string]any{
			"from_headers": []any{map[string]any{"name": "authorization", "value_prefix": "Bearer "}},
		})))
		Expect(check(credential.TokenCheck{Cookie: "session", Forward: true})).To(Equal(all(map[string]any{"from_cookies": []any{"session"}, "forward": true})))
		Expect(check(credential.TokenCheck{Query: "token", ClaimHeaders: []credential.ClaimHeader{{Header: "x-user", Claim: "sub"}}})).To(Equal(all(map[string]any{
			"from_params": []any{"token"}, "forward": true, "claim_to_headers": []any{map[string]any{"header_name": "x-user", "claim_name": "sub"}},
		})))
	})
})
