package e2e_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// hookProgram is a program that writes records into the DNS of a Pebble, whose URL is in the file dns of its directory, and
// what it was called with into the file log. more is more of its script, before that.
func hookProgram(more string) (program, dir string) {
	GinkgoHelper()
	dir = GinkgoT().TempDir()
	program = filepath.Join(dir, "hook")
	script := `#!/bin/sh
echo "$1 $2 $3 $ACME_HOST $(env | grep -c ^GATEHOUSE_)" >> ` + dir + `/log
` + more + `
case "$1" in
present) exec curl -sf -d "{\"host\":\"$2.\",\"value\":\"$3\"}" "$(cat ` + dir + `/dns)/set-txt" ;;
cleanup) exec curl -sf -d "{\"host\":\"$2.\"}" "$(cat ` + dir + `/dns)/clear-txt" ;;
esac
exit 9
`
	Expect(os.WriteFile(program, []byte(script), 0o700)).To(Succeed()) //nolint:gosec // a program
	return program, dir
}

// callsOf lists the lines of the log of a hook.
func callsOf(dir string) []string {
	GinkgoHelper()
	text, err := os.ReadFile(filepath.Join(dir, "log")) //nolint:gosec // a file of this test
	if os.IsNotExist(err) {
		return nil
	}
	Expect(err).NotTo(HaveOccurred())
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// provenBy is more of a global config, with a hook and the resolver of a Pebble.
func (s ordering) provenBy(dir, dns string) {
	GinkgoHelper()
	if dir != "" {
		Expect(os.WriteFile(filepath.Join(dir, "dns"), []byte(s.pebble.DNSManagement), 0o600)).To(Succeed())
	}
	applied(s.api, http.MethodPut, "/globalconfig/authority", "globalconfig_type=globalconfig_acme",
		`config={"directory":"`+s.pebble.Directory+`","terms_agreed":true,"ca_certificate":"directory","dns":{`+dns+
			`,"resolvers":["`+s.pebble.Resolver+`"]}}`)
}

// valuesOf returns the TXT records of a name in the DNS of the authority.
func (s ordering) valuesOf(name string) []string {
	resolver := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, s.pebble.Resolver)
	}}
	found, _ := resolver.LookupTXT(limit(), name+".")
	return found
}

// hookCalled is the body of a call of a webhook.
type hookCalled struct{ Action, Host, Name, Value string }

// webhook is a server that writes records into the DNS of a Pebble.
type webhook struct {
	*httptest.Server
	mu    sync.Mutex
	calls []hookCalled
	auth  []string
	// answer answers in its place, if it says so.
	answer func(w http.ResponseWriter, c hookCalled) bool
}

func (h *webhook) seen() (actions []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.calls {
		actions = append(actions, c.Action)
	}
	return actions
}

func (h *webhook) set(answer func(w http.ResponseWriter, c hookCalled) bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = answer
}

// hookServer runs a webhook.
func (s ordering) hookServer() *webhook {
	GinkgoHelper()
	pair, err := s.pebble.Authority.Issue(testkit.CertificateOptions{Names: []string{"127.0.0.1"}})
	Expect(err).NotTo(HaveOccurred())
	cert, err := tls.X509KeyPair([]byte(pair.Cert), []byte(pair.Key))
	Expect(err).NotTo(HaveOccurred())
	h := &webhook{}
	h.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var c hookCalled
		if json.NewDecoder(r.Body).Decode(&c) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		h.mu.Lock()
		h.calls, h.auth = append(h.calls, c), append(h.auth, r.Header.Get("Authorization"))
		answer := h.answer
		h.mu.Unlock()
		if answer == nil || !answer(w, c) {
			s.write(c)
		}
	}))
	h.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	h.StartTLS()
	DeferCleanup(h.CloseClientConnections)
	DeferCleanup(h.Close)
	return h
}

// write does in the DNS of the Pebble what a hook is asked for.
func (s ordering) write(c hookCalled) {
	path := map[string]string{"present": "/set-txt", "cleanup": "/clear-txt"}[c.Action]
	body, _ := json.Marshal(map[string]string{"host": c.Name + ".", "value": c.Value})
	res, err := http.Post(s.pebble.DNSManagement+path, "application/json", bytes.NewReader(body)) //nolint:noctx,gosec // of this test
	if err == nil {
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
}

var _ = Describe("A certificate that is proven by DNS", func() {
	It("is issued for a wildcard, by a program of the operator", func() {
		program, dir := hookProgram("")
		s := order(testkit.PebbleOptions{}, "", "--acme-dns-exec", program)
		By("not before a hook is there")
		automatic(s.api, "shop", "*.shop.test")
		automatic(s.api, "plain", "plain.test")
		Eventually(stateOf(s.api, "plain.test"), orderTime).Should(Equal("issued"), "others do not wait")
		Expect(stateOf(s.api, "*.shop.test")()).To(Equal("unavailable: it is proven by a record in DNS, and globalconfig authority has no dns: " +
			"say there what writes records"))
		Expect(holding(s.api, "/service/shop")).To(ContainElement("CertificatePending"))
		Expect(read(s.api, "/proxy/gw/explain?url=https://a.shop.test/")).To(ContainSubstring("the gateway orders one for *.shop.test: unavailable: it is proven by"))

		s.provenBy(dir, `"hook":"exec"`)
		Eventually(stateOf(s.api, "*.shop.test"), orderTime).Should(Equal("issued"))
		c := certificatesOf(s.api)["*.shop.test"]
		Expect(c.Challenge).To(Equal("dns-01"))
		Expect(certificatesOf(s.api)["plain.test"].Challenge).To(Equal("http-01"))
		for _, name := range []string{"a.shop.test", "b.shop.test"} {
			Eventually(func() string { return s.serialOf(name) }, orderTime).Should(Equal(c.Serial))
			status, body, _ := s.ask(name, name)
			Expect(status).To(Equal(http.StatusOK), body)
		}
		_, err := s.handshake("a.b.shop.test")
		Expect(err).To(HaveOccurred(), "it covers one label")
		By("and the record is removed")
		Eventually(func() []string { return callsOf(dir) }).Should(HaveLen(2))
		calls := callsOf(dir)
		Expect(calls[0]).To(MatchRegexp(`^present _acme-challenge\.shop\.test [A-Za-z0-9_-]{43} \*\.shop\.test 0$`), "and no setting of the gateway")
		Expect(calls[1]).To(Equal("cleanup" + strings.TrimPrefix(calls[0], "present")))
		Eventually(func() []string { return s.valuesOf("_acme-challenge.shop.test") }).Should(BeEmpty())
		Expect(read(adminOf(s.Gatehouse), "/config_dump?resource=dynamic_route_configs")).NotTo(ContainSubstring("acme-challenge"))
		Eventually(func() string { return read(s.api, "/metrics") }).Should(ContainSubstring(`gatehouse_certificate_attempts_total{result="hook_done"} 2`))
	})

	It("is issued for a host that chooses it, by a webhook with a token", func() {
		s := order(testkit.PebbleOptions{}, "", "--acme-dns-exec", "/bin/false")
		h := s.hookServer()
		s.provenBy("", `"hook":"webhook","url":"`+h.URL+`/hook","token":"not-a-word","ca_certificate":"directory"`)
		automatic(s.api, "shop", "shop.test", "Certificate=auto_dns")
		Eventually(stateOf(s.api, "shop.test"), orderTime).Should(Equal("issued"))
		Eventually(h.seen).Should(Equal([]string{"present", "cleanup"}))
		Expect(h.calls[0]).To(And(HaveField("Host", "shop.test"), HaveField("Name", "_acme-challenge.shop.test"), HaveField("Value", HaveLen(43))))
		Expect(h.calls[1].Value).To(Equal(h.calls[0].Value))
		Expect(h.auth).To(Equal([]string{"Bearer not-a-word", "Bearer not-a-word"}))
		for _, text := range []string{s.Stderr.String(), s.Stdout.String(), read(s.api, "/config?secrets=sealed"), read(s.api, "/globalconfig/authority")} {
			Expect(text).NotTo(ContainSubstring("not-a-word"))
		}
	})

	It("says what a hook says, and delays no other host", func() {
		s := order(testkit.PebbleOptions{}, "")
		h := s.hookServer()
		s.provenBy("", `"hook":"webhook","url":"`+h.URL+`","ca_certificate":"directory","timeout":"2s"`)
		free := make(chan struct{})
		DeferCleanup(func() { close(free) })
		h.set(func(w http.ResponseWriter, c hookCalled) bool {
			switch {
			case strings.HasPrefix(c.Host, "slow"):
				<-free
			case c.Host == "bad.test" && c.Action == "present":
				w.WriteHeader(http.StatusBadGateway)
				_, _ = fmt.Fprintf(w, "no\x1b[2Jzone%s", strings.Repeat("x", 5000))
			default:
				return false
			}
			return true
		})
		for n := range 16 { // as many as there are slots for hooks
			automatic(s.api, fmt.Sprintf("slow%d", n), fmt.Sprintf("slow%d.test", n), "Certificate=auto_dns")
		}
		automatic(s.api, "plain", "plain.test")
		Eventually(stateOf(s.api, "plain.test"), orderTime).Should(Equal("issued"))
		Eventually(stateOf(s.api, "slow0.test"), orderTime).Should(Equal("failing: the dns hook did not present the record in 2s"))
		Expect(holding(s.api, "/service/slow0")).To(ContainElement("CertificateFailing"))
		automatic(s.api, "bad", "bad.test", "Certificate=auto_dns")
		Eventually(stateOf(s.api, "bad.test"), orderTime).Should(HavePrefix("failing: the dns webhook did not present the record: it answered 502: no?[2Jzonexx"))
		Expect(certificatesOf(s.api)["bad.test"].Reason).To(HaveLen(500))
		Expect(s.pebble.Count(testkit.PebbleChallenge)).To(Equal(1), "no failed validation is used up")
	})

	It("says what a program says, and does not wait for its children", func() {
		program, dir := hookProgram(`sleep 300 & echo "no such zone: $2" >&2; exit 3`)
		s := order(testkit.PebbleOptions{}, "", "--acme-dns-exec", program)
		s.provenBy(dir, `"hook":"exec"`)
		automatic(s.api, "shop", "*.shop.test")
		Eventually(stateOf(s.api, "*.shop.test"), orderTime).Should(Equal("failing: the dns hook did not present the record: it ended with 3: " +
			"no such zone: _acme-challenge.shop.test"))
		By("what may be there is removed")
		Eventually(func() []string { return callsOf(dir) }).Should(HaveExactElements(HavePrefix("present "), HavePrefix("cleanup ")))
	})

	It("tells the authority when the record can be seen, and says which record is left", func() {
		s := order(testkit.PebbleOptions{}, "")
		h := s.hookServer()
		s.provenBy("", `"hook":"webhook","url":"`+h.URL+`","ca_certificate":"directory"`)
		written, late := make(chan hookCalled, 1), make(chan struct{})
		h.set(func(w http.ResponseWriter, c hookCalled) bool {
			if c.Action == "present" {
				written <- c
				go func() { // the record is there only later
					<-late
					s.write(c)
				}()
				return true
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		})
		automatic(s.api, "shop", "*.shop.test")
		var c hookCalled
		Eventually(written, orderTime).Should(Receive(&c))
		Consistently(func() int { return s.pebble.Count(testkit.PebbleChallenge) }, "2s").Should(BeZero())
		close(late)
		Eventually(stateOf(s.api, "*.shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() string { return certificatesOf(s.api)["*.shop.test"].RecordLeft }, orderTime).
			Should(Equal("the dns webhook did not cleanup the record: it answered 503"))
		Expect(read(s.api, "/status")).To(ContainSubstring("the record _acme-challenge.shop.test in DNS is still there"))
		Expect(s.valuesOf("_acme-challenge.shop.test")).To(Equal([]string{c.Value}))
	})

	It("does not connect where it may not", func() {
		s := order(testkit.PebbleOptions{}, "")
		h := s.hookServer()
		s.provenBy("", `"hook":"webhook","url":"`+strings.Replace(h.URL, "127.0.0.1", "127.0.0.2", 1)+`","ca_certificate":"directory"`)
		automatic(s.api, "shop", "*.shop.test")
		Eventually(stateOf(s.api, "*.shop.test"), orderTime).Should(ContainSubstring("must not be called: its address 127.0.0.2 is"))
		Expect(h.seen()).To(BeEmpty())
	})

	It("leaves no record behind if the program dies", func() {
		xds, port := net127(freePort()), freePort()
		program, dir := hookProgram("")
		data := GinkgoT().TempDir()
		run := func() *testkit.Gatehouse {
			return start(nil, "serve", "--data-dir", data, "--api-addr", "127.0.0.1:0", "--xds-addr", xds, "--provider-allow", "127.0.0.1",
				"--acme-dns-exec", program)
		}
		g := run()
		p := pebbleWith(testkit.PebbleOptions{HTTPPort: port})
		addUpstream(g.API, backend("blue"))
		addProxy(g.API, "gw", port)
		orderFrom(g.API, p, "")
		envoyFor("gw", xds)
		s := ordering{pebble: p}
		s.api = g.API
		s.provenBy(dir, `"hook":"exec"`)
		died := make(chan struct{})
		p.Answer(once(testkit.PebbleChallenge, func(http.ResponseWriter, *http.Request) bool {
			defer close(died)
			Expect(g.Kill()).To(Succeed())
			return false
		}))
		automatic(g.API, "shop", "*.shop.test")
		Eventually(died, orderTime).Should(BeClosed())
		Expect(callsOf(dir)).To(HaveExactElements(HavePrefix("present ")))
		Expect(s.valuesOf("_acme-challenge.shop.test")).To(HaveLen(1))
		again := run()
		Eventually(stateOf(again.API, "*.shop.test"), orderTime).Should(Equal("issued"))
		Eventually(func() []string { return s.valuesOf("_acme-challenge.shop.test") }, orderTime).Should(BeEmpty())
		Eventually(func() string { return strings.Join(callsOf(dir), "\n") }).Should(MatchRegexp(`(?s)^present .*\ncleanup [^\n]*$`))
		Expect(p.Count(testkit.PebbleNewOrder)).To(Equal(1))
	})
})
