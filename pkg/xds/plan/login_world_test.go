package plan_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	jwtauthnv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/jwt_authn/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

// login is the configuration of a login filter. Each number changes a part of it.
type login struct {
	name string
	// edition changes the requirements for a token, keys the keys, content the secrets.
	edition, keys, content int
}

func (l login) pair() string   { return "login/filter/" + l.name }
func (l login) demand() string { return fmt.Sprintf("filter/%s/%d", l.name, l.edition) }
func (l login) secrets() []string {
	return []string{l.pair() + "/client", l.pair() + "/hmac"}
}

// form is what the Envoy verifies with the login's provider. bad means that the Envoy
// refuses it.
func (l login) form(bad bool) string {
	form := fmt.Sprintf("%d/%d", l.edition, l.keys)
	if bad {
		form = "bad " + form
	}
	return form
}

func filter(name string) snapshot.ObjectRef {
	return snapshot.ObjectRef{Kind: "http_filter", Name: name}
}

func loginSecret(name string, content int) *snapshot.Resource {
	r, err := snapshot.NewSecret(&tlsv3.Secret{Name: name, Type: &tlsv3.Secret_GenericSecret{GenericSecret: &tlsv3.GenericSecret{
		Secret: &corev3.DataSource{Specifier: &corev3.DataSource_InlineString{InlineString: fmt.Sprint(content)}},
	}}}, filter(strings.Split(name, "/")[2]))
	Expect(err).NotTo(HaveOccurred())
	return r
}

func provider(l login, bad bool) *snapshot.Resource {
	r, err := snapshot.NewProvider(l.demand(), &jwtauthnv3.JwtAuthentication{
		Providers: map[string]*jwtauthnv3.JwtProvider{l.demand(): {
			Issuer: l.form(bad), JwksSourceSpecifier: &jwtauthnv3.JwtProvider_LocalJwks{LocalJwks: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineString{InlineString: `{"keys":[]}`},
			}},
		}},
		RequirementMap: map[string]*jwtauthnv3.JwtRequirement{l.demand(): {RequiresType: &jwtauthnv3.JwtRequirement_ProviderName{ProviderName: l.demand()}}},
	}, filter(l.name))
	Expect(err).NotTo(HaveOccurred())
	return r
}

// loginHost is a host whose only route requires the login.
func loginHost(name string, l login, bad bool) *snapshot.Parts {
	vh := &routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}}
	h, err := snapshot.NewHost(vh, []*snapshot.Route{namedRoute("login " + l.name + " " + l.demand())}, service(name),
		snapshot.Needs{Secrets: l.secrets(), Providers: []string{l.demand()}})
	Expect(err).NotTo(HaveOccurred())
	named := snapshot.Named{Providers: []*snapshot.Resource{provider(l, bad)}}
	for _, secret := range l.secrets() {
		named.Secrets = append(named.Secrets, loginSecret(secret, l.content))
	}
	return &snapshot.Parts{Host: h, Domain: name + ".test", Named: named}
}

// openHost is a host without a login. edition changes its only route.
func openHost(name string, edition int) *snapshot.Parts {
	vh := &routev3.VirtualHost{Name: name, Domains: []string{name + ".test"}}
	h, err := snapshot.NewHost(vh, []*snapshot.Route{namedRoute(fmt.Sprint("open ", edition))}, service(name))
	Expect(err).NotTo(HaveOccurred())
	return &snapshot.Parts{Host: h, Domain: name + ".test"}
}

func namedRoute(name string) *snapshot.Route {
	m := unavailable()
	m.Name = name
	r, err := snapshot.NewRoute(m)
	Expect(err).NotTo(HaveOccurred())
	return r
}

// guarded makes a snapshot of hosts behind one listener, with a keeper.
func guarded(revision int64, hosts ...*snapshot.Parts) *snapshot.Snapshot {
	head, err := snapshot.NewRouteHead(&routev3.RouteConfiguration{Name: "rc"}, unavailable(), &snapshot.SecretHost{
		Host: &routev3.VirtualHost{Name: "login/keeper", Domains: []string{"keeper.invalid"}},
		Route: func(pair string) (*routev3.Route, error) {
			m := unavailable()
			m.Name = "keep " + pair
			return m, nil
		},
	})
	Expect(err).NotTo(HaveOccurred())
	jwt, err := snapshot.NewExtensionHead("jwt", &jwtauthnv3.JwtAuthentication{})
	Expect(err).NotTo(HaveOccurred())
	b := snapshot.NewBuilder(head, jwt)
	b.SetListeners([]*snapshot.Resource{listener("http")}, snapshot.Named{})
	for _, h := range hosts {
		b.SetHost(h.Host.Name, h)
	}
	return b.Snapshot(revision)
}

// guardedHost is a virtual host as an Envoy reads it.
type guardedHost struct {
	says    string // the name of its only route
	demand  string // the provider that it names; empty: none
	secrets []string
}

// readHosts decodes a route configuration, with all secrets that it names.
func readHosts(r *snapshot.Resource) (hosts map[string]guardedHost, secrets map[string]bool) {
	var rc routev3.RouteConfiguration
	Expect(r.Body.UnmarshalTo(&rc)).To(Succeed())
	hosts, secrets = map[string]guardedHost{}, map[string]bool{}
	for _, vh := range rc.GetVirtualHosts() {
		h := guardedHost{}
		for _, route := range vh.GetRoutes() {
			h.says = route.GetName()
			words := strings.Fields(h.says)
			switch {
			case len(words) == 2 && words[0] == "keep":
				h.secrets = append(h.secrets, words[1]+"/client", words[1]+"/hmac")
			case len(words) == 3 && words[0] == "login":
				h.secrets, h.demand = login{name: words[1]}.secrets(), words[2]
			}
		}
		for _, s := range h.secrets {
			secrets[s] = true
		}
		hosts[vh.GetName()] = h
	}
	return hosts, secrets
}

// readForms decodes an extension: what it verifies, by provider.
func readForms(r *snapshot.Resource) map[string]string {
	var e corev3.TypedExtensionConfig
	Expect(r.Body.UnmarshalTo(&e)).To(Succeed())
	var m jwtauthnv3.JwtAuthentication
	Expect(e.GetTypedConfig().UnmarshalTo(&m)).To(Succeed())
	forms := map[string]string{}
	for name, p := range m.GetProviders() {
		forms[name] = p.GetIssuer()
	}
	Expect(slices.Sorted(maps.Keys(m.GetRequirementMap()))).To(Equal(slices.Sorted(maps.Keys(forms))))
	return forms
}
