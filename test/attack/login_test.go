package attack_test

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// sessionTry is a request with cookies and its expected outcome.
type sessionTry struct {
	what    string
	host    string
	cookies []pair
	header  []string
	want    string
}

// sessionTries returns ways to be somebody without a login. a is the genuine session.
func (l *loginTarget) sessionTries(ctx context.Context) []sessionTry {
	GinkgoHelper()
	a, b, r := l.session("a.test"), l.session("b.test"), l.session("r.test")
	authority, key := "a.test:"+strconv.Itoa(gw.httpsPort), l.key("a", "a")
	tries := []sessionTry{
		{"the genuine session", "a.test", a, nil, "page"},
		{"no cookie", "a.test", nil, nil, "login"},
		{"a session made with the key and genuine tokens, which shows that the next rows are made well", "a.test",
			forge(key, "a", authority, l.access, l.id), nil, "page"},
		{"the key of the cookies, and an id_token that another key signed", "a.test", forge(key, "a", authority, l.access, l.signed("RS256")), nil, "401"},
		{"the key, and an id_token with alg none", "a.test", forge(key, "a", authority, l.access, l.signed("none")), nil, "401"},
		{"the key, and an id_token with alg None", "a.test", forge(key, "a", authority, l.access, l.signed("None")), nil, "401"},
		{"the key, and an id_token that is signed with the public key as a secret", "a.test", forge(key, "a", authority, l.access, l.confused(ctx)), nil, "401"},
		{"the key, and an id_token without its signature", "a.test", forge(key, "a", authority, l.access, l.id[:strings.LastIndex(l.id, ".")+1]), nil, "401"},
		{"the key, and an id_token of another client", "a.test", forge(key, "a", authority, l.access, l.other), nil, "403"},
		{"the key, and no id_token", "a.test", without(forge(key, "a", authority, l.access, ""), "IdToken"), nil, "401"},
		{"the key, and the access token as the id_token", "a.test", forge(key, "a", authority, l.access, l.access), nil, "401"},
		{"a session made with the secret that the key is derived from", "a.test", forge(cookieKey, "a", authority, l.access, l.id), nil, "login"},
		{"a session made with the key of another filter", "a.test", forge(l.key("b", "b"), "a", authority, l.access, l.id), nil, "login"},
		{"a session made for another host", "a.test", forge(key, "a", "b.test:"+strconv.Itoa(gw.httpsPort), l.access, l.id), nil, "login"},
		{"an id_token that another key signed beside genuine cookies", "a.test", with(a, "IdToken", l.signed("RS256")), nil, "login"},
		{"an id_token with alg none beside genuine cookies", "a.test", with(a, "IdToken", l.signed("none")), nil, "login"},
		{"an access token of somebody else", "a.test", with(a, "BearerToken", "junk"), nil, "login"},
		{"a later end", "a.test", with(a, "OauthExpires", strconv.FormatInt(time.Now().Add(48*time.Hour).Unix(), 10)), nil, "login"},
		{"an end that has been", "a.test", with(a, "OauthExpires", "1"), nil, "login"},
		{"an end that is no number", "a.test", with(a, "OauthExpires", "never"), nil, "login"},
		{"an end that is too large", "a.test", with(a, "OauthExpires", "99999999999999999999"), nil, "login"},
		{"the cookies of another host", "b.test", a, nil, "login"},
		{"the cookies of another host under the names of this one", "b.test", renamed(a, "a", "b"), nil, "login"},
		{"the cookies of another filter", "a.test", renamed(b, "b", "a"), nil, "login"},
		{"one cookie of another filter", "a.test", with(a, "IdToken", value(b, "IdToken")), nil, "login"},
		{"forged cookies before the genuine ones", "a.test", append(with(a, "IdToken", l.signed("none")), a...), nil, "login"},
		{"forged cookies behind the genuine ones, which nobody reads", "a.test", append(slices.Clone(a), with(a, "IdToken", l.signed("none"))...), nil, "page"},
		{"an access token alone", "a.test", nil, []string{"Authorization: Bearer " + l.access}, "login"},
		{"an id_token alone", "a.test", nil, []string{"Authorization: Bearer " + l.id}, "login"},
		{"a token in the query", "a.test", nil, []string{"X-Original-Url: /?access_token=" + l.access}, "login"},
		{"an id_token in a cookie alone", "a.test", []pair{{"IdToken" + suffix("a"), l.id}}, nil, "login"},
		{"tokens under the names without a suffix", "a.test", []pair{{"IdToken", l.id}, {"BearerToken", l.access}}, nil, "login"},
		{"the session of r.test without the refresh token", "r.test", without(r, "RefreshToken"), nil, "login"},
		{"the refresh token of another host with its client and its secret", "s.test", renamed(without(r, "OauthHMAC", "OauthExpires", "BearerToken", "IdToken"), "r", "s"), nil, "login"},
		{"a refresh token that is junk", "r.test", []pair{{"RefreshToken" + suffix("r"), "junk"}}, nil, "login"},
		{"all cookies of another host with its client and its secret", "s.test", renamed(r, "r", "s"), nil, "login"},
	}
	for _, name := range []string{"OauthHMAC", "OauthExpires", "BearerToken", "IdToken"} {
		v := value(a, name)
		for where, at := range map[string]int{"start": 0, "middle": len(v) / 2, "end": len(v) - 3} {
			tries = append(tries, sessionTry{name + " flipped at its " + where, "a.test", with(a, name, flipped(v, at)), nil, "login"})
		}
		tries = append(tries,
			sessionTry{name + " dropped", "a.test", without(a, name), nil, "login"},
			sessionTry{name + " emptied", "a.test", with(a, name, ""), nil, "login"},
			sessionTry{name + " cut", "a.test", with(a, name, v[:len(v)-4]), nil, "login"},
			sessionTry{name + " lengthened", "a.test", with(a, name, v+"AAAA"), nil, "login"},
		)
	}
	return tries
}

func value(cookies []pair, name string) string {
	for _, c := range cookies {
		if strings.HasPrefix(c.name, name) {
			return c.value
		}
	}
	return ""
}

// signed returns the user's id_token with claims of somebody else, signed by the
// attacker: RS256 with the attacker's own key under the id of the provider's, or none.
func (l *loginTarget) signed(alg string) string {
	GinkgoHelper()
	input := l.claiming(alg)
	if alg != "RS256" {
		return input + "."
	}
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	Expect(err).NotTo(HaveOccurred())
	sum := sha256.Sum256([]byte(input))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, sum[:])
	Expect(err).NotTo(HaveOccurred())
	return input + "." + base64.RawURLEncoding.EncodeToString(signature)
}

// confused returns a token signed with an HMAC whose key is the provider's published
// key.
func (l *loginTarget) confused(ctx context.Context) string {
	GinkgoHelper()
	v, err := l.browser.Clone().Do(ctx, testkit.Request{URL: l.idp.Issuer + "/jwks"})
	Expect(err).NotTo(HaveOccurred())
	input := l.claiming("HS256")
	mac := hmac.New(sha256.New, []byte(v.Body))
	mac.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// claiming returns the text to sign: the genuine header with another algorithm, and the
// genuine claims with another user.
func (l *loginTarget) claiming(alg string) string {
	GinkgoHelper()
	parts := strings.Split(l.id, ".")
	var encoded []string
	for i, change := range []map[string]any{{"alg": alg}, {"sub": "root", "email": "root@a.test"}} {
		text, err := base64.RawURLEncoding.DecodeString(parts[i])
		Expect(err).NotTo(HaveOccurred())
		var fields map[string]any
		Expect(json.Unmarshal(text, &fields)).To(Succeed())
		for k, v := range change {
			fields[k] = v
		}
		text, err = json.Marshal(fields)
		Expect(err).NotTo(HaveOccurred())
		encoded = append(encoded, base64.RawURLEncoding.EncodeToString(text))
	}
	return strings.Join(encoded, ".")
}

// loginTry is an unusual request, with its expected outcome without and with a session.
type loginTry struct {
	target      string
	header      []string
	want, known string
}

// loginTries returns ways to bypass a login. "page TARGET" is what the backend
// receives. PORT is the gateway's.
func loginTries() []loginTry {
	const page, anna = "page ", " as anna@a.test"
	return []loginTry{
		{"/", nil, "login", page + "/" + anna},
		{"/public", nil, page + "/public", page + "/public"},
		{"/public/x?y=/../../secret", nil, page + "/public/x?y=/../../secret", page + "/public/x?y=/../../secret"},
		{"/public/../secret", nil, "login", page + "/secret" + anna},
		{"/public/%2e%2e/secret", nil, "login", page + "/secret" + anna},
		{"/public/..%2fsecret", nil, "307 to /secret", "307 to /secret"},
		{"/public/..%5csecret", nil, "307 to /secret", "307 to /secret"},
		{`/public\..\secret`, nil, "login", page + "/secret" + anna},
		{"/public//../secret", nil, page + "/public/secret", page + "/public/secret"},
		{"/public/./../secret", nil, "login", page + "/secret" + anna},
		{"//secret", nil, "login", page + "/secret" + anna},
		{"//public/../secret", nil, "login", page + "/secret" + anna},
		{"/%2e/secret", nil, "login", page + "/secret" + anna},
		{"/%2e%2e/secret", nil, "login", page + "/secret" + anna},
		{"/secret/../public/../secret", nil, "login", page + "/secret" + anna},
		{"/%70ublic", nil, page + "/public", page + "/public"},
		{"/public/..;/secret", nil, "login", page + "/secret" + anna},
		{"/public;/../secret", nil, "login", page + "/secret" + anna},
		{"/public;x", nil, "login", page + "/public;x" + anna},
		{"/publicly", nil, "login", page + "/publicly" + anna},
		{"/public%00", nil, "400", "400"},
		{"/public%00/secret", nil, "400", "400"},
		{"/public%20", nil, "login", page + "/public%20" + anna},
		{"/public%252f..%252fsecret", nil, "login", page + "/public%252f..%252fsecret" + anna},
		{"/PUBLIC", nil, "login", page + "/PUBLIC" + anna},
		{"/secret#/public", nil, "400", "400"},
		{"/secret?/public", nil, "login", page + "/secret?/public" + anna},
		{"/secret;/public", nil, "login", page + "/secret;/public" + anna},
		{"/callback", nil, "401", "401"},
		{"/callback/", nil, "login", page + "/callback/" + anna},
		{"/callback/../secret", nil, "login", page + "/secret" + anna},
		{"/callback;x", nil, "login", page + "/callback;x" + anna},
		{"/CALLBACK", nil, "login", page + "/CALLBACK" + anna},
		{"/secret", []string{"X-Envoy-Original-Path: /public"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-Original-Url: /public", "X-Rewrite-Url: /public"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-Forwarded-Proto: http"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-Forwarded-Host: b.test", "X-Forwarded-Port: 1"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-Forwarded-For: 127.0.0.1", "X-Envoy-Internal: true", "X-Envoy-External-Address: 127.0.0.1"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-Http-Method-Override: OPTIONS"}, "login", page + "/secret" + anna},
		{"/secret", []string{"X-User: root@a.test"}, "login", page + "/secret" + anna},
		{"/secret", []string{"Origin: https://a.test", "Access-Control-Request-Method: GET"}, "login", page + "/secret" + anna},
		// The session is for the host as it is in the URL, with its port.
		{"/", []string{"Host: a.test"}, "login", "login"},
		{"/", []string{"Host: a.test:1"}, "login", "login"},
		{"/", []string{"Host: A.test:PORT"}, "login", "login"},
		{"/", []string{"Host: a.test.:PORT"}, "login", page + "/" + anna},
		{"/", []string{"Host: b.test:PORT"}, "421", "421"},
		{"/", []string{"Host: a.test:PORT", "Host: b.test:PORT"}, "400", "400"},
		{"/", []string{"Host: a.test,b.test"}, "400", "400"},
		{"/", []string{"Host: b.test@a.test"}, "400", "400"},
		{"https://a.test:PORT/secret", []string{"Host: open.test"}, "login", page + "/secret" + anna},
		{"http://a.test:PORT/secret", []string{"Host: open.test"}, "login", page + "/secret" + anna},
		{"https://b.test:PORT/", []string{"Host: a.test:PORT"}, "421", "421"},
	}
}

var _ = Describe("A login", Ordered, ContinueOnFailure, func() {
	var l *loginTarget

	BeforeAll(func(ctx SpecContext) { l = startLogins(ctx) }, NodeTimeout(2*time.Minute))

	It("does not apply to anybody who has not logged in, whatever the cookies", func(ctx SpecContext) {
		var wrong []string
		for _, try := range l.sessionTries(ctx) {
			before := gw.blue.Requests()
			got := l.outcome(l.send(ctx, try.host, "GET /", try.cookies, try.header...))
			if got != try.want || (gw.blue.Requests() > before) != (try.want == "page") {
				wrong = append(wrong, fmt.Sprintf("%s: %s, want %s", try.what, got, try.want))
			}
		}
		Expect(wrong).To(BeEmpty())
	}, SpecTimeout(2*time.Minute))

	It("is required however a request is written", func(ctx SpecContext) {
		port := strconv.Itoa(gw.httpsPort)
		var wrong []string
		for _, try := range loginTries() {
			for i := range try.header {
				try.header[i] = strings.ReplaceAll(try.header[i], "PORT", port)
			}
			for cookies, want := range map[bool]string{false: try.want, true: try.known} {
				var sent []pair
				if cookies {
					sent = l.session("a.test")
				}
				a := l.send(ctx, "a.test", "GET "+strings.ReplaceAll(try.target, "PORT", port), sent, try.header...)
				got := l.outcome(a)
				if got == "page" {
					e := backendSaw(a)
					got += " " + e.Path
					if user := e.Headers.Get("X-User"); user != "" {
						got += " as " + user
					}
				}
				if got != want {
					wrong = append(wrong, fmt.Sprintf("%s %v, logged in %t: %s, want %s", try.target, try.header, cookies, got, want))
				}
				if got == "login" && !strings.Contains(strings.Join(try.header, ""), "Host: ") {
					to, err := url.Parse(a.Header.Get("Location"))
					Expect(err).NotTo(HaveOccurred())
					Expect(to.Query().Get("redirect_uri")).To(Equal(l.at("a.test", "/callback")), "%s %v", try.target, try.header)
				}
			}
		}
		Expect(wrong).To(BeEmpty())
	}, SpecTimeout(2*time.Minute))

	DescribeTable("sends the backend claims that it has verified, and none that a client writes", func(ctx SpecContext, target string, known bool, want []string) {
		for _, header := range []string{"X-User: root", "x-user: root", "X-USER: root", "x-User:root", "X-User: "} {
			var cookies []pair
			if known {
				cookies = l.session("a.test")
			}
			a := l.send(ctx, "a.test", "GET "+target, cookies, header, header)
			Expect(l.outcome(a)).To(Equal("page"), header)
			e := backendSaw(a)
			Expect(e.Headers.Values("X-User")).To(Equal(want), header)
			By("including a header that some backends treat as the same")
			Expect(l.outcome(l.send(ctx, "a.test", "GET "+target, cookies, "X_User: root"))).To(Equal("400"))
		}
	},
		Entry("with a session", "/", true, []string{"anna@a.test"}, SpecTimeout(time.Minute)),
		Entry("on a public route", "/public", false, nil, SpecTimeout(time.Minute)),
		Entry("on a public route with a session", "/public", true, nil, SpecTimeout(time.Minute)),
	)

	It("sends the backend no token, however often the cookies are repeated", func(ctx SpecContext) {
		a := l.session("a.test")
		for what, cookies := range map[string][]pair{
			"once": a, "twice": slices.Concat(a, a), "between others": slices.Concat([]pair{{"x", "1"}}, a, []pair{{"y", "2"}}),
			"with empty ones": slices.Concat(a, []pair{{"IdToken" + suffix("a"), ""}, {"BearerToken" + suffix("a"), ""}}),
		} {
			for _, target := range []string{"/", "/public"} {
				answer := l.send(ctx, "a.test", "GET "+target, cookies)
				Expect(l.outcome(answer)).To(Equal("page"), what)
				sent := strings.Join(backendSaw(answer).Headers.Values("Cookie"), "; ")
				Expect(sent).NotTo(Or(ContainSubstring("eyJ"), ContainSubstring(l.access)), "%s at %s", what, target)
				if target == "/" {
					Expect(sent).NotTo(ContainSubstring(suffix("a")), what)
				}
			}
		}
	}, SpecTimeout(time.Minute))

	DescribeTable("sends users back only to the host they came from", func(ctx SpecContext, back string) {
		b := testkit.NewBrowser(l.authority)
		DeferCleanup(b.Close)
		to := l.callback(ctx, b, "a.test")
		q := to.Query()
		q.Set("state", stateWith(q.Get("state"), "url", back))
		to.RawQuery = q.Encode()
		for _, cookies := range [][]pair{nil, l.session("a.test")} {
			for _, c := range b.Cookies {
				if c.Host == "a.test" {
					cookies = append(cookies, pair{c.Name, c.Value})
				}
			}
			a := l.send(ctx, "a.test", "GET "+to.RequestURI(), cookies)
			Expect(a.Status).To(Equal(401), "%s: %s", a.Header.Get("Location"), a.Body)
			Expect(a.Header).NotTo(HaveKey("Location"))
		}
	},
		Entry("another host", "https://evil.example/", SpecTimeout(time.Minute)),
		Entry("no scheme", "//evil.example/", SpecTimeout(time.Minute)),
		Entry("a user", "https://a.test@evil.example/", SpecTimeout(time.Minute)),
		Entry("a user with a password", "https://a.test:443@evil.example/", SpecTimeout(time.Minute)),
		Entry("a host below it", "https://x.a.test/", SpecTimeout(time.Minute)),
		Entry("a host with the same ending", "https://evila.test/", SpecTimeout(time.Minute)),
		Entry("a host with the same beginning", "https://a.test.evil.example/", SpecTimeout(time.Minute)),
		Entry("another service", "https://b.test/", SpecTimeout(time.Minute)),
		Entry("a script", "javascript:alert(1)//a.test/", SpecTimeout(time.Minute)),
		Entry("data", "data:text/html,a.test", SpecTimeout(time.Minute)),
		Entry("a path", "/secret", SpecTimeout(time.Minute)),
		Entry("a backslash", `https://evil.example\.a.test/`, SpecTimeout(time.Minute)),
		Entry("a backslash before a user", `https://evil.example\@a.test/`, SpecTimeout(time.Minute)),
		Entry("a line break", "https://a.test/\r\nSet-Cookie: x=1", SpecTimeout(time.Minute)),
		Entry("nothing", "", SpecTimeout(time.Minute)),
	)

	It("completes at the callback only with the cookies of its own browser, and once", func(ctx SpecContext) {
		type try struct {
			what   string
			change func(to *url.URL, cookies []pair) (string, []pair)
			want   string
		}
		same := func(to *url.URL, c []pair) (string, []pair) { return to.RequestURI(), c }
		replace := func(name, value string) func(*url.URL, []pair) (string, []pair) {
			return func(to *url.URL, c []pair) (string, []pair) {
				q := to.Query()
				q.Set(name, value)
				return to.Path + "?" + q.Encode(), c
			}
		}
		drop := func(names ...string) func(*url.URL, []pair) (string, []pair) {
			return func(to *url.URL, c []pair) (string, []pair) { return to.RequestURI(), without(c, names...) }
		}
		damage := func(name string) func(*url.URL, []pair) (string, []pair) {
			return func(to *url.URL, c []pair) (string, []pair) {
				for i := range c {
					if strings.HasPrefix(c[i].name, name) {
						c[i].value = flipped(c[i].value, len(c[i].value)/2)
					}
				}
				return to.RequestURI(), c
			}
		}
		for _, t := range []try{
			{"as it is", same, "302 to " + l.at("a.test", "/deep")},
			{"without cookies", drop(""), "401"},
			{"without the nonce", drop("OauthNonce"), "401"},
			{"without the verifier", drop("CodeVerifier"), "401"},
			{"another nonce", damage("OauthNonce"), "401"},
			{"another verifier", damage("CodeVerifier"), "401"},
			{"another code", replace("code", "junk"), "401"},
			{"no code", replace("code", ""), "401"},
			{"a state that is none", replace("state", "junk"), "401"},
			{"no state", replace("state", ""), "401"},
			{"an error of the provider", replace("error", "access_denied"), "401"},
		} {
			b := testkit.NewBrowser(l.authority)
			DeferCleanup(b.Close)
			to := l.callback(ctx, b, "a.test")
			var cookies []pair
			for _, c := range b.Cookies {
				if c.Host == "a.test" {
					cookies = append(cookies, pair{c.Name, c.Value})
				}
			}
			target, changed := t.change(to, append([]pair(nil), cookies...))
			a := l.send(ctx, "a.test", "GET "+target, changed)
			Expect(l.outcome(a)).To(Equal(t.want), "%s: %s", t.what, a.Body)
			if t.want == "401" {
				Expect(a.Body).NotTo(Or(ContainSubstring(to.Query().Get("code")), ContainSubstring("Token")), t.what)
				continue
			}
			By("the code is used")
			Expect(l.outcome(l.send(ctx, "a.test", "GET "+to.RequestURI(), cookies))).To(Equal("401"))
		}
		By("not at another host")
		b := testkit.NewBrowser(l.authority)
		DeferCleanup(b.Close)
		to := l.callback(ctx, b, "a.test")
		var own, other []pair
		for _, c := range b.Cookies {
			if c.Host == "a.test" {
				own = append(own, pair{c.Name, c.Value})
			}
		}
		other = renamed(own, "a", "b")
		for _, cookies := range [][]pair{own, other} {
			Expect(l.outcome(l.send(ctx, "b.test", "GET "+to.RequestURI(), cookies))).To(Equal("401"))
		}
	}, SpecTimeout(2*time.Minute))
})

// callback starts a login at /deep of a host, logs anna in, and returns the URL to
// which the provider redirects the browser.
func (l *loginTarget) callback(ctx context.Context, b *testkit.Browser, host string) *url.URL {
	GinkgoHelper()
	for _, c := range l.browser.Cookies {
		if c.Host == "localhost" { // the provider's
			b.Cookies = append(b.Cookies, c)
		}
	}
	return l.begin(ctx, b, l.at(host, "/deep"))
}

// stateWith returns Envoy's state with another value of a field.
func stateWith(state, field, value string) string {
	GinkgoHelper()
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(state, "="))
	Expect(err).NotTo(HaveOccurred(), state)
	var fields map[string]any
	Expect(json.Unmarshal(text, &fields)).To(Succeed(), string(text))
	Expect(fields).To(HaveKey(field))
	fields[field] = value
	text, err = json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return base64.RawURLEncoding.EncodeToString(text)
}
