package main

import (
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/gatehouse-gateway/gatehouse/pkg/testkit"
)

var _ = Describe("gatehouse bootstrap", func() {
	var dir string
	path := func(name string) string { return filepath.Join(dir, name) }
	BeforeEach(func() {
		dir = GinkgoT().TempDir()
		ca, err := testkit.NewAuthority("ca")
		Expect(err).NotTo(HaveOccurred())
		pair, err := ca.Issue(testkit.CertificateOptions{URIs: []string{"spiffe://gatehouse/proxy/gw"}, Client: true})
		Expect(err).NotTo(HaveOccurred())
		for name, text := range map[string]string{"ca.crt": ca.PEM, "gw.crt": pair.Cert, "gw.key": pair.Key, "token": "ghx_secret\n"} {
			Expect(os.WriteFile(path(name), []byte(text), 0o600)).To(Succeed())
		}
	})
	elsewhere := []string{"bootstrap", "--xds-addr", "10.0.0.1:18000"}

	It("writes absolute file names, because Envoy has a working directory of its own", func() {
		GinkgoT().Chdir(dir)
		out := good(append(elsewhere, "--xds-tls-ca", "ca.crt", "--xds-tls-cert", "gw.crt", "--xds-tls-key", "./gw.key")...)
		for _, name := range []string{"ca.crt", "gw.crt", "gw.key"} {
			Expect(out).To(ContainSubstring(`filename: "` + path(name) + `"`))
		}
		Expect(out).NotTo(ContainSubstring("PRIVATE KEY"))
	})

	It("warns about files that do not exist on this machine, which may be for an Envoy elsewhere, and refuses bad files", func() {
		r := run1("", append(elsewhere, "--xds-tls-ca", "/there/ca.crt")...)
		Expect(r.code).To(BeZero())
		Expect(r.stderr).To(Equal(`gatehouse: warning: --xds-tls-ca: there is no file /there/ca.crt: it is the authority of the control plane ("gatehouse pki init DIR" makes its ca.crt); it was not checked` + "\n"))
		Expect(r.stdout).To(ContainSubstring(`filename: "/there/ca.crt"`))

		r = run1("", append(elsewhere, "--proxy", "edge", "--xds-tls-ca", path("ca.crt"), "--xds-tls-cert", path("gw.crt"), "--xds-tls-key", path("gw.key"))...)
		Expect(r.code).To(Equal(2))
		Expect(r.stdout).To(BeEmpty())
		Expect(r.stderr).To(Equal("gatehouse: --xds-tls-cert: " + path("gw.crt") + ` is for gw and not for proxy "edge": issue one with "gatehouse pki issue DIR proxy edge"` + "\n"))
	})

	It("contains the token, says that it does, and warns if others can read it", func() {
		const unencrypted = `gatehouse: warning: the token is sent to 10.0.0.1:18000 unencrypted: whoever sees it can act as proxy "gw"; set --xds-tls-ca` + "\n"
		r := run1("", append(elsewhere, "--xds-token-file", path("token"))...)
		Expect(r.code).To(BeZero())
		Expect(r.stderr).To(Equal(unencrypted))
		Expect(strings.Count(r.stdout, `"Bearer ghx_secret"`)).To(Equal(2))
		Expect(r.stdout).To(ContainSubstring("# It holds a token: only the user that runs Envoy may read it (chmod 600).\n"))

		Expect(good(append(elsewhere, "--xds-token-file", path("token"), "--xds-tls-ca", path("ca.crt"))...)).To(ContainSubstring("ghx_secret"))
		Expect(good("bootstrap", "--xds-addr", "[::1]:18000", "--xds-token-file", path("token"))).To(ContainSubstring("ghx_secret"))
		Expect(good("bootstrap", "--xds-addr", "localhost:18000", "--xds-token-file", path("token"))).To(ContainSubstring("ghx_secret"))
		Expect(good("bootstrap")).NotTo(Or(ContainSubstring("Bearer"), ContainSubstring("chmod")))
	})

	It("warns that a terminal shows the token", func(ctx SpecContext) {
		p, err := testkit.SpawnOnTerminal(nil, "bootstrap", "--xds-token-file", path("token"))
		Expect(err).NotTo(HaveOccurred())
		Expect(p.Wait(ctx)).To(BeZero())
		Expect(p.Stdout.String()).To(ContainSubstring("gatehouse: warning: the bootstrap contains the token, and is shown on a terminal\n"))
	}, NodeTimeout(time.Minute))

	It("writes the files of --sds-dir, which others may read, and replaces them", func() {
		sds := GinkgoT().TempDir()
		args := append(elsewhere, "--xds-tls-ca", path("ca.crt"), "--xds-tls-cert", path("gw.crt"), "--xds-tls-key", path("gw.key"), "--sds-dir", sds)
		for range 2 {
			out := good(args...)
			Expect(out).To(And(ContainSubstring(sds+"/xds-certificate.json"), ContainSubstring(sds+"/xds-ca.json"), Not(ContainSubstring(path("gw.crt")))))
			entries, err := os.ReadDir(sds)
			Expect(err).NotTo(HaveOccurred())
			Expect(entries).To(HaveExactElements(HaveField("Name()", "xds-ca.json"), HaveField("Name()", "xds-certificate.json")))
			Expect(os.ReadFile(filepath.Join(sds, "xds-certificate.json"))).To(ContainSubstring(path("gw.crt")))
		}
		r := run1("", append(elsewhere, "--xds-tls-ca", path("ca.crt"), "--sds-dir", path("none"))...)
		Expect(r.code).To(Equal(2))
		Expect(r.stderr).To(Equal("gatehouse: --sds-dir: there is no directory " + path("none") + ": make it, on the machine of the Envoy\n"))
	})

	It("prints JSON", func() {
		Expect(good("bootstrap", "--format", "json")).To(HavePrefix(`{"admin":{`))
	})
})
