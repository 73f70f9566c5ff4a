//go:build chromium

// Chromium is too large for every run of the specs: `make chromium` runs these.

package clients_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

// browser is a headless Chromium with a home directory of its own.
type browser struct {
	secured
	home, policies string
}

// newBrowser makes one that trusts the authority of the gateway, whose upstream is a
// website: /page/NAME?URL&URL... is a page with scripts from these URLs, everything
// else is a script.
func newBrowser(ctx context.Context) browser {
	GinkgoHelper()
	b := browser{secure(ctx), GinkgoT().TempDir(), GinkgoT().TempDir()}
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/page/") {
			w.Header().Set("Content-Type", "text/javascript")
			_, _ = fmt.Fprintf(w, "loaded.push(%q)", r.URL.Path)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprint(w, "<title>page</title><body><script>loaded = []</script>")
		for script := range strings.SplitSeq(r.URL.RawQuery, "&") {
			_, _ = fmt.Fprintf(w, "<script src=%q></script>", script)
		}
		_, _ = fmt.Fprint(w, "<script>document.title = 'loaded ' + loaded.join(' ') + '.'</script>")
	}))
	DeferCleanup(site.Close)
	_, sitePort, err := net.SplitHostPort(site.Listener.Addr().String())
	Expect(err).NotTo(HaveOccurred())
	a, err := b.API.Do(ctx, http.MethodPatch, "/upstream/blue?wait=applied", "application/json", `{"upstream_port":`+sitePort+`}`)
	Expect(err).NotTo(HaveOccurred())
	Expect(a.Status).To(Equal(http.StatusOK), a.Body)
	b.nss(ctx, "certutil", "-N", "--empty-password")
	b.nss(ctx, "certutil", "-A", "-n", "authority", "-t", "C,,", "-i", file("ca.pem", b.authority.PEM))
	return b
}

// nss runs a tool on the browser's certificate store.
func (b browser) nss(ctx context.Context, tool string, args ...string) {
	GinkgoHelper()
	db := filepath.Join(b.home, ".pki", "nssdb")
	Expect(os.MkdirAll(db, 0o700)).To(Succeed())
	out, err := exec.CommandContext(ctx, tool, append([]string{"-d", "sql:" + db}, args...)...).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
}

// shows gives the browser a certificate that it presents without asking.
func (b browser) shows(ctx context.Context, authority *testkit.Authority, o testkit.CertificateOptions) {
	GinkgoHelper()
	pair, err := authority.Issue(o)
	Expect(err).NotTo(HaveOccurred())
	p12 := filepath.Join(GinkgoT().TempDir(), "client.p12")
	out, err := exec.CommandContext(ctx, "openssl", "pkcs12", "-export", "-passout", "pass:x", "-name", o.Subject,
		"-in", file("cert.pem", pair.Cert), "-inkey", file("key.pem", pair.Key), "-out", p12).CombinedOutput()
	Expect(err).NotTo(HaveOccurred(), string(out))
	b.nss(ctx, "pk12util", "-i", p12, "-W", "x")
	managed := filepath.Join(b.policies, "policies", "managed")
	Expect(os.MkdirAll(managed, 0o700)).To(Succeed())
	Expect(os.WriteFile(filepath.Join(managed, "certificates.json"),
		[]byte(`{"AutoSelectCertificateForUrls":["{\"pattern\":\"*\",\"filter\":{}}"]}`), 0o600)).To(Succeed())
}

// open loads a URL in a new process, and returns the document.
func (b browser) open(ctx context.Context, url string, flags ...string) string {
	GinkgoHelper()
	// Policies are read from /etc/chromium: only this process sees another directory
	// there.
	args := append([]string{
		"--map-root-user", "--mount", "sh", "-c", `mount --bind "$0" /etc/chromium && exec "$@"`, b.policies,
		"chromium", "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run",
		"--user-data-dir=" + GinkgoT().TempDir(), "--host-resolver-rules=MAP * 127.0.0.1", "--dump-dom", "--timeout=20000",
	}, flags...)
	cmd := exec.CommandContext(ctx, "unshare", append(args, url)...)
	cmd.Env, cmd.WaitDelay = append(os.Environ(), "HOME="+b.home), 10*time.Second
	out, err := cmd.Output()
	Expect(err).NotTo(HaveOccurred(), "%s", out)
	return string(out)
}

// url returns one of a host of the gateway.
func (b browser) url(host, path string) string { return "https://" + host + ":" + port(b.addr) + path }

// arrived returns the requests for a path, once there are some.
func (b browser) arrived(path string) []logged {
	GinkgoHelper()
	Eventually(b.requests).WithArguments(path).ShouldNot(BeEmpty(), path)
	return b.requests(path)
}

var _ = Describe("Chromium", func() {
	It("gets pages with HTTP/1.1 and HTTP/2, TLS 1.2 and 1.3, exact and wildcard names, RSA and ECDSA", func(ctx SpecContext) {
		b := newBrowser(ctx)
		hosts := []string{"ec.test", "rsa.test", "both.test", "a.wild.test", "xn--bcher-kva.wild.test", "EC.TEST", "B.Wild.Test"}
		for protocol, flag := range map[string]string{"HTTP/1.1": "--disable-http2", "HTTP/2": "--disable-quic"} {
			for _, version := range []string{"1.2", "1.3"} {
				var urls, paths []string
				for i, host := range hosts {
					paths = append(paths, fmt.Sprintf("/%s/%s/%d", protocol, version, i))
					urls = append(urls, b.url(host, paths[i]))
				}
				document := b.open(ctx, b.url("ec.test", "/page/"+protocol+"?"+strings.Join(urls, "&")), flag, "--ssl-version-min=tls"+version, "--ssl-version-max=tls"+version)
				Expect(document).To(ContainSubstring("<title>loaded " + strings.Join(paths, " ") + ".</title>"))
				for i, path := range paths {
					var last logged
					Eventually(func() int {
						lines := b.requests(path)
						if len(lines) > 0 {
							last = lines[len(lines)-1]
						}
						return last.Status
					}).Should(Equal(http.StatusOK), path)
					Expect(last.Protocol).To(Equal(protocol), path)
					Expect(last.Version).To(Equal("TLSv"+version), path)
					Expect(last.SNI).To(Equal(strings.ToLower(hosts[i])), path)
				}
			}
		}
	}, SpecTimeout(5*time.Minute))

	It("gets a page with HTTP/3", func(ctx SpecContext) {
		b := newBrowser(ctx)
		a, err := b.API.Do(ctx, http.MethodPatch, "/proxy/gw?wait=applied", "application/json", `{"http3":true}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		// It trusts an authority of its user's own over QUIC only for origins that the flag names.
		document := b.open(ctx, b.url("ec.test", "/page/3?"+b.url("ec.test", "/quick")), "--origin-to-force-quic-on=ec.test:"+port(b.addr))
		Expect(document).To(ContainSubstring("<title>loaded /quick.</title>"))
		Expect(b.arrived("/quick")[0]).To(And(HaveField("Protocol", "HTTP/3"), HaveField("Status", http.StatusOK)))
	}, SpecTimeout(2*time.Minute))

	It("opens a connection for each host of a wildcard certificate, after 421, above all for one that verifies clients", func(ctx SpecContext) {
		b := newBrowser(ctx)
		b.serve(ctx, "vault", "vault.wild.test")
		a, err := b.API.Do(ctx, http.MethodPatch, "/service/vault?wait=applied", "application/json", `{"client_validation_cacertificate":"clients"}`)
		Expect(err).NotTo(HaveOccurred())
		Expect(a.Status).To(Equal(http.StatusOK), a.Body)
		b.post(ctx, "/service/vault/secret/wild-0?wait=applied")
		b.shows(ctx, b.authority, testkit.CertificateOptions{Client: true, Subject: "ann"})

		document := b.open(ctx, b.url("a.wild.test", "/page/1?"+b.url("b.wild.test", "/other")+"&"+b.url("vault.wild.test", "/vault")))
		Expect(document).To(ContainSubstring("<title>loaded /other /vault.</title>"))
		var page logged
		Eventually(func() bool {
			for _, line := range append(b.Stdout.Lines(), b.Stderr.Lines()...) {
				if strings.Contains(line, "/page/1") {
					page = parse(line)
				}
			}
			return page.Status == http.StatusOK
		}).Should(BeTrue())
		for path, want := range map[string]logged{"/other": {SNI: "b.wild.test"}, "/vault": {SNI: "vault.wild.test", Subject: "CN=ann"}} {
			Eventually(b.requests).WithArguments(path).Should(HaveLen(2), path)
			lines := b.requests(path)
			Expect(lines[0].Status).To(Equal(http.StatusMisdirectedRequest), path)
			Expect(lines[0].SNI).To(Equal("a.wild.test"))
			Expect(lines[0].Client).To(Equal(page.Client), "it is tried on the connection of the page")
			Expect(lines[1].Status).To(Equal(http.StatusOK), path)
			Expect(lines[1].SNI).To(Equal(want.SNI))
			Expect(lines[1].Client).NotTo(Equal(page.Client))
			Expect(lines[1].Subject).To(Equal(want.Subject), path)
		}
	}, SpecTimeout(2*time.Minute))

	DescribeTable("presents its certificate to a service that requests one", func(ctx SpecContext, show func(context.Context, browser), subject string) {
		for _, flag := range []string{"--disable-http2", "--disable-quic"} {
			b := newBrowser(ctx)
			if show != nil {
				show(ctx, b)
			}
			document := b.open(ctx, b.url("bank.test", "/page/2?"+b.url("bank.test", "/bank")), flag)
			if subject == "" {
				Expect(document).NotTo(ContainSubstring("loaded"))
				Expect(b.requests("/bank")).To(BeEmpty())
				continue
			}
			Expect(document).To(ContainSubstring("<title>loaded /bank.</title>"))
			Expect(b.arrived("/bank")[0].Subject).To(Equal(subject))
		}
	},
		Entry("right", func(ctx context.Context, b browser) {
			b.shows(ctx, b.authority, testkit.CertificateOptions{Client: true, Subject: "ann"})
		}, "CN=ann", SpecTimeout(2*time.Minute)),
		Entry("absent", nil, "", SpecTimeout(2*time.Minute)),
		Entry("expired", func(ctx context.Context, b browser) {
			b.shows(ctx, b.authority, testkit.CertificateOptions{Client: true, Subject: "ann", NotAfter: time.Now().Add(-time.Hour)})
		}, "", SpecTimeout(2*time.Minute)),
		Entry("wrong", func(ctx context.Context, b browser) {
			other, err := testkit.NewAuthority("other")
			Expect(err).NotTo(HaveOccurred())
			b.shows(ctx, other, testkit.CertificateOptions{Client: true, Subject: "ann"})
		}, "", SpecTimeout(2*time.Minute)),
	)
})
