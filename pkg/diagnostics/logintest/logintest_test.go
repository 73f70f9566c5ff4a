package logintest_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/compile"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/diagnostics/logintest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store/sqlstore"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
)

func TestLoginTest(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "logintest")
}

const clientSecret = "the-secret-of-the-client"

// bench is a stored login at a provider with the answers of a spec.
type bench struct {
	*testkit.Provider
	db     *sqlstore.Store
	tester logintest.Tester
}

// login is the configuration of a filter; %s is the issuer.
const login = `{"client_id": "shop", "client_secret": "` + clientSecret + `", "cookie_secret": "cookies", "issuer": "%s", "redirect_uri": "/callback", "scopes": ["email"]%s}`

func newBench(ctx SpecContext, more string, objects ...model.Object) bench {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	sealer, _, err := seal.OpenOrCreate(filepath.Join(dir, "seal.key"))
	Expect(err).NotTo(HaveOccurred())
	b := bench{}
	b.db, err = sqlstore.Open(ctx, sqlstore.Options{URL: "sqlite://" + filepath.Join(dir, "gatehouse.db"), Sealer: sealer})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.db.Close)
	b.Provider, err = testkit.StartProvider(testkit.CertificateOptions{Names: []string{"localhost"}})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(b.Close)
	b.Handle("/auth", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<form>") })
	b.Handle("/token", refusing(400, `{"error":"invalid_grant"}`))
	loopback, err := egress.ParseEntry("127.0.0.0/8")
	Expect(err).NotTo(HaveOccurred())
	b.tester = logintest.Tester{
		Client:   oidc.NewClient(oidc.Options{Authorities: b.Authority.PEM, Rules: oidc.Rules{Allow: []egress.Entry{loopback}}, Open: b.db.Unseal}),
		Settings: compile.Settings{Authorities: b.Authority.PEM, Open: b.db.Unseal},
	}
	proxy := model.NewProxy()
	proxy.Name = "gw"
	filter := &model.Filter{Name: "staff", Type: model.FilterOIDC, Config: model.JSON(fmt.Sprintf(login, b.Issuer(), more))}
	b.write(ctx, append([]model.Object{
		proxy, &model.Service{Name: "shop", FQDN: "shop.test", HTTPS: model.HTTPSBoth}, &model.Secret{Name: "cookies", Value: "0123456789abcdef0123456789abcdef"},
		filter, &model.ServiceFilter{Service: "shop", Filter: "staff"}, &model.ProxyService{Proxy: "gw", Service: "shop"},
	}, objects...)...)
	return b
}

func (b bench) write(ctx SpecContext, objects ...model.Object) {
	GinkgoHelper()
	_, err := b.db.Write(ctx, store.Origin{Actor: "test"}, func(w store.Writer) error {
		for _, obj := range objects {
			if err := store.Create(w, obj); err != nil {
				return err
			}
		}
		return nil
	})
	Expect(err).NotTo(HaveOccurred())
}

func (b bench) find(ctx SpecContext, proxy, url string) (s *logintest.Subject, err error) {
	err = b.db.Read(ctx, func(r store.Reader) error {
		s, err = logintest.Find(r, "shop", proxy, url)
		return err
	})
	return s, err
}

func (b bench) test(ctx SpecContext) logintest.Result {
	GinkgoHelper()
	s, err := b.find(ctx, "", "")
	Expect(err).NotTo(HaveOccurred())
	result := b.tester.Test(ctx, s)
	for _, step := range result.Steps {
		Expect(step.Message + step.Advice).NotTo(ContainSubstring(clientSecret))
	}
	return result
}

// said returns a step as RESULT: MESSAGE -> ADVICE.
func said(r logintest.Result, name string) string {
	GinkgoHelper()
	for _, s := range r.Steps {
		if s.Name == name {
			return s.Result + ": " + s.Message + " -> " + s.Advice
		}
	}
	return "no such step"
}

// refusing answers with a status and a body; a URL as the body is the Location of a
// redirect.
func refusing(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(body, "https:") {
			http.Redirect(w, r, body, status)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

var _ = Describe("The test of a login", func() {
	It("uses what the provider publishes, and nothing else", func(ctx SpecContext) {
		b := newBench(ctx, "")
		result := b.test(ctx)
		Expect(said(result, "discovery")).To(HavePrefix("ok: " + b.Issuer() + " names its endpoints"))
		Expect(said(result, "keys")).To(HavePrefix("ok: " + b.Issuer() + "/keys has 1 that verify signatures"))
		Expect(said(result, "configuration")).To(HavePrefix("ok: Envoy can enforce it; users come back to https://shop.test:8443/callback"))
		Expect(said(result, "certificate")).To(HavePrefix("failed: the service has none"))
		Expect(said(result, "gateway")).To(HavePrefix(`unclear: no Envoy of proxy "gw" runs in this process`))
		Expect(said(result, "authorization")).To(HavePrefix("ok: "))
		Expect(said(result, "secret")).To(HavePrefix("ok: "))
		Expect(result.OK).To(BeFalse())
		var asked []string
		for len(b.Asked) > 0 {
			r := <-b.Asked
			asked = append(asked, r.Method+" "+r.URL.Path)
			if r.URL.Path == "/auth" {
				q := r.URL.Query()
				Expect(q.Get("redirect_uri")).To(Equal("https://shop.test:8443/callback"))
				Expect(q.Get("scope")).To(Equal("openid email"))
				Expect(q.Get("code_challenge_method")).To(Equal("S256"))
				Expect(q.Get("code_challenge")).To(HaveLen(43))
			}
		}
		Expect(asked).To(Equal([]string{"GET /.well-known/openid-configuration", "GET /keys", "GET /auth", "POST /token"}))
	})

	DescribeTable("interprets the token endpoint's answer about the secret", func(ctx SpecContext, status int, body, want string) {
		b := newBench(ctx, "")
		b.Handle("/token", refusing(status, body))
		Expect(said(b.test(ctx), "secret")).To(HavePrefix(want))
	},
		Entry("wrong code", 400, `{"error":"invalid_grant","error_description":"x"}`, "ok: "),
		Entry("wrong code, with another status", 403, `{"error":"invalid_grant"}`, "ok: "),
		Entry("wrong client", 400, `{"error":"invalid_client"}`, "failed: the token endpoint refuses the client: invalid_client -> write the client_secret"),
		Entry("no reason", 401, ``, "failed: the token endpoint refuses the client: it does not say why"),
		Entry("the secret in the answer", 401, `{"error":"invalid_client","error_description":"`+clientSecret+` is wrong"}`, "failed: the token endpoint refuses the client: invalid_client ([client_secret] is wrong)"),
		Entry("control characters", 401, `{"error":"invalid_client","error_description":"a\u001b[2Jb"}`, "failed: the token endpoint refuses the client: invalid_client (a?[2Jb)"),
		Entry("flow not allowed", 400, `{"error":"unauthorized_client"}`, "failed: the token endpoint refuses the client: unauthorized_client -> allow the client the authorization code flow"),
		Entry("another error", 400, `{"error":"invalid_request"}`, "unclear: "),
		Entry("a broken provider", 500, `oh`, "unclear: "),
		Entry("a page", 200, `<html>`, "failed: the token_endpoint https://localhost:"),
		Entry("not found", 404, ``, "failed: there is no token endpoint"),
		Entry("a redirect", 302, `https://127.0.0.1:1/`, "failed: there is no token endpoint"),
	)

	DescribeTable("interprets the answer to the authorization request", func(ctx SpecContext, status int, body, want string) {
		b := newBench(ctx, "")
		b.Handle("/auth", refusing(status, body))
		Expect(said(b.test(ctx), "authorization")).To(HavePrefix(want))
	},
		Entry("a form", 200, `<form>`, "ok: the identity provider answers with a page (200)"),
		Entry("a form on another page", 302, `https://login.test/form?secret=1`, "ok: the identity provider sends users on to https://login.test/form ->"),
		Entry("an error sent back to the callback", 302, `https://shop.test:8443/callback?error=invalid_scope&error_description=no+email`,
			"failed: the identity provider refuses the request of the gateway: invalid_scope (no email) -> remove from scopes those"),
		Entry("wrong redirect URI", 400, `{"error":"invalid_request","error_description":"redirect_uri did not match"}`,
			"failed: the identity provider refuses the request of the gateway: invalid_request (redirect_uri did not match) -> register https://shop.test:8443/callback"),
		Entry("wrong redirect URI, in a page", 400, `<p>Error: redirect_uri_mismatch</p>`, "failed: the identity provider refuses the request of the gateway: redirect_uri_mismatch -> register https://"),
		Entry("wrong client", 401, `{"error":"invalid_client"}`, "failed: the identity provider refuses the request of the gateway: invalid_client -> write the client_id"),
		Entry("no reason", 400, `<p>no</p>`, "failed: the identity provider refuses the request of the gateway with status 400"),
	)

	DescribeTable("verifies how the gateway answers without a session", func(ctx SpecContext, change func(http.Header, url.Values) int, want string) {
		b := newBench(ctx, "")
		envoy := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			Expect(r.Host).To(HavePrefix("shop.test:"))
			if r.Header.Get("X-Requested-With") != "" {
				w.WriteHeader(401)
				return
			}
			q := url.Values{
				"client_id": {"shop"}, "response_type": {"code"}, "redirect_uri": {"https://" + r.Host + "/callback"}, "scope": {"openid email"},
				"state": {"s"}, "code_challenge": {"c"}, "code_challenge_method": {"S256"},
			}
			w.Header().Set("Set-Cookie", "OauthNonce=1; Secure; HttpOnly")
			status := change(w.Header(), q)
			w.Header().Set("Location", b.Issuer()+"/auth?"+q.Encode())
			w.WriteHeader(status)
		}))
		DeferCleanup(envoy.Close)
		b.tester.Own = "gw"
		_, err := b.db.Write(ctx, store.Origin{Actor: "test"}, func(w store.Writer) error {
			proxy, err := store.Get[*model.Proxy](w, model.ProxyKey("gw"))
			if err != nil {
				return err
			}
			moved := *proxy
			moved.ListenIP, moved.HTTPSPort = "127.0.0.1", envoy.Listener.Addr().(*net.TCPAddr).Port
			return store.Replace(w, &moved)
		})
		Expect(err).NotTo(HaveOccurred())
		result := b.test(ctx)
		Expect(said(result, "gateway")).To(HavePrefix(want))
		Expect(said(result, "scripts")).To(HavePrefix("ok: "))
	},
		Entry(nil, func(http.Header, url.Values) int { return 302 }, "ok: "),
		Entry("no login", func(http.Header, url.Values) int { return 200 }, "failed: it answers 200 to a request without a session"),
		Entry("a closed service", func(http.Header, url.Values) int { return 503 }, "failed: it answers 503"),
		Entry("no PKCE", func(_ http.Header, q url.Values) int { q.Del("code_challenge_method"); return 302 },
			`failed: it redirects a request without a session, but with the code_challenge_method "" in place of "S256"`),
		Entry("another redirect URI", func(_ http.Header, q url.Values) int { q.Set("redirect_uri", "https://evil.test/callback"); return 302 },
			`failed: it redirects a request without a session, but with the redirect_uri "https://evil.test/callback"`),
		Entry("no state", func(_ http.Header, q url.Values) int { q.Del("state"); return 302 }, "failed: it redirects a request without a session, but without a code_challenge or a state"),
		Entry("a missing scope", func(_ http.Header, q url.Values) int { q.Set("scope", "openid"); return 302 }, "failed: it redirects a request without a session, but without the scope email"),
		Entry("a cookie that is not Secure", func(h http.Header, _ url.Values) int { h.Set("Set-Cookie", "OauthNonce=1; HttpOnly"); return 302 },
			"failed: it redirects a request without a session, but with the cookie OauthNonce, which is not Secure and HttpOnly"),
	)

	It("sends the secret in the header if the login is configured that way", func(ctx SpecContext) {
		b := newBench(ctx, `, "token_endpoint_auth_method": "client_secret_basic"`)
		b.Handle("/token", func(w http.ResponseWriter, r *http.Request) {
			id, secret, _ := r.BasicAuth()
			if id == "shop" && secret == clientSecret && r.PostFormValue("client_secret") == "" {
				refusing(400, `{"error":"invalid_grant"}`)(w, r)
				return
			}
			refusing(401, `{"error":"invalid_client"}`)(w, r)
		})
		Expect(said(b.test(ctx), "secret")).To(HavePrefix("ok: "))
	})

	It("calls no server if the rules forbid it", func(ctx SpecContext) {
		b := newBench(ctx, "")
		b.tester.Client = oidc.NewClient(oidc.Options{Authorities: b.Authority.PEM})
		result := b.test(ctx)
		Expect(said(result, "discovery")).To(And(HavePrefix("failed: "), ContainSubstring("must not be called")))
		Expect(said(result, "secret")).To(Equal("no such step"))
		Expect(b.Asked).To(BeEmpty())
	})

	It("calls the host of external_oauth_service only if the rules allow it", func(ctx SpecContext) {
		b := newBench(ctx, "")
		_, err := b.db.Write(ctx, store.Origin{Actor: "test"}, func(w store.Writer) error {
			return store.Delete(w, model.ServiceFilterKey("shop", "staff"))
		})
		Expect(err).NotTo(HaveOccurred())
		config := fmt.Sprintf(`{"openid_connect": {"provider": {"authorization_endpoint": "%[1]s/auth", "token_endpoint": "%[1]s/token"}, "client_id": "shop",
			"client_secret": "client", "hmac_secret": "cookies", "redirect_url": "/callback", "redirect_path_matcher": "/callback"},
			"external_oauth_service": {"name": "127.0.0.1", "port": %[2]d}}`, b.Issuer(), b.Port())
		b.write(ctx, &model.Secret{Name: "client", Value: clientSecret}, &model.GlobalConfig{Name: "sso", Type: model.GlobalConfigOAuth, Config: model.JSON(config)})
		Expect(said(b.test(ctx), "secret")).To(HavePrefix("ok: "))
		b.tester.Client = oidc.NewClient(oidc.Options{Authorities: b.Authority.PEM})
		for len(b.Asked) > 0 {
			<-b.Asked
		}
		result := b.test(ctx)
		Expect(said(result, "secret")).To(And(HavePrefix("unclear: "), ContainSubstring("must not be called")))
		Expect(said(result, "authorization")).To(HavePrefix("unclear: "))
		Expect(b.Asked).To(BeEmpty())
	})

	It("accepts the address that users see", func(ctx SpecContext) {
		b := newBench(ctx, "")
		s, err := b.find(ctx, "gw", "https://SHOP.test")
		Expect(err).NotTo(HaveOccurred())
		Expect(said(b.tester.Test(ctx, s), "configuration")).To(ContainSubstring("users come back to https://SHOP.test/callback"))
		for url, why := range map[string]string{
			"https://shop.test.evil.example/": "its host shop.test.evil.example is not that of service", "http://shop.test/": "a login needs https",
			"https://a@shop.test/": "is not a URL", "shop.test": "is not a URL",
		} {
			_, err := b.find(ctx, "", url)
			Expect(err).To(MatchError(ContainSubstring(why)), url)
		}
	})
})
