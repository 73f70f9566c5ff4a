package attack_test

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash"
	"net/http"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// object is a JSON object.
type object = map[string]any

// tokenTry is a request with a token, and the expected status.
type tokenTry struct {
	what    string
	path    string
	headers []string
	want    int
}

// forger has what an attacker may know, and the issuer's keys, to sign tokens that are
// genuine but not meant for this service.
type forger struct {
	issuer, other *testkit.TokenIssuer
	rsa           *rsa.PublicKey
}

func (f forger) keys() string {
	first := strings.TrimSuffix(f.issuer.JWKS(), "]}")
	return fmt.Sprintf(`%s,{"kty":"RSA","kid":"rsa","n":%q,"e":"AQAB"}]}`, first, testkit.Base64(f.rsa.N.Bytes()))
}

// claims returns the claims of a valid token, with changes.
func (f forger) claims(others object) object {
	all := object{"iss": f.issuer.Issuer, "aud": "shop", "sub": "ann", "exp": time.Now().Add(time.Hour).Unix()}
	for name, value := range others {
		if all[name] = value; value == nil {
			delete(all, name)
		}
	}
	return all
}

func (f forger) with(claims object) []string {
	return []string{"Authorization: Bearer " + f.issuer.Sign(object{"alg": "ES256", "kid": "one"}, f.claims(claims))}
}

func (f forger) header(header object) []string {
	return []string{"Authorization: Bearer " + f.issuer.Sign(header, f.claims(nil))}
}

// forged returns a token signed with a key of the attacker, or not signed.
func (f forger) forged(header object, sign func(text string) string) []string {
	text := testkit.TokenPart(header) + "." + testkit.TokenPart(f.claims(nil))
	return []string{"Authorization: Bearer " + text + "." + sign(text)}
}

func hs256(key []byte) func(string) string {
	return func(text string) string {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(text))
		return testkit.Base64(mac.Sum(nil))
	}
}

func unsigned(string) string { return "" }

func (f forger) tries() []tokenTry {
	der, err := x509.MarshalPKIXPublicKey(f.rsa)
	Expect(err).NotTo(HaveOccurred())
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	good := f.issuer.Sign(object{"alg": "ES256", "kid": "one"}, f.claims(nil))
	parts := strings.Split(good, ".")
	evil := f.other.Sign(object{"alg": "ES256", "kid": "one"}, f.claims(nil))
	now := time.Now()
	var embedded object
	Expect(json.Unmarshal([]byte(f.other.JWKS()), &embedded)).To(Succeed())
	embedded = embedded["keys"].([]any)[0].(object)
	return []tokenTry{
		{"a good one", "/", f.with(nil), 200},
		{"none", "/", nil, 401},
		{"alg none", "/", f.forged(object{"alg": "none"}, unsigned), 401},
		{"alg None", "/", f.forged(object{"alg": "nOnE", "kid": "one"}, unsigned), 401},
		{"HS256 with the RSA public key (CVE-2026-39999)", "/", f.forged(object{"alg": "HS256", "kid": "rsa"}, hs256(public)), 401},
		{"HS256 with the modulus", "/", f.forged(object{"alg": "HS256", "kid": "rsa"}, hs256(f.rsa.N.Bytes())), 401},
		{"HS256 with the RSA public key as bytes", "/", f.forged(object{"alg": "HS256", "kid": "rsa"}, hs256(der)), 401},
		{"HS256 with the key set", "/", f.forged(object{"alg": "HS256"}, hs256([]byte(f.keys()))), 401},
		{"HS256 under the kid of ES256", "/", f.forged(object{"alg": "HS256", "kid": "one"}, hs256(public)), 401},
		{"HS256 with an empty key", "/", f.forged(object{"alg": "HS256"}, hs256(nil)), 401},
		{"another key under the same kid", "/", []string{"Authorization: Bearer " + evil}, 401},
		{"a key in the header (jwk)", "/", []string{"Authorization: Bearer " + f.other.Sign(object{"alg": "ES256", "jwk": embedded}, f.claims(nil))}, 401},
		{"a key elsewhere (jku, x5u)", "/", []string{"Authorization: Bearer " + f.other.Sign(object{"alg": "ES256", "kid": "one", "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/cert"}, f.claims(nil))}, 401},
		{"a kid that leads to a file", "/", f.header(object{"alg": "ES256", "kid": "../../../../dev/null"}), 401},
		{"a kid with SQL", "/", f.header(object{"alg": "ES256", "kid": "x' UNION SELECT 'key"}), 401},
		{"the kid of the other key", "/", f.header(object{"alg": "ES256", "kid": "rsa"}), 401},
		{"no kid", "/", f.header(object{"alg": "ES256"}), 200},
		{"a kid that is no text", "/", f.header(object{"alg": "ES256", "kid": 1}), 401},
		{"a header that nobody knows (crit)", "/", f.header(object{"alg": "ES256", "kid": "one", "crit": []string{"exp"}}), 200},
		{"expired", "/", f.with(object{"exp": now.Add(-2 * time.Minute).Unix()}), 401},
		{"expired within the clock skew", "/", f.with(object{"exp": now.Add(-20 * time.Second).Unix()}), 200},
		{"without an end", "/", f.with(object{"exp": nil}), 401},
		{"with the end 0", "/", f.with(object{"exp": 0}), 401},
		{"with a negative end", "/", f.with(object{"exp": -1}), 401},
		{"with a text as its end", "/", f.with(object{"exp": "9999999999"}), 401},
		{"with a huge end", "/", f.with(object{"exp": 1e300}), 401},
		{"from the future", "/", f.with(object{"nbf": now.Add(10 * time.Minute).Unix()}), 401},
		{"with a text as its beginning", "/", f.with(object{"nbf": "0"}), 401},
		{"of another issuer", "/", f.with(object{"iss": "https://other.test"}), 401},
		{"of an issuer with a slash more", "/", f.with(object{"iss": f.issuer.Issuer + "/"}), 401},
		{"of no issuer", "/", f.with(object{"iss": nil}), 401},
		{"of a list of issuers", "/", f.with(object{"iss": []string{f.issuer.Issuer}}), 401},
		{"for another audience", "/", f.with(object{"aud": "cart"}), 403},
		{"for a longer audience", "/", f.with(object{"aud": "shop2"}), 403},
		{"for no audience", "/", f.with(object{"aud": nil}), 403},
		{"for several audiences", "/", f.with(object{"aud": []string{"cart", "shop"}}), 200},
		{"for several other audiences", "/", f.with(object{"aud": []string{"cart", "sho", "p"}}), 403},
		{"for an audience that is an object", "/", f.with(object{"aud": object{"shop": "shop"}}), 401},
		{"with another subject than signed", "/", []string{"Authorization: Bearer " + parts[0] + "." + testkit.TokenPart(f.claims(object{"sub": "root"})) + "." + parts[2]}, 401},
		{"without its signature", "/", []string{"Authorization: Bearer " + parts[0] + "." + parts[1] + "."}, 401},
		{"of two parts", "/", []string{"Authorization: Bearer " + parts[0] + "." + parts[1]}, 401},
		{"with a part more", "/", []string{"Authorization: Bearer " + good + ".x"}, 401},
		{"two headers, the bad one last", "/", []string{"Authorization: Bearer " + good, "Authorization: Bearer " + evil}, 401},
		{"two headers, the bad one first", "/", []string{"Authorization: Bearer " + evil, "Authorization: Bearer " + good}, 401},
		{"two in one header", "/", []string{"Authorization: Bearer " + good + ", Bearer " + evil}, 401},
		{"in the query", "/?access_token=" + good, nil, 401},
		{"in a cookie", "/", []string{"Cookie: access_token=" + good}, 401},
		{"in another header", "/", []string{"X-Authorization: Bearer " + good}, 401},
		{"without a scheme", "/", []string{"Authorization: " + good}, 401},
		{"huge", "/", f.with(object{"x": strings.Repeat("a", 40000)}), 200},
		{"larger than all headers may be", "/", f.with(object{"x": strings.Repeat("a", 70000)}), 431},
		{"RS256 with the key of ES256", "/", f.forged(object{"alg": "RS256", "kid": "one"}, unsigned), 401},
		{"a good one in one that is not signed", "/", []string{"Authorization: Bearer " + testkit.TokenPart(object{"alg": "none", "cty": "JWT"}) + "." + testkit.Base64([]byte(good)) + "."}, 401},
		{"a good one in the query, and another in the header", "/?access_token=" + good, []string{"Authorization: Bearer " + evil}, 401},
		{"a good one in the header, and another in the query", "/?access_token=" + evil, []string{"Authorization: Bearer " + good}, 200},
		{"the path of something else (CVE-2023-27487)", "/", []string{"X-Envoy-Original-Path: /health"}, 401},
		{"deeper (CVE-2026-48042)", "/", f.with(object{"x": json.RawMessage(strings.Repeat("[", 9990) + strings.Repeat("]", 9990))}), 401},
		{"deep", "/", f.with(object{"x": json.RawMessage(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))}), 401},
		{"on the way to a path that is none", "/nowhere/..%2f", f.with(nil), 307},
	}
}

var _ = Describe("Tokens", func() {
	It("are accepted only as their issuer signed them, for this service and time", func(ctx SpecContext) {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		f := forger{testkit.NewTokenIssuer("https://issuer.test", "one"), testkit.NewTokenIssuer("https://issuer.test", "one"), &key.PublicKey}
		gw.add(ctx, "/filter", "Filter_name=tokens", "Filter_type=http_filter_jwt",
			`Filter_config={"issuer":"https://issuer.test","audiences":["shop"],"jwks":`+f.keys()+`,"claim_headers":[{"claim":"sub","header":"x-user"}]}`)
		gw.addService(ctx, "tokens", "tokens.test")
		gw.link(ctx, "/service/tokens/filter/tokens")
		gw.link(ctx, "/proxy/gw/service/tokens?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		for _, t := range some(60, f.tries()) {
			a := try(ctx, base, http.MethodGet, t.path, "", append([]string{"Host: tokens.test", "X-User: root", "x-user: root"}, t.headers...)...)
			Expect(a.Status).To(Equal(t.want), "%s: %s", t.what, a.Body)
			if t.want == http.StatusOK {
				var echo testkit.Echo
				Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
				Expect(echo.Headers["X-User"]).To(Equal([]string{"ann"}), t.what)
				Expect(echo.Headers).NotTo(HaveKey("Authorization"), t.what)
			}
		}
	}, NodeTimeout(2*time.Minute))

	It("of several issuers are accepted only as each has signed its own, and if they may be missing, wrong ones still are refused", func(ctx SpecContext) {
		const shared = "a key of 32 bytes for an attack!"
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		Expect(err).NotTo(HaveOccurred())
		f := forger{testkit.NewTokenIssuer("https://issuer.test", "one"), testkit.NewTokenIssuer("https://issuer.test", "one"), &key.PublicKey}
		der, err := x509.MarshalPKIXPublicKey(f.rsa)
		Expect(err).NotTo(HaveOccurred())
		public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
		for name, optional := range map[string]bool{"several": false, "maybe": true} {
			gw.add(ctx, "/filter", "Filter_name="+name, "Filter_type=http_filter_jwt", fmt.Sprintf(`Filter_config={"issuer":"https://issuer.test","audiences":["shop"],"jwks":%s,`+
				`"claim_headers":[{"claim":"sub","header":"x-user"}],"optional":%t,"other_issuers":[{"issuer":"https://shared.test","audiences":["cart"],"hmac_key":%q}]}`, f.keys(), optional, shared))
			gw.addService(ctx, name, name+".test")
			gw.link(ctx, "/service/"+name+"/filter/"+name)
			gw.link(ctx, "/proxy/gw/service/"+name+"?wait=applied")
		}
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		of := func(issuer string, header, claims object, sign func(string) string) []string {
			claims["iss"] = issuer
			text := testkit.TokenPart(header) + "." + testkit.TokenPart(f.claims(claims))
			return []string{"Authorization: Bearer " + text + "." + sign(text)}
		}
		const ours, theirs = "https://issuer.test", "https://shared.test"
		tries := append(some(60, f.tries()), some(20, []tokenTry{
			{"of the other", "/", of(theirs, object{"alg": "HS256"}, object{"aud": "cart", "sub": nil}, hs256([]byte(shared))), 200},
			{"of the other in our name", "/", of(ours, object{"alg": "HS256"}, object{}, hs256([]byte(shared))), 401},
			{"of the other in our name, under our kid", "/", of(ours, object{"alg": "HS256", "kid": "rsa"}, object{}, hs256([]byte(shared))), 401},
			{"ours in the name of the other", "/", f.with(object{"iss": theirs, "aud": "cart"}), 401},
			{"of the other with our public key", "/", of(theirs, object{"alg": "HS256"}, object{"aud": "cart"}, hs256(public)), 401},
			{"of the other with our public key, under its kid", "/", of(theirs, object{"alg": "HS256", "kid": "rsa"}, object{"aud": "cart"}, hs256(der)), 401},
			{"of the other for our audience", "/", of(theirs, object{"alg": "HS256"}, object{"aud": "shop"}, hs256([]byte(shared))), 403},
			{"of the other, not signed", "/", of(theirs, object{"alg": "none"}, object{"aud": "cart"}, unsigned), 401},
			{"of both issuers", "/", of("", object{"alg": "HS256"}, object{"aud": "cart", "x": 1}, hs256([]byte(shared))), 401},
		})...)
		// missing has the tries without a token where the filter looks for it.
		missing := []string{"none", "in the query", "in a cookie", "in another header", "without a scheme", "the path of something else (CVE-2023-27487)"}
		for _, host := range []string{"several.test", "maybe.test"} {
			for _, t := range tries {
				want, user := t.want, []string{"ann"}
				if host == "maybe.test" && slices.Contains(missing, t.what) {
					want, user = http.StatusOK, nil
				}
				if t.what == "of the other" {
					user = nil
				}
				a := try(ctx, base, http.MethodGet, t.path, "", append([]string{"Host: " + host, "X-User: root", "x-user: root"}, t.headers...)...)
				Expect(a.Status).To(Equal(want), "%s of %s: %s", t.what, host, a.Body)
				if want == http.StatusOK {
					var echo testkit.Echo
					Expect(json.Unmarshal([]byte(a.Body), &echo)).To(Succeed())
					Expect(echo.Headers["X-User"]).To(Equal(user), t.what)
				}
			}
		}
	}, NodeTimeout(2*time.Minute))

	It("that are signed with a shared key are accepted with this key and algorithm only", func(ctx SpecContext) {
		const shared = "a key of 32 bytes for an attack!"
		f := forger{issuer: testkit.NewTokenIssuer("https://issuer.test", "one"), other: testkit.NewTokenIssuer("https://issuer.test", "one")}
		gw.add(ctx, "/filter", "Filter_name=shared", "Filter_type=http_filter_jwt",
			`Filter_config={"issuer":"https://issuer.test","audiences":["shop"],"hmac_key":"`+shared+`","claim_headers":[{"claim":"sub","header":"x-user"}]}`)
		gw.addService(ctx, "shared", "shared.test")
		gw.link(ctx, "/service/shared/filter/shared")
		gw.link(ctx, "/proxy/gw/service/shared?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		sha := func(of func() hash.Hash) func(string) string {
			return func(text string) string {
				mac := hmac.New(of, []byte(shared))
				mac.Write([]byte(text))
				return testkit.Base64(mac.Sum(nil))
			}
		}
		var embedded object
		Expect(json.Unmarshal([]byte(f.other.JWKS()), &embedded)).To(Succeed())
		key := object{"kty": "oct", "alg": "HS256", "k": testkit.Base64([]byte("an attacker's key of some 32 bytes"))}
		for _, t := range some(60, []tokenTry{
			{"a good one", "/", f.forged(object{"alg": "HS256"}, hs256([]byte(shared))), 200},
			{"with a kid", "/", f.forged(object{"alg": "HS256", "kid": "x"}, hs256([]byte(shared))), 200},
			{"none", "/", nil, 401},
			{"alg none", "/", f.forged(object{"alg": "none"}, unsigned), 401},
			{"alg nOnE", "/", f.forged(object{"alg": "nOnE"}, unsigned), 401},
			{"no alg", "/", f.forged(object{}, hs256([]byte(shared))), 401},
			{"alg hs256", "/", f.forged(object{"alg": "hs256"}, hs256([]byte(shared))), 401},
			{"HS384 with the key", "/", f.forged(object{"alg": "HS384"}, sha(sha512.New384)), 401},
			{"HS512 with the key", "/", f.forged(object{"alg": "HS512"}, sha(sha512.New)), 401},
			{"HS256 under the name of ES256", "/", f.forged(object{"alg": "ES256"}, hs256([]byte(shared))), 401},
			{"HS256 under the name of RS256", "/", f.forged(object{"alg": "RS256"}, hs256([]byte(shared))), 401},
			{"ES256 of anybody", "/", []string{"Authorization: Bearer " + f.other.Sign(object{"alg": "ES256", "kid": "one", "jwk": embedded["keys"].([]any)[0]}, f.claims(nil))}, 401},
			{"a key in the header", "/", f.forged(object{"alg": "HS256", "jwk": key}, hs256([]byte("an attacker's key of some 32 bytes"))), 401},
			{"the key in base64", "/", f.forged(object{"alg": "HS256"}, hs256([]byte(testkit.Base64([]byte(shared))))), 401},
			{"the key with a line feed", "/", f.forged(object{"alg": "HS256"}, hs256([]byte(shared+"\n"))), 401},
			{"a part of the key", "/", f.forged(object{"alg": "HS256"}, hs256([]byte(shared[:16]))), 401},
			{"an empty key", "/", f.forged(object{"alg": "HS256"}, hs256(nil)), 401},
			{"<redacted>", "/", f.forged(object{"alg": "HS256"}, hs256([]byte("<redacted>"))), 401},
			{"without a signature", "/", f.forged(object{"alg": "HS256"}, unsigned), 401},
			{"a kid that leads to a file", "/", f.forged(object{"alg": "HS256", "kid": "../../../../dev/null"}, hs256(nil)), 401},
		}) {
			a := try(ctx, base, http.MethodGet, t.path, "", append([]string{"Host: shared.test", "X-User: root"}, t.headers...)...)
			Expect(a.Status).To(Equal(t.want), "%s: %s", t.what, a.Body)
			Expect(a.Body).NotTo(ContainSubstring(shared), t.what)
		}
	}, NodeTimeout(2*time.Minute))

	It("are not verified with keys from an unintended source, and nobody is let in", func(ctx SpecContext) {
		p, err := testkit.StartProvider(testkit.CertificateOptions{})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(p.Close)
		gw.addService(ctx, "keys", "keys.test")
		gw.link(ctx, "/proxy/gw/service/keys?wait=applied")
		base := testkit.API{URL: fmt.Sprintf("http://127.0.0.1:%d", gw.port)}
		for i, t := range []struct{ at, stored, why string }{
			{"http://169.254.169.254/latest/keys", "201", "must not be called: its address 169.254.169.254 is "},
			{p.Issuer() + "/keys", "201", "must not be called: its address "},
			{"http://127.0.0.1:1/keys", "201", "must not be called: its address 127.0.0.1 is "},
			{"http://[::ffff:127.0.0.1]:1/keys", "201", "must not be called: its address 127.0.0.1 is "},
			{"http://0.0.0.0/keys", "400", ""},
			{gw.API.URL + "/config", "201", "must not be called: its address "},
			{"file:///etc/passwd", "400", ""},
			{"gopher://127.0.0.1/", "400", ""},
			{"https://user@issuer.test/keys", "400", ""},
			{"https://issuer.test/keys\r\nX: y", "400", ""},
		} {
			name := fmt.Sprintf("keys%d", i)
			config, err := json.Marshal(object{"issuer": "us", "jwks_uri": t.at})
			Expect(err).NotTo(HaveOccurred())
			a, err := gw.API.Post(ctx, "/filter", "Filter_name="+name, "Filter_type=http_filter_jwt", "Filter_config="+string(config))
			Expect(err).NotTo(HaveOccurred())
			Expect(fmt.Sprint(a.Status)).To(Equal(t.stored), "%s: %s", t.at, a.Body)
			if a.Status != http.StatusCreated {
				continue
			}
			link := "/service/keys/filter/" + name
			a, err = gw.API.Post(ctx, link+"?wait=applied")
			Expect(err).NotTo(HaveOccurred())
			Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
			Eventually(func() string {
				a, err := gw.API.Get(ctx, "/filter/"+name)
				Expect(err).NotTo(HaveOccurred())
				return a.Body
			}).Should(And(ContainSubstring("ProviderFailing"), ContainSubstring(t.why), ContainSubstring("none of its tokens is accepted before it answers")))
			Expect(try(ctx, base, http.MethodGet, "/", "", "Host: keys.test").Status).To(Equal(http.StatusServiceUnavailable))
			for _, made := range []string{link, "/filter/" + name} {
				a, err := gw.API.Delete(ctx, made)
				Expect(err).NotTo(HaveOccurred())
				Expect(a.Status).To(Equal(http.StatusOK), a.Body)
			}
		}
		Expect(p.Asked).To(BeEmpty())
	}, NodeTimeout(2*time.Minute))
})
