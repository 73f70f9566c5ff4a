package kubernetes_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// moved is a namespace with Services, Ingresses, and what the program made of them.
type moved struct {
	edge
	backends map[string]*testkit.Backend
	// warnings have no lines.
	warnings     []string
	certificates string
}

// translated translates the Ingresses of some files of testdata/ingress.
func translated(names ...string) (e moved) {
	GinkgoHelper()
	e.place, e.securePort, e.backends = newPlace(cluster), freePort(), map[string]*testkit.Backend{}
	for _, name := range []string{"blue", "green", "red"} {
		e.backends[name] = backend(name)
		e.service(name, e.backends[name])
	}
	e.service("both", e.backends["blue"], e.backends["green"])
	calls, err := testkit.StartBackend("calls", testkit.BackendOptions{Protocol: "h2c", IP: ownAddress()})
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(calls.Close)
	e.service("calls", calls)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata/ingress", name+".yaml"))
		Expect(err).NotTo(HaveOccurred())
		e.apply("%s", strings.ReplaceAll(string(text), "NAMESPACE", e.namespace))
	}

	program, err := testkit.Binary("gatehouse")
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.CommandContext(limit(), program, "import", "ingress", "-")
	cmd.Stdin = strings.NewReader(e.kubectl("get", "ingress", "-o", "yaml"))
	var objects, told bytes.Buffer
	cmd.Stdout, cmd.Stderr = &objects, &told
	_ = cmd.Run() // it fails where something has no equivalent
	for line := range strings.Lines(told.String()) {
		if !strings.HasPrefix(line, "warning: ") {
			continue
		}
		line = regexp.MustCompile(`^warning: line \d+: Ingress [^/]+/`).ReplaceAllString(strings.TrimSpace(line), "")
		e.warnings = append(e.warnings, strings.Replace(line, "nginx.ingress.kubernetes.io/", "", 1))
	}
	docs := slices.DeleteFunc(strings.Split(objects.String(), "---\n"), func(doc string) bool {
		if !strings.Contains(doc, "kind: Certificate\n") { // nothing here knows cert-manager
			return false
		}
		e.certificates += doc
		return true
	})
	e.apply("%s", strings.Join(docs, "---\n"))
	port := freePort()
	e.gateway = e.serve("--kubernetes-proxy-settings", proxySettings(port, e.securePort))
	e.port = port
	e.envoy()
	return e
}

// nginxFor runs nginx with these locations and what they do, in pairs, as the template of ingress-nginx makes them.
func nginxFor(host string, locations ...string) edge {
	GinkgoHelper()
	port := freePort()
	var text strings.Builder
	for pair := range slices.Chunk(locations, 2) {
		fmt.Fprintf(&text, "location %s { %s }\n", pair[0], pair[1])
	}
	p, err := testkit.StartNginx(limit(), GinkgoT().TempDir(), port,
		fmt.Sprintf("server { listen 127.0.0.1:%d; server_name %s; proxy_set_header Host $host;\n%s }", port, host, text.String()))
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(p.Kill)
	return edge{gateway: gateway{port: port}}
}

var _ = Describe("Ingresses of ingress-nginx, translated", func() {
	It("answer as nginx does where paths are matched and changed", func() {
		e := translated("rewrite", "regex", "paths")
		Expect(e.warnings).To(ConsistOf("rewrite-api: proxy-buffer-size: not needed: Envoy streams requests and answers, and has bounds of its own"))
		to := func(name string) string {
			return fmt.Sprintf("proxy_pass http://%s:%d;", e.backends[name].IP, e.backends[name].Port)
		}
		for host, of := range map[string]struct {
			nginx edge
			paths []string
		}{
			"rewrite.example": {
				nginxFor("rewrite.example",
					`~* "^/api(/|$)(.*)"`, `rewrite "(?i)/api(/|$)(.*)" /$2 break; `+to("green"),
					`~* "^/"`, to("blue")),
				[]string{"/", "/a/b?c=d", "/api", "/api/", "/api/a/b?c=d", "/apix", "/API/Up", "/x/api/y", "/api/a%20b"},
			},
			"regex.example": {
				nginxFor("regex.example",
					`~* "^/users/[0-9]+/orders"`, to("green"), `~* "^/static/.*\.js$"`, to("red"), `~* "^/users/[0-9]+"`, to("blue"),
					`~* "^/health"`, `rewrite "(?i)/health" /status break; `+to("red"), "/", to("red")),
				[]string{
					"/users/7", "/users/7/orders/2", "/USERS/7/ORDERS", "/users/7x", "/static/a/b.js", "/health", "/health/deep?x=1", "/healthy",
				},
			},
			"paths.example": {
				nginxFor("paths.example", "= /shop", to("blue"), "/shop/", to("blue"), "= /shop/cart", to("green"), "/img", to("green"), "/", "return 404;"),
				[]string{"/shop", "/shop/", "/shop/a", "/shopping", "/shop/cart", "/shop/cart/", "/img", "/images", "/img/a.png", "/Shop"},
			},
		} {
			for _, path := range of.paths {
				request := "GET " + host + " " + path
				Eventually(func() string { return e.ask(request, "path") }).Should(Equal(of.nginx.ask(request, "path")), request)
			}
		}
		Expect(e.ask("GET rewrite.example /api/a", "path", "host")).To(Equal("200 green /a inner.example"))
		Expect(e.ask("GET a.paths.example /")).To(Equal("200 green"))
		Expect(e.ask("GET unknown.example /")).To(Equal("200 red"))
	})

	It("redirect, restrict and change requests, and are closed where that cannot be translated", func() {
		e := translated("redirects", "cors", "access", "limits", "canary", "headers", "tls")
		Expect(e.warnings).To(ConsistOf(
			"passwords: auth-type: the hashes of basic authentication cannot be used: write an http_filter_basicauth with the passwords, for its routes; its routes are closed (503)",
			"code: configuration-snippet: code of nginx that decides about requests cannot be translated; its routes are closed (503)",
			"limits: limit-rpm: a request over the limit gets 429 and not 503, and the limit has no burst (nginx: 5 times as many)",
			"limits: limit-connections: has no equivalent",
		))
		Expect(e.certificates).To(Equal(fmt.Sprintf(`apiVersion: cert-manager.io/v1
kind: Certificate
metadata:
  name: secure-tls
  namespace: %s
spec:
  dnsNames:
  - secure.example
  - open.example
  issuerRef:
    group: cert-manager.io
    kind: ClusterIssuer
    name: letsencrypt
  renewBefore: 720h
  secretName: secure-tls
`, e.namespace)))
		ca, err := testkit.NewAuthority("clients")
		Expect(err).NotTo(HaveOccurred())
		e.pair(ca, "secure-tls", "secure.example", "open.example", "clients.example")
		e.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: clients-ca}\nstringData: {ca.crt: %q}\n", ca.PEM)
		e.service("checker", backend("checker"))
		for request, answer := range map[string]string{
			"GET old.example /a?b=c":                                   "308 https://new.example/start?from=old",
			"GET moved.example /a?b=c":                                 "302 https://new.example/a?b=c",
			"GET start.example /":                                      "302 http://start.example/start",
			"GET start.example /start":                                 "200 blue",
			"GET begin.example /a":                                     "200 blue",
			"GET www.start.example /a?b=c":                             "308 http://start.example/a?b=c",
			"GET office.example /":                                     "403",
			"GET office.example /admin":                                "503",
			"GET home.example /":                                       "200 blue",
			"GET code.example /":                                       "503",
			"GET asked.example /":                                      "200 blue",
			"GET secure.example /a":                                    "301 https://secure.example/a",
			"POST open.example /a.B/C":                                 "200 calls",
			"GET canary.example / X-Canary:always":                     "200 green",
			"GET canary.example / X-Canary:never":                      "200 blue",
			"GET canary.example / Cookie:a=b;canary=always":            "200 green",
			"GET canary.example / X-Canary:never Cookie:canary=always": "200 blue",
			"GET limits.example /":                                     "200 blue",
			"GET limits.example /?delay=5s":                            "504",
		} {
			Eventually(func() string { return e.ask(request, "location") }).Should(Equal(answer), request)
		}
		By("the rest of the cases")
		Expect(e.ask("GET asked.example / X-User:eve", "x-user")).To(Equal("200 blue x-user="), "the server names none")
		Expect(e.ask("GET cors.example / Origin:https://a.pages.example", "access-control-allow-origin", "access-control-expose-headers", "access-control-allow-credentials")).To(
			Equal("200 blue access-control-allow-origin=https://a.pages.example access-control-expose-headers=X-Total access-control-allow-credentials=true"))
		Expect(e.ask("GET cors.example / Origin:https://a.b.pages.example", "access-control-allow-origin")).To(Equal("200 blue access-control-allow-origin="))
		Expect(e.ask("OPTIONS cors.example / Origin:https://app.example Access-Control-Request-Method:PUT", "access-control-allow-methods", "access-control-max-age")).To(
			Equal("200 access-control-allow-methods=GET, PUT access-control-max-age=600"))
		Expect(e.ask("GET headers.example / X-Powered-By:old", "x-frame-options", "referrer-policy", "x-robots-tag", "x-team")).To(
			MatchRegexp("^200 (blue|green) x-frame-options=DENY referrer-policy=no-referrer x-robots-tag=noindex, nofollow x-team=shop$"))
		Expect(e.ask("GET headers.example /", "set-cookie")).To(MatchRegexp(`stay="?[^;]+; Max-Age=3600`))
		got := map[string]int{}
		for range 200 {
			got[e.ask("GET canary.example /")]++
		}
		Expect(got).To(And(HaveLen(2), HaveKeyWithValue("200 green", BeNumerically("~", 100, 40))))
		Expect(overTLS(ca, e.securePort, "secure.example")).To(Equal("200 "))
		Expect(overTLS(ca, e.securePort, "clients.example")).To(MatchRegexp("certificate required|broken pipe|connection reset"), "the client may still write when it is refused")
	})
})
