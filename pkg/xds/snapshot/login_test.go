package snapshot_test

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// demand is a message with one provider, for an issuer, and its requirement.
func demand(name, issuer string) *jwtauthnv3.JwtAuthentication {
	return &jwtauthnv3.JwtAuthentication{
		Providers: map[string]*jwtauthnv3.JwtProvider{name: {
			Issuer: issuer,
			JwksSourceSpecifier: &jwtauthnv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: `{"keys":[]}`},
			}},
		}},
		RequirementMap: map[string]*jwtauthnv3.JwtRequirement{name: {RequiresType: &jwtauthnv3.JwtRequirement_ProviderName{ProviderName: name}}},
	}
}

// keeping is a route configuration with a keeper.
func keeping() *snapshot.RouteHead {
	GinkgoHelper()
	return must(snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, &routev3.Route{
		Match:  prefix("/"),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}},
	}, &snapshot.SecretHost{
		Host: &routev3.VirtualHost{Name: "login/keeper", Domains: []string{"keeper.invalid"}},
		Route: func(pair string) (*routev3.Route, error) {
			return &routev3.Route{Name: pair, Match: prefix("/" + pair), Action: to("x")}, nil
		},
	}))
}

var _ = Describe("The extension that verifies tokens", func() {
	closed := &jwtauthnv3.JwtAuthentication{BypassCorsPreflight: false, Rules: []*jwtauthnv3.RequirementRule{{
		Match: prefix("/"), RequirementType: &jwtauthnv3.RequirementRule_Requires{Requires: &jwtauthnv3.JwtRequirement{}},
	}}}
	head := func() *snapshot.ExtensionHead { return must(snapshot.NewExtensionHead("jwt", closed)) }
	read := func(r *snapshot.Resource) *jwtauthnv3.JwtAuthentication {
		GinkgoHelper()
		var e corev3.TypedExtensionConfig
		Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
		Expect(e.GetName()).To(Equal("jwt"))
		var m jwtauthnv3.JwtAuthentication
		Expect(e.GetTypedConfig().UnmarshalTo(&m)).To(Succeed())
		return &m
	}

	It("is assembled from its pieces", func() {
		a := must(snapshot.NewProvider("filter/a/1", demand("filter/a/1", "https://a.test"), snapshot.ObjectRef{Kind: "filter", Name: "a"}))
		b := must(snapshot.NewProvider("filter/b/1", demand("filter/b/1", "https://b.test")))
		none, both := head().Join(nil), head().Join([]*snapshot.Resource{a, b})
		Expect(read(none).GetProviders()).To(BeEmpty())
		Expect(read(none).GetRules()).To(HaveLen(1), "closed")
		Expect(read(both).GetRules()).To(HaveLen(1))
		Expect(read(both).GetProviders()).To(HaveLen(2))
		Expect(read(both).GetProviders()["filter/b/1"].GetIssuer()).To(Equal("https://b.test"))
		Expect(read(both).GetRequirementMap()).To(HaveKey("filter/a/1"))
		Expect(both.Version).NotTo(Equal(none.Version))
		Expect(head().Join([]*snapshot.Resource{a, b}).Version).To(Equal(both.Version))
		Expect(both.Objects).To(Equal([]snapshot.ObjectRef{{Kind: "filter", Name: "a"}}))
	})

	It("is not assembled from a piece with another name, or with two providers", func() {
		_, err := snapshot.NewProvider("filter/a/1", demand("filter/b/1", "https://a.test"))
		Expect(err).To(MatchError(ContainSubstring(`jwt provider "filter/a/1"`)))
		two := demand("filter/a/1", "https://a.test")
		two.Providers["filter/b/1"] = two.GetProviders()["filter/a/1"]
		_, err = snapshot.NewProvider("filter/a/1", two)
		Expect(err).To(HaveOccurred())
	})

	It("exists without providers, and is rebuilt only when a provider changes", func() {
		b := snapshot.NewBuilder(keeping(), head())
		Expect(names(b.Snapshot(1).Extensions)).To(Equal([]string{"jwt"}))
		p := must(snapshot.NewProvider("filter/a/1", demand("filter/a/1", "https://a.test")))
		b.SetHost("a", &snapshot.Parts{Host: host("a"), Domain: "a", Named: snapshot.Named{Providers: []*snapshot.Resource{p}}})
		b.SetHost("b", &snapshot.Parts{Host: host("b"), Domain: "b", Named: snapshot.Named{Providers: []*snapshot.Resource{p}}})
		first := b.Snapshot(2)
		Expect(names(first.Providers)).To(Equal([]string{"filter/a/1"}))
		Expect(read(first.Extensions[0]).GetProviders()).To(HaveKey("filter/a/1"))
		b.SetHost("b", nil)
		Expect(b.Snapshot(3).Extensions[0]).To(BeIdenticalTo(first.Extensions[0]))
		b.SetHost("a", nil)
		last := b.Snapshot(4)
		Expect(last.Providers).To(BeEmpty())
		Expect(read(last.Extensions[0]).GetProviders()).To(BeEmpty())
	})
})

var _ = Describe("The host that keeps the secrets of logins", func() {
	secret := func(name string) *snapshot.Resource { return must(snapshot.NewSecret(&tlsv3.Secret{Name: name})) }

	It("has a route for each pair, and does not exist without one", func() {
		b := snapshot.NewBuilder(keeping(), nil)
		b.SetHost("a", &snapshot.Parts{Host: host("a"), Domain: "a", Named: snapshot.Named{Secrets: []*snapshot.Resource{secret("pair/a")}}})
		Expect(b.Snapshot(1).Hosts).To(HaveLen(1))
		b.SetHost("b", &snapshot.Parts{Host: host("b"), Domain: "b", Named: snapshot.Named{Secrets: []*snapshot.Resource{
			secret("login/filter/b/client"), secret("login/filter/b/hmac"), secret("login/filter/b-c/client"), secret("login/globalconfig/g/client"), secret("login/odd"),
		}}})
		hosts := b.Snapshot(2).Hosts
		Expect(hosts).To(HaveLen(3))
		vh := must(hosts[2].VirtualHost())
		Expect(vh.GetName()).To(Equal("login/keeper"))
		var routes []string
		for _, r := range vh.GetRoutes() {
			routes = append(routes, r.GetName())
		}
		Expect(routes).To(Equal([]string{"login/filter/b", "login/filter/b-c", "login/globalconfig/g"}))
		b.SetHost("a", nil)
		Expect(b.Snapshot(3).Hosts[1]).To(BeIdenticalTo(hosts[2]))
		b.SetHost("b", nil)
		Expect(b.Snapshot(4).Hosts).To(BeEmpty())
	})
})

var _ = Describe("A host that uses more than the clusters of its routes", func() {
	It("names all of them, sorted, and none of them if it answers 503", func() {
		route := must(snapshot.NewRoute(&routev3.Route{Match: prefix("/"), Action: to("blue")}))
		h := must(snapshot.NewHost(&routev3.VirtualHost{Name: "h", Domains: []string{"h"}, TypedPerFilterConfig: map[string]*anypb.Any{"own": {TypeUrl: "own"}}}, []*snapshot.Route{route}, snapshot.ObjectRef{},
			snapshot.Needs{Clusters: []string{"login/idp:443", "blue"}, Secrets: []string{"s"}, Providers: []string{"p"}}))
		Expect(h.Clusters).To(Equal([]string{"blue", "login/idp:443"}))

		callback := must(snapshot.NewRoute(&routev3.Route{Match: prefix("/callback"), Action: to("green")}))
		filters := &routev3.VirtualHost{TypedPerFilterConfig: map[string]*anypb.Any{"f": {TypeUrl: "x"}, "own": {TypeUrl: "for both"}}}
		more := must(h.With(filters, []*snapshot.Route{callback}, snapshot.Needs{Secrets: []string{"a"}, Providers: []string{"p"}}))
		Expect(more.Clusters).To(Equal([]string{"blue", "green", "login/idp:443"}))
		Expect(more.Secrets).To(Equal([]string{"a", "s"}))
		Expect(more.Providers).To(Equal([]string{"p"}))
		Expect(h.Secrets).To(Equal([]string{"s"}), "the host itself does not change")
		Expect(more.Version).NotTo(Equal(h.Version))
		vh := must(more.VirtualHost())
		Expect(vh.GetDomains()).To(Equal([]string{"h"}))
		Expect(vh.GetTypedPerFilterConfig()).To(HaveKey("f"))
		Expect(vh.GetTypedPerFilterConfig()["own"].GetTypeUrl()).To(Equal("for both"), "what keeps clients from what only the login sets is in it")
		Expect(vh.GetRoutes()[0].GetMatch().GetPrefix()).To(Equal("/callback"))
		Expect(vh.GetRoutes()[1].GetMatch().GetPrefix()).To(Equal("/"))

		closed := head().Unavailable(more)
		Expect([][]string{closed.Clusters, closed.Secrets, closed.Providers}).To(HaveEach(BeEmpty()))
		Expect(must(closed.VirtualHost()).GetTypedPerFilterConfig()).To(BeEmpty())
	})
})
