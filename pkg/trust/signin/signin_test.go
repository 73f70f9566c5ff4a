package signin_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/seal"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/signin"
)

const page = "https://gw.example.com/ui/"

// world is a provider, and what signs in with it.
type world struct {
	*testkit.TokenProvider
	signin *signin.Provider
	mu     sync.Mutex
	at     time.Time
}

func (w *world) now() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) pass(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = w.at.Add(d)
}

func newWorld(change ...func(*signin.Options)) *world {
	GinkgoHelper()
	p, err := testkit.StartTokenProvider()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	local, err := egress.ParseEntry("localhost")
	Expect(err).NotTo(HaveOccurred())
	sealer, err := seal.NewMemory()
	Expect(err).NotTo(HaveOccurred())
	w := &world{TokenProvider: p, at: time.Now()}
	o := signin.Options{
		Issuer: p.Issuer(), ClientID: p.Client, ClientSecret: p.Secret, Scopes: []string{"profile"}, GroupsClaim: "groups",
		Client: oidc.NewClient(oidc.Options{Authorities: p.Authority.PEM, Rules: oidc.Rules{Allow: []egress.Entry{local}}}),
		Seal:   sealer.Seal, Open: sealer.Unseal, Now: w.now,
	}
	for _, c := range change {
		c(&o)
	}
	w.signin = signin.New(o)
	return w
}

// asked counts the requests for the discovery document.
func (w *world) asked() (n int) {
	for {
		select {
		case r := <-w.Asked:
			if strings.HasPrefix(r.URL.Path, "/.well-known/") {
				n++
			}
		default:
			return n
		}
	}
}

// arrive begins a sign-in and logs in at the provider.
func (w *world) arrive(ctx context.Context, claims map[string]any) signin.Answer {
	GinkgoHelper()
	begun, err := w.signin.Begin(ctx, page)
	Expect(err).NotTo(HaveOccurred())
	code, state, err := w.LogIn(begun.URL, claims)
	Expect(err).NotTo(HaveOccurred())
	return signin.Answer{Code: code, State: state, SignIn: begun.SignIn}
}

func refused(words string) OmegaMatcher {
	return And(BeAssignableToTypeOf(signin.Refused("")), MatchError(ContainSubstring(words)))
}

func unavailable(words string) OmegaMatcher {
	return And(BeAssignableToTypeOf(signin.Unavailable("")), MatchError(ContainSubstring(words)))
}

var _ = Describe("A sign-in", func() {
	It("asks for a code with PKCE, a state and a nonce, and ends with the user", func(ctx SpecContext) {
		w := newWorld()
		w.SetDocument(w.Document(w.Issuer(), "authorization_endpoint", w.Issuer()+"/auth?tenant=a"))
		begun, err := w.signin.Begin(ctx, page)
		Expect(err).NotTo(HaveOccurred())
		Expect(begun.URL).To(HavePrefix(w.Issuer() + "/auth?"))
		u, err := url.Parse(begun.URL)
		Expect(err).NotTo(HaveOccurred())
		q := u.Query()
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			Expect(q.Get(name)).To(MatchRegexp(`^[A-Za-z0-9_-]{43}$`), name)
		}
		Expect(q.Get("state")).To(Equal(begun.State))
		Expect(begun.SignIn).NotTo(ContainSubstring(q.Get("nonce")))
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			q.Del(name)
		}
		Expect(q).To(Equal(url.Values{
			"tenant": {"a"}, "response_type": {"code"}, "client_id": {"gatehouse"}, "redirect_uri": {page}, "scope": {"openid profile"},
			"code_challenge_method": {"S256"},
		}))
		code, state, err := w.LogIn(begun.URL, map[string]any{"sub": "248289", "preferred_username": "ann", "groups": []string{"ops", "dev"}})
		Expect(err).NotTo(HaveOccurred())
		Expect(w.signin.End(ctx, signin.Answer{Code: code, State: state, SignIn: begun.SignIn})).
			To(Equal(signin.User{Subject: "248289", Name: "ann", Groups: []string{"ops", "dev"}}))
		Expect(w.Redeemed()[0].Header.Get("Authorization")).To(HavePrefix("Basic "))
		Expect(w.Redeemed()[0].PostForm).NotTo(HaveKey("client_secret"))
	})

	It("has other texts each time", func(ctx SpecContext) {
		w := newWorld()
		one, err := w.signin.Begin(ctx, page)
		Expect(err).NotTo(HaveOccurred())
		two, err := w.signin.Begin(ctx, page)
		Expect(err).NotTo(HaveOccurred())
		a, err := url.Parse(one.URL)
		Expect(err).NotTo(HaveOccurred())
		b, err := url.Parse(two.URL)
		Expect(err).NotTo(HaveOccurred())
		for _, name := range []string{"state", "nonce", "code_challenge"} {
			Expect(a.Query().Get(name)).NotTo(Equal(b.Query().Get(name)), name)
		}
	})

	It("sends the secret in the form where the provider takes nothing else", func(ctx SpecContext) {
		w := newWorld()
		var doc map[string]any
		Expect(json.Unmarshal([]byte(w.Document(w.Issuer())), &doc)).To(Succeed())
		doc["token_endpoint_auth_methods_supported"] = []string{"client_secret_post", "private_key_jwt"}
		text, err := json.Marshal(doc)
		Expect(err).NotTo(HaveOccurred())
		w.SetDocument(string(text))
		_, err = w.signin.End(ctx, w.arrive(ctx, nil))
		Expect(err).NotTo(HaveOccurred())
		Expect(w.Redeemed()[0].Header).NotTo(HaveKey("Authorization"))
		Expect(w.Redeemed()[0].PostForm.Get("client_secret")).To(Equal(w.Secret))
	})

	DescribeTable("reads what people and groups are called",
		func(ctx SpecContext, claims map[string]any, want signin.User) {
			w := newWorld()
			Expect(w.signin.End(ctx, w.arrive(ctx, claims))).To(Equal(want))
		},
		Entry("nothing", nil, signin.User{Subject: "1"}),
		Entry("one group", map[string]any{"groups": "ops"}, signin.User{Subject: "1", Groups: []string{"ops"}}),
		Entry("groups of another type", map[string]any{"groups": []any{"ops", 1}}, signin.User{Subject: "1"}),
		Entry("a name with a space", map[string]any{"preferred_username": "root (1)"}, signin.User{Subject: "1"}),
		Entry("a name that is no text", map[string]any{"preferred_username": 1}, signin.User{Subject: "1"}),
		Entry("several audiences", map[string]any{"aud": []string{"other", "gatehouse"}, "azp": "gatehouse"}, signin.User{Subject: "1"}),
	)

	DescribeTable("is refused with a token that is not for it",
		func(ctx SpecContext, claims map[string]any, words string) {
			w := newWorld()
			_, err := w.signin.End(ctx, w.arrive(ctx, claims))
			Expect(err).To(refused(words))
		},
		Entry("nonce of another", map[string]any{"nonce": "x"}, "the id_token is of another sign-in (nonce)"),
		Entry("no nonce", map[string]any{"nonce": nil}, "the id_token is of another sign-in (nonce)"),
		Entry("audience", map[string]any{"aud": "other"}, `expected audience`),
		Entry("azp", map[string]any{"azp": "other"}, "the id_token is for another client (azp)"),
		Entry("several audiences without azp", map[string]any{"aud": []string{"other", "gatehouse"}}, "the id_token is for several clients"),
		Entry("issuer", map[string]any{"iss": "https://other.example"}, "issued by a different provider"),
		Entry("expired", map[string]any{"exp": time.Now().Add(-time.Second).Unix()}, "token is expired"),
		Entry("not yet", map[string]any{"nbf": time.Now().Add(time.Hour).Unix()}, "before the nbf"),
		Entry("no subject", map[string]any{"sub": nil}, "the name of the user (sub) is not 1 to 255 visible ASCII characters"),
		Entry("a subject with a space", map[string]any{"sub": "1) (2"}, "the name of the user (sub)"),
		Entry("a long subject", map[string]any{"sub": strings.Repeat("x", 256)}, "the name of the user (sub)"),
	)

	DescribeTable("is refused with a token that the provider has not signed",
		func(ctx SpecContext, forge func(claims map[string]any) (string, error)) {
			w := newWorld()
			w.SetForge(func(claims map[string]any) string {
				defer GinkgoRecover()
				text, err := forge(claims)
				Expect(err).NotTo(HaveOccurred())
				return text
			})
			_, err := w.signin.End(ctx, w.arrive(ctx, nil))
			Expect(err).To(refused("the id_token of the identity provider is refused"))
		},
		Entry("another key", func(claims map[string]any) (string, error) {
			key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
			if err != nil {
				return "", err
			}
			return testkit.SignToken(jose.ES256, key, claims)
		}),
		Entry("another key of another type", func(claims map[string]any) (string, error) {
			key, err := rsa.GenerateKey(rand.Reader, 2048)
			if err != nil {
				return "", err
			}
			return testkit.SignToken(jose.RS256, key, claims)
		}),
		Entry("the secret of the client", func(claims map[string]any) (string, error) {
			return testkit.SignToken(jose.HS256, []byte("a/secret+of the:client-and-padding"), claims)
		}),
		Entry("no signature", func(claims map[string]any) (string, error) {
			text, err := json.Marshal(claims)
			return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(text) + ".", err
		}),
		Entry("no token", func(map[string]any) (string, error) { return "x", nil }),
	)

	It("is refused for the answer to another, and without the one that has begun", func(ctx SpecContext) {
		w := newWorld()
		one, two := w.arrive(ctx, nil), w.arrive(ctx, nil)
		for _, mixed := range []signin.Answer{
			{Code: one.Code, State: one.State, SignIn: two.SignIn}, {Code: one.Code, State: "", SignIn: one.SignIn},
		} {
			_, err := w.signin.End(ctx, mixed)
			Expect(err).To(refused("the answer is to another sign-in (state)"))
		}
		Expect(w.Redeemed()).To(BeEmpty())
		_, err := w.signin.End(ctx, signin.Answer{Code: one.Code, State: two.State, SignIn: two.SignIn})
		Expect(err).To(refused("the identity provider refuses the code"), "PKCE")
		other := newWorld()
		for _, sealed := range []string{"", "x", other.arrive(ctx, nil).SignIn, one.SignIn[:len(one.SignIn)-1] + "A"} {
			_, err := w.signin.End(ctx, signin.Answer{Code: one.Code, State: one.State, SignIn: sealed})
			Expect(err).To(refused("the sign-in has not begun at this server"))
		}
	})

	It("is refused for the settings of another provider or client", func(ctx SpecContext) {
		sealer, err := seal.NewMemory()
		Expect(err).NotTo(HaveOccurred())
		same := func(o *signin.Options) { o.Seal, o.Open = sealer.Seal, sealer.Unseal }
		w := newWorld(same)
		got := w.arrive(ctx, nil)
		for _, other := range []*world{newWorld(same), newWorld(same, func(o *signin.Options) { o.Issuer, o.ClientID = w.Issuer(), "other" })} {
			_, err = other.signin.End(ctx, got)
			Expect(err).To(refused("the sign-in has not begun at this server"))
		}
	})

	It("ends after 10 minutes", func(ctx SpecContext) {
		w := newWorld()
		got := w.arrive(ctx, nil)
		w.pass(10*time.Minute - time.Second)
		late := w.arrive(ctx, nil)
		_, err := w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())
		w.pass(10 * time.Minute)
		_, err = w.signin.End(ctx, late)
		Expect(err).To(refused("the sign-in has taken more than 10 minutes"))
	})

	It("ends once, also at a provider that takes a code twice", func(ctx SpecContext) {
		w := newWorld()
		got := w.arrive(ctx, nil)
		_, err := w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())
		_, err = w.signin.End(ctx, got)
		Expect(err).To(refused("the identity provider refuses the code"))
		w.SetReuse(true)
		got = w.arrive(ctx, nil)
		_, err = w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())
		_, err = w.signin.End(ctx, got)
		Expect(err).To(refused("this sign-in has ended before"))
	})

	It("is refused for the answer of another provider (RFC 9207)", func(ctx SpecContext) {
		w := newWorld()
		got := w.arrive(ctx, nil)
		got.Issuer = "https://other.example"
		_, err := w.signin.End(ctx, got)
		Expect(err).To(refused("the answer is not of the identity provider"))
		Expect(w.Redeemed()).To(BeEmpty(), "the code stays secret")
		got.Issuer = w.Issuer()
		_, err = w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())

		named := newWorld()
		named.SetDocument(strings.Replace(named.Document(named.Issuer()), "{", `{"authorization_response_iss_parameter_supported":true,`, 1))
		_, err = named.signin.End(ctx, named.arrive(ctx, nil))
		Expect(err).To(refused("the answer is not of the identity provider"))
	})

	It("begins at the configured page only", func(ctx SpecContext) {
		w := newWorld(func(o *signin.Options) { o.RedirectURL = page })
		_, err := w.signin.Begin(ctx, "https://other.example/ui/")
		Expect(err).To(refused("people sign in at https://gw.example.com/ui/"))
		_, err = w.signin.End(ctx, w.arrive(ctx, nil))
		Expect(err).NotTo(HaveOccurred())
	})
})

var _ = Describe("The provider of sign-ins", func() {
	It("is asked once for many, and again after 10 minutes", func(ctx SpecContext) {
		w := newWorld()
		for range 5 {
			w.arrive(ctx, nil)
		}
		Expect(w.asked()).To(Equal(1))
		w.pass(10*time.Minute - time.Second)
		w.arrive(ctx, nil)
		Expect(w.asked()).To(BeZero())
		w.pass(time.Second)
		w.arrive(ctx, nil)
		Expect(w.asked()).To(Equal(1))
	})

	It("may be away: nobody is signed in, and it is asked again after 5 seconds", func(ctx SpecContext) {
		w := newWorld()
		w.HandleDocument(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusBadGateway) })
		for range 3 {
			_, err := w.signin.Begin(ctx, page)
			Expect(err).To(unavailable("is answered with 502"))
			Expect(err).To(MatchError(ContainSubstring("tokens still work")))
		}
		Expect(w.asked()).To(Equal(1))
		w.SetDocument(w.Document(w.Issuer()))
		w.pass(5 * time.Second)
		w.arrive(ctx, nil)
	})

	It("may be away later: what is known of it is used", func(ctx SpecContext) {
		w := newWorld()
		w.arrive(ctx, nil)
		w.HandleDocument(nil)
		w.pass(time.Hour)
		w.arrive(ctx, nil)
		got := w.arrive(ctx, map[string]any{"exp": time.Now().Add(3 * time.Hour).Unix()})
		_, err := w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())
	})

	It("has new keys: they are fetched for a token that the old ones do not verify, at most every 5 seconds", func(ctx SpecContext) {
		w := newWorld()
		got, again, third := w.arrive(ctx, nil), w.arrive(ctx, nil), w.arrive(ctx, nil)
		Expect(w.asked()).To(Equal(1))
		w.pass(5 * time.Second)
		Expect(w.Rotate()).To(Succeed())
		_, err := w.signin.End(ctx, got)
		Expect(err).NotTo(HaveOccurred())
		Expect(w.asked()).To(Equal(1))
		Expect(w.Rotate()).To(Succeed())
		_, err = w.signin.End(ctx, again)
		Expect(err).To(refused("failed to verify signature"))
		Expect(w.asked()).To(BeZero())
		w.pass(5 * time.Second)
		_, err = w.signin.End(ctx, third)
		Expect(err).NotTo(HaveOccurred())
	})

	It("says what is wrong with the client", func(ctx SpecContext) {
		w := newWorld(func(o *signin.Options) { o.ClientSecret = "wrong" })
		_, err := w.signin.End(ctx, w.arrive(ctx, nil))
		Expect(err).To(unavailable("it refuses this client: check --console-oidc-client-id, the secret"))
		Expect(err).NotTo(MatchError(ContainSubstring("wrong")))
	})

	DescribeTable("answers with something else than a token", func(ctx SpecContext, status int, body, words string) {
		w := newWorld()
		got := w.arrive(ctx, nil)
		w.Handle("/token", func(rw http.ResponseWriter, _ *http.Request) {
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(body))
		})
		_, err := w.signin.End(ctx, got)
		Expect(err).To(unavailable(words))
	},
		Entry("401", 401, "", "it refuses this client"),
		Entry("a client that may not", 400, `{"error":"unauthorized_client"}`, "it refuses this client"),
		Entry("an error", 500, "", "/token answers with the status 500"),
		Entry("a redirect", 302, "", "/token answers with the status 302"),
		Entry("a page", 200, "<html>", "/token has no id_token"),
		Entry("no id_token", 200, "{}", "/token has no id_token"),
		Entry("too much", 200, `{"x":"`+strings.Repeat("x", 65<<10)+`","id_token":"x"}`, "/token has no id_token"),
	)
})

var _ = DescribeTable("The page of a sign-in", func(page, origin string, ok bool) {
	if ok {
		Expect(signin.CheckPage(page, origin)).To(BeEmpty())
		return
	}
	Expect(signin.CheckPage(page, origin)).NotTo(BeEmpty())
},
	Entry("at its origin", "https://gw.example.com/ui/", "https://gw.example.com", true),
	Entry("below a path, at a port", "http://127.0.0.1:1323/admin/ui/", "http://127.0.0.1:1323", true),
	Entry("without a browser", "https://gw.example.com/ui/", "", true),
	Entry("elsewhere", "https://evil.example/ui/", "https://gw.example.com", false),
	Entry("at another port", "https://gw.example.com:8443/ui/", "https://gw.example.com", false),
	Entry("with a user", "https://gw.example.com@evil.example/ui/", "https://gw.example.com", false),
	Entry("another scheme", "http://gw.example.com/ui/", "https://gw.example.com", false),
	Entry("no page", "javascript:alert(1)/ui/", "", false),
	Entry("a query", "https://gw.example.com/ui/?a", "", false),
	Entry("an empty query", "https://gw.example.com/ui/?", "", false),
	Entry("a fragment", "https://gw.example.com/ui/#/ui/", "", false),
	Entry("another path", "https://gw.example.com/", "", false),
	Entry("no host", "https:///ui/", "", false),
	Entry("long", "https://gw.example.com/"+strings.Repeat("x", 2048)+"/ui/", "", false),
)
