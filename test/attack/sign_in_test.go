package attack_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

const (
	signInClient = "0123456789abcdef0123456789abcdef"
	signInToken  = "gh_token-of-the-sign-in-specs-0123456789abcdefgh"
	signInForm   = "Content-Type: application/x-www-form-urlencoded"
)

// signInLab is a control plane with a real identity provider, whose users are ann (platform), vic (staff) and nora (dev).
type signInLab struct {
	*testkit.Gatehouse
	authority *testkit.Authority
	// page is the address of the console.
	page, issuer string
	logIn        func(ctx context.Context, b *testkit.Browser, page testkit.Visit, name string) (testkit.Visit, error)
	stop         func() error
	oidcProvider *testkit.OIDCProvider
}

func (l *signInLab) clients() []testkit.OIDCClient {
	return []testkit.OIDCClient{{ID: "gatehouse", Secret: signInClient, RedirectURIs: []string{l.page}}}
}

func startOIDCProviderLab(ctx context.Context, l *signInLab) {
	GinkgoHelper()
	user := func(group string) testkit.OIDCUser {
		return testkit.OIDCUser{Password: "secret", Claims: map[string]any{"groups": []string{group}}}
	}
	p, err := testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), l.authority, testkit.OIDCSettings{
		Clients: l.clients(), Users: map[string]testkit.OIDCUser{"ann": user("platform"), "vic": user("staff"), "nora": user("dev")},
	})
	Expect(err).NotTo(HaveOccurred())
	l.issuer, l.stop, l.oidcProvider = p.Issuer, p.Kill, p
	l.logIn = func(ctx context.Context, b *testkit.Browser, page testkit.Visit, name string) (testkit.Visit, error) {
		return b.LogIn(ctx, page, name, "secret")
	}
}

func startGlewlwydLab(ctx context.Context, l *signInLab) {
	GinkgoHelper()
	user := func(name, group string) testkit.GlewlwydUser {
		return testkit.GlewlwydUser{Name: name, Password: "secret-" + name, Email: name + "@shop.test", Groups: []string{group}}
	}
	g, err := testkit.StartGlewlwyd(ctx, GinkgoT().TempDir(), l.authority, l.clients(),
		[]testkit.GlewlwydUser{user("ann", "platform"), user("vic", "staff"), user("nora", "dev")})
	Expect(err).NotTo(HaveOccurred())
	l.issuer, l.stop = g.Issuer, g.Kill
	l.logIn = func(ctx context.Context, b *testkit.Browser, page testkit.Visit, name string) (testkit.Visit, error) {
		return g.LogIn(ctx, b, page, name, "secret-"+name)
	}
}

func startSignInLab(ctx context.Context, start func(context.Context, *signInLab)) *signInLab {
	GinkgoHelper()
	authority, err := testkit.NewAuthority("provider")
	Expect(err).NotTo(HaveOccurred())
	port, err := testkit.FreePort()
	Expect(err).NotTo(HaveOccurred())
	l := &signInLab{authority: authority, page: fmt.Sprintf("http://127.0.0.1:%d/ui/", port)}
	start(ctx, l)
	DeferCleanup(func() { _ = l.stop() }) // a spec may have stopped it
	dir := GinkgoT().TempDir()
	for name, text := range map[string]string{"ca.pem": authority.PEM, "secret": signInClient + "\n"} {
		Expect(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)).To(Succeed())
	}
	l.Gatehouse, err = testkit.StartGatehouse(ctx, []string{"GATEHOUSE_API_ADMIN_TOKEN=" + signInToken},
		"serve", "--data-dir", dir, "--api-addr", fmt.Sprintf("127.0.0.1:%d", port), "--xds-addr", "127.0.0.1:0",
		"--console-oidc-issuer", l.issuer, "--console-oidc-client-id", "gatehouse", "--console-oidc-client-secret-file", filepath.Join(dir, "secret"),
		"--console-oidc-groups", "platform=admin", "--console-oidc-groups", "staff=viewer", "--console-oidc-scopes", "openid",
		"--upstream-ca-file", filepath.Join(dir, "ca.pem"), "--provider-allow", "localhost")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(func(ctx SpecContext) { Expect(l.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
	return l
}

// begin begins a sign-in, and returns the answer.
func (l *signInLab) begin(ctx context.Context, page string) map[string]string {
	GinkgoHelper()
	a := try(ctx, l.API, http.MethodPost, "/ui/oidc", `{"page":"`+page+`"}`, "Content-Type: application/json")
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	var begun map[string]string
	Expect(json.Unmarshal([]byte(a.Body), &begun)).To(Succeed())
	return begun
}

// arrive begins a sign-in and logs in at the provider, which sends the browser back to the page. It returns what the page
// sends then.
func (l *signInLab) arrive(ctx context.Context, name string) map[string]string {
	GinkgoHelper()
	b := testkit.NewBrowser(l.authority)
	defer b.Close()
	begun := l.begin(ctx, l.page)
	page, err := b.Open(ctx, begun["url"])
	Expect(err).NotTo(HaveOccurred())
	page, err = l.logIn(ctx, b, page, name)
	Expect(err).NotTo(HaveOccurred())
	Expect(page.Status).To(Equal(http.StatusOK))
	Expect(page.URL.String()).To(HavePrefix(l.page+"?"), page.Body)
	q := page.URL.Query()
	return map[string]string{"code": q.Get("code"), "state": q.Get("state"), "iss": q.Get("iss"), "sign_in": begun["sign_in"]}
}

func (l *signInLab) end(ctx context.Context, fields map[string]string, headers ...string) testkit.Answer {
	GinkgoHelper()
	text, err := json.Marshal(fields)
	Expect(err).NotTo(HaveOccurred())
	return try(ctx, l.API, http.MethodPost, "/ui/oidc/session", string(text), append(headers, "Content-Type: application/json")...)
}

// session returns the headers of the session that an answer has begun.
func sessionOf(a testkit.Answer) []string {
	GinkgoHelper()
	Expect(a.Status).To(Equal(http.StatusCreated), a.Body)
	var made struct{ Header string }
	Expect(json.Unmarshal([]byte(a.Body), &made)).To(Succeed())
	cookie, _, _ := strings.Cut(a.Header.Get("Set-Cookie"), ";")
	return []string{"Cookie: " + cookie, "Gatehouse-Session: " + made.Header}
}

var _ = Describe("A sign-in to the console with a real identity provider", func() {
	DescribeTable("cannot be forged, replayed or taken over", func(ctx SpecContext, start func(context.Context, *signInLab)) {
		l := startSignInLab(ctx, start)
		refused := func(what string, fields map[string]string, code string) {
			GinkgoHelper()
			a := l.end(ctx, fields)
			Expect(a.Status).To(Equal(http.StatusForbidden), "%s: %s", what, a.Body)
			Expect(a.Body).To(ContainSubstring(`"code":"`+code+`"`), what)
			Expect(a.Header).NotTo(HaveKey("Set-Cookie"), what)
		}
		changed := func(fields map[string]string, pairs ...string) map[string]string {
			out := map[string]string{}
			for name, value := range fields {
				out[name] = value
			}
			for i := 0; i < len(pairs); i += 2 {
				out[pairs[i]] = pairs[i+1]
			}
			return out
		}

		ann := l.arrive(ctx, "ann")
		evil := l.arrive(ctx, "vic")
		refused("the state of another", changed(ann, "state", evil["state"]), "sign_in_refused")
		refused("the code of another, with the own sign-in", changed(evil, "code", ann["code"]), "sign_in_refused")
		refused("a sign-in that is damaged", changed(evil, "sign_in", evil["sign_in"][:len(evil["sign_in"])-2]+"AA"), "sign_in_refused")
		refused("another provider", changed(evil, "iss", "https://evil.example"), "sign_in_refused")
		refused("no code of the provider", changed(evil, "code", "x"), "sign_in_refused")
		refused("somebody in no group", l.arrive(ctx, "nora"), "no_rights")
		for _, p := range some(2, evilPages()) {
			fresh := l.arrive(ctx, "ann")
			Expect(l.end(ctx, fresh, p.headers...).Status).To(Equal(http.StatusForbidden), "a page %s", p.name)
		}

		fields := l.arrive(ctx, "vic")
		vic := sessionOf(l.end(ctx, fields))
		refused("a replay", fields, "sign_in_refused")
		Expect(try(ctx, l.API, http.MethodGet, "/service", "", vic...).Status).To(Equal(http.StatusOK))
		Expect(try(ctx, l.API, http.MethodPost, "/service", "Service_Name=evil&fqdn=evil.example", append(vic, signInForm)...).Status).To(Equal(http.StatusForbidden))
		Expect(try(ctx, l.API, http.MethodGet, "/service", "", vic[:1]...).Status).To(Equal(http.StatusUnauthorized), "another port has the cookie only")
		Expect(try(ctx, l.API, http.MethodDelete, "/ui/session", "", vic...).Status).To(Equal(http.StatusOK))
		Expect(try(ctx, l.API, http.MethodGet, "/service", "", vic...).Status).To(Equal(http.StatusUnauthorized))

		admin := sessionOf(l.end(ctx, l.arrive(ctx, "ann")))
		Expect(try(ctx, l.API, http.MethodPost, "/service", "Service_Name=shop&fqdn=shop.example", append(admin, signInForm)...).Status).To(Equal(http.StatusCreated))
		Expect(try(ctx, l.API, http.MethodGet, "/revision", "", admin...).Body).To(MatchRegexp(`"actor":"oidc:`))

		By("being sent to a page that is not registered")
		b := testkit.NewBrowser(l.authority)
		defer b.Close()
		begun := l.begin(ctx, strings.Replace(l.page, "127.0.0.1", "localhost", 1))
		there, err := b.Open(ctx, begun["url"])
		Expect(err).NotTo(HaveOccurred())
		Expect(there.URL.String()).To(HavePrefix(strings.TrimSuffix(l.issuer, "/api/oidc")), "the provider sends nobody there")

		By("telling a secret")
		log := strings.Join(l.Stderr.Lines(), "\n")
		for _, secret := range []string{signInClient, ann["code"], ann["sign_in"], fields["code"]} {
			Expect(log).NotTo(ContainSubstring(secret))
		}
	},
		Entry("oidc-provider", startOIDCProviderLab, SpecTimeout(2*time.Minute)),
		Entry("Glewlwyd", startGlewlwydLab, SpecTimeout(2*time.Minute)),
	)

	It("goes on with new keys, and fails closed without the provider, while tokens work", func(ctx SpecContext) {
		l := startSignInLab(ctx, startOIDCProviderLab)
		sessionOf(l.end(ctx, l.arrive(ctx, "ann")))
		Expect(l.oidcProvider.Change(ctx, testkit.OIDCSettings{Keys: "replace"})).To(Succeed())
		Eventually(func() int { return l.end(ctx, l.arrive(ctx, "ann")).Status }).WithPolling(time.Second).Should(Equal(http.StatusCreated))

		late := l.arrive(ctx, "ann")
		Expect(l.stop()).To(Succeed())
		a := l.end(ctx, late)
		Expect(a.Status).To(Equal(http.StatusServiceUnavailable), a.Body)
		Expect(a.Body).To(ContainSubstring("tokens still work"))
		Expect(a.Header).NotTo(HaveKey("Set-Cookie"))
		sessionOf(try(ctx, l.API, http.MethodPost, "/ui/session", "token="+signInToken, signInForm))
	}, SpecTimeout(2*time.Minute))

	It("is needed even before there is a token", func(ctx SpecContext) {
		dir := GinkgoT().TempDir()
		g, err := testkit.StartGatehouse(ctx, []string{"GATEHOUSE_CONSOLE_OIDC_CLIENT_SECRET=" + signInClient},
			"serve", "--data-dir", dir, "--api-addr", "127.0.0.1:0", "--xds-addr", "127.0.0.1:0", "--console-oidc-issuer", "https://id.invalid",
			"--console-oidc-client-id", "gatehouse", "--console-oidc-groups", "platform=admin")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func(ctx SpecContext) { Expect(g.Stop(ctx)).To(BeZero()) }, NodeTimeout(time.Minute))
		Expect(try(ctx, g.API, http.MethodGet, "/service", "").Status).To(Equal(http.StatusUnauthorized))
		Expect(try(ctx, g.API, http.MethodPost, "/service", "Service_Name=evil&fqdn=*", signInForm).Status).To(Equal(http.StatusUnauthorized))
		page := `{"page":"` + g.API.URL + `/ui/"}`
		Expect(try(ctx, g.API, http.MethodPost, "/ui/oidc", page, "Content-Type: application/json").Status).To(Equal(http.StatusServiceUnavailable))
	}, SpecTimeout(time.Minute))
})
