package testkit_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// verifier proves to a provider that the client began the login (PKCE).
const verifier = "a-verifier-of-at-least-43-characters-is-needed"

// relyingParty is a handwritten client, for tests of the providers.
type relyingParty struct {
	issuer, id, secret, callback string
	scope, prompt                string
}

// begin returns the URL to which it sends the browser.
func (r relyingParty) begin(endpoint string) string {
	sum := sha256.Sum256([]byte(verifier))
	q := url.Values{
		"client_id": {r.id}, "redirect_uri": {r.callback}, "response_type": {"code"}, "scope": {r.scope}, "state": {"s"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"},
	}
	if r.prompt != "" {
		q.Set("prompt", r.prompt)
	}
	return endpoint + "?" + q.Encode()
}

// tokens are the provider's answer to a code or a refresh token.
type tokens struct {
	ID      string `json:"id_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

// ask calls the token endpoint.
func (r relyingParty) ask(ctx context.Context, b *testkit.Browser, endpoint string, form url.Values) tokens {
	GinkgoHelper()
	form.Set("client_id", r.id)
	form.Set("client_secret", r.secret)
	form.Set("redirect_uri", r.callback)
	form.Set("code_verifier", verifier)
	v, err := b.Clone().Do(ctx, testkit.Request{Method: http.MethodPost, URL: endpoint, Form: form})
	Expect(err).NotTo(HaveOccurred())
	var t tokens
	Expect(json.Unmarshal([]byte(v.Body), &t)).To(Succeed(), v.Body)
	return t
}

// claims returns the claims of an id_token, with the key's id.
func claims(token string) (payload map[string]any, kid string) {
	GinkgoHelper()
	parts := strings.Split(token, ".")
	Expect(parts).To(HaveLen(3), token)
	var header struct{ Kid string }
	for i, into := range []any{&header, &payload} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		Expect(err).NotTo(HaveOccurred())
		Expect(json.Unmarshal(text, into)).To(Succeed())
	}
	return payload, header.Kid
}

var _ = Describe("npm's oidc-provider", func() {
	var authority *testkit.Authority
	var p *testkit.OIDCProvider
	var app *testkit.Backend
	var r relyingParty

	BeforeEach(func(ctx SpecContext) {
		var err error
		authority, err = testkit.NewAuthority("test")
		Expect(err).NotTo(HaveOccurred())
		app, err = testkit.StartBackend("app", testkit.BackendOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(app.Close)
		r = relyingParty{id: "shop", secret: "se:cret/+basic %&", callback: "http://localhost:" + port(app) + "/callback", scope: "openid"}
		p, err = testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), authority, testkit.OIDCSettings{
			Clients: []testkit.OIDCClient{{
				ID: r.id, Secret: r.secret, RedirectURIs: []string{r.callback}, PostLogoutRedirectURIs: []string{"http://localhost:" + port(app) + "/"},
				GrantTypes: []string{"authorization_code", "refresh_token"},
			}},
			Users: map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{
				"email": "anna@shop.test", "groups": []string{"staff"}, "realm_access": map[string]any{"roles": []string{"admin"}},
			}}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(p.Kill()).To(Succeed()) })
		r.issuer = p.Issuer
	}, NodeTimeout(time.Minute))

	browser := func() *testkit.Browser {
		b := testkit.NewBrowser(authority)
		DeferCleanup(b.Close)
		return b
	}
	// login is a complete login, up to the tokens.
	login := func(ctx context.Context, b *testkit.Browser, r relyingParty) tokens {
		GinkgoHelper()
		page, err := b.Open(ctx, r.begin(p.Issuer+"/auth"))
		Expect(err).NotTo(HaveOccurred())
		page, err = b.LogIn(ctx, page, "anna", "pw")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Status).To(Equal(200), page.Body)
		q := page.URL.Query()
		Expect(q.Get("state")).To(Equal("s"))
		return r.ask(ctx, b, p.Issuer+"/token", url.Values{"grant_type": {"authorization_code"}, "code": {q.Get("code")}})
	}

	It("logs a user in, with all claims in the id_token, and remembers the session", func(ctx SpecContext) {
		b := browser()
		got, _ := claims(login(ctx, b, r).ID)
		Expect(got).To(And(
			HaveKeyWithValue("iss", p.Issuer), HaveKeyWithValue("aud", "shop"), HaveKeyWithValue("sub", "anna"),
			HaveKeyWithValue("email", "anna@shop.test"), HaveKeyWithValue("groups", []any{"staff"}),
			HaveKeyWithValue("realm_access", map[string]any{"roles": []any{"admin"}}),
		))
		By("without a form the second time")
		last, err := b.Open(ctx, r.begin(p.Issuer+"/auth"))
		Expect(err).NotTo(HaveOccurred())
		Expect(last.URL.Path).To(Equal("/callback"))
		By("until the user signs out")
		page, err := b.Open(ctx, p.Issuer+"/session/end?client_id=shop&post_logout_redirect_uri="+url.QueryEscape("http://localhost:"+port(app)+"/"))
		Expect(err).NotTo(HaveOccurred())
		page, err = b.LogIn(ctx, page, "", "")
		Expect(err).NotTo(HaveOccurred())
		Expect(page.URL.String()).To(HavePrefix("http://localhost:" + port(app) + "/"))
		page, err = b.Open(ctx, r.begin(p.Issuer+"/auth"))
		Expect(err).NotTo(HaveOccurred())
		Expect(page.Body).To(ContainSubstring(`name="password"`))
		By("refusing a wrong password")
		_, err = b.LogIn(ctx, page, "anna", "wrong")
		Expect(err).To(MatchError(ContainSubstring("Wrong name or password")))
	}, SpecTimeout(time.Minute))

	It("asks for consent, gives refresh tokens, and rotates them and its keys", func(ctx SpecContext) {
		b := browser()
		r := r
		r.scope, r.prompt = "openid offline_access", "consent"
		t := login(ctx, b, r)
		_, kid := claims(t.ID)
		refresh := func(token string) tokens {
			return r.ask(ctx, b, p.Issuer+"/token", url.Values{"grant_type": {"refresh_token"}, "refresh_token": {token}})
		}
		Expect(refresh(t.Refresh).ID).NotTo(BeEmpty())
		Expect(refresh(t.Refresh).Refresh).To(Equal(t.Refresh))
		yes, no := true, false
		Expect(p.Change(ctx, testkit.OIDCSettings{RotateRefreshTokens: &yes, Keys: "rotate", TTL: map[string]int{"IdToken": 7}})).To(Succeed())
		next := refresh(t.Refresh)
		Expect(next.Refresh).NotTo(Equal(t.Refresh))
		got, other := claims(next.ID)
		Expect(other).NotTo(Equal(kid))
		Expect(got["exp"].(float64) - got["iat"].(float64)).To(Equal(7.0))
		Expect(refresh(t.Refresh).Error).To(Equal("invalid_grant"))

		keys, err := b.Open(ctx, p.Issuer+"/jwks")
		Expect(err).NotTo(HaveOccurred())
		Expect(keys.Body).To(And(ContainSubstring(kid), ContainSubstring(other)))
		Expect(p.Change(ctx, testkit.OIDCSettings{RotateRefreshTokens: &no, Keys: "replace"})).To(Succeed())
		keys, err = b.Open(ctx, p.Issuer+"/jwks")
		Expect(err).NotTo(HaveOccurred())
		Expect(keys.Body).NotTo(Or(ContainSubstring(kid), ContainSubstring(other)))
	}, SpecTimeout(time.Minute))

	It("fails on request, and reports the requests that it received", func(ctx SpecContext) {
		b := browser()
		Expect(p.Change(ctx, testkit.OIDCSettings{Faults: map[string]testkit.OIDCFault{"/jwks": {Status: 500, Body: "broken"}}})).To(Succeed())
		v, err := b.Open(ctx, p.Issuer+"/jwks")
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Status).To(Equal(500))
		Expect(v.Body).To(Equal("broken"))
		v, err = b.Open(ctx, p.Issuer+"/.well-known/openid-configuration?a=b")
		Expect(err).NotTo(HaveOccurred())
		Expect(v.Body).To(ContainSubstring(`"issuer":"` + p.Issuer + `"`))
		list, err := p.Requests(ctx)
		Expect(err).NotTo(HaveOccurred())
		Expect(list).To(ContainElement(testkit.OIDCRequest{Method: "GET", Path: "/.well-known/openid-configuration", Query: "?a=b"}))
	}, SpecTimeout(time.Minute))
})
