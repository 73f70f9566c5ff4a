package policies_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/sha512"
	"hash"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// sharedKey is the key of tokens with HS256.
const sharedKey = "a key of 32 bytes for the specs!"

// hs256 returns a token that is signed with a key.
func hs256(key string, claims object) string { return signedWith(key, "HS256", claims) }

// signedWith returns a token that is signed with a key and one of the algorithms for it.
func signedWith(key, algorithm string, claims object) string {
	all := object{"iss": "us", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range claims {
		all[name] = value
	}
	text := testkit.TokenPart(object{"alg": algorithm, "typ": "JWT"}) + "." + testkit.TokenPart(all)
	mac := hmac.New(map[string]func() hash.Hash{"HS256": sha256.New, "HS384": sha512.New384, "HS512": sha512.New}[algorithm], []byte(key))
	mac.Write([]byte(text))
	return text + "." + testkit.Base64(mac.Sum(nil))
}

// tokenTry is a request with a token, or without one, and what comes of it.
type tokenTry struct {
	what, token string
	status      int
	user        string
}

// tokens sends requests, each with a made-up user, and compares the answers with explain.
func (w *world) tokens(tries []tokenTry) {
	GinkgoHelper()
	for _, t := range tries {
		r := request{what: t.what, header: []string{"X-User: root"}}
		if t.token != "" {
			r.header = append(r.header, "Authorization: Bearer "+t.token)
		}
		a := w.send(r)
		Expect(a.status).To(Equal(t.status), t.what+": "+a.body)
		Expect(strings.Join(a.seen["X-User"], " ")).To(Equal(t.user), t.what)
		if a.seen != nil {
			Expect(a.seen).NotTo(HaveKey("Authorization"), t.what)
		}
		if t.status == http.StatusUnauthorized && t.token != "" || t.what == "one for others" {
			continue // explain verifies neither signatures nor audiences
		}
		status, _, _ := w.explained(r)
		Expect(status).To(Equal(t.status), "explain of: "+t.what)
	}
}

var _ = Describe("A token", func() {
	const user = `,"claim_headers":[{"claim":"sub","header":"X-User"}]`
	var w *world
	BeforeEach(func() {
		w = newWorld(jwt())
		w.attach(onShop)
	})
	token := func(claims object) string { return tokenIssuer().Token(claims) }

	It("may be missing, but is never wrong", func() {
		before := w.listeners()
		w.configure(`{"issuer":"https://issuer.test","optional":true,"audiences":["shop"],"jwks":` + tokenIssuer().JWKS() + user + `}`)
		w.tokens([]tokenTry{
			{"none", "", 200, ""},
			{"a good one", token(object{"sub": "ann", "aud": "shop"}), 200, "ann"},
			{"one for others", token(object{"sub": "ann", "aud": "cart"}), 403, ""},
			{"an expired one", token(object{"sub": "ann", "aud": "shop", "exp": 1}), 401, ""},
			{"a forged one", testkit.NewTokenIssuer("https://issuer.test", "one").Token(object{"sub": "ann", "aud": "shop"}), 401, ""},
			{"one of another issuer", testkit.NewTokenIssuer("https://other.test", "one").Token(object{"sub": "ann", "aud": "shop"}), 401, ""},
			{"junk", "junk", 401, ""},
		})
		By("with what a token must have, if there is one")
		w.configure(`{"issuer":"https://issuer.test","optional":true,"jwks":` + tokenIssuer().JWKS() + `,"scopes":["read"]` + user + `}`)
		w.tokens([]tokenTry{
			{"none", "", 200, ""},
			{"one with the scope", token(object{"sub": "ann", "scope": "read"}), 200, "ann"},
			{"one without it", token(object{"sub": "ann"}), 403, ""},
		})
		Expect(w.listeners()).To(Equal(before))
	})

	It("has scopes as words of a claim, or as a list", func() {
		w.configure(`{"issuer":"https://issuer.test","jwks":` + tokenIssuer().JWKS() + `,"scopes":["read","a.b:write"]` + user + `}`)
		scope := func(value any) string { return token(object{"sub": "ann", "scope": value}) }
		w.tokens([]tokenTry{
			{"none", "", 401, ""},
			{"both", scope("read a.b:write"), 200, "ann"},
			{"in another order, among others", scope("x a.b:write y read z"), 200, "ann"},
			{"in a list", scope([]string{"a.b:write", "read"}), 200, "ann"},
			{"as scp", token(object{"sub": "ann", "scp": "read a.b:write"}), 200, "ann"},
			{"as a list in scp", token(object{"sub": "ann", "scp": []string{"read", "a.b:write"}}), 200, "ann"},
			{"one of them", scope("read"), 403, ""},
			{"the beginning of a word", scope("reader a.b:write"), 403, ""},
			{"the end of a word", scope("unread a.b:write"), 403, ""},
			{"other letters", scope("READ a.b:write"), 403, ""},
			{"a dot that is another letter", scope("read axb:write"), 403, ""},
			{"words in an element of a list", scope([]string{"read a.b:write"}), 403, ""},
			{"a number", scope(1), 403, ""},
			{"an object", scope(object{"read": "a.b:write"}), 403, ""},
			{"separated by a tab", scope("read\ta.b:write"), 403, ""},
			{"separated by a comma", scope("read,a.b:write"), 403, ""},
			{"in another claim", token(object{"sub": "ann", "scopes": "read a.b:write"}), 403, ""},
		})
		By("as one of several credentials")
		w.post("/filter", "Filter_name=either", "Filter_type=http_filter_anyof", `Filter_config={"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]},"jwt":{"issuer":"https://issuer.test","jwks":`+tokenIssuer().JWKS()+`,"scopes":["read"]`+user+`}}`)
		w.attach("/service/shop/route/root/filter/either")
		w.tokens([]tokenTry{{"none", "", 401, ""}, {"the scope", scope("read"), 200, "ann"}})
		Expect(w.send(request{header: []string{"Authorization: Bearer " + scope("write")}}).status).To(Equal(401))
	})

	It("may be of one of several issuers, each with its own keys and conditions", func() {
		before := w.listeners()
		them := testkit.NewTokenIssuer("https://them.test", "one")
		const key = "a key of 64 bytes, as many as there are in the hash of an HS512!"
		w.configure(`{"issuer":"https://issuer.test","audiences":["shop"],"jwks":` + tokenIssuer().JWKS() + `,"scopes":["read"]` + user + `,"other_issuers":[` +
			`{"issuer":"https://them.test","jwks":` + them.JWKS() + `,"require":[{"claim":"plan","values":["gold"]}],"claim_headers":[{"claim":"client","header":"X-User"}]},` +
			`{"issuer":"us","audiences":["cart"],"hmac_key":"` + key + `","hmac_algorithm":"HS512"}]}`)
		one := func(claims object) string { return token(claims) }
		other := func(claims object) string { return them.Token(claims) }
		own := func(algorithm string, claims object) string { return signedWith(key, algorithm, claims) }
		w.tokens([]tokenTry{
			{"none", "", 401, ""},
			{"of the first", one(object{"sub": "ann", "aud": "shop", "scope": "read"}), 200, "ann"},
			{"of the second", other(object{"sub": "bob", "client": "bot", "plan": "gold"}), 200, "bot"},
			{"of the third", own("HS512", object{"sub": "eve", "aud": "cart"}), 200, ""},
			{"of the first without the scope", one(object{"sub": "ann", "aud": "shop", "plan": "gold"}), 403, ""},
			{"of the second without the claim", other(object{"sub": "bob", "scope": "read"}), 403, ""},
			{"one for others", one(object{"sub": "ann", "aud": "cart", "scope": "read"}), 403, ""},
			{"one for others", own("HS512", object{"aud": "shop"}), 403, ""},
			{"of the third with another algorithm", own("HS256", object{"aud": "cart"}), 401, ""},
			{"of the second in the name of the first", other(object{"iss": "https://issuer.test", "aud": "shop", "scope": "read"}), 401, ""},
			{"of the third in the name of the first", own("HS512", object{"iss": "https://issuer.test", "aud": "shop", "scope": "read"}), 401, ""},
			{"of the first in the name of the third", one(object{"iss": "us", "aud": "cart"}), 401, ""},
			{"of nobody", testkit.NewTokenIssuer("https://nobody.test", "one").Token(nil), 401, ""},
			{"an expired one", other(object{"plan": "gold", "exp": 1}), 401, ""},
			{"junk", "junk", 401, ""},
		})
		By("with one that does not answer")
		w.configure(`{"issuer":"https://them.test","jwks":` + them.JWKS() + user + `,"optional":true,"other_issuers":[{"issuer":"https://issuer.test","jwks_uri":"http://127.0.0.1:1/keys"}]}`)
		w.tokens([]tokenTry{
			{"none", "", 200, ""},
			{"of the one that answers", other(object{"sub": "bob"}), 200, "bob"},
			{"of the one that does not", one(object{"sub": "ann"}), 401, ""},
			{"of nobody", testkit.NewTokenIssuer("https://nobody.test", "one").Token(nil), 401, ""},
		})
		By("as one of several credentials")
		w.post("/filter", "Filter_name=either", "Filter_type=http_filter_anyof", `Filter_config={"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]},"jwt":{"issuer":"https://issuer.test","jwks":`+tokenIssuer().JWKS()+user+
			`,"scopes":["read"],"other_issuers":[{"issuer":"us","hmac_key":"`+sharedKey+`","require":[{"claim":"plan","values":["gold"]}]}]}}`)
		w.attach("/service/shop/route/root/filter/either")
		w.tokens([]tokenTry{
			{"none", "", 401, ""},
			{"of the first", one(object{"sub": "ann", "scope": "read"}), 200, "ann"},
			{"of the second", hs256(sharedKey, object{"plan": "gold"}), 200, ""},
		})
		for _, wrong := range []string{one(object{"plan": "gold"}), hs256(sharedKey, object{"scope": "read"}), other(object{"scope": "read", "plan": "gold"})} {
			r := request{header: []string{"Authorization: Bearer " + wrong}}
			Expect(w.send(r).status).To(Equal(401))
		}
		Expect(w.listeners()).To(Equal(before))
	})

	It("finds the consumer by its issuer", func() {
		them := testkit.NewTokenIssuer("https://them.test", "one")
		w.post("/consumer", "Consumer_name=ann", `Consumer_credentials={"tokens":[{"issuer":"https://issuer.test","subject":"ann"}]}`)
		w.post("/consumer", "Consumer_name=their-ann", `Consumer_credentials={"tokens":[{"issuer":"https://them.test","subject":"ann"}]}`)
		w.post("/consumer", "Consumer_name=bot", `Consumer_credentials={"tokens":[{"issuer":"us","claim":"app.id","value":"bot"}]}`)
		w.post("/filter", "Filter_name=who", "Filter_type=http_filter_consumer", `Filter_config={"name_header":"X-User","required":false}`)
		w.configure(`{"issuer":"https://issuer.test","optional":true,"jwks":` + tokenIssuer().JWKS() + `,"other_issuers":[{"issuer":"https://them.test","jwks":` + them.JWKS() + `},{"issuer":"us","hmac_key":"` + sharedKey + `"}]}`)
		w.attach("/service/shop/filter/who")
		w.tokens([]tokenTry{
			{"none", "", 200, ""},
			{"of the first", token(object{"sub": "ann"}), 200, "ann"},
			{"of the second", them.Token(object{"sub": "ann"}), 200, "their-ann"},
			{"of the third", hs256(sharedKey, object{"sub": "ann", "app": object{"id": "bot"}}), 200, "bot"},
			{"of a stranger", token(object{"sub": "bob"}), 200, ""},
			{"of the first, with the key of the third", hs256(sharedKey, object{"iss": "https://issuer.test", "sub": "ann"}), 401, ""},
		})
	})

	It("may be signed with a shared key, which nobody sees", func() {
		before := w.listeners()
		w.configure(`{"issuer":"us","hmac_key":"` + sharedKey + `"` + user + `}`)
		tries := []tokenTry{
			{"none", "", 401, ""},
			{"a good one", hs256(sharedKey, object{"sub": "ann"}), 200, "ann"},
			{"with another key", hs256(sharedKey+"!", object{"sub": "ann"}), 401, ""},
			{"with an empty key", hs256("", object{"sub": "ann"}), 401, ""},
			{"of another issuer", hs256(sharedKey, object{"sub": "ann", "iss": "them"}), 401, ""},
			{"expired", hs256(sharedKey, object{"sub": "ann", "exp": 1}), 401, ""},
			{"without an end", hs256(sharedKey, object{"sub": "ann", "exp": nil}), 401, ""},
		}
		w.tokens(tries)
		By("after a write that shows it as the API does")
		w.configure(`{"issuer":"us","hmac_key":"<redacted>"` + user + `}`)
		w.tokens(tries[:2])
		By("in a secret")
		w.post("/secret", "Secret_name=shared", "Secret_value="+sharedKey+"2")
		w.configure(`{"issuer":"us","hmac_key":{"secret":"shared"}` + user + `}`)
		w.tokens([]tokenTry{{"the old key", hs256(sharedKey, object{"sub": "ann"}), 401, ""}, {"the key", hs256(sharedKey+"2", object{"sub": "ann"}), 200, "ann"}})
		a, err := w.api.Do(limit(), http.MethodPatch, "/secret/shared", "application/json", `{"Secret_value":"too short"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusUnprocessableEntity), a.Body)
		Expect(a.Body).To(ContainSubstring("the value of its secret shared would not be a key for HS256: it has fewer than 32 bytes"))
		a, err = w.api.Do(limit(), http.MethodPatch, "/secret/shared?wait=applied", "application/json", `{"Secret_value":"`+sharedKey+`3"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		Eventually(func() int {
			return w.send(request{header: []string{"Authorization: Bearer " + hs256(sharedKey+"3", nil)}}).status
		}).Should(Equal(200))
		Expect(w.listeners()).To(Equal(before))

		By("in one of several credentials")
		w.post("/filter", "Filter_name=either", "Filter_type=http_filter_anyof", `Filter_config={"basicauth":{"users":[{"name":"ann","password":"correct-horse-battery"}]},"jwt":{"issuer":"us","hmac_key":"`+sharedKey+`"`+user+`,"other_issuers":[{"issuer":"them","hmac_key":"`+sharedKey+`4"}]}}`)
		w.attach("/service/shop/route/root/filter/either")
		w.tokens(append(tries[:2], tokenTry{"a good one of another", hs256(sharedKey+"4", object{"iss": "them"}), 200, ""}))
		By("what is shown")
		for _, path := range []string{
			"/config", "/config?secrets=sealed", "/filter", "/filter/f", "/filter/either", "/revision?limit=50", "/proxy/gw/xds", "/proxy/gw/explain?url=http://shop.test/",
			"/service/dump/shop", "/proxy/dump",
		} {
			a, err := w.api.Get(limit(), path)
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusOK), path)
			for _, text := range []string{sharedKey, testkit.Base64([]byte(sharedKey))[:40]} {
				Expect(a.Body).NotTo(ContainSubstring(text), path)
			}
			if path == "/filter/f" || path == "/proxy/gw/xds" {
				Expect(a.Body).To(Or(ContainSubstring("<redacted>"), ContainSubstring(`"secret":"shared"`), ContainSubstring(`\"secret\"`)), path)
			}
		}
	})
})
