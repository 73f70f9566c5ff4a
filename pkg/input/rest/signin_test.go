package rest_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/core/egress"
	"github.com/gatehouse-gateway/gatehouse/pkg/core/model"
	"github.com/gatehouse-gateway/gatehouse/pkg/input/rest"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/oidc"
	"github.com/gatehouse-gateway/gatehouse/pkg/trust/signin"
)

// withUsers lets users of a provider sign in.
func withUsers(p *testkit.TokenProvider, change ...func(*rest.SignIn)) func(*rest.Options) {
	GinkgoHelper()
	local, err := egress.ParseEntry("localhost")
	Expect(err).NotTo(HaveOccurred())
	return func(o *rest.Options) {
		o.SignIn = &rest.SignIn{Name: "Staff", Session: time.Hour, Provider: signin.New(signin.Options{
			Issuer: p.Issuer(), ClientID: p.Client, ClientSecret: p.Secret, GroupsClaim: "groups", Now: time.Now,
			Seal: sealer.Seal, Open: sealer.Unseal,
			Client: oidc.NewClient(oidc.Options{Authorities: p.Authority.PEM, Rules: oidc.Rules{Allow: []egress.Entry{local}}}),
		}), Groups: []rest.GroupRights{
			{Group: "platform", Role: "admin"}, {Group: "shop", Role: "editor", Token: "shop-ci"}, {Group: "staff", Role: "viewer"},
		}}
		for _, c := range change {
			c(o.SignIn)
		}
	}
}

func startProvider() *testkit.TokenProvider {
	GinkgoHelper()
	p, err := testkit.StartTokenProvider()
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Close)
	return p
}

// arrive begins a sign-in, and returns the fields with which it ends.
func (a *api) arrive(p *testkit.TokenProvider, claims map[string]any) map[string]string {
	GinkgoHelper()
	got := a.send("POST", "/ui/oidc", "", `{"page":"`+a.url+`/ui/"}`, "Content-Type", "application/json", "Origin", a.url)
	Expect(got.status).To(Equal(200), got.body)
	Expect(got.header.Get("Cache-Control")).To(Equal("no-store"))
	Expect(got.header).NotTo(HaveKey("Set-Cookie"))
	covered.add("POST /ui/oidc")
	var begun map[string]string
	Expect(json.Unmarshal([]byte(got.body), &begun)).To(Succeed())
	code, state, err := p.LogIn(begun["url"], claims)
	Expect(err).NotTo(HaveOccurred())
	return map[string]string{"code": code, "state": state, "sign_in": begun["sign_in"]}
}

func (a *api) end(fields map[string]string, header ...string) answer {
	GinkgoHelper()
	text, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return a.send("POST", "/ui/oidc/session", "", string(text), append(header, "Content-Type", "application/json")...)
}

// signInAs signs a user in.
func (a *api) signInAs(p *testkit.TokenProvider, claims map[string]any) session {
	GinkgoHelper()
	got := a.end(a.arrive(p, claims))
	Expect(got.status).To(Equal(201), got.body)
	covered.add("POST /ui/oidc/session")
	var made struct{ Header string }
	Expect(json.Unmarshal([]byte(got.body), &made)).To(Succeed())
	cookie := got.header.Get("Set-Cookie")
	Expect(cookie).To(MatchRegexp(`^gatehouse_session=ghs_[A-Za-z0-9_-]{43}; Path=/; Max-Age=3600; HttpOnly; SameSite=Strict$`))
	return session{strings.SplitN(cookie, ";", 2)[0], made.Header}
}

var _ = Describe("A user of an identity provider", func() {
	const ended = "the session has ended; sign in again"

	It("has the rights of the first group, and a name in the history that nobody else has", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, fixedClock, withUsers(p))
		a.browse(session{}, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_out","provider":"Staff"}`)
		admin := a.signInAs(p, map[string]any{"sub": "7", "preferred_username": "ann", "groups": []string{"staff", "platform"}})
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor="oidc:ann \(7\)" role=admin method=POST path=/ui/oidc/session status=201`))
		Expect(a.browse(admin, "POST", "/proxy", "Name=gw").status).To(Equal(201))
		Expect(a.log.String()).To(MatchRegexp(`level=INFO msg=write actor="oidc:ann \(7\)" role=admin method=POST path=/proxy status=201`))
		Expect(a.browse(admin, "GET", "/revision", "").body).To(ContainSubstring(`"actor":"oidc:ann (7)"`))
		a.browse(admin, "GET", "/ui/session", "").expectJSON(200, `{"state":"signed_in","actor":"oidc:ann (7)","role":"admin","end_ts":"2026-11-21T09:07:39.123456+00:00"}`)

		viewer := a.signInAs(p, map[string]any{"sub": "admin", "preferred_username": "admin", "groups": "staff"})
		Expect(a.browse(viewer, "GET", "/proxy/gw", "").status).To(Equal(200))
		a.browse(viewer, "DELETE", "/proxy/gw", "").expectProblem(403, refused(403, "forbidden", "The role does not allow this",
			`oidc:admin has the role viewer, which may only read (GET, HEAD); ask an admin`, "/proxy/gw"))
	})

	It("has the team of the token that the group names, as long as that exists", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		claims := map[string]any{"groups": []string{"shop"}}
		a.end(a.arrive(p, claims)).expectProblem(403, refused(403, "no_rights", "None of your groups may use the console",
			`the group \"shop\" has the rights of the token \"shop-ci\", which does not exist or does not have the role editor; ask an admin to create it`, "/ui/oidc/session"))
		Expect(a.send("POST", "/token", adminToken, "Token_name=shop-ci&Token_role=editor&Token_tags=team-shop").status).To(Equal(201))
		shop := a.signInAs(p, claims)
		Expect(a.browse(shop, "GET", "/ui/session", "").body).To(ContainSubstring(`"actor":"oidc:1","role":"editor","tags":["team-shop"]`))
		Expect(a.browse(shop, "POST", "/upstream", "Upstream_name=mine&Upstream_ip=192.0.2.1&Upstream_port=80&Tags=team-shop").status).To(Equal(201))
		Expect(a.browse(shop, "POST", "/upstream", "Upstream_name=other&Upstream_ip=192.0.2.1&Upstream_port=80&Tags=team-pay").status).To(Equal(403))
		Expect(a.browse(shop, "POST", "/token", "Token_name=x&Token_role=admin").status).To(Equal(403))
		Expect(a.send("DELETE", "/token/shop-ci", adminToken, "").status).To(Equal(200))
		a.browse(shop, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
		a.makeToken(adminToken, "shop-ci", "admin")
		a.browse(shop, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
	})

	DescribeTable("without a group of the settings is refused, and told why", func(groups any, words string) {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		got := a.end(a.arrive(p, map[string]any{"sub": "9", "groups": groups}))
		got.expectProblem(403, refused(403, "no_rights", "None of your groups may use the console",
			"oidc:9 is "+words+", and none that may use the console; ask whoever runs this gateway for a group of --console-oidc-groups", "/ui/oidc/session"))
		Expect(got.header).NotTo(HaveKey("Set-Cookie"))
		Expect(a.log.String()).To(MatchRegexp(`level=WARN msg=write actor=oidc:9 role="" method=POST path=/ui/oidc/session status=403`))
	},
		Entry("no claim", nil, "in no group that the provider names"),
		Entry("others", []string{"dev", "Platform"}, `in \"dev\", \"Platform\"`),
		Entry("many", strings.Split("a b c d e f g h i j k l", " "), `in \"a\", \"b\", \"c\", \"d\", \"e\", \"f\", \"g\", \"h\", \"i\", \"j\", 2 more`),
		Entry("rights in place of a group", []string{"admin"}, `in \"admin\"`),
	)

	It("is signed out on the server, and after the time of the settings", func() {
		p := startProvider()
		var later atomic.Int64
		a := startAPIThatFails(guarded, withUsers(p), func(o *rest.Options) {
			o.Now = func() time.Time { return time.Unix(1_800_000_000+later.Load(), 0) }
		})
		one, two := a.signInAs(p, map[string]any{"groups": "staff"}), a.signInAs(p, map[string]any{"groups": "staff"})
		a.browse(one, "DELETE", "/ui/session", "").expectJSON(200, `{"state":"signed_out","provider":"Staff"}`)
		a.browse(one, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
		later.Store(3599)
		Expect(a.browse(two, "GET", "/proxy", "").status).To(Equal(200))
		later.Store(3600)
		a.browse(two, "GET", "/proxy", "").expectProblem(401, refused(401, "unauthorized", needs, ended, "/proxy"))
	})

	It("has 20 sessions at most, without those of others", func() {
		p := startProvider()
		var later atomic.Int64
		a := startAPIThatFails(guarded, withUsers(p), func(o *rest.Options) {
			o.Now = func() time.Time { return time.Unix(1_800_000_000+later.Load(), 0) }
		})
		other := a.signInAs(p, map[string]any{"sub": "2", "groups": "staff"})
		var all []session
		for i := range int64(21) {
			later.Store(2 * i)
			all = append(all, a.signInAs(p, map[string]any{"groups": "staff"}))
		}
		Expect(a.browse(all[0], "GET", "/proxy", "").status).To(Equal(401))
		Expect(a.browse(all[1], "GET", "/proxy", "").status).To(Equal(200))
		Expect(a.browse(other, "GET", "/proxy", "").status).To(Equal(200))
	})

	It("loses the rights with the settings: another provider, another group, none", func() {
		p, q := startProvider(), startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		s := a.signInAs(p, map[string]any{"groups": "staff"})
		status := func(change func(*rest.Options)) int {
			GinkgoHelper()
			return serve("sqlite://"+a.file, guarded, change).browse(s, "GET", "/proxy", "").status
		}
		Expect(status(withUsers(p))).To(Equal(200))
		Expect(status(withUsers(q))).To(Equal(401))
		Expect(status(withUsers(p, func(s *rest.SignIn) { s.Groups = s.Groups[:2] }))).To(Equal(401))
		Expect(status(func(*rest.Options) {})).To(Equal(401))
	})

	It("signs in once with an answer of the provider, and not with a wrong one", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		fields := a.arrive(p, map[string]any{"groups": "staff"})
		Expect(a.end(fields).status).To(Equal(201))
		a.end(fields).expectProblem(403, refused(403, "sign_in_refused", "The sign-in is refused",
			"the identity provider refuses the code, which can be used once and for a short time: sign in again", "/ui/oidc/session"))
		Expect(a.log.String()).To(ContainSubstring(`level=WARN msg="sign-in refused" reason="the identity provider refuses the code`))
		fields = a.arrive(p, map[string]any{"groups": "staff"})
		for _, secret := range []string{fields["code"], fields["sign_in"], p.Secret} {
			Expect(a.log.String()).NotTo(ContainSubstring(secret))
		}
		fields["state"] = "x"
		got := a.end(fields)
		Expect(got.status).To(Equal(403))
		Expect(got.header).NotTo(HaveKey("Set-Cookie"))
	})

	It("is told that the provider is away; tokens work", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		p.HandleDocument(nil)
		got := a.send("POST", "/ui/oidc", "", `{"page":"`+a.url+`/ui/"}`, "Content-Type", "application/json")
		Expect(got.status).To(Equal(503))
		Expect(got.body).To(ContainSubstring("the identity provider " + p.Issuer() + " cannot be used now: the discovery document"))
		a.signIn(adminToken)
	})

	DescribeTable("begins and ends a sign-in only from a page of the API itself", func(path string, header ...string) {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		fields := a.arrive(p, map[string]any{"groups": "platform"})
		if path == "/ui/oidc" {
			fields = map[string]string{"page": a.url + "/ui/"}
		}
		text, err := json.Marshal(fields)
		Expect(err).NotTo(HaveOccurred())
		got := a.send("POST", path, "", string(text), append(header, "Content-Type", "application/json")...)
		Expect(got.status).To(Equal(403), got.body)
		Expect(got.header).NotTo(HaveKey("Set-Cookie"))
		Expect(p.Redeemed()).To(BeEmpty())
	},
		Entry("another site begins", "/ui/oidc", "Sec-Fetch-Site", "cross-site"),
		Entry("another port begins", "/ui/oidc", "Origin", "http://127.0.0.1:1"),
		Entry("a name that is not ours begins", "/ui/oidc", "Host", "evil.example"),
		Entry("another site ends", "/ui/oidc/session", "Sec-Fetch-Site", "cross-site"),
		Entry("another port ends", "/ui/oidc/session", "Origin", "http://127.0.0.1:1"),
		Entry("a name that is not ours ends", "/ui/oidc/session", "Host", "evil.example"),
	)

	It("is sent back to the page that began, and nowhere else", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p))
		a.send("POST", "/ui/oidc", "", `{"page":"http://evil.example/ui/"}`, "Content-Type", "application/json", "Origin", a.url).
			expectProblem(400, invalid("/ui/oidc", "page", "is not at the origin of the page that sends it"))
		a.send("POST", "/ui/oidc", "", `{"x":1}`, "Content-Type", "application/json").
			expectProblem(400, invalid("/ui/oidc", "page", "is required", "x", "unknown field; this call takes page"))
		a.send("POST", "/ui/oidc/session", "", `{"iss":1,"code":"`+strings.Repeat("x", 8193)+`"}`, "Content-Type", "application/json").
			expectProblem(400, invalid("/ui/oidc/session", "iss", "must be text, not a number", "code", "is longer than 8192 bytes", "sign_in", "is required", "state", "is required"))
		Expect(a.send("POST", "/ui/oidc?x=1", "", "page=x").status).To(Equal(400))
	})

	It("makes the server ask the provider 60 times at once at most", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, fixedClock, withUsers(p))
		for range 60 {
			Expect(a.send("POST", "/ui/oidc", "", "page=x").status).To(Equal(400))
		}
		got := a.end(map[string]string{"code": "x"})
		Expect(got.status).To(Equal(429))
		Expect(got.header.Get("Retry-After")).To(Equal("1"))
		a.signIn(adminToken)
	})

	It("reads where the configuration comes from elsewhere", func() {
		p := startProvider()
		a := startAPIThatFails(guarded, withUsers(p), func(o *rest.Options) { o.Elsewhere = func(model.Key) string { return "edit the objects" } })
		Expect(a.browse(a.signInAs(p, map[string]any{"groups": "staff"}), "GET", "/proxy", "").status).To(Equal(200))
	})

	It("does not exist without a provider", func() {
		a := startAPIThatFails(guarded)
		for _, path := range []string{"/ui/oidc", "/ui/oidc/session"} {
			Expect(a.send("POST", path, "", "page=x").status).To(Equal(404))
			Expect(startAPI().send("POST", path, "", "page=x").status).To(Equal(404))
			got, err := a.client.Get(a.url + path) // for the router a file of the console
			Expect(err).NotTo(HaveOccurred())
			Expect(got.Body.Close()).To(Succeed())
			Expect(got.StatusCode).To(Equal(405))
			Expect(got.Header.Get("Allow")).To(Equal("POST"))
		}
	})
})
