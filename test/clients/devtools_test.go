//go:build chromium

package clients_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/websocket"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// tab is a page of a running Chromium, which the Chrome DevTools Protocol controls.
type tab struct {
	conn *websocket.Conn
	last int
}

// kept is a cookie as the browser keeps it.
type kept struct {
	Name, Value, Domain, Path, SameSite string
	Secure, HTTPOnly                    bool
	Expires                             float64
}

// start runs Chromium with one empty page, until the end of the spec.
func (b browser) start(ctx context.Context) *tab {
	GinkgoHelper()
	dir := GinkgoT().TempDir()
	cmd := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
		"--user-data-dir="+dir, "--host-resolver-rules=MAP * 127.0.0.1", "--remote-debugging-port=0", "--remote-allow-origins=*", "about:blank")
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "HOME="+b.home), 10*time.Second
	Expect(cmd.Start()).To(Succeed())
	DeferCleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var pages []struct{ Type, WebSocketDebuggerURL string }
	Eventually(func() error {
		text, err := os.ReadFile(filepath.Join(dir, "DevToolsActivePort"))
		if err != nil {
			return err
		}
		port, _, _ := strings.Cut(string(text), "\n")
		a, err := testkit.API{URL: "http://127.0.0.1:" + port}.Get(ctx, "/json/list")
		if err == nil {
			err = json.Unmarshal([]byte(a.Body), &pages)
		}
		if err == nil && (len(pages) == 0 || pages[0].Type != "page") {
			err = fmt.Errorf("no page yet: %s", a.Body)
		}
		return err
	}).WithContext(ctx).Should(Succeed())
	conn, err := websocket.Dial(pages[0].WebSocketDebuggerURL, "", "http://127.0.0.1")
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(conn.Close)
	if deadline, ok := ctx.Deadline(); ok {
		Expect(conn.SetDeadline(deadline)).To(Succeed())
	}
	return &tab{conn: conn}
}

// call calls a method of the protocol and reads its result. Events are skipped.
func (t *tab) call(method string, params map[string]any, result any) {
	GinkgoHelper()
	t.last++
	Expect(websocket.JSON.Send(t.conn, map[string]any{"id": t.last, "method": method, "params": params})).To(Succeed())
	for {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		Expect(websocket.JSON.Receive(t.conn, &answer)).To(Succeed())
		if answer.ID != t.last {
			continue
		}
		Expect(answer.Error).To(BeNil(), "%s: %v", method, answer.Error)
		if result != nil {
			Expect(json.Unmarshal(answer.Result, result)).To(Succeed(), string(answer.Result))
		}
		return
	}
}

// eval returns the value of an expression in the page, as text; empty if it fails
// because the page changes.
func (t *tab) eval(expression string) string {
	GinkgoHelper()
	var r struct{ Result struct{ Value any } }
	t.call("Runtime.evaluate", map[string]any{"expression": "(async () => String(await (" + expression + ")))()", "awaitPromise": true, "returnByValue": true}, &r)
	text, _ := r.Result.Value.(string)
	return text
}

// open enters an address.
func (t *tab) open(url string) {
	GinkgoHelper()
	t.call("Page.navigate", map[string]any{"url": url}, nil)
}

// cookies returns all cookies that the browser keeps for the hosts below a domain.
func (t *tab) cookies(domain string) map[string]kept {
	GinkgoHelper()
	var r struct{ Cookies []kept }
	t.call("Storage.getCookies", nil, &r)
	list := map[string]kept{}
	for _, k := range r.Cookies {
		if k.Domain == domain {
			name, _, _ := strings.Cut(k.Name, "-")
			list[name] = k
		}
	}
	return list
}

var _ = Describe("Chromium", func() {
	It("logs in at an identity provider, keeps the session, and signs out", func(ctx SpecContext) {
		b := newBrowser(ctx)
		_, gatewayPort, _ := strings.Cut(b.addr, ":")
		idp, err := testkit.StartOIDCProvider(ctx, GinkgoT().TempDir(), b.authority, testkit.OIDCSettings{
			Clients: []testkit.OIDCClient{{
				ID: "ec", Secret: "s3cret", RedirectURIs: []string{b.url("ec.test", "/callback")}, PostLogoutRedirectURIs: []string{b.url("ec.test", "/")},
			}},
			Users: map[string]testkit.OIDCUser{"anna": {Password: "pw", Claims: map[string]any{"email": "anna@ec.test"}}},
		})
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(func() { Expect(idp.Kill()).To(Succeed()) })
		b.post(ctx, "/upstream", "Upstream_name=idp", "Upstream_ip=localhost", fmt.Sprintf("Upstream_port=%d", idp.Port),
			"Upstream_protocol=tls", "Upstream_validation_cacertificate=clients")
		b.post(ctx, "/secret", "Secret_name=cookies", "Secret_value=8Jc1vF3h0yQm2Wd7Zt5Rk9Xb4Ns6Lp0A")
		b.post(ctx, "/filter", "Filter_name=ec", "Filter_type=http_filter_oidc", fmt.Sprintf(`Filter_config={"client_id":"ec","client_secret":"s3cret",
			"issuer":%q,"upstream":"idp","redirect_uri":"/callback","logout_uri":"/logout","cookie_secret":"cookies"}`, idp.Issuer))
		b.post(ctx, "/service/ec/filter/ec?wait=applied")

		t := b.start(ctx)
		const hasForm = `document.querySelector('input[type=password]') !== null`
		t.open(b.url("ec.test", "/page/deep?a=b"))
		Eventually(t.eval).WithArguments(hasForm).Should(Equal("true"))
		Expect(t.eval(`location.origin`)).To(Equal(idp.Issuer))
		By("with the cookies of the flow, which are sent to the callback only")
		flow := t.cookies("ec.test")
		Expect(flow).To(And(HaveKey("OauthNonce"), HaveKey("CodeVerifier")))
		for name, k := range flow {
			Expect([]any{k.Path, k.Secure, k.HTTPOnly, k.SameSite}).To(Equal([]any{"/callback", true, true, "Lax"}), name)
		}
		t.eval(`document.querySelector('input[name=login]').value = 'anna', document.querySelector('input[type=password]').value = 'pw', document.forms[0].submit()`)
		Eventually(t.eval).WithArguments(`location.href`).Should(Equal("https://ec.test:" + gatewayPort + "/page/deep?a=b"))
		session := t.cookies("ec.test")
		for _, name := range []string{"OauthHMAC", "OauthExpires", "BearerToken", "IdToken"} {
			Expect(session).To(HaveKey(name))
			k := session[name]
			Expect([]any{k.Path, k.Secure, k.HTTPOnly, k.SameSite}).To(Equal([]any{"/", true, true, "Lax"}), name)
			Expect(k.Expires).To(BeNumerically(">", 0), name)
		}
		By("which scripts can use but not read")
		Expect(t.eval(`fetch('/api', {method: 'POST'}).then(r => r.status)`)).To(Equal("200"))
		Expect(t.eval(`document.cookie`)).To(BeEmpty())
		Expect(t.eval(`fetch('/api', {credentials: 'omit'}).then(r => r.status + ' ' + r.redirected)`)).To(Equal("401 false"))
		By("until the user signs out, here and at the provider")
		t.open(b.url("ec.test", "/logout"))
		Eventually(t.eval).WithArguments(`location.pathname + document.forms.length`).Should(Equal("/session/end1"))
		Expect(t.cookies("ec.test")).NotTo(Or(HaveKey("IdToken"), HaveKey("OauthHMAC"), HaveKey("BearerToken")))
		t.eval(`document.querySelector('button').click()`)
		Eventually(t.eval).WithArguments(hasForm).Should(Equal("true"))
		Expect(t.eval(`location.pathname`)).To(HavePrefix("/interaction/"))
	}, SpecTimeout(2*time.Minute))
})
