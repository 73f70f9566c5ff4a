package rest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/state/store"
)

// adminToken is the token of the settings.
const adminToken = "bootstrap-token-of-a-spec"

// guarded switches authentication on, with an admin token.
func guarded(o *rest.Options) {
	o.Tokens, o.AdminToken, o.ProxyTokens = o.Store.(store.Tokens), adminToken, o.Store.(store.ProxyTokens)
	o.Sessions = o.Store.(store.Sessions)
}

// open switches authentication on, with no token.
func open(o *rest.Options) {
	o.Tokens, o.OpenWithoutTokens, o.ProxyTokens = o.Store.(store.Tokens), true, o.Store.(store.ProxyTokens)
	o.Sessions = o.Store.(store.Sessions)
}

// fixedClock makes timestamp the time of tokens.
func fixedClock(o *rest.Options) {
	o.Now = func() time.Time { return time.Date(2026, 11, 21, 8, 7, 39, 123456000, time.UTC) }
}

// send makes a request with a token, unless it is empty, and headers; Host is
// one of them.
func (a *api) send(method, path, token, body string, header ...string) answer {
	GinkgoHelper()
	req, err := http.NewRequest(method, a.url+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if body != "" {
		req.Header.Set("Content-Type", form)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Content-Type" {
			req.Header.Del(header[i])
		}
		req.Header.Add(header[i], header[i+1])
		if header[i] == "Host" {
			req.Host = header[i+1]
		}
	}
	res, err := a.client.Do(req)
	Expect(err).NotTo(HaveOccurred())
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	Expect(err).NotTo(HaveOccurred())
	got := answer{res.StatusCode, res.Header, string(text)}
	if operation := a.judge(req, got); got.status < 400 && operation != "" && strings.Contains(path, "/token") {
		covered.add(operation)
	}
	return got
}

// makeToken makes a token over the API.
func (a *api) makeToken(as, name, role string) string {
	GinkgoHelper()
	got := a.send("POST", "/token", as, "Token_name="+name+"&Token_role="+role)
	Expect(got.status).To(Equal(201), got.body)
	var made struct{ Name, Role, Token string }
	Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
	Expect(got.body).To(Equal(`{"name":"` + name + `","role":"` + role + `","token":"` + made.Token + `"}`))
	Expect(made.Token).To(MatchRegexp(`^gh_[A-Za-z0-9_-]{43}$`))
	Expect(got.header.Get("Cache-Control")).To(Equal("no-store"))
	Expect(got.header.Get("Location")).To(Equal("/token/" + name))
	return made.Token
}

// refused is the answer to a request that may not be made.
func refused(status int, code, title, detail, path string) string {
	return fmt.Sprintf(`{"type":"urn:gatehouse:problem:%s","title":"%s","status":%d,"detail":"%s","instance":"%s","code":"%s"}`,
		code, title, status, detail, path, code)
}

const (
	missing  = "this call needs a token: send it as Authorization: Bearer TOKEN"
	wrong    = "the token is not valid: it is unknown or was revoked"
	needs    = "A valid token is required"
	unlikely = "gh_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
)

// routePath is a route with a name for each parameter.
func routePath(path string) string {
	parts := strings.Split(path, "/")
	for i, p := range parts {
		if strings.HasPrefix(p, ":") || strings.HasPrefix(p, "*") {
			parts[i] = "x"
		}
	}
	return strings.Join(parts, "/")
}

var _ = Describe("Every route", func() {
	public := map[string]bool{"/": true, "/health": true, "/ready": true, "/openapi.yaml": true, "/openapi.json": true, "/docs": true, "/ui": true}
	It("requires a token, and lets a viewer only read", func() {
		a := startAPIThatFails(guarded)
		viewer := a.makeToken(adminToken, "ci", "viewer")
		revision, writes := a.revision(), 0
		handler := rest.New(rest.Options{Store: a.store, Tokens: a.store.(store.Tokens), ProxyTokens: a.store.(store.ProxyTokens)})
		for _, r := range rest.Routes(handler) {
			path := routePath(r.Path)
			if r.Path == "/ui/session" { // which has specs of its own
				continue
			}
			if public[r.Path] || strings.HasPrefix(r.Path, "/docs/") || strings.HasPrefix(r.Path, "/ui/") {
				Expect(a.send(r.Method, path, "", "").status).To(Or(Equal(200), Equal(302), Equal(308), Equal(404)), r.Path) // 404: no such file
				continue
			}
			got := a.send(r.Method, path, "", "")
			Expect(got.status).To(Equal(401), "%s %s", r.Method, path)
			Expect(got.header.Get("WWW-Authenticate")).To(Equal(`Bearer realm="gatehouse"`))
			got = a.send(r.Method, path, viewer, "")
			if r.Method == http.MethodGet || r.Method == http.MethodHead {
				Expect(got.status).NotTo(Or(Equal(401), Equal(403)), "%s %s", r.Method, path)
				continue
			}
			writes++
			got.expectProblem(403, refused(403, "forbidden", "The role does not allow this",
				`token \"ci\" has the role viewer, which may only read (GET, HEAD); use one with the role admin`, path))
		}
		Expect(writes).To(BeNumerically(">=", 12))
		Expect(a.revision()).To(Equal(revision))
		for _, r := range rest.Routes(handler) {
			Expect(a.send(r.Method, routePath(r.Path), adminToken, "").status).NotTo(Or(Equal(401), Equal(403)), "%s %s", r.Method, r.Path)
		}
	})

	It("is protected even if it does not exist", func() {
		a := startAPIThatFails(guarded)
		a.send("GET", "/nope", "", "").expectProblem(401, refused(401, "unauthorized", needs, missing, "/nope"))
		Expect(a.send("DELETE", "/service", "", "").status).To(Equal(401))
		Expect(a.send("GET", "/nope", adminToken, "").status).To(Equal(404))
	})
})

var _ = Describe("A token", func() {
	It("authenticates its holder until it is revoked", func() {
		a := startAPIThatFails(guarded)
		token := a.makeToken(adminToken, "ann", "admin")
		a.send("POST", "/service", token, "Service_Name=shop&fqdn=*").
			expectWrite(201, `{"data":{"insert_core_db_service":{"affected_rows":1}}}`, "1")
		read := a.send("GET", "/token/ann", token, "")
		Expect(read.status).To(Equal(200), read.body)
		Expect(read.body).To(MatchRegexp(`^{"data":{"core_db_token":\[{"name":"ann","role":"admin","create_ts":"[^"]+","last_used_ts":"[^"]+"}\]}}$`))
		a.send("GET", "/token/bob", token, "").expectProblem(404,
			refused(404, "unknown_name", "A name does not exist", `token \"bob\" does not exist`, "/token/bob"))
		a.send("DELETE", "/token/ann", adminToken, "").expectJSON(200, `{"data":{"delete_core_db_token":{"affected_rows":1}}}`)
		a.send("GET", "/service", token, "").expectProblem(401, refused(401, "unauthorized", needs, wrong, "/service"))
		a.send("DELETE", "/token/ann", adminToken, "").expectProblem(404,
			refused(404, "unknown_name", "A name does not exist", `token \"ann\" does not exist`, "/token/ann"))
	})

	DescribeTable("is answered with 401 if it is wrong:", func(header ...string) {
		a := startAPIThatFails(guarded)
		got := a.send("GET", "/service", "", "", header...)
		got.expectProblem(401, refused(401, "unauthorized", needs, wrong, "/service"))
		Expect(got.header.Get("WWW-Authenticate")).To(Equal(`Bearer realm="gatehouse"`))
	},
		Entry("unknown", "Authorization", "Bearer "+unlikely),
		Entry("of another format", "Authorization", "Bearer x"),
		Entry("part of a token", "Authorization", "Bearer "+adminToken[:10]),
		Entry("empty", "Authorization", "Bearer "),
		Entry("another scheme", "Authorization", "Basic "+adminToken),
		Entry("no scheme", "Authorization", adminToken),
		Entry("two headers", "Authorization", "Bearer "+adminToken, "Authorization", "Bearer "+adminToken),
	)

	It("is named in the history as the actor", func() {
		a := startAPIThatFails(guarded)
		Expect(a.send("POST", "/proxy", a.makeToken(adminToken, "ann", "admin"), "Name=a").status).To(Equal(201))
		Expect(a.send("POST", "/proxy", adminToken, "Name=b").status).To(Equal(201))
		Expect(a.log.String()).To(And(
			MatchRegexp(`level=INFO msg=write actor=ann role=admin method=POST path=/proxy status=201 rev=1 took=`),
			MatchRegexp(`level=INFO msg=write actor=admin role=admin method=POST path=/proxy status=201 rev=2 took=`)))
	})

	It("is shown once and never logged", func() {
		a := startAPIThatFails(guarded, func(o *rest.Options) {
			o.OpenWithoutTokens = true
			o.Now = func() time.Time { return time.Date(2026, 11, 21, 8, 7, 39, 123456000, time.UTC) }
		})
		viewer := a.makeToken(adminToken, "ci", "viewer")
		a.send("POST", "/service", viewer, "Service_Name=shop&fqdn=*")
		a.send("GET", "/service", unlikely, "")
		a.send("POST", "/service", unlikely, "Service_Name=shop&fqdn=*")
		list := a.send("GET", "/token", viewer, "")
		list.expectJSON(200, `{"data":{"core_db_token":[{"name":"ci","role":"viewer","create_ts":"`+timestamp+`","last_used_ts":"`+timestamp+`"}]}}`)
		hash := fmt.Sprintf("%x", store.HashToken(viewer))
		for _, text := range []string{a.log.String(), list.body} {
			Expect(text).NotTo(Or(ContainSubstring(viewer), ContainSubstring(viewer[3:]), ContainSubstring(hash),
				ContainSubstring(unlikely), ContainSubstring(adminToken)))
		}
		Expect(a.log.String()).To(And(
			MatchRegexp(`level=WARN msg=write actor=ci role=viewer method=POST path=/service status=403 rev="" took=`),
			MatchRegexp(`level=WARN msg="wrong token" client=127.0.0.1 method=GET path=/service\n`),
			MatchRegexp(`level=WARN msg=write actor="" role="" method=POST path=/service status=401 rev="" took=`)))
	})

	It("has its last use recorded, once a minute", func() {
		var later atomic.Int64
		touches := &countingTokens{}
		a := startAPI(guarded, func(o *rest.Options) {
			touches.tokens = o.Tokens
			o.Tokens = touches
			o.Now = func() time.Time { return time.Date(2026, 11, 21, 9, 0, int(later.Load()), 0, time.UTC) }
		})
		token := a.makeToken(adminToken, "ci", "viewer")
		a.send("GET", "/token", adminToken, "").expectJSON(200,
			`{"data":{"core_db_token":[{"name":"ci","role":"viewer","create_ts":"2026-11-21T09:00:00.000000+00:00","last_used_ts":null}]}}`)
		for _, seconds := range []int64{0, 1, 59, 60, 61, 119, 120} {
			later.Store(seconds)
			Expect(a.send("GET", "/service", token, "").status).To(Equal(200))
		}
		a.send("GET", "/token", adminToken, "").expectJSON(200,
			`{"data":{"core_db_token":[{"name":"ci","role":"viewer","create_ts":"2026-11-21T09:00:00.000000+00:00","last_used_ts":"2026-11-21T09:02:00.000000+00:00"}]}}`)
		Expect(touches.count.Load()).To(Equal(int64(3)))
	})

	DescribeTable("has only these fields", func(fields string, errs ...string) {
		a := startAPI(guarded)
		a.send("POST", "/token", adminToken, fields).expectProblem(400, invalid("/token", errs...))
	},
		Entry(nil, "", "Token_name", "is required", "Token_role", "is required: admin, editor or viewer"),
		Entry(nil, "Token_name=a%2Fb&Token_role=root", "Token_name", `\"a/b\" may contain only the characters A-Z a-z 0-9 . _ -`,
			"Token_role", `\"root\" is not one of admin, editor, viewer`),
		Entry(nil, "token_name=a&Token_role=admin&x=1", "x", "unknown field; known fields are Token_name, Token_role, Token_tags, Token_hosts, Token_ports, Token_max_objects"),
		Entry(nil, "Token_name=a&token_name=b&Token_role=admin", "Token_name", "is sent more than once"),
		Entry(nil, "Token_name=Admin&Token_role=admin", "Token_name", `\"Admin\" is the name of another actor in the history; choose another name`),
	)

	It("has a unique name", func() {
		a := startAPI(guarded)
		a.makeToken(adminToken, "ci", "viewer")
		a.send("POST", "/token", adminToken, "Token_name=ci&Token_role=admin").expectProblem(409, refused(409, "already_exists",
			"The name is taken", `token \"ci\" already exists; choose another name, or delete the existing one first`, "/token"))
	})

	It("of the last admin cannot be deleted unless the settings have one", func() {
		a := startAPI(open)
		ann := a.makeToken("", "ann", "admin")
		bob := a.makeToken(ann, "bob", "admin")
		Expect(a.send("DELETE", "/token/ann", bob, "").status).To(Equal(200))
		a.send("DELETE", "/token/bob", bob, "").expectProblem(409, refused(409, "conflict", "It conflicts with the current state",
			`token \"bob\" is the last one of an admin; without it nobody could change anything; create another admin token first, or delete it in the database: gatehouse token revoke with --data-dir or --database-url`, "/token/bob"))
		Expect(a.send("GET", "/service", bob, "").status).To(Equal(200))
	})
})

type (
	tokens      = store.Tokens
	proxyTokens = store.ProxyTokens
)

// countingTokens counts what is noted about last uses.
type countingTokens struct {
	tokens
	count atomic.Int64
}

func (t *countingTokens) TouchToken(ctx context.Context, name string, at time.Time) error {
	t.count.Add(1)
	return t.tokens.TouchToken(ctx, name, at)
}

// tokensAway are the tokens of a database that does not answer.
type tokensAway struct{ tokens }

func (tokensAway) HasTokens(context.Context) (bool, error) { return false, errAway() }

func (tokensAway) TokenByHash(context.Context, [32]byte) (store.Token, error) {
	return store.Token{}, errAway()
}

func errAway() error {
	return &model.Error{Kind: model.Unavailable, Message: "the database does not answer"}
}

var _ = Describe("Without any token", func() {
	It("a local API is open until the first one is created", func() {
		a := startAPIThatFails(open)
		a.send("POST", "/proxy", "", "Name=gw").expectJSON(201, `{"name":"gw"}`)
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor=local role=admin method=POST path=/proxy status=201 rev=1 took=`))
		a.send("GET", "/proxy", unlikely, "").expectProblem(401, refused(401, "unauthorized", needs, wrong, "/proxy"))
		a.send("POST", "/token", "", "Token_name=ci&Token_role=viewer").expectProblem(409, refused(409, "conflict", "It conflicts with the current state",
			"the first token must have the role admin; from then on every call requires a token, and a viewer's token cannot change anything", "/token"))
		ann := a.makeToken("", "ann", "admin")
		a.send("GET", "/proxy", "", "").expectProblem(401, refused(401, "unauthorized", needs, missing, "/proxy"))
		Expect(a.send("GET", "/proxy", ann, "").status).To(Equal(200))
		a.makeToken(ann, "ci", "viewer")
	})

	It("any other API is closed", func() {
		a := startAPIThatFails(open, func(o *rest.Options) { o.OpenWithoutTokens = false })
		a.send("GET", "/proxy", "", "").expectProblem(401, refused(401, "unauthorized", needs, missing, "/proxy"))
		Expect(a.send("POST", "/token", "", "Token_name=ann&Token_role=admin").status).To(Equal(401))
		Expect(a.send("GET", "/ready", "", "").status).To(Equal(200))
	})

	It("an API whose database is unavailable is closed", func() {
		a := startAPIThatFails(open, func(o *rest.Options) { o.Tokens = tokensAway{} })
		Expect(a.send("GET", "/service", "", "").status).To(Equal(503))
		Expect(a.send("POST", "/service", unlikely, "").status).To(Equal(503))
	})
})

var _ = Describe("The Host of a request", func() {
	notOurs := func(host, path string) string {
		return refused(403, "forbidden_host", "The Host is not one of this API",
			`the Host \"`+host+`\" is neither an address nor localhost; if it is a name of this API, start it with --api-hosts and that name`, path)
	}
	DescribeTable("is checked for a write, and for a read while the API is open", func(host string, ok bool) {
		a := startAPIThatFails(open, func(o *rest.Options) { o.Hosts = []string{"Api.Example.com"} })
		read, write := a.send("GET", "/proxy", "", "", "Host", host), a.send("POST", "/proxy", "", "Name=gw", "Host", host)
		if ok {
			Expect([]int{read.status, write.status}).To(Equal([]int{200, 201}))
			return
		}
		read.expectProblem(403, notOurs(host, "/proxy"))
		write.expectProblem(403, notOurs(host, "/proxy"))
		Expect(a.revision()).To(BeZero())
		Expect(a.send("GET", "/health", "", "", "Host", host).status).To(Equal(200))
	},
		Entry(nil, "127.0.0.1:1323", true),
		Entry(nil, "10.1.2.3", true),
		Entry(nil, "[::1]:1323", true),
		Entry(nil, "[::1]", true),
		Entry(nil, "localhost:1323", true),
		Entry(nil, "LOCALHOST.", true),
		Entry(nil, "gw.localhost", true),
		Entry(nil, "api.example.com:1323", true),
		Entry(nil, "api.example.com.", true),
		Entry(nil, "evil.example:1323", false),
		Entry(nil, "127.0.0.1.evil.example", false),
		Entry(nil, "localhost.evil.example", false),
		Entry(nil, "evillocalhost", false),
	)

	It("is not checked for a read with a token, only for a write", func() {
		a := startAPIThatFails(guarded)
		Expect(a.send("GET", "/proxy", adminToken, "", "Host", "gw.example").status).To(Equal(200))
		a.send("POST", "/proxy", adminToken, "Name=gw", "Host", "gw.example").expectProblem(403, notOurs("gw.example", "/proxy"))
	})
})

var _ = Describe("The origin of a write", func() {
	const crossOrigin = "a page of another origin may not change anything; call the API from its own origin, or without a browser"
	DescribeTable("must be the API itself", func(ok bool, header ...string) {
		a := startAPIThatFails(open)
		for i, h := range header {
			header[i] = strings.ReplaceAll(h, "SELF", a.url)
		}
		got := a.send("POST", "/proxy", "", "Name=gw", header...)
		if ok {
			got.expectJSON(201, `{"name":"gw"}`)
			return
		}
		got.expectProblem(403, refused(403, "forbidden_origin", "The request comes from another site", crossOrigin, "/proxy"))
		Expect(a.revision()).To(BeZero())
	},
		Entry("no origin, as without a browser", true),
		Entry("the same", true, "Origin", "SELF"),
		Entry("the same, according to the browser", true, "Sec-Fetch-Site", "same-origin"),
		Entry("an address typed in", true, "Sec-Fetch-Site", "none"),
		Entry("another site", false, "Sec-Fetch-Site", "cross-site"),
		Entry("another port", false, "Origin", "http://127.0.0.1:1"),
		Entry("another host", false, "Origin", "https://evil.example"),
		Entry("hidden", false, "Origin", "null"),
		Entry("the same site only", false, "Sec-Fetch-Site", "same-site", "Origin", "http://evil.localhost"),
	)
})

var _ = Describe("Wrong tokens", func() {
	It("are limited per address, valid tokens never", func() {
		var now atomic.Int64
		var log lockedBuffer
		a := startAPIThatFails(guarded)
		viewer := a.makeToken(adminToken, "ci", "viewer")
		handler := rest.New(rest.Options{
			Store: a.store, Tokens: a.store.(store.Tokens), AdminToken: adminToken,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Now: func() time.Time { return time.Unix(1_800_000_000+now.Load(), 0) },
		})
		from := func(addr, token string) *httptest.ResponseRecorder {
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/service", nil)
			r.RemoteAddr = addr
			r.Header.Set("Authorization", "Bearer "+token)
			handler.ServeHTTP(w, r)
			return w
		}
		for range 10 {
			Expect(from("[2001:db8::1]:1000", unlikely).Code).To(Equal(401))
		}
		for range 5 { // another address and port of the same network
			w := from("[2001:db8::2]:1001", unlikely)
			Expect(w.Body.String()).To(Equal(refused(429, "too_many_failures", "Too many wrong tokens",
				"too many wrong tokens came from this address; a valid one is accepted at any time", "/service")))
			Expect(w.Code).To(Equal(429))
			Expect(w.Header().Get("Retry-After")).To(Equal("6"))
		}
		Expect(strings.Count(log.String(), "wrong token")).To(Equal(10))
		Expect(from("[2001:db8::1]:1000", viewer).Code).To(Equal(200))
		Expect(from("[2001:db8::1]:1000", adminToken).Code).To(Equal(200))
		Expect(from("[2001:db8:1::1]:1000", unlikely).Code).To(Equal(401))
		Expect(from("192.0.2.1:1000", unlikely).Code).To(Equal(401))
		now.Store(6)
		Expect(from("[2001:db8::1]:1000", unlikely).Code).To(Equal(401))
		Expect(from("[2001:db8::1]:1000", unlikely).Code).To(Equal(429))
	})

	It("or missing ones fill the log no more than the limit, whatever is refused", func() {
		var now atomic.Int64
		var log lockedBuffer
		a := startAPIThatFails(guarded)
		viewer := a.makeToken(adminToken, "ci", "viewer")
		handler := rest.New(rest.Options{
			Store: a.store, Tokens: a.store.(store.Tokens), AdminToken: adminToken,
			Log: slog.New(slog.NewTextHandler(&log, nil)),
			Now: func() time.Time { return time.Unix(1_800_000_000+now.Load(), 0) },
		})
		post := func(addr, host, token string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequest("POST", "/service", nil)
			r.RemoteAddr, r.Host = addr, host
			if token != "" {
				r.Header.Set("Authorization", "Bearer "+token)
			}
			handler.ServeHTTP(w, r)
			return w.Code
		}
		lines := func() int { return strings.Count(log.String(), "level=WARN msg=write") }
		for range 20 {
			Expect(post("192.0.2.1:1000", "localhost", "")).To(Equal(401))
			Expect(post("192.0.2.1:1000", "evil.example", "")).To(Equal(403))
		}
		for range 20 {
			Expect(post("192.0.2.1:1000", "localhost", unlikely)).To(Or(Equal(401), Equal(429)))
		}
		Expect(lines()).To(Equal(10))
		By("others are still logged, callers with a name too, and again later")
		Expect(post("192.0.2.2:1000", "localhost", "")).To(Equal(401))
		Expect(lines()).To(Equal(11))
		for range 20 {
			Expect(post("192.0.2.1:1000", "localhost", viewer)).To(Equal(403))
		}
		Expect(lines()).To(Equal(31))
		now.Store(6)
		for range 2 {
			Expect(post("192.0.2.1:1000", "localhost", "")).To(Equal(401))
		}
		Expect(lines()).To(Equal(32))
		By("they never count against a valid token")
		Expect(post("192.0.2.1:1000", "localhost", adminToken)).To(Equal(400))
	})

})
