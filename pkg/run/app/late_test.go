package app_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gbytes"

	"github.com/gatehouse-gateway/gatehouse/pkg/run/app"
	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("A server without its database", func() {
	// without returns the settings of a server whose database is away, and the port of its API.
	without := func(flags map[string]string) (map[string]string, int) {
		GinkgoHelper()
		port, err := testkit.FreePort()
		Expect(err).NotTo(HaveOccurred())
		flags["api-addr"] = fmt.Sprintf("127.0.0.1:%d", port)
		flags["database-url"] = "postgres://127.0.0.1:1/gatehouse?sslmode=disable"
		return flags, port
	}

	It("waits, says for what, and stops when it is told to", func() {
		flags, port := without(map[string]string{})
		dir := GinkgoT().TempDir()
		r, stop := serveUntil(settings(dir, flags))
		Eventually(r.log).Should(gbytes.Say(`level=WARN msg="waiting for the database, which does not answer" ` +
			`err="Postgres at 127.0.0.1:1 refuses the connection \(check that it is running and listens there\)" waited=`))
		var answer string
		Eventually(func() (code int) {
			code, answer = call("GET", fmt.Sprintf("http://127.0.0.1:%d/ready", port), "", "")
			return code
		}).Should(Equal(503))
		Expect(answer).To(ContainSubstring("not ready: waiting for the database: Postgres at 127.0.0.1:1 refuses the connection"))
		Expect(status(fmt.Sprintf("http://127.0.0.1:%d/health", port), "")).To(Equal(200))
		stop()
		Eventually(r.done).Should(Receive(MatchError("waiting for the database: context canceled")))
		Expect(string(r.log.Contents())).NotTo(ContainSubstring("gatehouse is up"))
		Expect(os.ReadDir(dir)).To(BeEmpty(), "a key that was made for a database that nobody has seen would be in the way of the right one")
	})

	It("says over HTTPS what it waits for, if the API has a certificate, and nothing in the clear", func() {
		dir := GinkgoT().TempDir()
		certFile, keyFile := filepath.Join(dir, "api.crt"), filepath.Join(dir, "api.key")
		cert, key := keyPair(7)
		Expect(os.WriteFile(certFile, cert, 0o600)).To(Succeed())
		Expect(os.WriteFile(keyFile, key, 0o600)).To(Succeed())
		flags, port := without(map[string]string{"api-tls-cert": certFile, "api-tls-key": keyFile})
		r, stop := serveUntil(settings(GinkgoT().TempDir(), flags))
		trusted := x509.NewCertPool()
		Expect(trusted.AppendCertsFromPEM(cert)).To(BeTrue())
		client := &http.Client{
			Timeout:   10 * time.Second,
			Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
		}
		get := func(scheme, path string) (int, string) {
			res, err := client.Get(fmt.Sprintf("%s://127.0.0.1:%d%s", scheme, port, path))
			if err != nil {
				return 0, err.Error()
			}
			defer res.Body.Close()
			body, err := io.ReadAll(res.Body)
			Expect(err).NotTo(HaveOccurred())
			return res.StatusCode, string(body)
		}
		var answer string
		Eventually(func() (code int) {
			code, answer = get("https", "/ready")
			return code
		}).Should(Equal(503), func() string { return answer })
		Expect(answer).To(ContainSubstring("not ready: waiting for the database: Postgres at 127.0.0.1:1 refuses the connection"))
		code, answer := get("https", "/health")
		Expect(code).To(Equal(200), answer)
		code, answer = get("http", "/ready")
		Expect(code).To(Equal(400), answer)
		Expect(answer).NotTo(ContainSubstring("database"))
		stop()
		Eventually(r.done).Should(Receive(MatchError("waiting for the database: context canceled")))
	})

	It("reports a port that asks for a proof which nobody has as a wrong setting", func() {
		for _, flag := range []string{"api-addr", "xds-addr"} {
			r := serve(settings(GinkgoT().TempDir(), map[string]string{flag: "0.0.0.0:0"}))
			var err error
			Eventually(r.done).Should(Receive(&err))
			wrong, ok := errors.AsType[*app.SettingError](err)
			Expect(ok).To(BeTrue(), "%s: %v", flag, err)
			Expect(wrong.Err).To(MatchError(HavePrefix("--" + flag + " 0.0.0.0:0")))
		}
	})

	It("reports a taken port before it waits", func() {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		Expect(err).NotTo(HaveOccurred())
		DeferCleanup(l.Close)
		flags, _ := without(map[string]string{"xds-addr": l.Addr().String()})
		r := serve(settings(GinkgoT().TempDir(), flags))
		Eventually(r.done).Should(Receive(MatchError(ContainSubstring("the xDS server cannot listen on " + l.Addr().String()))))
	})
})
