package e2e_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// guarded is a gateway whose services require a login at a provider, by a global config
// that is attached to no proxy yet.
type guarded struct {
	secured
	idp *testkit.OIDCProvider
}

// guard starts a gateway and a provider that knows the clients proxy and own. The
// services are shop, other (both with HTTPS) and news, which is public.
func guard(ctx SpecContext) guarded {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	ca := filepath.Join(dir, "ca.pem")
	authority, err := testkit.NewAuthority("provider")
	Expect(err).NotTo(HaveOccurred())
	Expect(os.WriteFile(ca, []byte(authority.PEM), 0o600)).To(Succeed())
	s, _ := secure("--upstream-ca-file", ca)
	g := guarded{secured: s}
	g.idp, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), authority, testkit.OIDCSettings{
		Clients: []testkit.OIDCClient{
			{ID: "proxy", Secret: "pr0xy", RedirectURIs: []string{g.url("shop", "/callback"), g.url("other", "/callback")}},
			{ID: "own", Secret: "0wn", RedirectURIs: []string{g.url("own", "/own/callback")}},
		},
		Users: map[string]testkit.OIDCUser{"anna": {Password: "pw"}},
	})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func() { Expect(g.idp.Kill()).To(Succeed()) })
	for _, name := range []string{"shop", "other", "news"} {
		g.serve(name, name+".test", name+".test")
	}
	applied(g.api, http.MethodPatch, "/service/news", "Public=true")
	post(g.api, "/secret", "Secret_name=client", "Secret_value=pr0xy")
	post(g.api, "/secret", "Secret_name=hmac", "Secret_value="+cookieSecret)
	return g
}

// oauth returns the configuration of the specification. Its namespaces are those of a
// Kubernetes cluster.
func (g guarded) oauth() string {
	return fmt.Sprintf(`{
		"openid_connect": {
			"provider": {"authorization_endpoint": "%[1]s/auth", "token_endpoint": "%[1]s/token"},
			"client_id": "proxy", "client_secret": "client", "client_secret_namespace": "kube-a", "hmac_secret": "hmac", "hmac_secret_namespace": "kube-b",
			"scopes": ["openid", "email"], "redirect_url": "%%REQ(x-forwarded-proto)%%://%%REQ(:authority)%%/callback",
			"redirect_path_matcher": "/callback", "default_signout_path": "/signout"
		},
		"external_oauth_service": {"name": "localhost", "namespace": "kube-c", "port": %[2]d, "protocol": "tls"}
	}`, g.idp.Issuer, g.idp.Port)
}

// addOwn makes a filter with another login.
func (g guarded) addOwn() {
	GinkgoHelper()
	post(g.api, "/filter", "Filter_name=own", "Filter_type=http_filter_oidc", fmt.Sprintf(`Filter_config={"client_id": "own", "client_secret": "0wn",
		"cookie_secret": "hmac", "redirect_uri": "/own/callback", "authorization_endpoint": "%[1]s/auth", "token_endpoint": "%[1]s/token"}`, g.idp.Issuer))
}

// attach makes every service of the proxy require a login.
func (g guarded) attach() {
	GinkgoHelper()
	post(g.api, "/globalconfig", "globalconfig_name=login", "globalconfig_type=globalconfig_oauth", "config="+g.oauth())
	applied(g.api, http.MethodPost, "/proxy/gw/globalconfig/login")
}

func (g guarded) url(service, path string) string {
	return "https://" + service + ".test:" + strconv.Itoa(g.httpsPort) + path
}

func (g guarded) browser() *testkit.Browser {
	b := testkit.NewBrowser(g.authority, g.idp.Authority)
	DeferCleanup(b.Close)
	return b
}

// open opens a page without a session, and follows no redirect.
func (g guarded) open(ctx SpecContext, address string, header ...string) testkit.Visit {
	GinkgoHelper()
	r := testkit.Request{URL: address, Header: http.Header{"Accept": {"text/html,*/*"}}}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	v, err := g.browser().Do(ctx, r)
	Expect(err).NotTo(HaveOccurred())
	return v
}

// logIn opens a page, and logs in unless the provider still has a session.
func (g guarded) logIn(ctx SpecContext, b *testkit.Browser, address string) testkit.Visit {
	GinkgoHelper()
	page, err := b.Open(ctx, address)
	Expect(err).NotTo(HaveOccurred())
	if page.URL.Host == "localhost:"+strconv.Itoa(g.idp.Port) {
		page, err = b.LogIn(ctx, page, "anna", "pw")
		Expect(err).NotTo(HaveOccurred())
	}
	return page
}

// expectAsked checks that a client is redirected to the provider.
func (g guarded) expectAsked(v testkit.Visit, client, scope, redirect string) {
	GinkgoHelper()
	Expect(outcomeOf(testkit.Exchange{Status: v.Status, Location: v.Header.Get("Location"), Body: []byte(v.Body)}, g.idp.Issuer)).
		To(Equal(outcome{"login", client, scope, redirect}))
}

var _ = Describe("A globalconfig_oauth", func() {
	It("makes every service of its proxies require a login, except public ones and those with a filter of their own", func(ctx SpecContext) {
		g := guard(ctx)
		for _, name := range []string{"shop", "other", "news"} {
			Expect(g.open(ctx, g.url(name, "/")).Status).To(Equal(http.StatusOK), "before")
		}
		addRoute(g.api, "shop", "health", "/health", `{"public": true}`, "blue")
		g.attach()

		By("a login, back to where it began, for the services of the proxy each with its own session")
		b := g.browser()
		for _, name := range []string{"shop", "other"} {
			g.expectAsked(g.open(ctx, g.url(name, "/deep?a=1")), "proxy", "openid email", g.url(name, "/callback"))
			page := g.logIn(ctx, b, g.url(name, "/deep?a=1"))
			Expect(page.URL.String()).To(Equal(g.url(name, "/deep?a=1")))
			Expect(page.Status).To(Equal(http.StatusOK), page.Body)
			Expect(page.Body).NotTo(ContainSubstring("OauthHMAC"), "the backend sees no cookies of the login")
			Expect(page.Body).NotTo(ContainSubstring("BearerToken"))
			Expect(page.Body).NotTo(ContainSubstring("IdToken"))
		}

		By("the session of one is not valid for another")
		cookie := b.Visits[len(b.Visits)-1].Sent.Get("Cookie")
		Expect(cookie).NotTo(BeEmpty())
		Expect(g.open(ctx, g.url("other", "/"), "Cookie", cookie).Status).To(Equal(http.StatusOK))
		Expect(g.open(ctx, g.url("shop", "/"), "Cookie", cookie).Status).To(Equal(http.StatusFound))

		By("a script gets 401")
		Expect(g.open(ctx, g.url("shop", "/"), "X-Requested-With", "XMLHttpRequest").Status).To(Equal(http.StatusUnauthorized))

		By("a public service and a public route")
		Expect(g.open(ctx, g.url("news", "/")).Status).To(Equal(http.StatusOK))
		Expect(g.open(ctx, g.url("shop", "/health")).Status).To(Equal(http.StatusOK))
		Expect(g.open(ctx, g.url("shop", "/healthy")).Status).To(Equal(http.StatusOK), "it is a prefix")
		Expect(g.open(ctx, g.url("shop", "/heal")).Status).To(Equal(http.StatusFound))

		By("a filter of a service takes precedence, even if it is public")
		g.addOwn()
		g.serve("own", "own.test", "own.test")
		applied(g.api, http.MethodPost, "/service/own/filter/own")
		g.expectAsked(g.open(ctx, g.url("own", "/")), "own", "openid", g.url("own", "/own/callback"))
		applied(g.api, http.MethodPatch, "/service/own", "Public=true")
		g.expectAsked(g.open(ctx, g.url("own", "/")), "own", "openid", g.url("own", "/own/callback"))
		page := g.logIn(ctx, b, g.url("own", "/"))
		Expect(page.Status).To(Equal(http.StatusOK), page.Body)
		applied(g.api, http.MethodDelete, "/service/own/filter/own")
		Expect(g.open(ctx, g.url("own", "/")).Status).To(Equal(http.StatusOK), "it is public")
		applied(g.api, http.MethodPatch, "/service/own", "Public=false")
		g.expectAsked(g.open(ctx, g.url("own", "/")), "proxy", "openid email", g.url("own", "/callback"))

		By("signing out")
		page, err := b.Do(ctx, testkit.Request{URL: g.url("shop", "/signout")})
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Status).To(Equal(http.StatusFound))
		page, err = b.Do(ctx, testkit.Request{URL: g.url("shop", "/")})
		Expect(err).NotTo(HaveOccurred())
		g.expectAsked(page, "proxy", "openid email", g.url("shop", "/callback"))

		By("no proxy is left without it while it is attached to none")
		applied(g.api, http.MethodDelete, "/proxy/gw/globalconfig/login")
		g.expectAsked(g.open(ctx, g.url("shop", "/")), "proxy", "openid email", g.url("shop", "/callback"))
		applied(g.api, http.MethodDelete, "/globalconfig/login")
		for _, name := range []string{"shop", "other", "news"} {
			Expect(g.open(ctx, g.url(name, "/")).Status).To(Equal(http.StatusOK), "after")
		}
	})

	It("comes after the redirect to HTTPS and after 403, and before HSTS", func(ctx SpecContext) {
		g := guard(ctx)
		g.attach()
		applied(g.api, http.MethodPatch, "/service/shop", "Https=redirect&Hsts_seconds=600")
		r := g.get("shop.test:"+strconv.Itoa(g.port), "/deep")
		Expect(r.Status).To(Equal(http.StatusMovedPermanently))
		Expect(r.Header.Get("Location")).To(Equal(g.url("shop", "/deep")))
		Expect(r.Header.Values("Set-Cookie")).To(BeEmpty())
		v := g.open(ctx, g.url("shop", "/deep"))
		g.expectAsked(v, "proxy", "openid email", g.url("shop", "/callback"))
		Expect(v.Header.Get("Strict-Transport-Security")).To(Equal("max-age=600"))
		applied(g.api, http.MethodPatch, "/service/shop", "Https=only")
		Expect(g.get("shop.test", "/deep").Status).To(Equal(http.StatusForbidden))
	})

	It("applies to wildcards, and closes a service for every host", func(ctx SpecContext) {
		g := guard(ctx)
		g.serve("wide", "*.wide.test", "*.wide.test")
		addService(g.api, "any", "*", "blue")
		applied(g.api, http.MethodPost, "/proxy/gw/service/any")
		g.attach()
		g.expectAsked(g.open(ctx, g.url("a.wide", "/")), "proxy", "openid email", g.url("a.wide", "/callback"))
		Expect(g.get("elsewhere.test", "/").Status).To(Equal(http.StatusServiceUnavailable))
		Expect(read(g.api, "/proxy/gw/status")).To(ContainSubstring("set a host in redirect_uri"))
	})

	It("never leaves a service open while other things of its proxy change", func(ctx SpecContext) {
		g := guard(ctx)
		hosts, traffic := map[string]*visited{}, map[string]*testkit.Traffic{}
		for _, name := range []string{"shop", "other"} {
			v := &visited{name: name, issuer: g.idp.Issuer, spells: []spell{{outcome: outcome{what: "open"}}}}
			hosts[name], traffic[name] = v, testkit.StartTraffic(testkit.TrafficOptions{
				Addr: g.addr(), TLS: g.trusting(), Rate: 200, Connections: 8, Host: name + ".test:" + strconv.Itoa(g.httpsPort), Judge: v.judge,
			})
			DeferCleanup(traffic[name].Stop)
		}
		asking := func(name string) outcome { return outcome{"login", "proxy", "openid email", g.url(name, "/callback")} }
		g.addOwn()
		for round := range 6 {
			hosts["shop"].becomes(asking("shop"), func() { hosts["other"].becomes(asking("other"), g.attach) })
			g.changeOthers(round)
			// From one login to another, and back.
			hosts["shop"].becomes(outcome{"login", "own", "openid", g.url("shop", "/own/callback")}, func() {
				applied(g.api, http.MethodPost, "/service/shop/filter/own")
			})
			hosts["shop"].becomes(asking("shop"), func() { applied(g.api, http.MethodDelete, "/service/shop/filter/own") })
			open := outcome{what: "open"}
			hosts["shop"].becomes(open, func() {
				hosts["other"].becomes(open, func() {
					remove(g.api, "/proxy/gw/globalconfig/login")
					applied(g.api, http.MethodDelete, "/globalconfig/login")
				})
			})
		}
		for name, t := range traffic {
			report := t.Stop()
			AddReportEntry(name, report.String())
			Expect(report.Failures).To(BeEmpty(), report.String())
			Expect(report.Backends["blue"]).To(BeNumerically(">", 0))
			Expect(report.Requests).To(BeNumerically(">", report.Backends["blue"]))
		}
	})
})

// changeOthers makes twenty changes of other objects than the login, on its hosts and
// proxy.
func (g guarded) changeOthers(round int) {
	GinkgoHelper()
	name := fmt.Sprintf("more%d", round)
	addRoute(g.api, "shop", name, "/"+name, "", "blue")
	addRoute(g.api, "other", name, "/"+name, `{"public": true}`, "blue")
	addService(g.api, name, name+".test", "blue")
	post(g.api, "/filter", "Filter_name="+name, "Filter_type=route_filter_headers", `Filter_config={"request": {"set": {"x-a": "b"}}}`)
	for _, c := range [][]string{
		{http.MethodPost, "/proxy/gw/service/" + name}, {http.MethodPost, "/service/shop/filter/" + name}, {http.MethodDelete, "/service/shop/filter/" + name},
		{http.MethodPatch, "/service/other", "Hsts_seconds=" + strconv.Itoa(round+1)}, {http.MethodPatch, "/service/shop", "Https=only"},
		{http.MethodPatch, "/service/shop", "Https=both"}, {http.MethodPatch, "/service/other", "fqdn=other.test"},
		{http.MethodPatch, "/upstream/blue", "Upstream_weight=" + strconv.Itoa(round+10)}, {http.MethodPatch, "/proxy/gw", "Trusted_hops=" + strconv.Itoa(round%2)},
		{http.MethodDelete, "/service/shop/route/" + name}, {http.MethodDelete, "/service/other/route/" + name}, {http.MethodDelete, "/proxy/gw/service/" + name},
	} {
		applied(g.api, c[0], c[1], c[2:]...)
	}
	remove(g.api, "/service/"+name)
}
