package compile_test

import (
	"errors"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/filter/credential"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/ir"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
)

// loginCase is a configuration with one login, on a service and on a proxy, and what it
// is compiled to.
type loginCase struct {
	domain string
	// filter and global are the same login in both forms.
	filter, global string
	objects        map[model.Key]model.Object
	provider       *model.Provider
	settings       compile.Settings
}

const (
	loginFilter = `{"client_id":"shop","client_secret":{"secret":"client"},"cookie_secret":"cookies","upstream":"idp","redirect_uri":"/back","issuer":"https://idp.test/realm"}`
	loginGlobal = `{"openid_connect":{"client_id":"shop","client_secret":"client","hmac_secret":"cookies","upstream":"idp","redirect_url":"/back","redirect_path_matcher":"/back",
		"provider":{"issuer":"https://idp.test/realm"}}}`
)

// newLoginCase returns a case that works.
func newLoginCase() *loginCase {
	c := &loginCase{
		domain: "shop.test", filter: loginFilter, global: loginGlobal, objects: map[model.Key]model.Object{},
		provider: &model.Provider{
			Source:                model.ProviderSource{Issuer: "https://idp.test/realm", Upstream: "idp", UpstreamFor: "https://idp.test/realm", Discover: true},
			AuthorizationEndpoint: "https://idp.test/auth", TokenEndpoint: "https://idp.test/token", JWKS: `{"keys":[]}`,
		},
		settings: compile.Settings{Authorities: "pem", Open: func(sealed, _ string) (string, error) {
			if text, ok := strings.CutPrefix(sealed, "sealed:v1:"); ok && text != "lost" {
				return text, nil
			}
			return "", errors.New("another key")
		}},
	}
	c.put(&model.Secret{Name: "client", Value: "sealed:v1:s3cret"})
	c.put(&model.Secret{Name: "cookies", Value: "sealed:v1:c00kies"})
	c.put(upstream("idp", func(u *model.Upstream) { u.Protocol = "tls" }))
	return c
}

func (c *loginCase) put(o model.Object) { c.objects[o.Key()] = o }

// both replaces a part of the configuration in both forms.
func (c *loginCase) both(old, to string) {
	GinkgoHelper()
	Expect(c.filter).To(ContainSubstring(old))
	Expect(c.global).To(ContainSubstring(old))
	c.filter, c.global = strings.Replace(c.filter, old, to, 1), strings.Replace(c.global, old, to, 1)
}

// config is the configuration as it was read, in one change.
func (c *loginCase) config() *model.Config {
	all := []model.Object{
		&model.Service{Name: "shop", FQDN: c.domain}, model.NewProxy(),
		&model.Filter{Name: "login", Type: model.FilterOIDC, Config: model.JSON(c.filter)}, &model.ServiceFilter{Service: "shop", Filter: "login"},
		&model.GlobalConfig{Name: "login", Type: model.GlobalConfigOAuth, Config: model.JSON(c.global)},
	}
	all[1].(*model.Proxy).Name = "gw"
	for _, o := range c.objects {
		all = append(all, o)
	}
	change := model.Change{Revision: 1, Full: true, Learned: map[model.Key]model.Providers{
		model.FilterKey("login"): {c.provider}, model.GlobalConfigKey("login"): {c.provider},
	}}
	for i, o := range all {
		*o.Meta().ID = int64(i + 1)
		change.Entries = append(change.Entries, model.Entry{Key: o.Key(), Object: o})
	}
	config := model.NewConfig()
	config.Apply(change)
	return config
}

// ofFilter returns the host of the service, and why it must not be served.
func (c *loginCase) ofFilter() (*ir.Host, *model.Condition) {
	return compile.Host(c.config().Service("shop"), nil, c.settings, nil)
}

// ofProxy returns the login of a service on the proxy.
func (c *loginCase) ofProxy() (*ir.Host, error) {
	p := c.config().Proxy("gw")
	login, err := credential.GlobalLogin(p.GlobalConfigs, compile.Places(p.Named, c.settings))
	if err != nil {
		return nil, err
	}
	return credential.WithLogin(&ir.Host{Name: "shop", Domain: c.domain}, login)
}

var _ = Describe("A login", func() {
	It("is the same in both forms, except for names", func() {
		c := newLoginCase()
		host, closed := c.ofFilter()
		Expect(closed).To(BeNil())
		proxy, err := c.ofProxy()
		Expect(err).NotTo(HaveOccurred())
		a, b := *credential.LoginOf(host), *credential.LoginOf(proxy)
		Expect(a.Name).To(Equal("filter/login"))
		Expect(b.Name).To(Equal("globalconfig/login"))
		Expect(a.ClientSecret).To(Equal("s3cret"))
		Expect(a.HMACKey).To(HaveLen(32))
		Expect(a.RedirectDomains).To(Equal([]string{"shop.test"}))
		By("each with its own key, cookies and check")
		Expect(a.HMACKey).NotTo(Equal(b.HMACKey))
		Expect(a.CookieSuffix).NotTo(Equal(b.CookieSuffix))
		Expect(a.Token.Name).NotTo(Equal(b.Token.Name))
		a.Name, a.HMACKey, a.CookieSuffix, a.Token = b.Name, b.HMACKey, b.CookieSuffix, b.Token
		Expect(a).To(Equal(b))
		Expect(host.Reserved).To(Equal(proxy.Reserved))
	})

	DescribeTable("closes what requires it, if it cannot be enforced:", func(change func(*loginCase), why string) {
		c := newLoginCase()
		change(c)
		host, closed := c.ofFilter()
		Expect(credential.LoginOf(host)).To(BeNil())
		Expect(closed).To(Equal(&model.Condition{
			Key: model.ServiceFilterKey("shop", "login"), Code: model.Quarantined,
			Message: "filter login cannot be enforced: " + why + ". The service answers 503 and lets nobody in",
		}))
		_, err := c.ofProxy()
		Expect(err).To(MatchError("globalconfig login cannot be enforced: " + why))
	},
		Entry("the provider has not answered", func(c *loginCase) { c.provider = nil }, "the endpoints of the identity provider are not known: it has not answered yet"),
		Entry("the answer is from another issuer", func(c *loginCase) { c.provider.Source.Issuer = "https://other.test" },
			"the endpoints of the identity provider are not known: it has not answered yet"),
		Entry("the answer came through another upstream", func(c *loginCase) { c.provider.Source.Upstream = "other" },
			"the endpoints of the identity provider are not known: it has not answered yet"),
		Entry("the provider fails", func(c *loginCase) { c.provider.TokenEndpoint, c.provider.Fault = "", "status 500" },
			"the endpoints of the identity provider are not known: status 500"),
		Entry("the keys are not known", func(c *loginCase) { c.provider.JWKS = "" }, "the keys of the identity provider are not known: it has not answered yet"),
		Entry("the keys are not known, and the endpoints are configured", func(c *loginCase) {
			c.provider = nil
			c.filter = strings.Replace(c.filter, `"issuer"`, `"authorization_endpoint":"https://idp.test/a","token_endpoint":"https://idp.test/t","issuer"`, 1)
			c.global = strings.Replace(c.global, `"issuer"`, `"authorization_endpoint":"https://idp.test/a","token_endpoint":"https://idp.test/t","issuer"`, 1)
		}, "the keys of the identity provider are not known: it has not answered yet"),
		Entry("the answer has an endpoint that is not a URL", func(c *loginCase) { c.provider.TokenEndpoint = "token" }, `token_endpoint "token" is not a URL`),
		Entry("secrets cannot be read", func(c *loginCase) { c.settings.Open = nil }, "secrets cannot be read"),
		Entry("the client secret does not exist", func(c *loginCase) { delete(c.objects, model.SecretKey("client")) }, "secret client does not exist"),
		Entry("the client secret has no text", func(c *loginCase) { c.put(&model.Secret{Name: "client", Cert: "pem"}) }, "secret client has no value (Secret_value)"),
		Entry("the client secret is empty", func(c *loginCase) { c.put(&model.Secret{Name: "client", Value: "sealed:v1:"}) }, "secret client has no value (Secret_value)"),
		Entry("the client secret cannot be decrypted", func(c *loginCase) { c.put(&model.Secret{Name: "client", Value: "sealed:v1:lost"}) },
			"secret client cannot be read: it was sealed with another key"),
		Entry("the cookie secret does not exist", func(c *loginCase) { delete(c.objects, model.SecretKey("cookies")) }, "secret cookies does not exist"),
		Entry("the cookie secret is empty", func(c *loginCase) { c.put(&model.Secret{Name: "cookies", Value: "sealed:v1:"}) }, "secret cookies has no value (Secret_value)"),
		Entry("the cookie secret cannot be decrypted", func(c *loginCase) { c.put(&model.Secret{Name: "cookies", Value: "sealed:v1:lost"}) },
			"secret cookies cannot be read: it was sealed with another key"),
		Entry("the upstream does not exist", func(c *loginCase) { delete(c.objects, model.UpstreamKey("idp")) }, "upstream idp does not exist"),
		Entry("the upstream is out of rotation", func(c *loginCase) {
			c.put(upstream("idp", func(u *model.Upstream) { u.Protocol, u.Weight = "tls", 0 }))
		}, "upstream idp has weight 0"),
		Entry("the upstream speaks no TLS", func(c *loginCase) { c.put(upstream("idp")) }, "the token endpoint is https, and upstream idp has the protocol http"),
		Entry("the upstream's authority does not exist", func(c *loginCase) {
			c.put(upstream("idp", func(u *model.Upstream) { u.Protocol, u.ValidationCACertificate = "tls", "ca" }))
		}, "the identity provider has upstream idp, whose certificate authority has no certificate"),
		Entry("nothing verifies the provider's certificate", func(c *loginCase) { c.settings.Authorities = "" },
			"the identity provider has upstream idp, whose certificate cannot be verified, because no certificate authorities were found on the system (--upstream-ca-file)"),
		Entry("the provider's address is ruled out", func(c *loginCase) { c.settings.Upstreams = denying("192.0.2.0/24") },
			"the identity provider has an address that --upstream-allow or --upstream-deny rules out"),
		Entry("the provider's own address is ruled out", func(c *loginCase) {
			c.both(`"upstream":"idp",`, "")
			c.provider.Source.Upstream, c.provider.Source.UpstreamFor, c.provider.TokenEndpoint = "", "", "https://192.0.2.7/token"
			c.settings.Upstreams = denying("192.0.2.0/24")
		}, "the identity provider has an address that --upstream-allow or --upstream-deny rules out"),
		Entry("the provider is the machine of a tenant's gateway", func(c *loginCase) {
			c.both(`"upstream":"idp",`, "")
			c.provider.Source.Upstream, c.provider.Source.UpstreamFor, c.provider.TokenEndpoint = "", "", "https://localhost:9901/token"
			c.settings.Foreign = &egress.Foreign{}
		}, "the identity provider has an address that is a loopback address"),
		Entry("the service is for every host, and users would be sent back to any of them", func(c *loginCase) { c.domain = "*" },
			`the service is for every host ("*"): set a host in redirect_uri, or anybody could send users elsewhere after a login`),
	)

	It("closes a service whose inline client secret cannot be decrypted", func() {
		c := newLoginCase()
		c.filter = strings.Replace(c.filter, `{"secret":"client"}`, `"sealed:v1:lost"`, 1)
		_, closed := c.ofFilter()
		Expect(closed.Message).To(HavePrefix("filter login cannot be enforced: client_secret cannot be read: it was sealed with another key"))
		c.filter = strings.Replace(c.filter, "lost", "found", 1)
		host, closed := c.ofFilter()
		Expect(closed).To(BeNil())
		Expect(credential.LoginOf(host).ClientSecret).To(Equal("found"))
	})

	It("closes a service whose filter requires claims that are not verified", func() {
		c := newLoginCase()
		f := &model.Filter{Name: "login", Type: model.FilterOIDC, Config: model.JSON(strings.Replace(c.filter, `"issuer":"https://idp.test/realm"`,
			`"authorization_endpoint":"https://idp.test/a","token_endpoint":"https://idp.test/t"`, 1))}
		tree := &model.ServiceTree{Service: &model.Service{Name: "shop", FQDN: "shop.test"}, Filters: []*model.ParsedFilter{f.Parse()}, Named: c.objects}
		_, closed := compile.Host(tree, nil, c.settings, nil)
		Expect(closed).To(BeNil())
		tree.Filters[0].Spec.(*model.OIDCFilter).Require = map[string][]string{"groups": {"staff"}}
		host, closed := compile.Host(tree, nil, c.settings, nil)
		Expect(credential.LoginOf(host)).To(BeNil())
		Expect(closed.Message).To(ContainSubstring("claims can be used only if the id_token is verified"))
	})

	It("has its own key for each name, client, provider and cookie secret, and the same key for the same ones", func() {
		key := func(change func(*loginCase)) string {
			c := newLoginCase()
			change(c)
			host, closed := c.ofFilter()
			Expect(closed).To(BeNil())
			return string(credential.LoginOf(host).HMACKey)
		}
		same := key(func(*loginCase) {})
		Expect(key(func(c *loginCase) { c.put(&model.Secret{Name: "client", Value: "sealed:v1:rotated"}) })).To(Equal(same))
		Expect(key(func(c *loginCase) { c.provider.JWKS = `{"keys":[{}]}` })).To(Equal(same))
		Expect(key(func(c *loginCase) { c.both(`"client_id":"shop"`, `"client_id":"other"`) })).NotTo(Equal(same))
		Expect(key(func(c *loginCase) { c.put(&model.Secret{Name: "cookies", Value: "sealed:v1:rotated"}) })).NotTo(Equal(same))
		Expect(key(func(c *loginCase) {
			c.both("https://idp.test/realm", "https://idp.test/other")
			c.provider.Source.Issuer, c.provider.Source.UpstreamFor = "https://idp.test/other", "https://idp.test/other"
		})).NotTo(Equal(same))
	})

	DescribeTable("sends users back to the host that they requested, and to the host of redirect_uri", func(domain, redirect string, want ...string) {
		c := newLoginCase()
		c.domain = domain
		c.filter = strings.Replace(c.filter, `"/back"`, `"`+redirect+`"`, 1)
		host, closed := c.ofFilter()
		Expect(closed).To(BeNil())
		Expect(credential.LoginOf(host).RedirectDomains).To(Equal(want))
	},
		Entry(nil, "shop.test", "/back", "shop.test"),
		Entry(nil, "shop.test", "https://SHOP.test/back", "shop.test"),
		Entry(nil, "SHOP.test", "https://login.test:8443/back", "shop.test", "login.test"),
		Entry(nil, "*.shop.test", "/back", "*.shop.test"),
		Entry(nil, "[2001:db8::1]", "/back", "2001:db8::1"),
		Entry(nil, "*", "https://login.test/back", "login.test"),
	)
})

// denying returns lists that deny addresses.
func denying(network string) egress.Lists {
	GinkgoHelper()
	e, err := egress.ParseEntry(network)
	Expect(err).NotTo(HaveOccurred())
	return egress.Lists{Deny: []egress.Entry{e}}
}
