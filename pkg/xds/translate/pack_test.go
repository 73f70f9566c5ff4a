package translate_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rbacconfigv3 "github.com/envoyproxy/go-control-plane/envoy/config/rbac/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	celv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/filters/cel/v3"
	streamv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/access_loggers/stream/v3"
	headermutationv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/header_mutation/v3"
	jwtv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	oauth2v3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/oauth2/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ratelimit/v3"
	rbacv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/rbac/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	inspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	exprv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/rate_limit_descriptors/expr/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	mapperv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_mappers/sni/v3"
	selectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/cert_selectors/on_demand_secret/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/gatehouse-gateway/gatehouse/pkg/ir"
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

// everything is one of each that there is in the ir.
func everything() (ir.Listener, *ir.Host) {
	limits := []ir.RateLimit{{{Kind: ir.RateLimitPath, Key: "path"}}}
	cluster := &ir.Cluster{
		Name: "blue", Strategy: "round_robin", Protocol: "h2", Endpoints: []ir.Endpoint{{Address: "a.test", DNS: true, Port: 443, Weight: 1}},
		TLS:         &ir.UpstreamTLS{Authorities: &ir.Authorities{PEM: "pem"}, Name: "a.test"},
		Connections: ir.Connections{ConnectTimeout: time.Second, Keepalive: time.Second},
	}
	listener := ir.Listener{
		Address: "0.0.0.0", Port: 8080, AccessLog: true, RateLimitEngine: &ir.RateLimitEngine{Socket: "/run/engine.sock"},
		RateLimit: &ir.RateLimitService{Domain: "1/edge", Status: 429},
	}
	headers := &ir.Headers{Request: []ir.HeaderChange{{Action: ir.HeaderSet, Name: "x-team", Value: "shop"}}}
	login := &ir.Login{
		Name: "filter/staff", ClientID: "shop", CookieSuffix: "x", Cluster: cluster, TokenEndpoint: "https://a.test/token",
		AuthorizationEndpoint: "https://a.test/auth", RedirectURI: "https://shop.test/callback", CallbackPath: "/callback",
		Token:   &ir.TokenCheck{Name: "filter/staff/1", ClaimHeaders: []ir.ClaimHeader{{Header: "x-user", Claim: "sub"}}},
		Require: []ir.ClaimMatch{{Claim: []string{"groups"}, Values: []string{"staff"}}},
	}
	return listener, &ir.Host{ClientCA: "clients", Name: "shop", Domain: "shop.test", Headers: headers, Login: login, Routes: []*ir.Route{{
		Name: "root", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, RateLimits: limits,
		Forward: &ir.Forward{Clusters: []ir.WeightedCluster{{Cluster: cluster, Share: 1}}},
	}}}
}

// sent are the messages that Envoy gets for everything.
func sent() []proto.Message {
	GinkgoHelper()
	listener, host := everything()
	redirect := &ir.Route{Name: "redirect", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, Redirect: &ir.Redirect{Status: 308}}
	secure := listener
	secure.TLS = &ir.TLS{Chains: []ir.TLSChain{{Name: "verified", ClientCA: &ir.Authorities{Secret: "clients"}}}}
	list := []proto.Message{must(translate.Listener(listener)), must(translate.Listener(secure)), must(translate.Route(redirect)), must(translate.VirtualHost(host)), translate.RouteConfiguration()}
	for _, c := range must(translate.ListenerResources(listener)).Clusters {
		list = append(list, c)
	}
	for _, r := range host.Routes {
		list = append(list, must(translate.Route(r)))
		for _, c := range r.Forward.Clusters {
			list = append(list, must(translate.Cluster(c.Cluster)))
		}
	}
	return list
}

// packed adds the types that are inside of an Any, at any depth.
func packed(m protoreflect.Message, types map[string]bool) {
	if a, ok := m.Interface().(*anypb.Any); ok {
		types[string(a.MessageName())] = true
		packed(must(a.UnmarshalNew()).ProtoReflect(), types)
		return
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap() && f.MapValue().Message() != nil:
			v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool {
				packed(v.Message(), types)
				return true
			})
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				packed(v.List().Get(i).Message(), types)
			}
		case f.Message() != nil && !f.IsMap():
			packed(v.Message(), types)
		}
		return true
	})
}

// broken has, for each type that is sent inside of an Any, a message that
// Envoy's constraints refuse; nil for one that nothing can break.
func broken() map[string]translate.Message {
	list := []translate.Message{
		&hcmv3.HttpConnectionManager{},
		&rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Policies: map[string]*rbacconfigv3.Policy{"empty": {}}}},
		&routerv3.Router{StrictCheckHeaders: []string{"x-unknown"}},
		&ratelimitv3.RateLimit{},
		&ratelimitv3.RateLimitPerRoute{RateLimits: []*routev3.RateLimit{{}}},
		&earlyv3.HeaderMutation{},
		&exprv3.Descriptor{},
		&headermutationv3.HeaderMutation{Mutations: &headermutationv3.Mutations{RequestMutations: []*mutationv3.HeaderMutation{{}}}},
		&headermutationv3.HeaderMutationPerRoute{Mutations: &headermutationv3.Mutations{RequestMutations: []*mutationv3.HeaderMutation{{}}}},
		&streamv3.StdoutAccessLog{AccessLogFormat: &streamv3.StdoutAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{}}},
		&streamv3.StderrAccessLog{AccessLogFormat: &streamv3.StderrAccessLog_LogFormat{LogFormat: &corev3.SubstitutionFormatString{}}},
		&rbacv3.RBACPerRoute{Rbac: &rbacv3.RBAC{Rules: &rbacconfigv3.RBAC{Policies: map[string]*rbacconfigv3.Policy{"empty": {}}}}},
		&inspectorv3.TlsInspector{InitialReadBufferSize: wrapperspb.UInt32(1)},
		&mapperv3.SNI{},
		&selectorv3.Config{},
		&tlsv3.DownstreamTlsContext{OcspStaplePolicy: 99},
		&tlsv3.UpstreamTlsContext{Sni: strings.Repeat("a", 256)},
		&httpv3.HttpProtocolOptions{},
		&oauth2v3.OAuth2{Config: &oauth2v3.OAuth2Config{}},
		&oauth2v3.OAuth2PerRoute{},
		&jwtv3.PerRouteConfig{},
	}
	byType := map[string]translate.Message{
		string(proto.MessageName(&previoushostsv3.PreviousHostsPredicate{})): nil,
		string(proto.MessageName(&routev3.FilterConfig{})):                   nil,
		string(proto.MessageName(&celv3.ExpressionFilter{})):                 nil,
		string(proto.MessageName(&networkv3.ServerNameInput{})):              nil,
		string(proto.MessageName(&networkv3.TransportProtocolInput{})):       nil,
		string(proto.MessageName(&wrapperspb.StringValue{})):                 nil,
	}
	for _, m := range list {
		byType[string(proto.MessageName(m))] = m
	}
	return byType
}

var _ = Describe("The message of a filter", func() {
	It("is on a route that answers by itself too", func() {
		_, h := everything()
		r := must(translate.Route(&ir.Route{
			Name: "closed", Match: ir.Match{PathKind: ir.PathPrefix, Path: "/"}, Headers: h.Headers, Respond: &ir.Respond{Status: 503},
		}))
		Expect(r.GetTypedPerFilterConfig()).To(HaveKey("envoy.filters.http.header_mutation"))
	})
})

var _ = Describe("What is packed", func() {
	It("is checked, whatever its type", func() {
		types := map[string]bool{}
		for _, m := range sent() {
			packed(m.ProtoReflect(), types)
		}
		Expect(slices.Sorted(maps.Keys(types))).To(Equal(slices.Sorted(maps.Keys(broken()))), "each type that is sent has a broken message here")
		for name, m := range broken() {
			if m == nil {
				if checked, ok := must(a(name)).(translate.Message); ok { // protobuf's own have no constraints
					Expect(checked.ValidateAll()).To(Succeed(), name)
				}
				continue
			}
			_, err := translate.Pack(m)
			Expect(err).To(MatchError(ContainSubstring("invalid ")), name)
		}
	})

	It("is text that is UTF-8", func() {
		_, err := translate.Pack(&tlsv3.UpstreamTlsContext{Sni: "\xff"})
		Expect(err).To(MatchError(ContainSubstring("invalid UTF-8")))
	})

	DescribeTable("makes what is around it an error", func(what string, breakIt func(*ir.Listener, *ir.Host)) {
		l, h := everything()
		breakIt(&l, h)
		_, ofListener := translate.Listener(l)
		_, ofRoute := translate.Route(h.Routes[0])
		_, ofCluster := translate.Cluster(h.Routes[0].Forward.Clusters[0].Cluster)
		errs := map[string]error{"listener": ofListener, "route": ofRoute, "cluster": ofCluster}
		Expect(errs[what]).To(HaveOccurred())
		delete(errs, what)
		for other, err := range errs {
			Expect(err).NotTo(HaveOccurred(), other)
		}
	},
		Entry("the rate-limit filter", "listener", func(l *ir.Listener, _ *ir.Host) { l.RateLimit.Domain = "" }),
		Entry("headers", "route", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Headers = &ir.Headers{Request: []ir.HeaderChange{{Action: ir.HeaderSet}}}
		}),
		Entry("limits", "route", func(_ *ir.Listener, h *ir.Host) { h.Routes[0].RateLimits = []ir.RateLimit{{}} }),
		Entry("a part of a limit that is packed itself", "route", func(_ *ir.Listener, h *ir.Host) { h.Routes[0].RateLimits[0][0].Key = "" }),
		Entry("TLS", "cluster", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Forward.Clusters[0].TLS.Name = strings.Repeat("a", 256)
		}),
		Entry("HTTP/2", "cluster", func(_ *ir.Listener, h *ir.Host) {
			h.Routes[0].Forward.Clusters[0].Connections.ConnectTimeout = 0
		}),
	)
})

// a is an empty message of a type.
func a(name string) (proto.Message, error) {
	return (&anypb.Any{TypeUrl: "type.googleapis.com/" + name}).UnmarshalNew()
}
