package pipeline_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/seam"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/pipeline"
	"github.com/gatehouse-gateway/gatehouse/pkg/xds/snapshot"
)

const (
	// oauthText and oidcText are the same login as a global config and as a filter.
	oauthText = `{"openid_connect":{"provider":{"authorization_endpoint":"https://idp.test/auth","token_endpoint":"https://idp.test/token"},
		"client_id":"a","client_secret":"client","hmac_secret":"hmac","redirect_url":"/callback","redirect_path_matcher":"/callback"}}`
	oidcText = `{"client_id":"b","client_secret":{"secret":"client"},"cookie_secret":"hmac","redirect_uri":"/own",
		"authorization_endpoint":"https://idp.test/auth","token_endpoint":"https://idp.test/token"}`
)

func change(revision int64, objects ...model.Object) model.Change {
	c := model.Change{Revision: revision}
	for i, o := range objects {
		*o.Meta().ID = revision*1_000_000 + int64(i)
		c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	return c
}

func oauth(name, config string) model.Object {
	return &model.GlobalConfig{Name: name, Type: model.GlobalConfigOAuth, Config: model.JSON(config)}
}

func value(name, text string) model.Object {
	return &model.Secret{Name: name, Value: "sealed:v1:" + text}
}

// shops are services on two proxies. gw has a login from a global config. shop is on both
// proxies, plain is public, own and both have a login filter of their own, and both is public
// too.
func shops() model.Change {
	c := filtered(
		proxyNamed("other"), &model.ProxyService{Proxy: "other", Service: "shop"},
		value("client", "s3cret"), value("hmac", "cookies"), oauth("login", oauthText), &model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "login"},
		&model.Filter{Name: "staff", Type: model.FilterOIDC, Config: oidcText},
		&model.Service{Name: "plain", FQDN: "plain.test", Public: true}, &model.Route{Service: "plain", Name: "root", Prefix: "/"},
		&model.Service{Name: "own", FQDN: "own.test"}, &model.Route{Service: "own", Name: "root", Prefix: "/"},
		&model.Service{Name: "both", FQDN: "both.test", Public: true}, &model.Route{Service: "both", Name: "root", Prefix: "/"},
		&model.ServiceFilter{Service: "own", Filter: "staff"}, &model.ServiceFilter{Service: "both", Filter: "staff"},
	)
	for _, name := range []string{"plain", "own", "both"} {
		l := &model.ProxyService{ID: int64(len(c.Entries) + 1), Proxy: "gw", Service: name}
		c.Entries = append(c.Entries, model.Entry{Key: l.Key(), Object: l})
	}
	return c
}

// asks returns, for each service of a proxy, what requires its login; "503" for a closed
// service and "" for an open one.
func asks(b *pipeline.Build, proxy string) map[string]string {
	GinkgoHelper()
	all := map[string]string{}
	for _, h := range b.Gateway(proxy).Hosts {
		switch {
		case len(h.Routes) == 1 && h.Routes[0].Name == "unavailable":
			all[h.Name] = "503"
		case credential.LoginOf(h) != nil:
			all[h.Name] = credential.LoginOf(h).Name
		default:
			all[h.Name] = ""
		}
	}
	return all
}

var _ = Describe("The login of a proxy", func() {
	open := map[string]string{"shop": "globalconfig/login", "plain": "", "own": "filter/staff", "both": "filter/staff"}

	It("applies to services on that proxy that have no login of their own and are not public", func() {
		b := newBuild()
		b.Apply(shops())
		Expect(asks(b, "gw")).To(Equal(open))
		Expect(asks(b, "other")).To(Equal(map[string]string{"shop": ""}))
	})

	DescribeTable("closes those services, and no others, if it cannot be enforced",
		func(why string, objects ...model.Object) {
			b := newBuild()
			before := b.Apply(shops())
			Expect(before.Conditions["proxy gw"]).To(BeEmpty())
			result := b.Apply(change(2, objects...))
			Expect(asks(b, "gw")).To(Equal(map[string]string{"shop": "503", "plain": "", "own": "filter/staff", "both": "filter/staff"}))
			Expect(asks(b, "other")).To(Equal(map[string]string{"shop": ""}))
			Expect(secretsOfLogins(result.Snapshots["gw"])).To(Equal([]string{"login/filter/staff/client", "login/filter/staff/hmac"}))
			Expect(result.Conditions["proxy gw"]).To(Equal([]model.Condition{{
				Key: model.ProxyServiceKey("gw", "shop"), Code: model.Quarantined,
				Message: "globalconfig " + why + `. On proxy "gw" the service answers 503 and lets nobody in`,
			}}))
			By("reopens them")
			result = b.Apply(change(3, oauth("login", oauthText), &model.GlobalConfig{Name: "second", Type: model.GlobalConfigRateLimit, Config: `{"domain":"d"}`}))
			Expect(asks(b, "gw")).To(Equal(open))
			Expect(result.Conditions["proxy gw"]).To(BeEmpty())
			Expect(versions(result.Snapshots["gw"])).To(HaveKeyWithValue("host shop", versions(before.Snapshots["gw"])["host shop"]))
		},
		Entry("it cannot be read", `login cannot be enforced: it cannot be read (config unknown field "colour")`, oauth("login", `{"colour":"red"}`)),
		Entry("there are two", "second cannot be enforced: globalconfig/login is a login too, and only one login can apply",
			oauth("second", oauthText), &model.ProxyGlobalConfig{Proxy: "gw", GlobalConfig: "second"}),
		Entry("a secret does not exist", "login cannot be enforced: secret gone does not exist", oauth("login", strings.Replace(oauthText, `"hmac"`, `"gone"`, 1))),
		Entry("an upstream does not exist", "login cannot be enforced: upstream gone does not exist", oauth("login", strings.Replace(oauthText, `"client_id"`, `"upstream":"gone","client_id"`, 1))),
		Entry("the provider has not answered yet", "login cannot be enforced: the endpoints of the identity provider are not known: it has not answered yet",
			oauth("login", strings.Replace(oauthText, `"authorization_endpoint":"https://idp.test/auth","token_endpoint":"https://idp.test/token"`, `"issuer":"https://idp.test"`, 1))),
	)

	It("closes a service for every host, unless a fixed host is set for the way back", func() {
		b := newBuild()
		b.Apply(shops())
		result := b.Apply(change(2, &model.Service{Name: "shop", FQDN: "*"}))
		Expect(asks(b, "gw")["shop"]).To(Equal("503"))
		Expect(result.Conditions["proxy gw"][0].Message).To(HavePrefix(`globalconfig login cannot be enforced: the service is for every host ("*"): set a host in redirect_uri`))
		b.Apply(change(3, oauth("login", strings.Replace(oauthText, `"/callback","redirect_path`, `"https://login.test/callback","redirect_path`, 1))))
		Expect(asks(b, "gw")["shop"]).To(Equal("globalconfig/login"))
	})

	It("leaves a service closed that has a broken login of its own", func() {
		b := newBuild()
		b.Apply(shops())
		b.Apply(change(2, &model.Filter{Name: "staff", Type: model.FilterOIDC, Config: `{}`}))
		Expect(asks(b, "gw")).To(Equal(map[string]string{"shop": "globalconfig/login", "plain": "", "own": "503", "both": "503"}))
	})

	It("follows everything that it names, and touches only the services that it applies to", func() {
		b := newBuild()
		b.Apply(shops())
		authority := func(pem string) model.Object { return &model.Secret{Name: "ca", Cert: pem} }
		idp := model.NewUpstream()
		idp.Name, idp.IP, idp.Port, idp.Protocol, idp.ValidationCACertificate, idp.ValidationSubjectName = "idp", "192.0.2.5", 443, "tls", "ca", "idp.test"
		moved := *idp
		moved.Port = 8443
		said := func(text string) model.Change {
			c := change(0)
			c.Learned = map[model.Key]model.Providers{model.GlobalConfigKey("login"): {{
				Source: model.ProviderSource{Issuer: "https://idp.test", Upstream: "idp", UpstreamFor: "https://idp.test/token", Discover: true}, JWKS: text,
			}}}
			return c
		}
		with := strings.NewReplacer(`"client_id"`, `"upstream":"idp","client_id"`, `{"authorization`, `{"issuer":"https://idp.test","authorization`).Replace(oauthText)
		last := versions(b.Apply(change(2, authority("one"), idp, oauth("login", with))).Snapshots["gw"])
		for i, step := range []struct {
			change    model.Change
			different []string
		}{
			{said(`{"keys":[]}`), []string{"cluster blue", "cluster idp", "host login/keeper", "host shop", "part envoy.filters.http.jwt_authn", "part globalconfig/login/35ec17d7", "routes", "secret authorities/ca", "secret login/globalconfig/login/client", "secret login/globalconfig/login/hmac"}},
			{said(`{"keys": []}`), []string{"part envoy.filters.http.jwt_authn", "part globalconfig/login/35ec17d7"}},
			{change(0, authority("two")), []string{"secret authorities/ca"}},
			{change(0, &moved), []string{"cluster idp"}},
			{change(0, value("client", "rotated")), []string{"secret login/filter/staff/client", "secret login/globalconfig/login/client"}},
			{change(0, value("hmac", "rotated")), []string{"secret login/filter/staff/hmac", "secret login/globalconfig/login/hmac"}},
			{change(0, value("unused", "a")), []string{}},
		} {
			step.change.Revision = int64(i + 3)
			result := b.Apply(step.change)
			Expect(result.Snapshots).NotTo(HaveKey("other"), "step %d", i)
			now := maps.Clone(last)
			if s := result.Snapshots["gw"]; s != nil {
				now = versions(s)
			}
			Expect(differences(last, now)).To(Equal(step.different), "step %d", i)
			last = now
		}
	})

	It("is built once for all services, and not again when a service or the proxy changes", func() {
		allocations := func(services int, changed func(i int) model.Object) float64 {
			b := newBuild()
			c := manyServices(services)
			for _, o := range []model.Object{value("client", "s3cret"), value("hmac", "cookies"), oauth("login", oauthText)} {
				c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
			}
			Expect(b.Apply(c).Snapshots["gw"].Hosts).To(HaveLen(services + 1))
			Expect(asks(b, "gw")).To(HaveEach("globalconfig/login"))
			i := 0
			return testing.AllocsPerRun(20, func() {
				i++
				b.Apply(change(2, changed(i)))
			})
		}
		for what, changed := range map[string]func(int) model.Object{
			"a service": func(int) model.Object { return &model.Route{Service: "s7", Name: "root", Prefix: "/"} },
			"the proxy": func(i int) model.Object {
				p := proxyNamed("gw")
				p.TrustedHops = i % 2
				return p
			},
		} {
			few, many := allocations(50, changed), allocations(1000, changed)
			AddReportEntry("allocations", fmt.Sprintf("a change of %s behind a login: %.0f of 50 services, %.0f of 1000", what, few, many))
			Expect(many).To(BeNumerically("<", few+100), what)
		}
		By("the client secret")
		few, many := allocations(50, rotated), allocations(1000, rotated)
		AddReportEntry("allocations", fmt.Sprintf("a change of the login: %.0f for each service", (many-few)/950))
		Expect((many - few) / 950).To(BeNumerically("<", 500))
	})
})

// rotated is the client's secret, different for each i.
func rotated(i int) model.Object { return value("client", fmt.Sprint(i)) }

func secretsOfLogins(s *snapshot.Snapshot) (names []string) {
	for _, r := range s.Secrets {
		if _, is := snapshot.LoginPair(r.Name); is {
			names = append(names, r.Name)
		}
	}
	return names
}

// differences returns the names with different versions, sorted.
func differences(a, b map[string]string) []string {
	names := slices.Collect(maps.Keys(b))
	for name := range a {
		if _, have := b[name]; !have {
			names = append(names, name)
		}
	}
	names = slices.DeleteFunc(names, func(name string) bool { return a[name] == b[name] })
	slices.Sort(names)
	return names
}

var _ = Describe("A login of a service", func() {
	It("closes a route that it is attached to: logins are for services only", func() {
		found, conditions := statuses(filtered(value("client", "a"), value("hmac", "b"),
			&model.Filter{Name: "guard", Type: model.FilterOIDC, Config: oidcText}, &model.RouteFilter{Service: "shop", Route: "guarded", Filter: "guard"}))
		Expect(found).To(Equal(map[string]uint32{"open": 0, "guarded": 503}))
		Expect(conditions["service shop"][0].Message).To(Equal(`the route has filter guard of type "http_filter_oidc", which works for whole services only, and answers 503`))
	})

	It("closes the service if there are two", func() {
		found, conditions := statuses(filtered(value("client", "a"), value("hmac", "b"),
			&model.Filter{Name: "one", Type: model.FilterOIDC, Config: oidcText}, &model.ServiceFilter{Service: "shop", Filter: "one"},
			&model.Filter{Name: "two", Type: model.FilterOIDC, Config: oidcText}, &model.ServiceFilter{Service: "shop", Filter: "two"}))
		Expect(found).To(Equal(map[string]uint32{"unavailable": 503}))
		Expect(conditions["service shop"][0].Message).To(HavePrefix("filter two cannot be enforced: the service has another http_filter_oidc too"))
	})

	It("of a proxy leaves the answer of a service that is closed for maintenance", func() {
		c := shops()
		for _, o := range []model.Object{
			&model.Filter{Name: "closed", Type: model.FilterMaintenance, Config: `{"body":"gone fishing"}`},
			&model.ServiceFilter{Service: "shop", Filter: "closed"},
		} {
			*o.Meta().ID = int64(len(c.Entries) + 1)
			c.Entries = append(c.Entries, model.Entry{Key: o.Key(), Object: o})
		}
		for _, h := range newBuild().Apply(c).Snapshots["gw"].Hosts {
			vh, err := h.VirtualHost()
			Expect(err).NotTo(HaveOccurred())
			if h.Name == "shop" {
				Expect(seam.Said(vh.GetMetadata(), "login").GetStringValue()).To(Equal("globalconfig/login"))
				answer := seam.Said(vh.GetMetadata(), "maintenance").GetStructValue().GetFields()
				Expect(answer["body"].GetStringValue()).To(Equal("gone fishing"))
			}
		}
	})

	It("has the same secrets for every service that it is attached to", func() {
		b := newBuild()
		s := b.Apply(shops()).Snapshots["gw"]
		Expect(secretsOfLogins(s)).To(Equal([]string{
			"login/filter/staff/client", "login/filter/staff/hmac", "login/globalconfig/login/client", "login/globalconfig/login/hmac",
		}))
		for _, h := range s.Hosts {
			if h.Name == "own" || h.Name == "both" {
				Expect(h.Secrets).To(Equal([]string{"login/filter/staff/client", "login/filter/staff/hmac"}))
			}
		}
		Expect(slices.ContainsFunc(s.Hosts, func(h *snapshot.Host) bool { return h.Name == credential.KeeperName })).To(BeTrue())
	})
})

var _ = Describe("A login that Envoy would refuse", func() {
	const good = `{"client_id":"b","client_secret":{"secret":"nowhere"},"cookie_secret":"nowhere","redirect_uri":"/own","upstream":"nowhere","issuer":"https://idp.test"}`
	service := func(config string, change func(*model.OIDCFilter)) error {
		f := (&model.Filter{Name: "staff", Type: model.FilterOIDC, Config: model.JSON(config)}).Parse()
		change(f.Spec.(*model.OIDCFilter))
		return pipeline.ServiceRefusal(&model.ServiceTree{Service: &model.Service{Name: "shop", FQDN: "shop.test"}, Filters: []*model.ParsedFilter{f}})
	}
	global := func(config string) error {
		return pipeline.GlobalConfigRefusal(&model.GlobalConfig{Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(config)})
	}
	It("is refused when it is written, whatever becomes of its secrets, upstream and provider", func() {
		nothing := func(*model.OIDCFilter) {}
		Expect(service(good, nothing)).To(Succeed())
		Expect(service(strings.Replace(good, `"issuer":"https://idp.test"`, `"authorization_endpoint":"http://idp.test/a","token_endpoint":"http://idp.test/t"`, 1), nothing)).To(Succeed())
		By("a fault that no check knows: all known faults are refused earlier")
		Expect(service(good, func(c *model.OIDCFilter) { c.ClaimHeaders = map[string]string{"x\ny": "email"} })).
			To(MatchError(ContainSubstring("invalid JwtClaimToHeader.HeaderName: value does not match")))
		Expect(service(good, func(c *model.OIDCFilter) { c.RedirectURI = "" })).To(MatchError(ContainSubstring("invalid OAuth2Config.RedirectUri")))
		Expect(global(oauthText)).To(Succeed())
		Expect(global(`{"colour":"red"}`)).To(MatchError(ContainSubstring("cannot be read")))
	})
})
