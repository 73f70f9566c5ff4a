package rest_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
)

// session is what a browser has after it has signed in.
type session struct{ cookie, header string }

// signIn signs a browser in.
func (a *api) signIn(token string) session {
	GinkgoHelper()
	got := a.send("POST", "/ui/session", "", `{"token":"`+token+`"}`, "Content-Type", "application/json")
	Expect(got.status).To(Equal(201), got.body)
	Expect(got.header.Get("Cache-Control")).To(Equal("no-store"))
	covered.add("POST /ui/session")
	var made struct{ Header string }
	Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
	cookie := got.header.Get("Set-Cookie")
	Expect(cookie).To(MatchRegexp(`^gatehouse_session=ghs_[A-Za-z0-9_-]{43}; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict$`))
	Expect(made.Header).To(MatchRegexp(`^ghs_[A-Za-z0-9_-]{43}$`))
	Expect(cookie).NotTo(ContainSubstring(made.Header))
	return session{strings.SplitN(cookie, ";", 2)[0], made.Header}
}

// browse makes a call with a session.
func (a *api) browse(s session, method, path, body string, header ...string) answer {
	GinkgoHelper()
	if s.cookie != "" {
		header = append(header, "Cookie", s.cookie)
	}
	if s.header != "" {
		header = append(header, "Gatehouse-Session", s.header)
	}
	got := a.send(method, path, "", body, header...)
	if got.status < 400 && path == "/ui/session" {
		covered.add(method + " " + path)
	}
	return got
}

var _ = Describe("A session of the console", func() {
	const ended = "the session has ended; sign in again"

	It("has the rights of its token, and its name in the history", func() {
		a := startAPIThatFails(guarded, fixedClock)
		a.makeToken(adminToken, "ann", "admin")
		viewer := a.makeToken(adminToken, "ci", "viewer")
		admin := a.signIn(adminToken)
		Expect(a.browse(admin, "POST", "/proxy", "Name=gw").status).To(Equal(201))
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor=admin role=admin method=POST path=/proxy status=201`))
		reader := a.signIn(viewer)
		Expect(a.browse(reader, "GET", "/proxy/gw", "").status).To(Equal(200))
		a.browse(reader, "DELETE", "/proxy/gw", "").expectProblem(403, refused(403, "forbidden", "The role does not allow this",
			`token \"ci\" has the role viewer, which may only read (GET, HEAD); use one with the role admin`, "/proxy/gw"))
		a.browse(reader, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_in","actor":"ci","role":"viewer","end_ts":"2026-11-21T20:07:39.123456+00:00"}`)
		for _, text := range []string{viewer, adminToken, reader.cookie, reader.header} {
			Expect(a.log.String()).NotTo(ContainSubstring(strings.TrimPrefix(text, "gatehouse_session=")))
		}
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor=ci role=viewer method=POST path=/ui/session status=201`))
	})

	It("is worth nothing without both halves, and halves of others", func() {
		a := startAPIThatFails(guarded)
		one, two := a.signIn(adminToken), a.signIn(adminToken)
		for _, s := range []session{{one.cookie, ""}, {"", one.header}} {
			a.browse(s, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, missing, "/proxy"))
			a.browse(s, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_out"}`)
			Expect(a.browse(s, "DELETE", "/ui/session", "").status).To(Equal(200))
		}
		for _, s := range []session{{one.cookie, two.header}, {"gatehouse_session=" + one.header, one.header}, {one.cookie, "x"}} {
			a.browse(s, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
		}
		Expect(a.browse(one, "GET", "/proxy", "").status).To(Equal(200), "nobody has ended it")
	})

	It("ends with the sign-out, for everybody who has copied it, and with its token", func() {
		a := startAPIThatFails(guarded)
		ann := a.makeToken(adminToken, "ann", "admin")
		one, two := a.signIn(ann), a.signIn(ann)
		out := a.browse(one, "DELETE", "/ui/session", "")
		out.expectJSON(200, `{"state":"signed_out"}`)
		Expect(out.header.Get("Set-Cookie")).To(HavePrefix("gatehouse_session=; Path=/; Max-Age=0; HttpOnly"))
		a.browse(one, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
		Expect(a.browse(two, "GET", "/proxy", "").status).To(Equal(200))
		Expect(a.send("DELETE", "/token/ann", adminToken, "").status).To(Equal(200))
		a.browse(two, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
		a.browse(two, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_out"}`)
	})

	It("ends after 12 hours, and the oldest of a token when there are too many; a new sign-in ends the one before", func() {
		var later atomic.Int64
		a := startAPIThatFails(guarded, func(o *rest.Options) {
			o.Now = func() time.Time { return time.Unix(1_800_000_000+later.Load(), 0) }
		})
		first := a.signIn(adminToken)
		later.Store(12*3600 - 1)
		Expect(a.browse(first, "GET", "/proxy", "").status).To(Equal(200))
		later.Store(12 * 3600)
		Expect(a.browse(first, "GET", "/proxy", "").status).To(Equal(401))
		var all []session
		for i := range int64(21) {
			later.Store(20*3600 + i)
			all = append(all, a.signIn(adminToken))
		}
		Expect(a.browse(all[0], "GET", "/proxy", "").status).To(Equal(401))
		Expect(a.browse(all[1], "GET", "/proxy", "").status).To(Equal(200))
		Expect(a.browse(all[1], "POST", "/ui/session", `{"token":"`+adminToken+`"}`, "Content-Type", "application/json").status).To(Equal(201))
		Expect(a.browse(all[1], "GET", "/proxy", "").status).To(Equal(401))
	})

	It("has a secure cookie over HTTPS", func() {
		a := startAPIThatFails(guarded)
		got := a.send("POST", "/ui/session", "", "token="+adminToken, "X-Forwarded-Proto", "https")
		Expect(got.header.Get("Set-Cookie")).To(HaveSuffix("; HttpOnly; Secure; SameSite=Strict"))
	})

	It("begins with a valid token only; wrong ones are limited, as those of calls", func() {
		a := startAPIThatFails(guarded)
		a.send("POST", "/ui/session", "", "x=1").expectProblem(400, invalid("/ui/session", "token", "is required", "x", "unknown field; this call takes token"))
		for range 10 {
			a.send("POST", "/ui/session", "", "token="+unlikely).expectProblem(401, refused(401, "unauthorized", needs, wrong, "/ui/session"))
		}
		Expect(a.send("POST", "/ui/session", "", "token="+unlikely).status).To(Equal(429))
		Expect(a.send("GET", "/proxy", unlikely, "").status).To(Equal(429))
		a.signIn(adminToken)
	})

	DescribeTable("begins and ends only from a page of the API itself", func(method string, header ...string) {
		a := startAPIThatFails(guarded)
		s := a.signIn(adminToken)
		got := a.browse(s, method, "/ui/session", map[string]string{"POST": "token=" + adminToken}[method], header...)
		Expect(got.status).To(Equal(403), got.body)
		Expect(got.header).NotTo(HaveKey("Set-Cookie"))
		Expect(a.browse(s, "GET", "/proxy", "").status).To(Equal(200))
	},
		Entry("another site signs in", "POST", "Sec-Fetch-Site", "cross-site"),
		Entry("another port signs in", "POST", "Origin", "http://127.0.0.1:1"),
		Entry("another port signs out", "DELETE", "Origin", "http://127.0.0.1:1"),
		Entry("a name that is not ours", "POST", "Host", "evil.example"),
	)

	It("writes only from a page of the API itself", func() {
		a := startAPIThatFails(guarded)
		s := a.signIn(adminToken)
		Expect(a.browse(s, "POST", "/proxy", "Name=gw", "Origin", "http://127.0.0.1:1").status).To(Equal(403))
		Expect(a.browse(s, "POST", "/proxy", "Name=gw", "Sec-Fetch-Site", "same-site").status).To(Equal(403))
		Expect(a.revision()).To(BeZero())
	})

	It("is needed by nobody while there is no token, and by everybody afterwards", func() {
		a := startAPIThatFails(open)
		a.browse(session{}, "GET", "/ui/session", "").expectJSON(200, `{"state":"open","actor":"local","role":"admin"}`)
		ann := a.makeToken("", "ann", "admin")
		a.browse(session{}, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_out"}`)
		Expect(a.browse(a.signIn(ann), "GET", "/proxy", "").status).To(Equal(200))
	})

	It("knows where the configuration comes from", func() {
		elsewhere := func(o *rest.Options) { o.Elsewhere = func(model.Key) string { return "edit the objects" } }
		a := startAPIThatFails(guarded, elsewhere)
		s := a.signIn(adminToken)
		Expect(a.browse(s, "GET", "/ui/session", "").body).To(ContainSubstring(`"elsewhere":"edit the objects"`))
		a.browse(session{}, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_out"}`)
		Expect(a.browse(s, "DELETE", "/ui/session", "").status).To(Equal(200))
	})

	It("needs no sign-in where authentication is off", func() {
		a := startAPI()
		a.browse(session{}, "GET", "/ui/session", "").expectJSON(200, `{"state":"open","actor":"api","role":"admin"}`)
		Expect(a.send("POST", "/ui/session", "", "token=x").status).To(Equal(http.StatusNotFound))
	})

	It("tells an editor its tags", func() {
		a := startAPIThatFails(guarded)
		got := a.send("POST", "/token", adminToken, "Token_name=shop&Token_role=editor&Token_tags=team-shop")
		var made struct{ Token string }
		Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
		Expect(a.browse(a.signIn(made.Token), "GET", "/ui/session", "").body).To(ContainSubstring(`"role":"editor","tags":["team-shop"]`))
	})
})
